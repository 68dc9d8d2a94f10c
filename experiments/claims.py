"""All claims of all studies in one table, from their records: what, where, holds or not, by how much, on how many.

python experiments/claims.py                     # writes experiments/README.md
python experiments/claims.py --against COMMIT    # what has changed since a commit, claim by claim
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from provenance import KEY, git, kept
from study import asked, held

HERE = Path(__file__).parent
PAGE = HERE / "README.md"
FULL = 40
"""Letters of a commit that is written out."""


class Part(NamedTuple):
    """Claims of a record: a headline, its folder, how those begin that are shown, and on how many if none says."""

    title: str
    where: str
    begins: tuple[str, ...] = ("",)
    n: str = ""


PARTS = (
    Part("The bare call on estimated models", "right", n="5 seeds"),
    Part("Was it worth merging", "verdicts/merging"),
    Part("How many, how sure", "verdicts/worlds"),
    Part("Verdicts about real data", "verdicts/real"),
    Part("Simulated atoms", "simulated"),
    Part("Temperatures", "temperatures"),
    Part("Movements", "mocap"),
    Part("Topics", "topics"),
    Part("Topics of documents", "planned_topics"),
    Part("BERTopic models", "merging"),
    Part("Networks", "networks"),
    Part("Networks of images", "images"),
    Part("Directions", "directions"),
    Part("Directions that stream", "streams"),
    Part("Groups in time", "time"),
    Part("Families", "families"),
    Part("Mixtures", "mixtures"),
    Part("Accidents", "accidents"),
)

HEAD = """# What is claimed, and what the records say

Written by `python experiments/claims.py` from the records of the studies; a test compares. A difference is ours less
the other, draw by draw, with its 95 % interval (Student's, over draws); "not told apart": the interval holds zero.
Where seeds redraw starts and not data (40 books, the two people of the paper) an interval speaks of starts alone.
Claims that did not hold when they were measured stay, with a no.

## Claims
"""


def rows(part: Part) -> Iterator[str]:
    """Lines of the table: the claims of a record."""
    for claim in kept(HERE / part.where / "results.json").get("claims", []):
        if claim["text"].startswith(part.begins):
            said = [claim["text"], f"[{part.where}]({part.where})", held(claim["holds"], "**no**"), claim["found"]]
            cells = [*(cell.rstrip(".").replace("|", "/") for cell in said), claim.get("n") or part.n]
            yield f"| {' | '.join(cells)} |"


def speed() -> str:
    """The bare call beside the textbook."""
    record = json.loads((HERE.parent / "benchmarks" / "bare.json").read_text(encoding="utf-8"))["rows"]
    ratios = (float(f"{r['seconds']['textbook'] / r['seconds']['fuse']:.2g}") for r in record)
    by = ", ".join(f"{ratio:g} x at {r['J']:,} sites" for ratio, r in zip(ratios, record, strict=True))
    text = "`fuse(sites)` is quicker than textbook Algorithm 1"
    return f"| {text} | [benchmarks](../benchmarks) | yes | {by} | {len(record)} sizes, one draw each |"


def minutes(record: dict[str, Any]) -> str:
    """CPU minutes of a full run, where a record has them."""
    results = record.get("results") or {}
    spent = record.get("cpu") or sum(r.get("cpu", 0.0) for r in results.values() if isinstance(r, dict))
    return f"{spent / 60:.1f}" if spent else ""


def short(commit: str) -> str:
    """A commit in eight letters, if it is one."""
    return commit[:8] if len(commit) == FULL else commit


def page() -> str:
    """The table of claims, and where every record comes from."""
    made = "<!-- made: python experiments/claims.py -->"
    lines = [HEAD, made, "| claim | where | holds | by how much | on how many |", "|---|---|---|---|---|"]
    for part in PARTS:
        found = list(rows(part))
        lines += [f"| **{part.title}** | | | | |", *found] if found else []
    lines += ["| **Speed** | | | | |", speed(), "", "## Studies", "", made]
    lines += ["| study | title | measured at | on | CPU minutes | summarised at |", "|---|---|---|---|---|---|"]
    for path in sorted(HERE.rglob("results.json")):
        record = json.loads(path.read_text(encoding="utf-8"))
        if "tasks" not in path.parts and KEY in record:
            name, said = path.parent.relative_to(HERE).as_posix(), record[KEY]
            cells = [f"[{name}]({name})", record.get("title", ""), short(said["commit"]), said["date"]]
            lines.append(f"| {' | '.join([*cells, minutes(record), said.get('told', {}).get('commit', '')])} |")
    return "\n".join(lines) + "\n"


def changes(commit: str) -> Iterator[str]:
    """Claims of which something else is found than at a commit, as a table; those that came or went are said to."""
    yield f"| claim | at {commit} | now |\n|---|---|---|"
    for part in PARTS:
        file = f"experiments/{part.where}/results.json"
        before = json.loads(git("show", f"{commit}:{file}") or "{}").get("claims", [])
        then, now = (
            {c["text"]: f"{held(c['holds'])}: {c['found']}".rstrip(".") for c in claims}
            for claims in (before, kept(HERE.parent / file).get("claims", []))
        )
        for text in dict.fromkeys([*then, *now]):
            if then.get(text) != now.get(text):
                yield f"| {part.title}, {text.rstrip('.')} | {then.get(text, 'none')} | {now.get(text, 'gone')} |"


def main() -> None:
    """Write the page, or say what has changed."""
    words = {"metavar": "COMMIT"}, "print claims of which something else is found since then"
    if against := asked(__doc__, against=words).against:
        print("\n".join(changes(against)))
    else:
        write()


def write() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
