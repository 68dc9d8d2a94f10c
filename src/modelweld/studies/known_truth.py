"""What a simulation gives: what sites send, with the truth beside it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from modelweld.inputs.local_model import Array
from modelweld.inputs.stack import Index

Seed: TypeAlias = int | np.random.Generator
"""The same integer gives the same draw; a Generator goes on from where it is."""


@dataclass(frozen=True, eq=False)
class Simulated:
    """What sites send, and the truth.

    Attributes
    ----------
    values : list of arrays (L_j, D)
        Local parameters of every site.
    truth : list of int arrays (L_j,)
        The true atom of every local parameter, a row of `atoms`.
    atoms : array (L, D)
        True global atoms, also those that no site holds. A junk value is an atom of its own.
    variance : list of arrays (L_j, D), optional
        Squared standard errors of the values.
    counts : list of arrays (L_j,), optional
        Number of points behind each value.
    covariances : list of arrays (L_j, D, D), optional
        Covariance of the points behind each value.
    honest : bool array (J,), optional
        Which sites are not poisoned.
    points : list of arrays (n_j, D), optional
        The points that local models were estimated from.
    origin : list of int arrays (n_j,), optional
        The true atom of every point, a row of `atoms`.
    assigned : list of int arrays (n_j,), optional
        The local parameter that the local model gives each point to, a row of `values`.
    fresh : list of arrays (n_j, D), optional
        Further points, of the same atoms at the same site, which no local model has seen.

    Examples
    --------
    >>> drawn = Simulated([np.zeros((1, 2))] * 2, [np.array([4])] * 2, np.zeros((9, 2)))
    >>> drawn.K, drawn.stacked_truth
    (1, array([4, 4]))
    """

    values: list[Array]
    truth: list[Index]
    atoms: Array
    variance: list[Array] | None = None
    counts: list[Array] | None = None
    covariances: list[Array] | None = None
    honest: NDArray[np.bool_] | None = None
    points: list[Array] | None = None
    origin: list[Index] | None = None
    assigned: list[Index] | None = None
    fresh: list[Array] | None = None

    @property
    def K(self) -> int:
        """Number of true atoms that occur; in a poisoned set, at honest sites."""
        honest = [True] * len(self.truth) if self.honest is None else self.honest
        return len(set().union(*(truth.tolist() for truth, kept in zip(self.truth, honest, strict=True) if kept)))

    @property
    def stacked_truth(self) -> Index:
        """The true atoms of all local parameters, site after site."""
        return np.concatenate(self.truth)


def draw_held(rng: np.random.Generator, L: int, J: int, a: float, b: float) -> list[Index]:
    """The atoms of each site, in random order: atom k at every site with probability p_k ~ Beta(a, b)."""
    holds = rng.random((J, L)) < rng.beta(a, b, L)
    empty = np.flatnonzero(~holds.any(axis=1))
    holds[empty, rng.integers(L, size=len(empty))] = True
    return [rng.permutation(np.flatnonzero(site)) for site in holds]


def scatter(rng: np.random.Generator, atoms: Array, held: list[Index], root: Array) -> Simulated:
    """Values about the atoms held, with noise covariance root root'."""
    D = atoms.shape[1]
    return Simulated([atoms[of] + rng.standard_normal((len(of), D)) @ root.T for of in held], held, atoms)
