"""Simulated sites, with the truth.

Every function draws global atoms and what each site sends; the same `seed` (an integer, or a Generator to go on with)
gives the same draw. `noise_sd` and `spread_sd` are standard deviations: of local parameters about their atom, and of
the atoms.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from modelweld.core.values import Array, Index
from modelweld.errors import InputError

FIGURE_L, FIGURE_D, FIGURE_MEAN, FIGURE_SPREAD_SD = 50, 50, 2.0, 50**0.5
"""The paper's figure: fifty atoms N(2, 50) in fifty dimensions."""

BASE_L, BASE_J, BASE_D, BASE_NOISE_SD, BASE_SPREAD_SD = 20, 12, 10, 0.4, 2.5
"""Atoms, sites, dimensions and deviations of the small clean set: its nearest atoms lie twelve noises apart."""

LOW_DIMENSIONAL = {
    "J8 D2": (60, 8, 2, 0.2, 5.0, 0.3, 2.0),
    "J10 D3": (200, 10, 3, 0.2, 4.0, 0.2, 2.0),
    "J10 D5": (60, 10, 5, 0.7, 2.5, 0.3, 2.0),
    "J10 D10": (60, 10, 10, 0.5, 2.0, 0.3, 2.0),
}
"""Arguments of `sparse`. Atoms overlap in "J10 D5" only."""


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
        True global atoms, also those that no site holds. A background value is an atom of its own.
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


def sparse(
    L: int, J: int, D: int, noise_sd: float, spread_sd: float, a: float, b: float, *, mean: float = 0.0, seed: Seed = 0
) -> Simulated:
    """Draw atoms that each have a popularity of their own.

    Atom k is N(mean, spread_sd²) in D dimensions and every site holds it with probability p_k ~ Beta(a, b); a site that
    would hold none is given one, uniformly. Values are N(atom, noise_sd²), in random order.

    Parameters
    ----------
    L, J, D : int
        Number of atoms, sites, dimensions.
    noise_sd, spread_sd : float
        Standard deviations about atoms and of atoms.
    a, b : float
        Law of the popularities.
    mean : float
        Mean of the atoms.
    seed : int or Generator
        Source of the draw.

    Examples
    --------
    >>> [values.shape for values in sparse(9, 3, 2, 0.1, 5.0, 1.0, 1.0).values]
    [(5, 2), (4, 2), (5, 2)]
    """
    rng = np.random.default_rng(seed)
    atoms = mean + spread_sd * rng.standard_normal((L, D))
    return scatter(rng, atoms, draw_held(rng, L, J, a, b), noise_sd * np.eye(D))


def paper_figure(J: int = 20, sd: float = 1.0, *, seed: Seed = 0) -> Simulated:
    """Draw the sites of the paper's simulated figure, Sparse(50, J, 50, sd, √50, 1, 1) with mean 2; see `sparse`.

    Examples
    --------
    >>> paper_figure(2).atoms.shape
    (50, 50)
    """
    return sparse(FIGURE_L, J, FIGURE_D, sd, FIGURE_SPREAD_SD, 1.0, 1.0, mean=FIGURE_MEAN, seed=seed)


def low_dimensional(name: str = "J8 D2", *, seed: Seed = 0) -> Simulated:
    """Draw many atoms in few dimensions, each held by few sites: "J8 D2", "J10 D3", "J10 D5" or "J10 D10".

    Examples
    --------
    >>> low_dimensional("J10 D3").atoms.shape
    (200, 3)
    """
    if name not in LOW_DIMENSIONAL:
        raise InputError(f"low_dimensional draws {list(LOW_DIMENSIONAL)}, not {name!r}; name one of these.")
    return sparse(*LOW_DIMENSIONAL[name], seed=seed)


def over_segmented(share: float = 0.25, *, seed: Seed = 0) -> Simulated:
    """Draw sites that send a share of their atoms in two fragments, each an independent value of the atom.

    Examples
    --------
    >>> all(len(truth) == 2 * len(set(truth)) for truth in over_segmented(1.0).truth)
    True
    """
    return clean(np.random.default_rng(seed), share=share)


def clean(rng: np.random.Generator, *, root: Array | None = None, share: float = 0.0) -> Simulated:
    """The small clean set, with noise covariance root root' and a share of its values in two fragments."""
    root = BASE_NOISE_SD * np.eye(BASE_D) if root is None else root
    atoms = BASE_SPREAD_SD * rng.standard_normal((BASE_L, len(root)))
    held = draw_held(rng, BASE_L, BASE_J, 1.0, 1.0)
    fragments = [rng.permutation(np.repeat(of, 1 + (rng.random(len(of)) < share))) for of in held]
    return scatter(rng, atoms, fragments, root)


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
