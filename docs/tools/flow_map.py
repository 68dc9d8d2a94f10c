"""What flows through the house, from fitted models to a fused one: drawn from the list below.

python docs/tools/flow_map.py flow.svg
"""

from __future__ import annotations

import sys
from pathlib import Path

WIDTH, HEIGHT, WIDE, TALL = 880, 320, 104, 34
PLACES = {
    "libraries": (24, 20),
    "files": (24, 110),
    "inputs": (214, 65),
    "screening": (398, 65),
    "matching": (582, 65),
    "fusion": (764, 65),
    "families": (505, 155),
    "priors": (625, 155),
    "posterior": (764, 140),
    "diagnostics": (764, 184),
    "revision": (764, 228),
    "report": (764, 272),
    "kinds": (398, 250),
}
"""Room -> the upper left corner of its box."""

FLOWS = [
    ("libraries", "inputs", "models", "across"),
    ("files", "inputs", "site files", "across"),
    ("inputs", "screening", "stacks", "across"),
    ("screening", "matching", "what is kept", "across"),
    ("matching", "fusion", "labels", "across"),
    ("families", "matching", "evidence", "up"),
    ("priors", "matching", "log P(c)", "up"),
    ("fusion", "posterior", "questions", "down"),
    ("fusion", "kinds", "fused arrays", "round"),
    ("kinds", "libraries", "a model again", "back"),
]
"""From room to room: what, and which way the arrow goes."""

STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#24313a;text-anchor:middle}"
    ".room{font-weight:600;font-size:13px;fill:#0b3954}"
    ".box{fill:#dcebf5;stroke:#0a6a94}.way{fill:none;stroke:#6a7b87;stroke-width:1.6;marker-end:url(#tip)}"
)


def arrow(one: str, other: str, word: str, way: str) -> str:
    """An arrow from room to room with what flows along it."""
    (x1, y1), (x2, y2) = PLACES[one], PLACES[other]
    middle = TALL / 2
    if way == "across":
        start, end = (x1 + WIDE, y1 + middle), (x2 - 3, y2 + middle)
        level = y1 == y2
        path = f"M{start[0]} {start[1]} L{end[0]} {end[1]}"
        at = ((start[0] + end[0]) / 2 + 8 * (not level), (start[1] + end[1]) / 2 + (-8 if level or y1 < y2 else 20))
    elif way == "up":
        path = f"M{x1 + WIDE / 2} {y1} L{(x1 + 3 * x2) / 4 + WIDE / 2} {y2 + TALL + 3}"
        at = (x1 + WIDE / 2 + (-26 if x1 < x2 else 36), (y1 + y2 + TALL) / 2 + 10)
    elif way == "down":
        path, at = f"M{x1 + WIDE / 2} {y1 + TALL} L{x2 + WIDE / 2} {y2 - 3}", (x1 + WIDE / 2 + 32, y1 + TALL + 24)
    elif way == "round":
        path = (
            f"M{x1} {y1 + TALL - 4} L{x1 - 14} {y1 + TALL + 8} L{x1 - 14} {y2 + middle} L{x2 + WIDE + 3} {y2 + middle}"
        )
        at = ((x1 + x2 + WIDE) / 2, y2 + middle - 8)
    else:
        path = f"M{x1} {y1 + middle} L{x2 - 6} {y1 + middle} L{x2 - 6} {y2 + middle} L{x2 - 3} {y2 + middle}"
        at = ((x1 + x2) / 2, y1 + middle - 8)
    return f'<path class="way" d="{path}"/><text x="{at[0]:.0f}" y="{at[1]:.0f}">{word}</text>'


def drawn() -> str:
    """The picture."""
    boxes = [
        f'<rect class="box" x="{x}" y="{y}" width="{WIDE}" height="{TALL}" rx="7"/>'
        f'<text class="room" x="{x + WIDE / 2:.0f}" y="{y + 22}">{room}</text>'
        for room, (x, y) in PLACES.items()
    ]
    size = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    tip = (
        '<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0 L8 4 L0 8 z" fill="#6a7b87"/></marker>'
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" '
        f'aria-label="What flows between the rooms of modelweld"><style>{STYLE}</style><defs>{tip}</defs>'
        f'<rect width="{WIDTH}" height="{HEIGHT}" rx="8" fill="#fff"/>'
        f"{''.join(arrow(*flow) for flow in FLOWS)}{''.join(boxes)}</svg>\n"
    )


def write_picture(path: Path) -> None:
    """Draw it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(drawn(), encoding="utf-8")


if __name__ == "__main__":
    write_picture(Path(sys.argv[1]))
