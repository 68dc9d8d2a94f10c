"""docs/equations.md leads somewhere: every function, file and test that it names exists."""

import re
from importlib import import_module
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
PAGE = (TESTS.parent / "docs" / "equations.md").read_text()
FUNCTIONS = sorted(set(re.findall(r"`([a-z_]+(?:\.\w+)+)`", PAGE)) - set(re.findall(r"`([\w/]+\.(?:py|md))`", PAGE)))
"""Dotted names in code, from the package down."""


def named_tests():
    """(file, test) of all tests named; one without a file belongs to the file named last."""
    found, file = [], ""
    for path, test in re.findall(r"`(?:tests/)?((?:cases/|test_)\w+\.py)?(?:::(test_\w+))?`", PAGE):
        file = path or file
        if path or test:
            found.append((file, test))
    return sorted(set(found))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_exist(name):
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            thing = import_module(".".join(["modelweld", *parts[:end]]))
        except ModuleNotFoundError:
            continue
        for part in parts[end:]:
            thing = getattr(thing, part)
        return
    pytest.fail(f"no module of modelweld is called {parts[0]}")


@pytest.mark.parametrize(("file", "test"), named_tests())
def test_tests_exist(file, test):
    assert re.search(rf"^def {test}\(" if test else "", (TESTS / file).read_text(), flags=re.MULTILINE)


def test_something_was_looked_at():
    assert len(FUNCTIONS) > 40
    assert len(named_tests()) > 50
