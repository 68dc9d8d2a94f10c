"""Every figure in a table of the documentation has a source: a record, a command, or a citation that says so.

A comment above a table says which:

    <!-- from: experiments/mocap/tables.md -->       every number of the table stands in these files, digit by digit
    <!-- made: python benchmarks/bare.py --table --> the command wrote it (between this and its end), from a record; any
                                                     word will do in place of "made" where the command looks for it
    <!-- cited: Yurochkin et al. 2019, table 2 -->   typed by hand, from there
    <!-- unrecorded: seen once, 2026-11-16 -->       typed by hand, and no record is left

Numbers of the files are rounded to the digits that the table shows. `tests/test_figure_sources.py` accepts no table
that is unrecorded or says nothing.

python docs/tools/figure_sources.py                 # tables without a source, and numbers that no record has
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
COMMENT = re.compile(r"<!-- (from|cited|unrecorded|\w+(?=: python )): (.*?) -->")
NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d[\d,]*)?\.?\d+(?![\w]|\.\d)")
QUOTED = re.compile(r"`[^`]*`|\[[^]]*\]\([^)]*\)")
RULE = re.compile(r"^\|[\s:|-]+\|$")
FEWEST_FIGURES = 4
"""Cells of nothing but figures from which on a table is one of figures; others are words with some number in them."""

BY_HAND = ("index", "compared")
"""Pages that are written by hand beside others that `make docs` makes."""


class Told(NamedTuple):
    """A table of the documentation: where it is, its rows, and the source that is named above it."""

    file: str
    line: int
    rows: list[list[str]]
    kind: str
    source: str

    @property
    def name(self) -> str:
        """File and first line of the table, which say which one it is."""
        return f"{self.file}: {' | '.join(self.rows[0])}"


def is_made(page: Path) -> bool:
    """Whether `make docs` writes a page, from the documents listed here and from docstrings."""
    folder = page.parent.name
    return folder in ("gallery", "reference") or (folder in ("studies", "project") and page.stem not in BY_HAND)


def documents() -> list[Path]:
    """README and the paper, docs, and the README of the benchmarks and of every study."""
    pages = sorted(page for page in (ROOT / "docs").rglob("*.md") if not is_made(page))
    found = [ROOT / "README.md", ROOT / "paper.md", *pages]
    return [*found, ROOT / "benchmarks" / "README.md", *sorted((ROOT / "experiments").rglob("README.md"))]


def tables(path: Path) -> Iterator[Told]:
    """Tables of figures in a document."""
    lines = path.read_text(encoding="utf-8").splitlines()
    kind = source = ""
    i = 0
    while i < len(lines):
        said = COMMENT.search(lines[i])
        if said:
            kind, source = "made" if said[2].startswith("python ") else said[1], said[2]
        elif lines[i].startswith("|") and i + 1 < len(lines) and RULE.match(lines[i + 1]):
            end = next((k for k in range(i, len(lines)) if not lines[k].startswith("|")), len(lines))
            rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in (lines[i], *lines[i + 2 : end])]
            if sum(is_figure(cell) for row in rows[1:] for cell in row[1:]) >= FEWEST_FIGURES:
                yield Told(str(path.relative_to(ROOT)), i + 1, rows, kind, source)
            kind = source = ""
            i = end
        elif lines[i].strip():
            kind = source = ""
        i += 1


def is_figure(cell: str) -> bool:
    """Whether a cell holds a figure, a unit perhaps, and hardly a word."""
    plain = QUOTED.sub("", cell).replace("*", "")
    return bool(NUMBER.search(plain)) and len(re.findall(r"[A-Za-z]{3,}", plain)) <= 1


def numbers(text: str) -> set[str]:
    """Numbers of a text, in one way of writing: no sign, no leading or grouping marks.

    >>> sorted(numbers("| .25 ± 0.030 | 1,200 of `x2` | -7 |"))
    ['.030', '.25', '1200', '7']
    """
    found = (m.replace(",", "").lstrip("+-") for m in NUMBER.findall(QUOTED.sub("", text).replace("−", "-")))
    return {re.sub(r"^0+(?=[.\d])", "", n) for n in found}


def unsupported(told: Told) -> set[str]:
    """Numbers of a table that its files do not have: all of cells of figures, fractions also where there are words."""
    texts, values = set[str](), list[float]()
    for name in map(str.strip, told.source.split(",")):
        if not (ROOT / name).exists():
            return {f"there is no {name}"}
        content = (ROOT / name).read_text(encoding="utf-8")
        if name.endswith(".json"):
            values += [abs(x) for x in floats(json.loads(content))]
        else:
            texts |= numbers(content)
    values += [float(n) for n in texts]
    cells = [cell for row in told.rows[1:] for cell in row[1:]]
    left = {n for cell in cells for n in numbers(cell) if is_figure(cell) or "." in n} - texts
    return {n for n in left if not any(rounded(x, n) == n for x in values)}


def floats(content: Any) -> Iterator[float]:
    """All numbers of a record, as they are."""
    if isinstance(content, dict | list):
        for part in content.values() if isinstance(content, dict) else content:
            yield from floats(part)
    elif isinstance(content, int | float) and not isinstance(content, bool):
        yield content


def rounded(value: float, like: str) -> str:
    """A value with as many digits as a number of a table has.

    >>> rounded(0.24951, ".250"), rounded(12.4, "12")
    ('.250', '12')
    """
    digits = len(like.partition(".")[2])
    return re.sub(r"^0+(?=[.\d])", "", f"{value:.{digits}f}")


def main() -> None:
    """Say what has no source."""
    for path in documents():
        for told in tables(path):
            if not told.kind:
                print(f"no source: {told.name} (line {told.line})")
            elif told.kind == "from" and (missing := unsupported(told)):
                print(f"not in {told.source}: {told.name} (line {told.line}): {', '.join(sorted(missing))}")


if __name__ == "__main__":
    main()
