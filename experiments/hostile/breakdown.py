"""Tables of breakdown curves: for each attack the methods below each other, shares of bad sites side by side."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from defences import BARE, MEDIAN, METHODS, OWN_MEDIAN

from study import Claim, Table

MOST = 1.2
"""Times the error of the nearer median up to which an attack is held."""

Cells = Mapping[tuple[str, int, float], Mapping[str, Mapping[str, dict[str, Any]]]]
"""Attack, number of sites, share of bad ones -> seed -> method -> row."""


def column(cells: Cells, cell: tuple[str, int, float], method: str, what: str) -> list[float]:
    """One number per seed; NaN where a method failed."""
    return [math.nan if rows[method].get(what) is None else rows[method][what] for rows in cells[cell].values()]


def mean(numbers: Sequence[float]) -> float:
    """Mean of what there is."""
    known = [x for x in numbers if not math.isnan(x)]
    return float(np.mean(known)) if known else math.nan


def _text(cells: Cells, cell: tuple[str, int, float], method: str) -> str:
    """ARI, then the error of honest atoms; K if it is off."""
    ari, error, K = (mean(column(cells, cell, method, what)) for what in ("ari", "error", "K"))
    off = f", K {K:+.3g}" if abs(K) >= 0.05 else ""
    return f"{ari:.3f} {error:.2g}{off}" if not math.isnan(error) else f"{ari:.3f} -"


def tables(cells: Cells) -> Iterator[Table]:
    """The curves of every number of sites, and who is named."""
    attacks = list(dict.fromkeys(name for name, _, _ in cells))
    shares = list(dict.fromkeys(share for _, _, share in cells))
    for J in dict.fromkeys(J for _, J, _ in cells):
        yield _in_short(cells, attacks, shares, J)
        yield Table(
            f"{J} sites: ARI of honest values, error of honest atoms in deviations of noise",
            ["attack", "method", *(f"{share:.0%} bad" for share in shares)],
            [
                [name if method == BARE else "", method, *(_text(cells, (name, J, share), method) for share in shares)]
                for name in attacks
                for method in METHODS
            ],
            "K: error in the number of atoms that honest values are matched to, where it is off.",
        )
        yield Table(
            f"{J} sites: who {BARE} names",
            ["attack", *(f"{share:.0%} bad" for share in shares)],
            [[name, *(_named(cells, (name, J, share)) for share in shares)] for name in attacks],
            "Of all bad sites, of all honest ones: shares that a warning, a reason or diagnose() names. Then atoms "
            "that bad sites alone hold and that are not set aside.",
        )


def _in_short(cells: Cells, attacks: Sequence[str], shares: Sequence[float], J: int) -> Table:
    """What the bare call does, beside the nearer median."""
    rows: list[list[str | float | None]] = [
        [name, *(_text(cells, (name, J, share), BARE) for share in shares), f"{worst(cells, name, J):.2f}"]
        for name in attacks
    ]
    note = (
        "ARI of honest values, error of honest atoms in deviations of noise; the error over that of the nearer median."
    )
    head = ["attack", *(f"{share:.0%} bad" for share in shares), "most, beside medians"]
    return Table(f"{J} sites: {BARE}, everything by default", head, rows, note)


def worst(cells: Cells, name: str, J: int) -> float:
    """The largest ratio, over shares, of the bare call's error to that of the nearer median."""
    ratios = []
    for cell in cells:
        if cell[:2] == (name, J):
            error, *others = (mean(column(cells, cell, m, "error")) for m in (BARE, OWN_MEDIAN, MEDIAN))
            ratios.append(float(error / np.nanmin(others)))
    return max(ratios)


def _named(cells: Cells, cell: tuple[str, int, float]) -> str:
    _, J, share = cell
    bad = int(share * J + 1e-9)
    named, honest, extra = (mean(column(cells, cell, BARE, what)) for what in ("bad named", "honest named", "surplus"))
    return f"{f'{named / bad:.0%}' if bad else '-'}, {honest / (J - bad):.1%}, {extra:.3g}"


def claims(cells: Cells) -> Iterator[Claim]:
    """Whether each attack leaves atoms as near as medians of their members."""
    for J in dict.fromkeys(J for _, J, _ in cells):
        for name in dict.fromkeys(name for name, _, _ in cells):
            most = worst(cells, name, J)
            text = f"{most:.2f} times at most."
            yield Claim(f"{J} sites, {name}: error at most {MOST:g} times the nearer median's.", text, most <= MOST)
