"""The house: no import goes round in a circle, and what stands beside the rooms can be counted on two hands."""

import sys
from pathlib import Path

import grimp
import pytest

import modelweld

ROOT = Path(modelweld.__file__).parent
MOST_BESIDE = 11


@pytest.fixture(scope="module")
def graph():
    """Imports of all modules, those inside functions included, those for type checkers alone left out."""
    return grimp.build_graph("modelweld", exclude_type_checking_imports=True)


def circles(graph):
    """Sets of modules that import each other, by whatever way (Tarjan's components of more than one)."""
    number, lowest, stack, found = {}, {}, [], []

    def visit(module):
        number[module] = lowest[module] = len(number)
        stack.append(module)
        for other in graph.find_modules_directly_imported_by(module):
            if other not in number:
                visit(other)
            if other in stack:
                lowest[module] = min(lowest[module], lowest[other])
        if lowest[module] == number[module]:
            first = stack.index(module)
            component = stack[first:]
            del stack[first:]
            if len(component) > 1:
                found.append(sorted(component))

    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(10 * len(graph.modules) + limit)
    try:
        for module in sorted(graph.modules):
            if module not in number:
                visit(module)
    finally:
        sys.setrecursionlimit(limit)
    return found


def test_no_import_goes_round(graph):
    assert circles(graph) == []


def test_a_circle_would_be_seen():
    graph = grimp.ImportGraph()
    for module in "abcd":
        graph.add_module(module)
    for importer, imported in ("ab", "bc", "ca", "cd"):
        graph.add_import(importer=importer, imported=imported)
    assert circles(graph) == [["a", "b", "c"]]


def test_few_files_stand_beside_the_rooms():
    assert len(list(ROOT.glob("*.py"))) <= MOST_BESIDE


def test_every_room_says_what_it_is_for():
    rooms = [path for path in ROOT.rglob("__init__.py") if path.parent != ROOT]
    assert [str(path) for path in rooms if not path.read_text().startswith('"""')] == []


def test_module_names_are_not_used_twice():
    names = [path.stem for path in ROOT.rglob("*.py") if path.name not in ("__init__.py", "__main__.py")]
    assert [name for name in set(names) if names.count(name) > 1] == []
