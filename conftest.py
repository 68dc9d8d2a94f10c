"""Examples in docstrings that need an extra run where it is installed, like the tests that are marked so."""

import pytest

collect_ignore = ["tests/adapted", "tests/cases"]
"""Tables that tests run over: they hold no tests, and some need a library that is not there."""

NEEDS = {
    "dynamax": "dynamax",
    "hmm": "hmm",
    "families.density": "jax",
    "gpytorch": "gp",
    "torch_sequential": "torch",
    "gensim": "topics",
}
"""Part of a module's name -> the extra its examples need."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark examples of modules that need an extra."""
    for item in items:
        if isinstance(item, pytest.DoctestItem):
            for part, extra in NEEDS.items():
                if part in item.name:
                    item.add_marker(getattr(pytest.mark, extra))
