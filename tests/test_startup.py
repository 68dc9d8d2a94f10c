"""What is quick must stay so for a reason that can be tested: what it does not load."""

import subprocess
import sys
from importlib import import_module

import pytest

import modelweld

LOADED = """
import runpy, sys
sys.argv = ["modelweld", *sys.argv[1:]]
try:
    runpy.run_module("modelweld", run_name="__main__")
except SystemExit:
    pass
heavy = ("numpy", "scipy", "numba", "sklearn", "rich", "modelweld.families")
print(sorted(name for name in heavy if name in sys.modules))
"""


def after(*words):
    run = subprocess.run([sys.executable, "-c", LOADED, *words], capture_output=True, text=True, check=True)
    return run.stdout.splitlines()[-1]


def test_help_loads_no_numpy():
    assert after("--help") == "[]"
    assert after("fuse", "--help") == "[]"


def test_a_small_job_loads_neither_a_compiler_nor_other_libraries():
    code = """
import sys, numpy as np, modelweld
rng = np.random.default_rng(0)
modelweld.fuse([np.arange(12.0).reshape(6, 2) * 9 + rng.normal(0, 1, (6, 2)) for _ in range(4)])
print([name for name in ("numba", "sklearn", "scipy.stats", "pandas", "matplotlib", "torch") if name in sys.modules])
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["[]"]


def test_every_public_name_is_found_and_is_not_a_module():
    for name in modelweld.__all__:
        assert not isinstance(getattr(modelweld, name), type(sys)), name
    assert set(modelweld.__all__) <= set(dir(modelweld))


def test_importing_the_module_leaves_the_function():
    functions = "modelweld.fuse, modelweld.export, modelweld.site.export"
    code = f"import modelweld.fuse, modelweld.site.export; print(all(map(callable, ({functions}))))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["True"]


def test_names_that_are_no_alias_are_not_found():
    with pytest.raises(ModuleNotFoundError, match="metricz"):
        import_module("modelweld.metricz")
