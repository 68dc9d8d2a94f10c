"""What holds for all tests: compiled code is that of the sources, examples run where their extra is installed."""

import hashlib
import os
import re
import shutil
import sys
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parent

CACHES = ROOT / ".pytest_cache" / f"numba-{version('numba')}"
"""One folder of compiled code, named by a hash of the sources it was compiled from; apart for each version of numba."""


def compiled_sources() -> list[Path]:
    """Every file in a folder where numba is called: compiled functions call each other across files."""
    found = sorted((ROOT / "src").rglob("*.py"))
    folders = {path.parent for path in found if re.search(rb"njit|modelweld.compilers import", path.read_bytes())}
    return [path for path in found if path.parent in folders]


def cache_of(sources: list[Path]) -> Path:
    """Where code compiled from these sources is kept."""
    mark = hashlib.blake2b(digest_size=8)
    for path in sources:
        mark.update(f"{path.name} {path.stat().st_size} ".encode() + path.read_bytes())
    return CACHES / mark.hexdigest()


def keep_compiled_code_in_step() -> None:
    """Numba looks at the file of a function alone, not at those it calls; so when any changes, all code goes.

    Programs that tests start inherit the variable. What was compiled outside tests lies beside the sources.
    """
    sources = compiled_sources()
    folder = cache_of(sources)
    if not folder.exists():
        shutil.rmtree(CACHES, ignore_errors=True)
        folder.mkdir(parents=True, exist_ok=True)
        for stale in (ROOT / "src").rglob("__pycache__/*.nb[ic]"):
            stale.unlink(missing_ok=True)
    os.environ["NUMBA_CACHE_DIR"] = str(folder)


keep_compiled_code_in_step()  # before anything imports numba, which reads the variable then

ENGINES = {"federate/nvflare": "nvflare", "federate/flower*": "flwr", "shards/engine": "distributed"}
"""Modules -> the library they are made for, which must be there even to look for examples."""

collect_ignore = ["tests/adapted", "tests/cases"]
"""Tables that tests run over: they hold no tests, and some need a library that is not there."""

collect_ignore_glob = [f"src/modelweld/{m}.py" for m, library in ENGINES.items() if find_spec(library) is None]

NEEDS = {
    "dynamax": "dynamax",
    "hmmlearn": "hmm",
    "estimated_hmms": "hmm",
    "fit_hmm": "hmm",
    "families.own.user_density": "jax",
    "gpytorch": "gp",
    "torch_sequential": "torch",
    "distillation.compare": "torch",
    "gensim": "topics",
    "federate.flower": "flower",
    "federate.nvflare": "nvflare",
    "shards.engine": "dask",
    "private_centres": "dp",
    "fuse_cells": "anndata",
    "label_components": "mne",
}
"""Part of the name of a module or function -> the extra its examples need."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark examples of modules that need an extra."""
    for item in items:
        if isinstance(item, pytest.DoctestItem):
            for part, extra in NEEDS.items():
                if part in item.name:
                    item.add_marker(getattr(pytest.mark, extra))


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    """Run a command in an empty folder: exit code, what it says, what it complains of."""
    from modelweld.cli import main

    monkeypatch.chdir(tmp_path)

    def command(*words):
        monkeypatch.setattr(sys, "argv", ["modelweld", *map(str, words)])
        code = 0
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
        said = capsys.readouterr()
        return code, said.out, said.err

    return command
