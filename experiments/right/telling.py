"""Tables and claims from what was measured."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np
from methods import BARE, COUNTED, GIVEN, METHODS, UNMATCHED, WITHOUT, Row

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
    "new": "f. New generators",
    "oversplit": "g. Local models with too many components",
    "affine": "h. Sites that differ by an offset or a scale",
}


def summary(cells: Cells) -> tuple[list[Table], list[Claim]]:
    """All there is to say of a run."""
    cases = {case: matching(cells, f"{case}/") for case in TITLES}
    cases = {case: of for case, of in cases.items() if of}
    tables = [overview(cases), *(of_case(TITLES[case], of) for case, of in cases.items())]
    return tables, list(claims(cells))


def matching(cells: Cells, pattern: str) -> Cells:
    """Cells whose name begins like this."""
    return {name: seeds for name, seeds in cells.items() if re.match(pattern, name)}


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
    """What a cell is held against: honest sites alone where there are others, else k-means given K."""
    return WITHOUT if any(WITHOUT in rows for seeds in cells.values() for rows in seeds.values()) else GIVEN


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
            gaps = [differences(cells, method, GIVEN), differences(cells, method, WITHOUT)]
            low = f"{len(below(cells, method))} of {len(cells)}" if method != reference_of(cells) else ""
            error, cpu = mean(values(cells, method, "error")), values(cells, method, "cpu")
            numbers = [f"{error:.2f}", f"{mean(ari):.3f}", f"{mean(cpu):.3f}", f"{sum(cpu):.1f}"]
            rows.append([TITLES[case], method, str(len(ari)), *numbers, *map(interval, gaps), low])
    columns = ["case", "method", "fits", "error in K", "ARI", "CPU s", "in all", f"- {GIVEN}", f"- {WITHOUT}", "below"]
    note = (
        "Error in K is without sign, means are over cells and seeds. Differences of ARI are paired by draw, "
        f"± Student's {LEVEL:.0%} interval. Below: cells more than {CLOSE} below k-means given K; "
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
        gaps = [interval(differences(one, m, GIVEN)) for m in ours]
        gaps += [interval(differences(one, BARE, WITHOUT))] if reference == WITHOUT else []
        rows.append([name.split("/", 1)[1], str(len(seeds)), *found, *gaps, f"{mean(values(one, BARE, 'cpu')):.3f}"])
    heads = [f"{m} - {GIVEN}" for m in ours] + ([f"{BARE} - {WITHOUT}"] if reference == WITHOUT else [])
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


class Aim(NamedTuple):
    """What should hold of cells whose names begin like `cells`: `measure` is at least, errors at most, `limit`."""

    name: str
    cells: str
    measure: Literal["ARI", "error in K", "ARI less k-means given K", "cells lower"]
    limit: float


HALF = "affine/arrays, D=(5|20), half shared/J=(5|10) offset"
AIMS = (
    Aim("generators", "generators/.*J=(5|10|25|50)", "ARI", 0.966),
    Aim("generators", "generators/.*J=(5|10|25|50)", "error in K", 0.4),
    Aim("generators", "generators/.*J=(5|10|25|50)", "ARI less k-means given K", 0.0),
    Aim("generators", "generators/.*J=(5|10|25|50)", "cells lower", 0),
    Aim("generators, two and three sites", "generators/.*J=(2|3)$", "ARI", 0.94),
    Aim("one population", "split/", "ARI", 0.974),
    Aim("one population", "split/", "error in K", 1.0),
    Aim("one and two dimensions", "low/", "ARI", 0.895),
    Aim("one and two dimensions", "low/", "error in K", 0.7),
    Aim("real tables", "real/", "ARI less k-means given K", 0.0),
    Aim("hostile sites", "hostile/", "cells lower", 0),
    Aim("new generators", "new/", "ARI", 0.93),
    Aim("KMeans k+3 in two dimensions", "oversplit/KMeans", "ARI", 0.93),
    Aim("one population k+2", "oversplit/one population", "error in K", 0.5),
    Aim("arrays, half shared, offset of one spread", f"{HALF} 1", "ARI", 0.95),
    Aim("arrays, half shared, offset of three spreads", f"{HALF} 3", "ARI", 0.95),
    Aim("mixtures, offset of a half to three spreads", "affine/mixtures, offset (0.5|1|3)/J=(5|10)$", "ARI", 0.95),
    Aim("rows standardised apart, eight sites", "affine/mixtures, rows standardised/J=8", "ARI", 0.85),
    Aim("rows standardised apart, 25 sites", "affine/mixtures, rows standardised/J=25", "ARI", 0.95),
    Aim("scales that differ by 30 %", "affine/mixtures, scale 30 %/", "ARI", 0.75),
    Aim("the same, of positive columns", "affine/mixtures, scale 30 %, positive", "ARI", 0.75),
)
"""Of the bare call."""


def claims(cells: Cells) -> Iterator[Claim]:
    """Whether what should hold does."""
    for aim in AIMS:
        of = matching(cells, aim.cells)
        low, gaps = below(of, BARE), differences(of, BARE, GIVEN)
        if not of or not (gaps or aim.measure in ("ARI", "error in K")):
            continue
        ari, error = mean(values(of, BARE, "ari")), mean(values(of, BARE, "error"))
        found, text = {
            "ARI": (ari, f"{ari:.3f}"),
            "error in K": (error, f"{error:.2f}"),
            "ARI less k-means given K": (mean(gaps), interval(gaps)),
            "cells lower": (len(low), worst(low)),
        }[aim.measure]
        at_most = aim.measure in ("error in K", "cells lower")
        words = "at most" if at_most else "at least"
        yield Claim(
            f"{aim.name}: {aim.measure} {words} {aim.limit:g}.",
            f"{text.rstrip('.')}.",
            bool(found <= aim.limit if at_most else found >= aim.limit),
        )
    yield from clean_answers(cells)


def clean_answers(cells: Cells) -> Iterator[Claim]:
    """A column of one site in another unit leaves the answer as it is."""
    units = {name: re.sub("x [0-9.]+", "x 1", name) for name in matching(cells, ".*one column x")}
    gaps = [
        cells[name][seed][BARE]["ari"] - cells[clean][seed][BARE]["ari"]
        for name, clean in units.items()
        if clean in cells and clean != name
        for seed in cells[name]
    ]
    if gaps:
        yield Claim("one column in another unit: ARI as without.", f"{interval(gaps)}.", mean(gaps) >= -CLOSE)


def worst(low: Sequence[tuple[str, float]]) -> str:
    """How many cells are low, and the lowest."""
    if not low:
        return "none lower."
    name, gap = min(low, key=lambda item: item[1])
    return f"{len(low)} cells, {name.split('/', 1)[1]} {gap:+.3f} the lowest."
