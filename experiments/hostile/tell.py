"""Writes the tables of docs/reliability.md and docs/poisoning.md from the records that this folder holds.

    python experiments/hostile/tell.py

A table stands between a comment that names it and the next `<!-- /made -->`; tests compare.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
DOCS = HERE.parents[1] / "docs"
PAGES = (DOCS / "reliability.md", DOCS / "poisoning.md")
COMMAND = "python experiments/hostile/tell.py"
PLACE = re.compile(rf"(<!-- made: {COMMAND} (.*?) -->\n)(.*?)(<!-- /made -->)", re.S)

Rows = Sequence[Sequence[object]]


def record(name: str) -> dict[str, Any]:
    """What a file of the folder holds."""
    found: dict[str, Any] = json.loads((HERE / name).read_text(encoding="utf-8"))
    return found


def total(name: str, what: str) -> int:
    """A number of all rows of a record together."""
    return sum(int(row[what]) for row in record(name)["rows"])


def promises() -> Iterator[Sequence[object]]:
    """What was promised, how it was tried, on how many, what was lost, and where that stands."""
    yield "promise", "tried by", "on how many", "lost", "record"
    fuzzed, soaked, hard = record("record.json"), record("soak.json"), record("megabyte.json")["rows"]
    readers = fuzzed["readers"].values()
    inputs, used, netted = (sum(row[what] for row in readers) for what in ("inputs", "used", "netted"))
    yield (
        "a damaged file is read, or refused in one clean line within two seconds; nothing in it runs",
        "`fuzz.py`: nine formats, damaged in bytes, words and structure",
        f"{inputs:,} files, {used:,} of them used",
        f"faults: {len(fuzzed['faults'])}; refused by the last net alone: {netted}",
        _link("record.json"),
    )
    yield (
        "a megabyte made to be hard to read takes seconds at most",
        "`megabyte.py`: keys, columns, members and sites without number, nesting, noise",
        f"{len(hard)} files",
        f"none above a second: {max(row['cpu'] for row in hard):.2g} s at most",
        _link("megabyte.json"),
    )
    yield (
        "a process that is killed leaves the old file or the new one, whole",
        "`kills.py`: `kill -9` at a random moment of eight commands, half of them just as a file is begun",
        f"{total('kills.json', 'times'):,} kills, {total('kills.json', 'ended first')} of them too late",
        f"{total('kills.json', 'broken')} files; {total('kills.json', 'left behind')} parts left behind, "
        f"{total('kills.json', 'left after the next')} after the next writer",
        _link("kills.json"),
    )
    yield (
        "a full disk leaves the old file and an error in one line",
        "`kills.py --disk`: full after 0, 1, half, or all but one of the bytes",
        f"{total('disk.json', 'times')} writes",
        f"{total('disk.json', 'broken')} files",
        _link("disk.json"),
    )
    outcomes = {what: sum(law.get(what, 0) for law in soaked["laws"].values()) for what in ("tie", "better", "held")}
    yield (
        "the same answer by another way",
        "`soak.py`: engines, order, units, origin, file, a site that comes and goes, one that leaves",
        f"{soaked['tried']:,} random fusions ({soaked['refused']} refused), {sum(outcomes.values()):,} comparisons",
        f"differ: {len(soaked['faults'])}; ties: {outcomes['tie']}, better: {outcomes['better']}",
        _link("soak.json"),
    )
    bad = record("poisoning/results.json")
    yield (
        "a minority carries atoms at most 1.2 times as far off as medians would ([where not](poisoning.md))",
        "`poison.py`: attacks on 20 and 50 sites, 5 to 45 % of them bad",
        f"{len(bad['results'])} cells of five draws",
        "; ".join(f"{c['text'].split(':')[0]}: {c['found'].rstrip('.')}" for c in bad["claims"]),
        _link("poisoning/tables.md"),
    )


def _link(name: str) -> str:
    commit = (record(name if name.endswith(".json") else "poisoning/results.json").get("provenance") or {})["commit"]
    return f"[{commit[:8]}](../experiments/hostile/{name})"


def readers() -> Iterator[Sequence[object]]:
    """Every reader's inputs."""
    yield "reader", "inputs", "read", "used", "refused", "netted", "faults", "slowest, s"
    for name, row in record("record.json")["readers"].items():
        counts = (f"{row[what]:,}" for what in ("inputs", "read", "used", "refused", "netted", "fault"))
        yield name, *counts, row["slowest_s"]


def curves(J: str) -> Iterator[Sequence[object]]:
    """What the bare call does with so many sites under attack."""
    [table] = (t for t in record("poisoning/results.json")["tables"] if t["title"].startswith(f"{J}: fuse"))
    yield table["columns"]
    yield from table["rows"]


def told(block: str) -> str:
    """A table of this name."""
    head, *rows = {"promises": promises, "readers": readers}.get(block, lambda: curves(block))()
    return "".join(f"| {' | '.join(map(str, row))} |\n" for row in (head, ["---"] * len(head), *rows))


def written(page: Path) -> str:
    """A page with its tables as the records have them."""
    return PLACE.sub(lambda found: found[1] + told(found[2]) + found[4], page.read_text(encoding="utf-8"))


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(written(page), encoding="utf-8")
