"""The map of the house, drawn from the contract of imports (.importlinter) and the graph of imports (grimp).

python docs/tools/house_map.py house.svg
"""

from __future__ import annotations

import re
import sys
from configparser import ConfigParser
from html import escape
from pathlib import Path

import grimp

ROOT = Path(__file__).parents[2]
CELL, NAMES, IDEAS, HEAD = 16, 98, 320, 88
"""Of the picture: a cell of the table, the columns of names and of ideas, and the height of the columns' names."""

MOST_WORDS = 52
"""Letters of an idea that there is room for."""

FILES = {
    "fuse": "fuse(): from models to a fusion",
    "fusion": "what comes back, and all that it can be asked",
    "estimator": "SPAHM, as an estimator of scikit-learn",
    "match": "one set, stage by stage",
    "threads": "how many processors",
    "compilers": "what numba compiles, and where it is kept",
    "progress": "what is said while one waits",
    "errors": "errors and warnings",
}
"""Rooms of one file -> what it holds."""

STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#24313a}.room{font-weight:600;fill:#0b3954}.may{fill:#dcebf5}"
    ".same{fill:#f1f1ee}.does{fill:#0a6a94}.floor{stroke:#9fb4c2;stroke-width:1}"
)


def levels() -> list[list[str]]:
    """Rooms from the top of the house to its foundation, as the contract has them."""
    contract = ConfigParser()
    contract.read(ROOT / ".importlinter", encoding="utf-8")
    lines = contract["importlinter:contract:rooms"]["layers"].strip().splitlines()
    return [re.findall(r"modelweld\.(\w+)", line) for line in lines]


def imports(rooms: list[str]) -> dict[tuple[str, str], int]:
    """(room, room it imports) -> number of imports between their modules."""
    graph = grimp.build_graph("modelweld", exclude_type_checking_imports=True)
    room_of = {m: m.split(".")[1] for m in graph.modules if "." in m}
    found: dict[tuple[str, str], int] = {}
    for module, room in room_of.items():
        for other in graph.find_modules_directly_imported_by(module):
            pair = (room, room_of.get(other, room))
            if pair[0] != pair[1] and set(pair) <= set(rooms):
                found[pair] = found.get(pair, 0) + 1
    return found


def ideas() -> dict[str, str]:
    """Room -> the first words of its row in docs/design.md."""
    table = (ROOT / "docs" / "design.md").read_text(encoding="utf-8").split("| room | idea |")[1].split("\n\n")[0]
    rows = [line.split("|") for line in table.splitlines()[2:]]
    return {
        room: re.split(r"[;:(]", row[2])[0].strip().replace("`", "")
        for row in rows
        for room in re.findall(r"`(\w+)`", row[1])
    }


def shortened(text: str) -> str:
    """As many whole words as there is room for."""
    return text if len(text) <= MOST_WORDS else text[:MOST_WORDS].rsplit(" ", 1)[0].rstrip(",") + " …"


def cells(rooms: list[str], level: dict[str, int], counted: dict[tuple[str, str], int]) -> str:
    """A cell for each pair of rooms: whether the one may import the other, and as large a square as it does."""
    drawn = []
    for i, one in enumerate(rooms):
        for k, other in enumerate(rooms):
            x, y = NAMES + IDEAS + k * CELL, HEAD + i * CELL
            n = counted.get((one, other), 0)
            if one == other or level[other] > level[one]:
                kind = "same" if one == other else "may"
                drawn.append(f'<rect class="{kind}" x="{x + 1}" y="{y + 1}" width="{CELL - 2}" height="{CELL - 2}"/>')
            if n:
                side = min(CELL - 4, 3 + 1.6 * n**0.5)
                at = (CELL - side) / 2
                drawn.append(
                    f'<rect class="does" x="{x + at:.1f}" y="{y + at:.1f}" width="{side:.1f}" height="{side:.1f}">'
                    f"<title>{one} imports {other}: {n}</title></rect>"
                )
    return "".join(drawn)


def drawn() -> str:
    """The picture: a row for each room, a column for each that it may import."""
    floors = levels()
    rooms = [room for floor in floors for room in floor]
    level = {room: i for i, floor in enumerate(floors) for room in floor}
    known = ideas()
    wide, high = NAMES + IDEAS + CELL * len(rooms) + 16, HEAD + CELL * len(rooms) + 12
    parts = [cells(rooms, level, imports(rooms))]
    for i, room in enumerate(rooms):
        y, x = HEAD + i * CELL, NAMES + IDEAS + i * CELL + CELL / 2 + 4
        parts.append(f'<text class="room" x="8" y="{y + 12}">{room}</text>')
        parts.append(
            f'<text x="{NAMES}" y="{y + 12}">{escape(shortened(known.get(room, FILES.get(room, "one file"))))}</text>'
        )
        parts.append(f'<text class="room" transform="translate({x:.0f} {HEAD - 6}) rotate(-90)">{room}</text>')
        if i and level[room] != level[rooms[i - 1]]:
            parts.append(f'<line class="floor" x1="8" x2="{wide - 16}" y1="{y}" y2="{y}"/>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{wide}" height="{high}" '
        'role="img" '
        f'aria-label="Rooms of modelweld, and which imports which"><style>{STYLE}</style>'
        f'<rect width="{wide}" height="{high}" rx="8" fill="#fff"/>{"".join(parts)}</svg>\n'
    )


def write_picture(path: Path) -> None:
    """Draw it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(drawn(), encoding="utf-8")


if __name__ == "__main__":
    write_picture(Path(sys.argv[1]))
