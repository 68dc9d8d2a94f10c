"""Tables of benchmarks/README.md, made from what was recorded; each stands there between marks that name its record.

python benchmarks/tables.py            # after a measurement: write the tables anew
python benchmarks/tables.py --check    # do they say what the records say?
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
README = HERE / "README.md"

Record = dict[str, Any]

AUTHORS, AUTHORS_JOBS = 1.5, ("100 sites, sd 1", "100 sites, sd 10")
"""The authors' own program took .45 ms of CPU per value where the textbook takes .3 (sd 1), and 3.0 to 3.7 s beside
2.1 (sd 10), on machines of one class. It is not part of this repository: its rows are the textbook's times by this."""


def default_calls(record: Record) -> list[str]:
    """The default call beside plain search, k-means and the textbook."""
    lines = row(
        "job", "N", "`fuse` ms", "plain ms", "k-means ms", "textbook ms", "to plain", "to k-means", "ARI, k-means'"
    )
    lines += rule(9)
    for one in (each for each in record["rows"] if "plain_ms" in each):
        ms, slow = one["default_ms"], one.get("textbook_ms")
        times = "" if slow is None else f"{slow:.0f} ({slow / ms:.0f} x)"
        ratios = f"{ms / one['plain_ms']:.1f}", f"{ms / one['kmeans_ms']:.2f}"
        rand = f"{one['ari']:.3f}, {one['kmeans_ari']:.3f}"
        each = f"{ms:.1f}", f"{one['plain_ms']:.1f}", f"{one['kmeans_ms']:.0f}", times
        lines += row(one["job"], f"{one['N']:,}", *each, *ratios, rand)
    for one in (each for each in record["rows"] if each["job"] in AUTHORS_JOBS):
        ms = AUTHORS * one["textbook_ms"]
        times = f"{ms:.0f} ({ms / one['default_ms']:.0f} x)"
        lines += row(f"{one['job']}: the authors' program", f"{one['N']:,}", "", "", "", times, "", "", "")
    return lines + measured(record)


def settings(record: Record) -> list[str]:
    """Settings beside the textbook."""
    if "settings" not in record or "exponents" not in record:
        return ["Not recorded yet: `python benchmarks/speed.py`."]
    lines = row("J", "sd", "mode", "N", "textbook s", "fuse ms", "ratio", "K (true)", "ARI") + rule(9)
    for one in record["settings"]:
        times = f"{one['textbook']:.2f}", f"{one['ours']:.1f}", f"{one['ratio']:.0f}"
        found = f"{one['K']} ({one['K true']})", f"{one['ARI']:.3f}"
        lines += row(f"{one['J']:,}", f"{one['sd']:g}", one["mode"], f"{one['N']:,}", *times, *found)
    grown = ", ".join(f"{one['exponent']:.2f} in {one['varied']}" for one in record["exponents"])
    return [*lines, "", f"Exponents of CPU time, isotropic, sd 1: {grown}."]


def jobs(record: Record) -> list[str]:
    """Jobs beside what they are meant to take."""
    lines = row("job", "CPU s", "meant to be at most", "copies of the data") + rule(4)
    for one in record["rows"]:
        seconds = f"{one['s']:.3g}" + ("" if one["held"] else ": missed")
        lines += row(one["job"], seconds, f"{one['most']:.3g}", f"{one['copies']:.1f}" if "copies" in one else "")
    return lines + measured(record)


def growth(record: Record) -> list[str]:
    """Exponents, stage by stage."""
    lines = row("stage", "exponent of N", "s", "at N", "commit") + rule(5)
    for one in record["rows"]:
        exponent = "" if one["exponent"] is None else f"{one['exponent']:.2f}"
        lines += row(one["stage"], exponent, f"{one['seconds'][-1]:.3g}", f"{one['N'][-1]:,}", one["commit"])
    return lines + measured(record)


def families(record: Record) -> list[str]:
    """Time per sweep beside the Gaussian's."""
    if "rows" not in record:
        return ["Not recorded yet: `python benchmarks/families.py --record`."]
    lines = row("family", "engine", "ms per sweep", "ratio", "wanted", "K", "ARI") + rule(7)
    for one in record["rows"]:
        wanted = "" if one["wanted"] is None else f"{one['wanted']}" + ": missed" * (one["ratio"] > one["wanted"])
        found = f"{one['ms_per_sweep']:.0f}", f"{one['ratio']:.1f}", wanted, f"{one['K']}", f"{one['ari']:.3f}"
        lines += row(one["family"], one["engine"], *found)
    return lines + measured(record)


def row(*cells: str) -> list[str]:
    """One line of a table."""
    return ["| " + " | ".join(cells) + " |"]


def rule(columns: int) -> list[str]:
    """What stands below a table's heads."""
    return ["|" + "---|" * columns]


def measured(record: Record) -> list[str]:
    """When, of what and beside how much else."""
    on = f"load {record['load'][0]:g} on {record['processors']} processors"
    return ["", f"Commit {record['commit']}, {record['date']}, {on}, numpy {record['versions']['numpy']}."]


TABLES: dict[str, tuple[str, Callable[[Record], list[str]]]] = {
    "default": ("results.json", default_calls),
    "settings": ("results.json", settings),
    "jobs": ("jobs.json", jobs),
    "growth": ("growth.json", growth),
    "families": ("families.json", families),
}
"""Marks in README.md: which record, and how it becomes a table."""


def filled(text: str) -> str:
    """The page with all its tables made anew."""
    for name, (file, make) in TABLES.items():
        begin, end = f"<!-- {name}: python benchmarks/tables.py -->\n", f"<!-- /{name} -->"
        before, rest = text.split(begin)
        record = json.loads((HERE / file).read_text(encoding="utf-8")) if (HERE / file).exists() else {}
        text = before + begin + "\n".join(make(record)) + "\n" + end + rest.split(end, 1)[1]
    return text


def main() -> None:
    """Write the tables, or compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail where a table is not its record's")
    check = parser.parse_args().check
    text = README.read_text(encoding="utf-8")
    if not check:
        README.write_text(filled(text), encoding="utf-8")
    elif filled(text) != text:
        sys.exit("tables of benchmarks/README.md are not those of the records: python benchmarks/tables.py")


if __name__ == "__main__":
    main()
