"""Tables of breakdown curves: for each attack the methods below each other, shares of bad sites side by side."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from defences import BARE, KRUM, MEDIAN, METHODS, OWN_KRUM, OWN_MEDIAN, TOLD, TRIMMED
from scipy.stats import t

from study import Claim, Table

LEVEL = 0.95
"""Of intervals."""

HELD_ARI, HELD_ERROR = 0.99, 1.5
"""An attack is held where the honest values' ARI is at least that, and the honest atoms' error at most so many times
what it is without bad sites."""

Cells = Mapping[tuple[str, int, float], Mapping[str, Mapping[str, dict[str, Any]]]]
"""Attack, number of sites, share of bad ones -> seed -> method -> row."""


def column(cells: Cells, cell: tuple[str, int, float], method: str, what: str) -> list[float]:
    """One number per seed; NaN where a method failed."""
    return [math.nan if rows[method].get(what) is None else rows[method][what] for rows in cells[cell].values()]


def mean(numbers: Sequence[float]) -> float:
    """Mean of what there is."""
    known = [x for x in numbers if not math.isnan(x)]
    return float(np.mean(known)) if known else math.nan


def interval(numbers: Sequence[float]) -> str:
    """Mean and Student's interval."""
    known = [x for x in numbers if not math.isnan(x)]
    if len(known) < 2:
        return f"{known[0]:+.3f}" if known else "-"
    half = t.ppf((1 + LEVEL) / 2, len(known) - 1) * np.std(known, ddof=1) / math.sqrt(len(known))
    return f"{np.mean(known):+.3f} ± {half:.3f}"


def _text(cells: Cells, cell: tuple[str, int, float], method: str) -> str:
    """ARI, then the error of honest atoms; K if it is off."""
    ari, error, K = (mean(column(cells, cell, method, what)) for what in ("ari", "error", "K"))
    off = f", K {K:+.3g}" if abs(K) >= 0.05 else ""
    return f"{ari:.3f} {error:.2g}{off}" if not math.isnan(error) else f"{ari:.3f} -"


def tables(cells: Cells) -> Iterator[Table]:
    """The curves of every number of sites, who is named, and paired differences."""
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
    yield _paired(cells, attacks, shares)


def _in_short(cells: Cells, attacks: Sequence[str], shares: Sequence[float], J: int) -> Table:
    """What the bare call does, and up to which share it and the others hold."""
    rows: list[list[str | float | None]] = []
    for name in attacks:
        held = (held_up_to(cells, name, J, method) for method in (BARE, TRIMMED, TOLD))
        own = [_text(cells, (name, J, share), BARE) for share in shares]
        rows.append([name, *own, ", ".join("never" if share is None else f"{share:.0%}" for share in held)])
    note = (
        f"ARI of honest values, error of honest atoms in deviations of noise. Held: ARI of at least {HELD_ARI:g}, and "
        f"an error of at most {HELD_ERROR:g} times that without bad sites, at every share up to this one."
    )
    head = ["attack", *(f"{share:.0%} bad" for share in shares), f"held: {BARE}, trimmed k-means, k-means"]
    return Table(f"{J} sites: {BARE}, everything by default", head, rows, note)


def _named(cells: Cells, cell: tuple[str, int, float]) -> str:
    _, J, share = cell
    bad = int(share * J + 1e-9)
    named, honest, extra = (mean(column(cells, cell, BARE, what)) for what in ("bad named", "honest named", "surplus"))
    return f"{f'{named / bad:.0%}' if bad else '-'}, {honest / (J - bad):.1%}, {extra:.3g}"


def _paired(cells: Cells, attacks: Sequence[str], shares: Sequence[float]) -> Table:
    """Error of others less that of the bare call on the same draws, all shares above zero together."""
    rows: list[list[str | float | None]] = []
    for J in dict.fromkeys(J for _, J, _ in cells):
        for name in attacks:
            row: list[str | float | None] = [f"{name}, {J} sites"]
            for method in (OWN_MEDIAN, OWN_KRUM, MEDIAN, KRUM, TRIMMED):
                off: list[float] = []
                for share in shares:
                    if share:
                        pair = (column(cells, (name, J, share), m, "error") for m in (method, BARE))
                        off += [min(a, 10.0) - min(b, 10.0) for a, b in zip(*pair, strict=True)]
                row.append(interval(off))
            rows.append(row)
    note = (
        f"± Student's {LEVEL:.0%} interval over draws of all shares; errors above 10 are 10. Above 0: {BARE} is nearer."
    )
    head = ["attack", OWN_MEDIAN, OWN_KRUM, MEDIAN, KRUM, TRIMMED]
    return Table(f"Error of honest atoms less that of {BARE}, paired by draw", head, rows, note)


def held_up_to(cells: Cells, name: str, J: int, method: str = BARE) -> float | None:
    """The largest share up to which an attack is held at every share tried; None if not even without bad sites."""
    shares = sorted(share for n, sites, share in cells if (n, sites) == (name, J))
    clean = mean(column(cells, (name, J, shares[0]), BARE, "error"))
    best = None
    for share in shares:
        ari, error = (mean(column(cells, (name, J, share), method, what)) for what in ("ari", "error"))
        if not (ari >= HELD_ARI and error <= HELD_ERROR * clean):
            break
        best = share
    return best


def claims(cells: Cells) -> Iterator[Claim]:
    """Up to which share each attack is held."""
    for J in dict.fromkeys(J for _, J, _ in cells):
        most = max(share for _, sites, share in cells if sites == J)
        for name in dict.fromkeys(name for name, _, _ in cells):
            ours, trimmed, told = (held_up_to(cells, name, J, m) for m in (BARE, TRIMMED, TOLD))
            text = ", ".join(
                f"{who} {'never' if x is None else f'{x:.0%}'}"
                for who, x in ((BARE, ours), ("trimmed k-means", trimmed), ("k-means", told))
            )
            yield Claim(f"{J} sites, {name}: held up to {most:.0%}.", f"{text}.", ours == most)
