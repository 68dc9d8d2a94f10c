"""Tables of breakdown curves: attacks below each other, shares of bad sites side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from defences import BARE, MEDIANS

from study import Claim, Table

SEP = " / "
"""Between attack, number of sites and share of bad ones in the name of a cell."""

MOST = 1.2
"""Times the error of the nearer median up to which an attack is held."""

Cell = tuple[str, int, float]
Cells = Mapping[Cell, Mapping[str, Any]]
"""Attack, number of sites, share of bad ones -> method -> measure -> one number per seed."""


def mean(cells: Cells, cell: Cell, method: str, what: str) -> float:
    """Mean over seeds of what there is; NaN of nothing, or where seeds are not all there."""
    known = [x for x in cells[cell].get(method, {}).get(what, ()) if x is not None]
    return float(np.mean(known)) if known else np.nan


def ratio(cells: Cells, cell: Cell) -> float:
    """The bare call's error over that of the nearer median."""
    return float(mean(cells, cell, BARE, "error") / np.nanmin([mean(cells, cell, m, "error") for m in MEDIANS]))


def _text(cells: Cells, cell: Cell) -> str:
    """ARI, then the error of honest atoms; K if it is off."""
    ari, error, K = (mean(cells, cell, BARE, what) for what in ("ari", "error", "K"))
    return f"{ari:.3f} {error:.2g}" + (f", K {K:+.2g}" if abs(K) >= 0.05 else "")


def _named(cells: Cells, cell: Cell) -> str:
    _, J, share = cell
    bad = int(share * J + 1e-9)
    named, honest, extra = (mean(cells, cell, BARE, what) for what in ("bad named", "honest named", "surplus"))
    return f"{named / bad:.0%}, {honest / (J - bad):.1%}, {extra:.3g}"


def tables(cells: Cells) -> Iterator[Table]:
    """The curves of every number of sites, and who is named."""
    shares = list(dict.fromkeys(share for _, _, share in cells))
    head = ["attack", *(f"{share:.0%} bad" for share in shares)]
    for J in dict.fromkeys(J for _, J, _ in cells):
        attacks = list(dict.fromkeys(name for name, of, _ in cells if of == J))

        def rows(text: Any, last: Any = None, J: int = J, attacks: Sequence[str] = attacks) -> list[list[str]]:
            own = ((name, [cell for share in shares if (cell := (name, J, share)) in cells]) for name in attacks)
            return [[name, *(text(cells, cell) for cell in of), *([last(of)] if last else [])] for name, of in own]

        yield Table(
            f"{J} sites: {BARE}, everything by default",
            [*head, "most, beside medians"],
            rows(_text, lambda of: f"{max(ratio(cells, cell) for cell in of):.2f}"),
            "ARI of honest values, error of honest atoms in deviations of noise, error in K where it is off; the error "
            "over that of the nearer median, at most.",
        )
        yield Table(
            f"{J} sites: who {BARE} names",
            head,
            rows(_named),
            "Of all bad sites, of all honest ones: shares that a warning, a reason or diagnose() names. Then atoms "
            "that bad sites alone hold and that are not set aside.",
        )


def claims(cells: Cells) -> Iterator[Claim]:
    """Whether every attack leaves atoms as near as medians of their members."""
    for J in dict.fromkeys(J for _, J, _ in cells):
        found = {cell: ratio(cells, cell) for cell in cells if cell[1] == J}
        beyond = [f"{name} at {share:.0%} ({found[name, of, share]:.2f})" for name, of, share in found
                  if found[name, of, share] > MOST]  # fmt: skip
        said = f"{max(found.values()):.2f} times at most" + (f"; beyond: {', '.join(beyond)}" if beyond else "") + "."
        text = f"{J} sites: atoms at most {MOST:g} times as far off as the nearer median's."
        yield Claim(text, said, not beyond, f"{len(found)} cells, 5 seeds")
