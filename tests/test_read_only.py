"""Where compiled code cannot be kept beside the sources or at home, compiled functions work all the same."""

import ctypes
import logging
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

import modelweld
from modelweld import ModelweldWarning, compilers
from modelweld.cli.messages import Compiling
from modelweld.progress import COMPILING, progress_to

PROGRAM = """
import os, sys, tempfile
import numpy as np
tempfile.tempdir = sys.argv[1]
from modelweld.fit.engines.compiled.assignment import distinct_best  # a small one, to be compiled quickly
assert distinct_best(np.ones(1), np.zeros(1, int), np.zeros(1), 1, np.zeros(1, int), np.zeros(1, bool))
folder = os.path.join(sys.argv[1], f"modelweld-{os.getuid()}")
print(oct(os.stat(folder).st_mode)[-3:], any(name.endswith(".nbc") for *_, names in os.walk(folder) for name in names))
"""


@pytest.fixture
def read_only():
    """A copy of the package that another user can read and not write, and a directory that is his."""
    folder = Path(tempfile.mkdtemp())
    package = Path(modelweld.__file__).parent
    shutil.copytree(package, folder / "modelweld", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "own").mkdir()
    folders = [path for path in (folder / "modelweld").rglob("*") if path.is_dir()]
    for path in (folder, folder / "modelweld", *folders):
        path.chmod(0o555)
    (folder / "own").chmod(0o777)
    yield folder
    for path in (folder, folder / "modelweld", *folders):
        path.chmod(0o755)
    shutil.rmtree(folder)


def obey_modes():
    """Whoever runs the tests, also root, may not write where the mode of a directory says so (Linux's capability 1)."""
    PR_CAPBSET_DROP, CAP_DAC_OVERRIDE = 24, 1
    ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE)


@pytest.mark.skipif(sys.platform != "linux", reason="root obeys no mode elsewhere")
def test_a_read_only_install_keeps_code_where_only_its_user_can_write(read_only):
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(read_only / "own")],
        env={"PYTHONPATH": str(read_only), "HOME": str(read_only), "NUMBA_CACHE_DIR": str(read_only / "cache")},
        preexec_fn=obey_modes,
        capture_output=True,
        text=True,
    )
    assert run.stdout.split() == ["700", "True"], run.stderr


def refuse_to_keep(function, fastmath, *, keep):
    """As numba, where no directory can be written to."""
    if keep:
        raise RuntimeError("cannot cache function: no locator available")
    return compilers.njit(function)


def test_without_any_directory_functions_are_compiled_all_the_same_and_it_is_said_once(monkeypatch, tmp_path):
    monkeypatch.setattr(compilers, "_compile", refuse_to_keep)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    compilers.temporary_folder.cache_clear()
    with pytest.warns(ModelweldWarning, match="NUMBA_CACHE_DIR") as said:
        functions = [compilers.compiled()(lambda x, n=n: x + n) for n in range(2)]
    compilers.temporary_folder.cache_clear()
    assert len(said) == 1
    assert functions[1](2.0) == 3.0


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="modes are those of POSIX")
def test_a_directory_that_others_can_write_to_is_not_used(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    folder = tmp_path / f"modelweld-{os.getuid()}"
    folder.mkdir()
    folder.chmod(0o777)
    compilers.temporary_folder.cache_clear()
    with pytest.warns(ModelweldWarning, match="no directory"):
        assert compilers.temporary_folder() == ""
    compilers.temporary_folder.cache_clear()


def test_a_first_call_says_that_it_compiles(monkeypatch, caplog, capsys):
    def compile_one():
        assert compilers.njit(lambda x: x * 3)(np.float64(2)) == 6.0

    heard = []
    with progress_to(lambda *step: heard.append(step)):
        compile_one()
    assert heard[0][0] == COMPILING
    with progress_to(Compiling()):
        compile_one()
        compile_one()
    assert capsys.readouterr().err.count(COMPILING) == 1
    monkeypatch.setattr(compilers.Saying, "done", 0)
    with caplog.at_level(logging.WARNING):
        compilers.Saying().on_start(None)
    assert COMPILING in caplog.text
