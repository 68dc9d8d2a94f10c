"""What every case of the study consists of: sites as they are sent, beside the truth about them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from modelweld.core.values import Array, Flags, Index

CENTRE = 3.0
"""Spreads between zero and the middle of values that have a unit."""


@dataclass(frozen=True, eq=False)
class Draw:
    """Sites of one draw.

    Attributes
    ----------
    sent : list
        What the bare call gets, one per site: fitted models, LocalModels or arrays.
    values : list of arrays (L_j, D)
        The means among it: all that rivals see.
    truth : list of arrays (L_j,)
        The true atom of every local component.
    counted : list, optional
        The same models read at their sites with their data.
    honest : list of arrays (L_j,), optional
        Which components are judged; default all. Atoms of others are surplus.
    without : list, optional
        What honest sites would have sent had nothing been wrong: the same components, in the same order.
    """

    sent: Sequence[object]
    values: list[Array]
    truth: list[Index]
    counted: Sequence[object] | None = None
    honest: list[Flags] | None = None
    without: Sequence[object] | None = None

    @property
    def judged(self) -> Flags:
        """Which of all components are judged."""
        return np.concatenate(self.honest or [np.ones(len(v), bool) for v in self.values])

    @property
    def true_names(self) -> Index:
        """True atoms of the components that are judged."""
        return np.concatenate(self.truth)[self.judged]

    @property
    def K(self) -> int:
        """How many true atoms they have."""
        return len(np.unique(self.true_names))


@dataclass(frozen=True)
class Group:
    """Cells of the study that are drawn together: those of one population at several numbers of sites.

    `draws` gets a seed and yields (cell, Draw); what is fitted for one cell serves the others.
    """

    case: str
    name: str
    draws: Callable[[int], Iterator[tuple[str, Draw]]]

    @property
    def path(self) -> str:
        """Its name for the command line."""
        return f"{self.case}/{self.name}"


def with_effect(
    sites: Sequence[Array], kind: str, size: float, spread: float | Array, rng: np.random.Generator
) -> list[Array]:
    """Values or points of every site as it has them: off by some spreads, or on scales of its own."""
    J, D = len(sites), sites[0].shape[1]
    scale, offset = np.ones((J, D)), np.zeros((J, D))
    if kind == "standardised":
        return [(x - x.mean(axis=0)) / x.std(axis=0) for x in sites]
    if kind == "offset":
        offset = size * rng.standard_normal((J, D))
    elif kind == "one site":
        offset[0] = size * rng.standard_normal(D)
    elif kind == "two batches":
        offset = size * rng.standard_normal((2, D))[np.arange(J) % 2]
    elif kind.startswith("scale"):
        scale = np.exp(size * rng.standard_normal((J, D)))
    elif kind == "unit":
        scale[0, 0] = size
    middle = CENTRE * spread if kind in ("scale, positive", "unit") else 0.0
    return [s * (x + middle) + spread * o for s, x, o in zip(scale, sites, offset, strict=True)]
