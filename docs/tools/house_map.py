"""The map of the house, drawn from the contract of imports (.importlinter) and the graph of imports (grimp).

python docs/tools/house_map.py house.svg
"""

from __future__ import annotations

import re
import sys
from configparser import ConfigParser
from pathlib import Path

import grimp

ROOT = Path(__file__).parents[2]
WIDTH, ROW, TALL, LEFT = 860, 58, 36, 40
"""Of the picture: its width, the distance of levels, the height of a room, the margin."""


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
    return {room: re.split(r"[;:(]", row[2])[0].strip() for row in rows for room in re.findall(r"`(\w+)`", row[1])}


def box(name: str, x: float, y: float, wide: float, idea: str) -> str:
    """A room: its name, and its idea for who points at it."""
    return (
        f'<g class="room" id="room-{name}"><title>{name}: {idea}</title>'
        f'<rect x="{x:.0f}" y="{y:.0f}" width="{wide:.0f}" height="{TALL}" rx="7"/>'
        f'<text x="{x + wide / 2:.0f}" y="{y + TALL / 2 + 5:.0f}">{name}</text></g>'
    )


def drawn() -> str:
    """The picture: levels from top to foundation, a line for each pair of rooms of which one imports the other."""
    floors = levels()
    known = ideas()
    middle: dict[str, tuple[float, float]] = {}
    boxes = []
    for i, floor in enumerate(floors):
        wide = 118.0
        gap = (WIDTH - 2 * LEFT - wide * len(floor)) / (len(floor) + 1)
        shift = 70 * (-1) ** i if len(floor) == 1 else 0  # so that lines do not run through the rooms between
        for k, room in enumerate(floor):
            x, y = LEFT + gap * (k + 1) + wide * k + shift * (1 + i % 3), 20 + i * ROW
            middle[room] = (x + wide / 2, y + TALL / 2)
            boxes.append(box(room, x, y, wide, known.get(room, "one file")))
    lines = []
    used_by_all = {room for floor in floors[-3:] for room in floor}  # lines to these would hide all others
    for (one, other), n in sorted(imports(list(middle)).items()):
        if other in used_by_all:
            continue
        (x1, y1), (x2, y2) = middle[one], middle[other]
        down = TALL / 2 if y2 > y1 else -TALL / 2
        lines.append(
            f'<path class="way" style="stroke-width:{0.5 + n**0.5 / 3:.1f}" '
            f'd="M{x1:.0f} {y1 + down:.0f} C{x1:.0f} {y1 + down * 2.4:.0f} '
            f'{x2:.0f} {y2 - down * 2.4:.0f} {x2:.0f} {y2 - down:.0f}">'
            f"<title>{one} imports {other}: {n}</title></path>"
        )
    high = 20 + len(floors) * ROW
    style = (
        ".room rect{fill:#e8f1f8;stroke:#2a6f9e;stroke-width:1.2}.room text{font:600 14px system-ui,sans-serif;"
        "text-anchor:middle;fill:#0b3954}.way{fill:none;stroke:#7a8b99;opacity:.45}.way:hover{stroke:#c2410c;opacity:1}"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {high}" role="img" '
        f'aria-label="Rooms of modelweld, each above those it imports"><style>{style}</style>'
        f'<rect width="{WIDTH}" height="{high}" rx="8" fill="#fff"/>{"".join(lines)}{"".join(boxes)}</svg>\n'
    )


def write_picture(path: Path) -> None:
    """Draw it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(drawn(), encoding="utf-8")


if __name__ == "__main__":
    write_picture(Path(sys.argv[1]))
