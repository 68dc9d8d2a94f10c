"""Examples in docstrings that need an extra run where it is installed, like the tests that are marked so."""

from importlib.util import find_spec

import pytest

ENGINES = {"federate/nvflare": "nvflare", "federate/flower*": "flwr", "shards/dask": "distributed"}
"""Modules -> the library they are made for, which must be there even to look for examples."""

collect_ignore = ["tests/adapted", "tests/cases"]
"""Tables that tests run over: they hold no tests, and some need a library that is not there."""

collect_ignore_glob = [f"src/modelweld/{m}.py" for m, library in ENGINES.items() if find_spec(library) is None]

NEEDS = {
    "dynamax": "dynamax",
    "gaussian_hmm": "hmm",
    "gmm_hmm": "hmm",
    "categorical_hmm": "hmm",
    "poisson_hmm": "hmm",
    "estimated_hmms": "hmm",
    "fit_hmm": "hmm",
    "families.own.density": "jax",
    "gpytorch": "gp",
    "torch_sequential": "torch",
    "gensim": "topics",
    "federate.flower": "flower",
    "federate.nvflare": "nvflare",
    "shards.dask": "dask",
}
"""Part of the name of a module or function -> the extra its examples need."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark examples of modules that need an extra."""
    for item in items:
        if isinstance(item, pytest.DoctestItem):
            for part, extra in NEEDS.items():
                if part in item.name:
                    item.add_marker(getattr(pytest.mark, extra))
