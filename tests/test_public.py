"""What is public is said in docs/public.md, and the code, the documents and the examples keep to it."""

import ast
import pickle
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import modelweld

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "modelweld"
LINE = re.compile(r"^\| `(modelweld[.\w]*)` \| [^|]* \| ([^|]*) \|$", re.MULTILINE)
PUBLIC = {
    module: set(re.findall(r"`(\w+)`", names))
    for module, names in LINE.findall((ROOT / "docs" / "public.md").read_text(encoding="utf-8"))
}
INSIDE = ROOT / "examples" / "spark_shards.py"
"""A pattern that stands on internal modules, and says so."""

PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def home(module):
    """Where a public module stands: some are known by a shorter name."""
    first, _, rest = module.removeprefix("modelweld").removeprefix(".").partition(".")
    return ".".join(part for part in ("modelweld", modelweld.MODULES.get(first, first), rest) if part)


def tree(module):
    path = ROOT / "src" / Path(*module.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ast.parse(file.read_text(encoding="utf-8"))


def defined(module):
    """Names at the top of a module, without loading it: some need an extra."""
    names = set()
    for part in tree(module).body:
        match part:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.Assign() | ast.AnnAssign() | ast.ImportFrom():
                names |= {x.id for x in ast.walk(part) if isinstance(x, ast.Name)}
                names |= {x.asname or x.name for x in ast.walk(part) if isinstance(x, ast.alias)}
    return names


def imported(code):
    """What a program imports from here, as (module, name)."""
    for part in ast.walk(ast.parse(code)):
        if isinstance(part, ast.ImportFrom) and part.module and part.module.split(".")[0] == "modelweld":
            yield from ((part.module, alias.name) for alias in part.names)


@pytest.mark.parametrize("module", PUBLIC)
def test_modules_bring_what_is_listed(module):
    if module == "modelweld":
        assert set(modelweld.__all__) == PUBLIC[module]
        return
    place = home(module)
    listed = [x for x in tree(place).body if isinstance(x, ast.Assign) and ast.unparse(x.targets[0]) == "__all__"]
    if listed:
        assert set(import_module(place).__all__) == PUBLIC[module]
    else:
        assert defined(place) >= PUBLIC[module]


@pytest.mark.parametrize("module", PUBLIC)
def test_classes_and_functions_have_an_example(module):
    """Warnings and errors aside, which say what they are by what they say; all others are run as doctests."""
    try:
        room = import_module(home(module))
    except ImportError:  # needs an extra
        return
    found = {name: getattr(room, name, None) for name in PUBLIC[module]}
    shown = {name: x for name, x in found.items() if callable(x)}
    shown = {name: x for name, x in shown.items() if not (isinstance(x, type) and issubclass(x, Exception))}
    assert [name for name, x in shown.items() if not re.search(r">>> |::\n", x.__doc__ or "")] == []


def test_the_package_shows_public_names_only():
    rooms = {module.split(".")[1] for module in PUBLIC if module != "modelweld"}
    assert set(dir(modelweld)) == {*modelweld.__all__, *rooms, "__version__"}
    for name in dir(modelweld):
        assert getattr(modelweld, name) is not None


def test_the_package_is_pickled_by_its_name():
    """Functions of a notebook that name it are sent to other processes."""
    assert pickle.loads(pickle.dumps(modelweld)) is modelweld


def test_every_other_room_says_that_it_is_internal():
    for file in SOURCE.rglob("__init__.py"):
        room = ".".join(("modelweld", *file.parent.relative_to(SOURCE).parts))
        public = any(
            home(module).startswith(room) for module in PUBLIC if home(module) != "modelweld.results.diagnostics.notes"
        )
        assert public or "Internal: docs/public.md" in file.read_text(encoding="utf-8"), room


@pytest.mark.parametrize("file", ["README.md", "docs", "examples"])
def test_documents_and_examples_import_public_names_only(file):
    path = ROOT / file
    texts = {path} if path.is_file() else {*path.rglob("*.md"), *path.rglob("*.py")} - {INSIDE}
    codes = [c for p in texts for c in ([p.read_text()] if p.suffix == ".py" else PYTHON.findall(p.read_text()))]
    assert codes
    for module, name in (found for code in codes for found in imported(code)):
        assert name in PUBLIC.get(module, ()) or f"{module}.{name}" in PUBLIC, (module, name)


GROUPS = ("parameters", "posterior", "diagnosis", "timeline", "density")
"""What a fusion shows beside its most used names."""


def shown(thing):
    return [name for name in dir(thing) if not name.startswith("_")]


def test_a_fusion_has_few_names_and_shows_the_rest_in_groups():
    fusion = modelweld.fuse([[[0.0], [9.0]], [[9.1]], [[0.1]]])
    assert len(shown(modelweld.Fusion)) <= 25
    assert shown(fusion) == shown(modelweld.Fusion)
    assert set(GROUPS) < set(shown(fusion))


@pytest.mark.parametrize("name", GROUPS)
def test_groups_are_documented_and_have_examples(name):
    group = type(getattr(modelweld.fuse([[[0.0], [9.0]], [[9.1]], [[0.1]]]), name))
    assert ">>> " in group.__doc__
    assert shown(group)
    assert [one for one in shown(group) if not getattr(group, one).__doc__] == []
    listed = (ROOT / "docs" / "public.md").read_text(encoding="utf-8")
    (row,) = [line for line in listed.splitlines() if line.startswith(f"| `fusion.{name}` |")]
    assert set(re.findall(r"`(\w+)`", row)) == set(shown(group))


def test_users_programs_are_typed(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import modelweld\n"
        "from modelweld import simulate\n"
        "K: int = modelweld.fuse(simulate.paper_figure().values, modelweld.Gaussian()).K\n"
        "modelweld.fus\n"
    )
    run = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", str(program)], cwd=ROOT, capture_output=True, text=True
    )
    assert re.findall(r"(program\.py:\d+): error", run.stdout) == ["program.py:4"], run.stdout + run.stderr


@pytest.mark.parametrize("name", ["Any", "gaussian", "_names_"])
def test_what_is_not_there_is_said(name):
    with pytest.raises(AttributeError, match="has no attribute"):
        getattr(modelweld, name)
