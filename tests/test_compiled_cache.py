"""Tests never run code that was compiled from other sources than those that are there."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import numba
from conftest import CACHES, cache_of, compiled_sources
from numba.core.dispatcher import Dispatcher

import modelweld


def modules():
    """Every module of modelweld that can be imported here."""
    names = [found.name for found in walk_packages(modelweld.__path__, "modelweld.")]
    for name in set(names) - {"modelweld.__main__"}:  # which would run
        try:
            yield import_module(name)
        except ImportError:  # needs an extra
            continue


def test_all_compiled_functions_are_in_the_sources_that_are_watched():
    functions = {x for module in modules() for x in vars(module).values() if isinstance(x, Dispatcher)}
    files = {Path(f.py_func.__code__.co_filename).resolve() for f in functions}
    assert len(files) > 3
    assert files <= {path.resolve() for path in compiled_sources()}


def test_other_sources_have_another_cache(tmp_path):
    sources = [tmp_path / "a.py", tmp_path / "b.py"]
    folders = set()
    for texts in (("x = 1", "y = 2"), ("x = 1", "y = 3"), ("x = 1y = 2", ""), ("x = 1", "y = 2")):
        for path, text in zip(sources, texts, strict=True):
            path.write_text(text)
        folders.add(cache_of(sources))
    assert len(folders) == 3


def test_programs_that_tests_start_use_it_too():
    said = subprocess.run(
        [sys.executable, "-c", "import numba; print(numba.config.CACHE_DIR)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout.strip() == numba.config.CACHE_DIR == str(cache_of(compiled_sources()))
    assert Path(numba.config.CACHE_DIR).parent == CACHES
