"""The tables of docs/verdicts.md, written from the records of this study.

python experiments/verdicts/tables.py
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from run import SHARES
from worlds import SURE, bins, holds

from study import grid

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "verdicts.md"
BEGIN, END = "<!-- {}: python experiments/verdicts/tables.py -->\n", "<!-- /{} -->"

VALUES = {
    "rank 3": "near a plane (rank 3 of 12 features)", "rounded to 1": "rounded to integers, deviation 3, two features",
    "rounded to 1, three features": "the same, three features", "rounded to .3": "rounded to .3, two features",
    "60 % zeros": "60 % zeros, five features", "lognormal radii": "lognormal radii, four features",
}  # fmt: skip
"""Cells of `run.py` that are shown."""

GROUPS = {
    "of the model": ("model",), "half or a quarter shared": ("half", "quarter"),
    "uneven chances, heavy tails": ("beta", "t4"), "three to eight mixtures": ("gmm J3", "gmm J5", "gmm J8"),
    "12 and 25 mixtures": ("gmm",), "means of classes": ("mnist J6 D12", "digits", "wine"),
    "classes that nearly coincide": ("mnist",), "`Directions`": ("families Directions",),
    "`Counts`": ("families Counts",), "other families": ("families",),
}  # fmt: skip
"""Worlds of `worlds.py` as they are shown together; each is in the first group that its name begins like."""


def record(name: str) -> dict[str, Any]:
    """Cells of a record and their results."""
    found: dict[str, Any] = json.loads((HERE / name / "results.json").read_text(encoding="utf-8"))["cells"]
    return found


def merging() -> str:
    """Shares of yeses."""
    shares: dict[tuple[str, str], float] = {}
    for name, runs in record("merging").items():
        kind, *_, shared = name.removeprefix("worth/").split("/")
        shares[kind, shared] = sum(bool(run.get("worth")) for run in runs) / len(runs)
    shown = [*SHARES][:2]
    rows = ((said, *(spell(shares[kind, shared]) for shared in shown)) for kind, said in VALUES.items())
    return grid(["values", *(f"{shared} shared" for shared in shown)], rows)


def confidences() -> str:
    """By how much confidences are too sure at most, and the least share of intervals that hold, of groups of worlds."""
    groups: dict[str, list[Any]] = {}
    for name, runs in record("worlds").items():
        group = next(group for group, begins in GROUPS.items() if name.startswith(begins))
        groups.setdefault(group, []).append(runs)

    def row(group: str) -> list[str]:
        worlds = groups[group]
        off = max((stated - true for runs in worlds for stated, true, *_ in bins(runs) if stated > SURE), default=0.0)
        return [group, spell(off), *(spell(min(holds(runs, kind) for runs in worlds)) for kind in ("K", "shared"))]

    columns = ["worlds", "too sure by", "interval of K holds", "of shared"]
    return grid(columns, (row(group) for group in GROUPS if group in groups))


def spell(share: float) -> str:
    """With two digits."""
    return re.sub(r"^(-?)0(?=\.)", r"\1", f"{share:.2f}").rstrip("0").rstrip(".") or "0"


def main() -> None:
    """Put each table where the page has its marks."""
    text = PAGE.read_text(encoding="utf-8")
    for name, made in (("merging", merging), ("worlds", confidences)):
        if (HERE / name / "results.json").exists():
            before, rest = text.split(BEGIN.format(name))
            text = before + BEGIN.format(name) + made() + END.format(name) + rest.split(END.format(name), 1)[1]
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
