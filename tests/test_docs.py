"""The code in docs/ runs, block after block, as a reader would type it, and what docstrings name is there."""

import ast
import io
import re
import tokenize
from configparser import ConfigParser
from importlib.util import module_from_spec, spec_from_file_location
from operator import attrgetter
from pathlib import Path
from xml.etree import ElementTree

import pytest

import modelweld

BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NEEDS = re.compile(r"^# needs the extra (\w+)$", re.MULTILINE)
"""A block that begins so is run where the extra is installed."""

NAME = re.compile(r"`((?:\w+\.)+\w+)(?:\(.*?\))?`")
"""A name with dots, in backticks."""

ENDINGS = {"py", "md", "html", "json", "csv", "npz", "npy", "safetensors"}
"""Of files, which are no names in modules."""

SOURCES = Path(__file__).parents[1] / "src" / "modelweld"

BLOCKS = BLOCK.findall((Path(__file__).parents[1] / "docs" / "families.md").read_text(encoding="utf-8"))


def needed(block):
    found = NEEDS.match(block)
    return found[1] if found else None


def ran(upto):
    """What the blocks before this one, and it, leave behind: those that need no extra, and the last."""
    names = {}
    for i, block in enumerate(BLOCKS[: upto + 1]):
        if i == upto or needed(block) is None:
            exec(compile(block, f"docs/families.md, block {i}", "exec"), names)
    return names


def test_blocks_without_extras_run():
    ran(max(i for i, block in enumerate(BLOCKS) if needed(block) is None))


@pytest.mark.parametrize(
    "i",
    [
        pytest.param(i, marks=getattr(pytest.mark, extra), id=f"block {i}")
        for i, block in enumerate(BLOCKS)
        if (extra := needed(block)) is not None
    ],
)
def test_blocks_that_need_an_extra_run(i):
    pytest.importorskip(needed(BLOCKS[i]))
    ran(i)


def test_the_guide_to_directions_runs():
    text = (Path(__file__).parents[1] / "docs" / "directions.md").read_text(encoding="utf-8")
    names = {}
    for i, block in enumerate(BLOCK.findall(text)):
        exec(compile(block, f"docs/directions.md, block {i}", "exec"), names)
    assert names["fusion"].K == 3
    assert names["features_of_all"].K == 5
    one, other = (names["aligned"][j][names["fusion"].labels[j].argsort()] for j in (0, 1))
    assert ((one * other).sum(1) > 0.9).all()


def test_the_guide_to_models_runs():
    (block,) = BLOCK.findall((Path(__file__).parents[1] / "docs" / "models.md").read_text(encoding="utf-8"))
    names = {}
    exec(compile(block, "docs/models.md", "exec"), names)
    assert names["fusion"].K == 3


def test_the_map_has_every_room_in_the_order_of_imports():
    root = Path(__file__).parents[1]
    rooms = {file.parent.name for file in (root / "src" / "modelweld").glob("*/__init__.py")}
    text = (root / "docs" / "design.md").read_text(encoding="utf-8")
    table = text.split("| room | idea |")[1].split("\n\n")[0]
    listed = [room for line in table.splitlines()[2:] for room in re.findall(r"`(\w+)`", line.split("|")[1])]
    contract = ConfigParser()
    contract.read(root / ".importlinter", encoding="utf-8")
    layers = contract["importlinter:contract:rooms"]["layers"].splitlines()
    level = {room: i for i, line in enumerate(layers) for room in re.findall(r"modelweld\.(\w+)", line)}
    assert set(listed) == rooms <= level.keys()
    assert [level[room] for room in listed] == sorted((level[room] for room in listed), reverse=True)


def test_what_flows_is_drawn_between_rooms_that_there_are():
    root = Path(__file__).parents[1]
    spec = spec_from_file_location("flow_map", root / "docs" / "tools" / "flow_map.py")
    drawing = module_from_spec(spec)
    spec.loader.exec_module(drawing)
    rooms = {path.stem for path in (root / "src" / "modelweld").iterdir()}
    assert drawing.PLACES.keys() <= rooms
    assert {room for flow in drawing.FLOWS for room in flow[:2]} <= drawing.PLACES.keys()
    ElementTree.fromstring(drawing.drawn())


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


GONE = ["matching.gone", "modelweld.gone", "matching.board.Gone", "families.Gone", "modelweld.gp.model.x.y"]


@pytest.mark.parametrize("name", GONE)
def test_names_that_are_gone_are_noticed(name):
    assert unknown_names(f'"""See `{name}`."""\n# and `matching.board.Board`\n') == [name]
