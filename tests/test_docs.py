"""The code in docs/ runs, block after block, as a reader would type it, and what docstrings name is there."""

import ast
import io
import re
import tokenize
from configparser import ConfigParser
from itertools import pairwise
from operator import attrgetter
from pathlib import Path

import pytest

import modelweld
from pages import FENCE, needed

NAME = re.compile(r"`((?:\w+\.)+\w+)(?:\(.*?\))?`")
"""A name with dots, in backticks."""

ENDINGS = {"py", "md", "html", "json", "csv", "npz", "npy", "safetensors"}
"""Of files, which are no names in modules."""

SOURCES = Path(__file__).parents[1] / "src" / "modelweld"

ROOT = SOURCES.parents[1]


def blocks_of(page):
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return [code for word, code in FENCE.findall(text) if word == "python"]


def ran(page, extra=None):
    """What the blocks of a page leave behind: those that need no extra, or this one."""
    names = {}
    for i, block in enumerate(blocks_of(page)):
        if needed(block) in (None, extra):
            exec(compile(block, f"docs/{page}, block {i}", "exec"), names)
    return names


EXTRAS = sorted({needed(block) for block in blocks_of("families.md")} - {None})


@pytest.mark.parametrize("extra", ["", *(pytest.param(extra, marks=getattr(pytest.mark, extra)) for extra in EXTRAS)])
def test_the_guide_to_families_runs(extra):
    ran("families.md", extra)


def test_the_guide_to_directions_runs():
    names = ran("directions.md")
    assert names["fusion"].K == 3
    assert names["features_of_all"].K == 5
    one, other = (names["aligned"][j][names["fusion"].labels[j].argsort()] for j in (0, 1))
    assert ((one * other).sum(1) > 0.9).all()


def test_the_guide_to_models_runs():
    assert ran("models.md")["fusion"].K == 3


def test_the_map_has_every_room_in_its_zone():
    """Zones of design.md, inner ones first, as the contract of imports has them."""
    rooms = {file.parent.name for file in SOURCES.glob("*/__init__.py")}
    text = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    table = text.split("| zone | rooms | idea |")[1].split("\n\n")[0]
    zones = [re.findall(r"`(\w+)`", line.split("|")[2]) for line in table.splitlines()[2:]]
    assert {room for zone in zones for room in zone} == rooms
    contract = ConfigParser()
    contract.read(ROOT / ".importlinter", encoding="utf-8")
    layers = contract["importlinter:contract:zones"]["layers"].splitlines()
    level = {room: i for i, line in enumerate(layers) for room in re.findall(r"modelweld\.(\w+)", line)}
    for inner, outer in pairwise(zones):
        assert min(level[room] for room in inner) > max(level[room] for room in outer)


def tokens_of(source):
    return tokenize.generate_tokens(io.StringIO(source).readline)


def texts_of(source):
    """Docstrings, also those of constants, and comments."""
    found = [node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Expr)]
    yield from (value.value for value in found if isinstance(value, ast.Constant) and isinstance(value.value, str))
    yield from (token.string for token in tokens_of(source) if token.type == tokenize.COMMENT)


def is_public(name):
    """Whether a name is one that `import modelweld` gives."""
    try:
        return attrgetter(name)(modelweld) is not None
    except (AttributeError, ImportError):
        return False


def is_written(name, here=SOURCES):
    """Whether a name is a module, or stands in the code of the one that it begins with; no extra need be installed."""
    first, _, rest = name.partition(".")
    folder, file = here / first, here / f"{first}.py"
    if folder.is_dir():
        return not rest or is_written(rest, folder)
    if not file.exists():
        file, rest = here / "__init__.py", name
    words = {token.string for token in tokens_of(file.read_text(encoding="utf-8")) if token.type == tokenize.NAME}
    return set(rest.split(".")) - {""} <= words


def unknown_names(source):
    rooms = {folder.name for folder in SOURCES.iterdir() if folder.is_dir()}
    names = {name for text in texts_of(source) for name in NAME.findall(text)}
    ours = {n for n in names if n.split(".")[0] in {*rooms, "modelweld"} and n.split(".")[-1] not in ENDINGS}
    short = {name: name.removeprefix("modelweld.") for name in ours}
    return sorted(name for name in ours if not is_public(short[name]) and not is_written(short[name]))


def test_names_in_docstrings_exist():
    unknown = {str(f.relative_to(SOURCES)): unknown_names(f.read_text(encoding="utf-8")) for f in SOURCES.rglob("*.py")}
    assert {file: names for file, names in unknown.items() if names} == {}


GONE = ["core.gone", "modelweld.gone", "core.board.Gone", "families.Gone", "modelweld.hmm.sticky.x.y"]


@pytest.mark.parametrize("name", GONE)
def test_names_that_are_gone_are_noticed(name):
    assert unknown_names(f'"""See `{name}`."""\n# and `core.board.Board`\n') == [name]
