"""Simulated sets of sites, with the truth beside them; `SETS` names them all.

Every function draws global atoms and what each site sends; the same `seed` (an integer, or a Generator to go on with)
gives the same draw. `noise_sd` and `spread_sd` are standard deviations: of local parameters about their atom, and of
the atoms. Most sets are Sparse(L, J, D, noise_sd, spread_sd, a, b), see `sparse`. Sets with a trouble each stand in
`simulate_troubles`, sites that estimate their models in `simulate_estimated`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from modelweld.errors import InputError
from modelweld.studies.known_truth import Seed, Simulated, draw_held, scatter
from modelweld.studies.local_fits import fit_kmeans
from modelweld.studies.simulate_estimated import estimated_hmms, estimated_mixtures, sent_by
from modelweld.studies.simulate_troubles import (
    all_together,
    correlated,
    diagonal,
    over_segmented,
    poisoned,
    standard_errors,
)

FIGURE_L, FIGURE_D, FIGURE_MEAN, FIGURE_SPREAD_SD = 50, 50, 2.0, 50**0.5
"""The paper's figure: fifty atoms N(2, 50) in fifty dimensions."""

FIGURE_POINTS, FIGURE_POINT_SD = 5000, 0.1
"""What its k-means sites see: points about local parameters, and how near."""

LOW_DIMENSIONAL = {
    "J8 D2": (60, 8, 2, 0.2, 5.0, 0.3, 2.0),
    "J10 D3": (200, 10, 3, 0.2, 4.0, 0.2, 2.0),
    "J10 D5": (60, 10, 5, 0.7, 2.5, 0.3, 2.0),
    "J10 D10": (60, 10, 10, 0.5, 2.0, 0.3, 2.0),
}
"""Arguments of `sparse`. Atoms overlap in "J10 D5" only."""


def meta_model(
    J: int,
    *,
    alpha: float = 1.0,
    gamma0: float = 10.0,
    mean: float = 0.0,
    noise_sd: float = 0.3,
    spread_sd: float = 3.0,
    D: int = 5,
    seed: Seed = 0,
) -> Simulated:
    """Draw from the Beta-Bernoulli meta model itself, with Gaussian atoms.

    Site j holds an atom that m earlier sites hold with probability m / (alpha + j - 1), and
    Poisson(alpha gamma0 / (alpha + j - 1)) new ones. Every site expects gamma0 atoms, and may have none.

    Parameters
    ----------
    J : int
        Number of sites.
    alpha, gamma0 : float
        Concentration and mass of the Beta process.
    mean, noise_sd, spread_sd : float
        Mean of atoms, standard deviation about atoms, standard deviation of atoms.
    D : int
        Dimension.
    seed : int or Generator
        Source of the draw.

    Examples
    --------
    >>> [len(values) for values in meta_model(4, gamma0=3.0).values]
    [2, 4, 2, 5]
    """
    rng = np.random.default_rng(seed)
    held, counts = [], np.empty(0, np.int64)
    for earlier in range(J):
        known = np.flatnonzero(rng.random(len(counts)) < counts / (alpha + earlier))
        born = len(counts) + np.arange(rng.poisson(alpha * gamma0 / (alpha + earlier)))
        counts = np.append(counts, np.zeros_like(born))
        held.append(rng.permutation(np.append(known, born)))
        counts[held[-1]] += 1
    atoms = mean + spread_sd * rng.standard_normal((len(counts), D))
    return scatter(rng, atoms, held, noise_sd * np.eye(D))


def sparse(
    L: int,
    J: int,
    D: int,
    noise_sd: float,
    spread_sd: float,
    a: float,
    b: float,
    *,
    mean: float = 0.0,
    seed: Seed = 0,
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


def paper_figure(J: int = 20, sd: float = 1.0, *, kmeans: bool = False, seed: Seed = 0) -> Simulated:
    """Draw the sites of the paper's simulated figure, Sparse(50, J, 50, sd, √50, 1, 1) with mean 2.

    Parameters
    ----------
    J : int
        Number of sites.
    sd : float
        Standard deviation of local parameters about their atom.
    kmeans : bool
        Whether sites send k-means centres, told their number, instead of true local parameters. They see 5,000 points
        of a mixture about these, Dirichlet(1) weights and deviation 0.1; ten starts, as was usual.
    seed : int or Generator
        Source of the draw.

    Examples
    --------
    >>> paper_figure(2).atoms.shape
    (50, 50)
    """
    rng = np.random.default_rng(seed)
    drawn = sparse(FIGURE_L, J, FIGURE_D, sd, FIGURE_SPREAD_SD, 1.0, 1.0, mean=FIGURE_MEAN, seed=rng)
    if not kmeans:
        return drawn
    fits = []
    for values, truth in zip(drawn.values, drawn.truth, strict=True):
        origin = rng.choice(len(truth), FIGURE_POINTS, p=rng.dirichlet(np.ones(len(truth))))
        points = values[origin] + FIGURE_POINT_SD * rng.standard_normal((FIGURE_POINTS, FIGURE_D))
        fits.append(fit_kmeans(points, truth[origin], len(truth), seed=int(rng.integers(2**31))))
    return sent_by(drawn.atoms, fits)


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


def noisy(J: int = 20, *, seed: Seed = 0) -> Simulated:
    """Draw J sites of Sparse(50, J, 50, 10, √50, 1, 1): noise has twice the variance of the atoms.

    Examples
    --------
    >>> noisy(2).atoms.shape
    (50, 50)
    """
    return sparse(FIGURE_L, J, FIGURE_D, 10.0, FIGURE_SPREAD_SD, 1.0, 1.0, seed=seed)


SETS: dict[str, Callable[..., Simulated]] = {
    "meta_model": partial(meta_model, 20),
    "paper_figure": partial(paper_figure, 20, 1.0),
    "paper_figure_kmeans": partial(paper_figure, 20, 1.0, kmeans=True),
    "low_J8_D2": partial(low_dimensional, "J8 D2"),
    "low_J10_D3": partial(low_dimensional, "J10 D3"),
    "low_J10_D5": partial(low_dimensional, "J10 D5"),
    "low_J10_D10": partial(low_dimensional, "J10 D10"),
    "noisy_J20": partial(noisy, 20),
    "noisy_J100": partial(noisy, 100),
    "correlated_D10": partial(correlated, 10),
    "correlated_D30": partial(correlated, 30),
    "diagonal_D10": partial(diagonal, 10),
    "diagonal_D30": partial(diagonal, 30),
    "standard_errors": standard_errors,
    "over_segmented": partial(over_segmented, 0.25),
    "poisoned_gross": partial(poisoned, "gross"),
    "poisoned_junk": partial(poisoned, "junk"),
    "poisoned_shift": partial(poisoned, "shift"),
    "all_together": all_together,
    "estimated_mixtures": partial(estimated_mixtures, 10),
    "estimated_hmms": partial(estimated_hmms, 10),
}
"""Name -> a function of `seed`: the sets of the studies."""
