"""All claims of all studies in one table, from their records: what, where, holds or not, by how much, on how many.

python experiments/claims.py            # writes experiments/README.md
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from paired import Paired, paired
from provenance import KEY, kept

HERE = Path(__file__).parent
PAGE = HERE / "README.md"
YES, NO, PART = "yes", "**no**", "in part"


class Row(NamedTuple):
    """A line of the table."""

    claim: str
    where: str
    holds: str
    by: str
    n: str


# ---------------------------------------------------------------- claims that the study itself judges


def judged(study: str, begins: str, n: str, name: str | None = None) -> Row:
    """A claim of a record, found by how it begins."""
    record = kept(HERE / study / "results.json")
    (claim,) = [c for c in record["claims"] if c["text"].startswith(begins)]
    return Row(name or claim["text"].rstrip("."), study, YES if claim["holds"] else NO, claim["found"].rstrip("."), n)


def temperatures() -> list[Row]:
    """Sparse Gaussian processes of the states."""
    n = "10 splits of 44 states"
    return [
        judged("temperatures", "Across the country", n, "natural fusion is within 1 % of pooled data, in the mean"),
        judged("temperatures", "It is ahead of the robust", n, "... and ahead of the robust committee"),
        judged("temperatures", "Aim: its 90 %", n, "... and its 90 % intervals hold 88 to 92 %"),
    ]


def simulated() -> list[Row]:
    """Simulated atoms."""
    n, J = "10 draws", "J = 100, sigma = 10: "
    return [judged("simulated", f"{J}{what} of 'ours'", n) for what in ("K", "ARI")]


def verdicts() -> list[Row]:
    """Was it worth merging."""
    first, last = kept(HERE / "verdicts" / "odd" / "results.json")["seeds"]
    texts = ("other clean sites that share", "odd sites that share", "odd, a quarter shared")
    return [judged("verdicts/odd", text, f"{last - first + 1} sets a cell") for text in texts]


def right() -> list[Row]:
    """The bare call."""
    record = kept(HERE / "right" / "results.json")
    return [judged("right", c["text"], f"{len(record['seeds'])} seeds") for c in record["claims"]]


def movements() -> list[Row]:
    """Hidden Markov models of people."""
    record = kept(HERE / "mocap" / "results.json")
    groups = sum(name.startswith("people/") for name in record["results"])
    number = {True: "5 starts", False: f"{groups} groups"}
    return [judged("mocap", c["text"], number[c["text"].startswith("two")]) for c in record["claims"]]


def topics() -> list[Row]:
    """Topics of books and silos, on seeds stated before."""
    record = kept(HERE / "planned_topics" / "results.json")
    sets = {task.split("/")[0] for task in record.get("results", {})}
    seeds = {name: sum(task.startswith(f"{name}/") for task in record["results"]) for name in sets}
    rows = []
    for claim in record.get("claims", []):
        own = "pages" if claim["text"].startswith("40 books, pages") else "books"
        name = "newsgroups" if claim["text"].startswith("20") else own
        found = judged("planned_topics", claim["text"], f"{seeds[name]} seeds stated before")
        text, verdict = found.claim.rsplit(": ", 1)
        rows.append(found._replace(claim=text, holds={"ahead": YES, "behind": NO}.get(verdict, "not told apart")))
    return rows


# ---------------------------------------------------------------- claims judged here, from results


def networks() -> list[Row]:
    """Fused networks beside the best local one, the ensemble and PFNM."""
    settings: Mapping[str, Any] = kept(HERE / "networks" / "results.json")

    def of(begins: str, method: str, depth: int | None = None) -> list[float]:
        chosen = (e for name, e in settings.items() if name.startswith(begins) and depth in (None, layers(name)))
        return [run[method][0] for entry in chosen for run in entry["runs"]]

    def layers(name: str) -> int:
        return 1 + name.rsplit(", ", 1)[1].count("-")

    def by_setting(begins: str, ours: str, theirs: str, depth: int | None = None) -> Paired:
        """Means over the runs of a setting: settings are what differs, runs of one are alike."""
        chosen = [e for name, e in settings.items() if name.startswith(begins) and depth in (None, layers(name))]
        means = [[np.mean([run[m][0] for run in entry["runs"]]) for m in (ours, theirs)] for entry in chosen]
        return paired(*zip(*means, strict=True))

    refit, best = of("digits", "ours, refit"), of("digits", "best local")
    wins = sum(a > b for a, b in zip(refit, best, strict=True))
    gain = by_setting("digits", "ours, refit", "best local")
    rows = [Row("digits: the refit beats the best local network", "networks", share(wins, len(refit)), str(gain),
                f"{gain.n} settings, {len(refit)} runs, better in {wins}")]  # fmt: skip
    units = settings["digits J=10 Dir 0.5, different starts, 50"]["methods"]["ours, refit"]["units"]
    about = YES if abs(units - 100) <= 15 else NO
    rows.append(
        Row("... with about 100 units: digits, 10 sites, Dirichlet .5", "networks", about, f"{units:.0f}", "5 runs")
    )
    for begins in ("digits", "mnist"):
        gap = by_setting(begins, "ours, refit", "class-weighted logit ensemble", 1)
        text = f"{begins}, one hidden layer: the refit is within .01 of the ensemble in the mean"
        rows.append(Row(text, "networks", YES if gap.mean >= -0.01 else NO, str(gap), f"{gap.n} settings"))
    for begins in ("digits", "mnist"):
        chosen = [e["runs"] for name, e in settings.items() if name.startswith(begins)]
        means = [[np.mean([run[m][0] for run in runs]) for m in ("ours, mean", "PFNM (1, 1, 1)")] for runs in chosen]
        below = sum(ours < theirs for ours, theirs in means)
        found = by_setting(begins, "ours, mean", "PFNM (1, 1, 1)")
        text = f'{begins}: averaging alone (`how="mean"`) is not below PFNM'
        number = f"{len(means)} settings, below in {below}"
        rows.append(Row(text, "networks", share(len(means) - below, len(means)), str(found), number))
    return rows


def directions() -> list[Row]:
    """Sets of directions, beside what people do today."""
    where, rows = "directions", []

    def column(name: str, cell: str, begins: str, value: str) -> list[float]:
        record = kept(HERE / where / "results" / f"{name}.json")["rows"]
        own = [row for row in record if row["cell"] == cell and row["method"].startswith(begins)]
        return [float(row[value]) for row in sorted(own, key=lambda row: row["seed"])]

    for depth in (500, 150, 60):
        cell = f"{depth} mutations"
        ours, true = (column("signatures", cell, "fuse(", value) for value in ("K", "true_K"))
        by = paired(ours, true)
        rows.append(
            Row(f"signatures, {cell}: K within one", where, YES if abs(by.mean) <= 1 else NO, str(by), "10 draws")
        )
        found = paired(column("signatures", cell, "fuse(", "ari"), column("signatures", cell, "best cut", "ari"))
        text = "... ARI as good as that of the cosine cut that sees the truth"
        rows.append(Row(text, where, verdict(found), str(found), "10 draws"))
    for cosine, aim in ((0.95, 0.99), (0.85, 0.95), (0.75, 0.85)):
        ari = float(np.mean(column("maps", f"cosine {cosine}", "fuse(", "ari")))
        text = f"maps without signs at cosine {cosine}: ARI at least {aim}"
        rows.append(Row(text, where, YES if ari >= aim else NO, f"{ari:.3f}", "10 draws"))
    found = paired(column("topics", "", "fuse(", "ari"), column("topics", "", "first model wins, 0.8", "ari"))
    text = "topics of words: ahead of merging by a threshold, at its best of three"
    rows.append(Row(text, where, {"ahead": YES}.get(found.verdict, NO), str(found), "10 draws, 10 orders"))
    return rows


def mixtures() -> list[Row]:
    """Densities at equal size."""
    real = kept(HERE / "mixtures" / "results.json")["real"]
    rows = []
    for rival in ("Runnalls", "draws + EM"):
        ours, theirs = [], []
        for run in (run for runs in real.values() for run in runs):
            told = [row for row in run["told"].values() if rival in row]  # sizes of one draw are one draw
            ours.append(float(np.mean([row["ours, density"] for row in told])))
            theirs.append(float(np.mean([row[rival] for row in told])))
        found = paired(ours, theirs)
        text = f'`how="density"` is level with or ahead of {rival} at equal size (nats per row)'
        number = f"{found.n} draws: {len(real)} sets, 5 seeds; mean over sizes"
        rows.append(Row(text, "mixtures", verdict(found), str(found), number))
    return rows


def speed() -> list[Row]:
    """The bare call beside the textbook."""
    record = json.loads((HERE.parent / "benchmarks" / "bare.json").read_text(encoding="utf-8"))
    ratios = [(r["seconds"]["textbook"] / r["seconds"]["fuse"], r["J"]) for r in record["rows"]]
    by = ", ".join(f"{ratio:.0f} x at {J:,} sites" for ratio, J in ratios)
    text = "`fuse(sites)` is quicker than textbook Algorithm 1"
    return [Row(text, "../benchmarks", YES, by, f"{len(record['rows'])} sizes, one draw each")]


def share(good: int, n: int) -> str:
    """Whether something holds nearly always."""
    return YES if good >= 0.95 * n else NO if good <= n / 2 else PART


def verdict(found: Paired) -> str:
    """Of a claim not to be behind."""
    return NO if found.verdict == "behind" else YES


# ---------------------------------------------------------------- the page

PARTS: Mapping[str, Callable[[], list[Row]]] = {
    "The bare call on estimated models": right,
    "Was it worth merging": verdicts,
    "Simulated atoms": simulated,
    "Temperatures": temperatures,
    "Movements": movements,
    "Topics": topics,
    "Networks": networks,
    "Directions": directions,
    "Mixtures": mixtures,
    "Speed": speed,
}

HEAD = """# What is claimed, and what the records say

Written by `python experiments/claims.py` from the records of the studies; a test compares. A difference is ours less
the other, draw by draw, with its 95 % interval (Student's, over draws); "not told apart": the interval holds zero.
Where seeds redraw starts and not data (40 books, the two people of the paper) an interval speaks of starts alone.
Claims that did not hold when they were measured stay, with a no.

## Claims
"""


def page() -> str:
    """The table of claims, and where every record comes from."""
    made = "<!-- made: python experiments/claims.py -->"
    parts = {title: rows() for title, rows in PARTS.items()}
    lines = [
        HEAD,
        made,
    ]
    lines += ["| claim | where | holds | by how much | on how many |", "|---|---|---|---|---|"]
    for title, rows in parts.items():
        lines.append(f"| **{title}** | | | | |")
        for row in rows:
            where = f"[{row.where.removeprefix('../')}]({row.where})"
            lines.append(f"| {row.claim} | {where} | {row.holds} | {row.by.replace('|', '/')} | {row.n} |")
    lines += [
        "",
        "## Studies",
        "",
        made,
        "| study | title | measured at | on | summarised at |",
        "|---|---|---|---|---|",
    ]
    for path in sorted(HERE.rglob("results.json")):
        record = json.loads(path.read_text(encoding="utf-8"))
        if "tasks" not in path.parts and KEY in record:
            name, said = path.parent.relative_to(HERE).as_posix(), record[KEY]
            told = said.get("told", {}).get("commit", "")
            title = record.get("title", "")
            lines.append(f"| [{name}]({name}) | {title} | {said['commit']} | {said['date']} | {told} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")
    print(page())


if __name__ == "__main__":
    main()
