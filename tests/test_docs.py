"""The code in docs/families.md runs, block after block, as a reader would type it."""

import re
from configparser import ConfigParser
from pathlib import Path

import pytest

BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NEEDS = re.compile(r"^# needs the extra (\w+)$", re.MULTILINE)
"""A block that begins so is run where the extra is installed."""

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


def test_there_is_code():
    assert len(BLOCKS) >= 4


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
