"""Examples in docstrings that need an extra run where it is installed, like the tests that are marked so."""

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark examples about hidden Markov models."""
    for item in items:
        if isinstance(item, pytest.DoctestItem) and "hmm" in item.name:
            item.add_marker(pytest.mark.hmm)
