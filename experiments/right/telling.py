"""Tables and claims from what was measured."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
from methods import BARE, COUNTED, METHODS, SILHOUETTE, TOLD, UNMATCHED, WITHOUT, Row

from paired import LEVEL, paired
from study import Claim, Table

Measure = Literal["error", "ari", "cpu"]
Seeds = Mapping[str, Mapping[str, Row]]
"""Seed -> method -> measures."""
Cells = Mapping[str, Seeds]
"""Cell ("case/group/cell") -> seeds."""


CLOSE = 0.02
"""ARI by which a cell may be below its reference."""

TITLES = {
    "generators": "a. Estimated mixtures and hidden Markov models",
    "split": "b. One population, split at random",
    "low": "c. Few dimensions",
    "real": "d. Real tables, split at random",
    "hostile": "e. Hostile sites",
}


def summary(cells: Cells) -> tuple[list[Table], list[Claim]]:
    """All there is to say of a run."""
    cases = {case: {n: c for n, c in cells.items() if n.startswith(f"{case}/")} for case in TITLES}
    cases = {case: of for case, of in cases.items() if of}
    tables = [overview(cases), *(of_case(TITLES[case], of) for case, of in cases.items())]
    claims = [replace(c, text=f"{case}: {c.text}") for case, of in cases.items() for c in CLAIMS[case](of)]
    return tables, claims


def values(cells: Cells, method: str, measure: Measure) -> list[float]:
    """One measure of all draws that have the method; errors in K without their sign."""
    found = [seeds[s][method][measure] for seeds in cells.values() for s in seeds if method in seeds[s]]
    return [abs(x) if measure == "error" else x for x in found]


def mean(numbers: Sequence[float]) -> float:
    """Mean, nan of nothing."""
    return float(np.mean(numbers)) if len(numbers) else math.nan


def differences(cells: Cells, method: str, reference: str) -> list[float]:
    """ARI less the reference's on the same draw."""
    both = [rows for seeds in cells.values() for rows in seeds.values() if {method, reference} <= set(rows)]
    return [rows[method]["ari"] - rows[reference]["ari"] for rows in both]


def interval(numbers: Sequence[float]) -> str:
    """Mean and Student's interval."""
    if not len(numbers):
        return "-"
    if len(numbers) == 1:
        return f"{numbers[0]:+.3f}"
    found = paired(numbers, [0.0] * len(numbers))
    return f"{found.mean:+.3f} ± {found.high - found.mean:.3f}"


def reference_of(cells: Cells) -> str:
    """What a cell is held against: honest sites alone where there are others, else k-means told K."""
    return WITHOUT if any(WITHOUT in rows for seeds in cells.values() for rows in seeds.values()) else TOLD


def below(cells: Cells, method: str) -> list[tuple[str, float]]:
    """Cells whose mean is further below that of what they are held against than `CLOSE`."""
    each = {name: {name: seeds} for name, seeds in cells.items()}
    gaps = {name: mean(differences(one, method, reference_of(one))) for name, one in each.items()}
    return [(name, gap) for name, gap in gaps.items() if gap < -CLOSE]


def overview(cases: Mapping[str, Cells]) -> Table:
    """A row per case and method, the bare call first."""
    rows: list[list[str | float | None]] = []
    for case, cells in cases.items():
        for method in METHODS:
            if not (ari := values(cells, method, "ari")):
                continue
            gaps = [differences(cells, method, TOLD), differences(cells, method, WITHOUT)]
            low = f"{len(below(cells, method))} of {len(cells)}" if method != reference_of(cells) else ""
            error, cpu = mean(values(cells, method, "error")), values(cells, method, "cpu")
            numbers = [f"{error:.2f}", f"{mean(ari):.3f}", f"{mean(cpu):.3f}", f"{sum(cpu):.1f}"]
            rows.append([TITLES[case], method, str(len(ari)), *numbers, *map(interval, gaps), low])
    columns = ["case", "method", "fits", "error in K", "ARI", "CPU s", "in all", f"- {TOLD}", f"- {WITHOUT}", "below"]
    note = (
        "Error in K is without sign, means are over cells and seeds. Differences of ARI are paired by draw, "
        f"± Student's {LEVEL:.0%} interval. Below: cells more than {CLOSE} below k-means told K; "
        "in e below honest sites alone."
    )
    return Table("All cases", columns, rows, note)


def of_case(title: str, cells: Cells) -> Table:
    """A row per cell: error in K and ARI of every method, and paired differences."""
    methods = [m for m in METHODS if values(cells, m, "ari") and m != UNMATCHED]
    ours, reference = [m for m in (BARE, COUNTED) if m in methods], reference_of(cells)
    rows = []
    for name, seeds in cells.items():
        one = {name: seeds}
        found = [_cell(one, m) for m in methods]
        gaps = [interval(differences(one, m, TOLD)) for m in ours]
        gaps += [interval(differences(one, BARE, WITHOUT))] if reference == WITHOUT else []
        rows.append([name.split("/", 1)[1], str(len(seeds)), *found, *gaps, f"{mean(values(one, BARE, 'cpu')):.3f}"])
    heads = [f"{m} - {TOLD}" for m in ours] + ([f"{BARE} - {WITHOUT}"] if reference == WITHOUT else [])
    failures = sorted(
        f"{name}, seed {s}, {m}: {row['failed']}"
        for name, seeds in cells.items()
        for s in seeds
        for m, row in seeds[s].items()
        if "failed" in row
    )
    return Table(title, ["cell", "seeds", *methods, *heads, "CPU s, bare"], rows, "; ".join(failures))


def _cell(one: Cells, method: str) -> str:
    ari = values(one, method, "ari")
    signed = [rows[method]["error"] for seeds in one.values() for rows in seeds.values() if method in rows]
    return f"{np.mean(signed):+.1f} {mean(ari):.3f}" if ari else "-"


# ---------------------------------------------------------------- what should hold


def generators(cells: Cells) -> Iterator[Claim]:
    """Bare as good as counted, and both as good as k-means told K."""
    for method in (BARE, COUNTED):
        error, gap, low = mean(values(cells, method, "error")), differences(cells, method, TOLD), below(cells, method)
        yield Claim(f"{method}: mean error in K at most .4.", f"{error:.2f}.", error <= 0.4)
        yield Claim(f"{method}: ARI at least that of {TOLD} in the mean.", f"{interval(gap)}.", mean(gap) >= 0)
        yield Claim(f"{method}: never {CLOSE} below in a cell.", worst(low), not low)


def split(cells: Cells) -> Iterator[Claim]:
    """One population."""
    for method in (BARE, COUNTED):
        errors = {name: mean(values({name: seeds}, method, "error")) for name, seeds in cells.items()}
        found = ", ".join(f"{name.split('/')[-1]} {e:.1f}" for name, e in errors.items())
        yield Claim(f"{method}: K within 1 at every number of sites.", f"{found}.", max(errors.values()) <= 1)


def low(cells: Cells) -> Iterator[Claim]:
    """Few dimensions."""
    asked = ("told", "BIC", "2 too many", "weights Dir(.3)", "KMeans")
    usual = {n: c for n, c in cells.items() if n.split("/")[1].split(" ", 1)[1] in asked}
    half = {n: c for n, c in cells.items() if n == "low/D=2 share half/J=3"}
    for method in (BARE, COUNTED):
        if usual:
            ari, error = mean(values(usual, method, "ari")), mean(values(usual, method, "error"))
            ahead = differences(usual, method, SILHOUETTE)
            yield Claim(
                f"{method}: ARI at least .88, error in K at most .7.",
                f"{ari:.3f}, {error:.2f}.",
                ari >= 0.88 and error <= 0.7,
            )
            yield Claim(f"{method}: ahead of {SILHOUETTE} in the mean.", f"{interval(ahead)}.", mean(ahead) > 0)
        if half:
            ari, rival = mean(values(half, method, "ari")), mean(values(half, TOLD, "ari"))
            yield Claim(
                f"{method}: D=2, J=3, half shared: ARI at least .72.", f"{ari:.3f}; {TOLD} {rival:.3f}.", ari >= 0.72
            )


def real(cells: Cells) -> Iterator[Claim]:
    """Real tables."""
    for method in (BARE, COUNTED):
        for name in dict.fromkeys(n.split("/")[1] for n in cells):
            of = {n: c for n, c in cells.items() if n.split("/")[1] == name}
            gap, error = differences(of, method, TOLD), mean(values(of, method, "error"))
            holds = mean(gap) >= 0 and error <= 1
            yield Claim(f"{method}, {name}: ARI as {TOLD}, K within 1.", f"{interval(gap)}, error {error:.1f}.", holds)


def hostile(cells: Cells) -> Iterator[Claim]:
    """Sites that must not matter."""
    for name in dict.fromkeys(n.split("/")[1] for n in cells):
        of = {n: c for n, c in cells.items() if n.split("/")[1] == name}
        low, reference = below(of, BARE), reference_of(of)
        yield Claim(f"{name}: honest ARI as {reference} (- {CLOSE}) in every cell.", worst(low), not low)


def worst(low: Sequence[tuple[str, float]]) -> str:
    """How many cells are low, and the lowest."""
    if not low:
        return "none lower."
    name, gap = min(low, key=lambda item: item[1])
    return f"{len(low)} cells, {name.split('/', 1)[1]} {gap:+.3f} the lowest."


CLAIMS: dict[str, Callable[[Cells], Iterator[Claim]]] = {
    "generators": generators,
    "split": split,
    "low": low,
    "real": real,
    "hostile": hostile,
}
