"""Simulated sets of sites, with the truth beside them; `SETS` names them all.

Every function draws global atoms and what each site sends; the same seed (an integer, or a Generator to go on
with) gives the same draw. Here `noise` and `spread` are standard deviations: of local parameters about their
atom, and of the atoms. Most sets are Sparse(L, J, D, noise, spread, a, b), see `sparse`; the troubles are
added to Sparse(20, 12, 10, .4, 2.5, 1, 1).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from modelweld.studies.simulate_estimated import (
    LocalFit,
    estimated_sites,
    fit_hmm,
    fit_kmeans,
    fit_mixture,
    independent,
    sticky,
)

__all__ = [
    "SETS", "Simulated", "all_together", "correlated", "diagonal", "estimated_hmms", "estimated_mixtures",
    "low_dimensional", "meta_model", "noisy", "over_segmented", "paper_figure", "poisoned", "sparse",
    "standard_errors",
]  # fmt: skip

Seed = int | np.random.Generator

# The paper's figure: fifty atoms N(2, 50) in fifty dimensions; its k-means sites see 5,000 points each.
FIGURE_L, FIGURE_D, FIGURE_SPREAD, FIGURE_MEAN = 50, 50, 50**0.5, 2.0
FIGURE_POINTS, FIGURE_POINT_NOISE = 5000, 0.1

LOW_DIMENSIONAL = {
    "J8 D2": (60, 8, 2, 0.2, 5.0, 0.3, 2.0),
    "J10 D3": (200, 10, 3, 0.2, 4.0, 0.2, 2.0),
    "J10 D5": (60, 10, 5, 0.7, 2.5, 0.3, 2.0),  # the only one whose atoms overlap
    "J10 D10": (60, 10, 10, 0.5, 2.0, 0.3, 2.0),
}

# The small clean set that each trouble is added to.
BASE_L, BASE_J, BASE_D, BASE_NOISE, BASE_SPREAD = 20, 12, 10, 0.4, 2.5
POINTS_PER_SITE, POINT_NOISE = 300, 2.5
JUNK_VALUES, JUNK_SCALES, SHIFT = 10, {"gross": 1000.0, "junk": 10.0}, 5.0


@dataclass(frozen=True, eq=False)
class Simulated:
    """What sites send, and the truth.

    Attributes
    ----------
    values : list of (L_j, D) arrays
        Local parameters of every site.
    truth : list of (L_j,) arrays
        The true atom of every local parameter, a row of `atoms`.
    atoms : (L, D) array
        True global atoms, also those that no site holds. A junk value is an atom of its own.
    variance : list of (L_j, D) arrays, optional
        Squared standard errors of the values.
    counts : list of (L_j,) arrays, optional
        Number of points behind each value.
    covariances : list of (L_j, D, D) arrays, optional
        Covariance of the points behind each value.
    honest : (J,) array of bool, optional
        Which sites are not poisoned.
    points : list of (n_j, D) arrays, optional
        The points that local models were estimated from.
    origin : list of (n_j,) arrays, optional
        The true atom of every point, a row of `atoms`.
    assigned : list of (n_j,) arrays, optional
        The local parameter that the local model gives each point to, a row of `values`.
    fresh : list of (n_j, D) arrays, optional
        Further points, of the same atoms at the same site, which no local model has seen.

    Examples
    --------
    >>> drawn = Simulated([np.zeros((1, 2))] * 2, [np.array([4])] * 2, np.zeros((9, 2)))
    >>> drawn.K, drawn.stacked_truth
    (1, array([4, 4]))
    """

    values: list[NDArray[np.float64]]
    truth: list[NDArray[np.int64]]
    atoms: NDArray[np.float64]
    variance: list[NDArray[np.float64]] | None = None
    counts: list[NDArray[np.float64]] | None = None
    covariances: list[NDArray[np.float64]] | None = None
    honest: NDArray[np.bool_] | None = None
    points: list[NDArray[np.float64]] | None = None
    origin: list[NDArray[np.int64]] | None = None
    assigned: list[NDArray[np.int64]] | None = None
    fresh: list[NDArray[np.float64]] | None = None

    @property
    def K(self) -> int:
        """Number of true atoms that occur; in a poisoned set, at honest sites."""
        honest = [True] * len(self.truth) if self.honest is None else self.honest
        return len(set().union(*(truth.tolist() for truth, kept in zip(self.truth, honest, strict=True) if kept)))

    @property
    def stacked_truth(self) -> NDArray[np.int64]:
        """The true atoms of all local parameters, site after site."""
        return np.concatenate(self.truth)


def meta_model(
    J: int,
    *,
    alpha: float = 1.0,
    gamma0: float = 10.0,
    mean: float = 0.0,
    noise: float = 0.3,
    spread: float = 3.0,
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
    mean, noise, spread : float
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
    atoms = mean + spread * rng.standard_normal((len(counts), D))
    return _scatter(rng, atoms, held, noise * np.eye(D))


def sparse(
    L: int,
    J: int,
    D: int,
    noise: float,
    spread: float,
    a: float,
    b: float,
    *,
    mean: float = 0.0,
    seed: Seed = 0,
) -> Simulated:
    """Draw atoms that each have a popularity of their own.

    Atom k is N(mean, spread²) in D dimensions and every site holds it with probability p_k ~ Beta(a, b); a
    site that would hold none is given one, uniformly. Values are N(atom, noise²), in random order.

    Parameters
    ----------
    L, J, D : int
        Number of atoms, sites, dimensions.
    noise, spread : float
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
    atoms = mean + spread * rng.standard_normal((L, D))
    return _scatter(rng, atoms, _held(rng, L, J, a, b), noise * np.eye(D))


def paper_figure(J: int = 20, sd: float = 1.0, *, kmeans: bool = False, seed: Seed = 0) -> Simulated:
    """Draw the sites of the paper's simulated figure, Sparse(50, J, 50, sd, √50, 1, 1) with mean 2.

    Parameters
    ----------
    J : int
        Number of sites.
    sd : float
        Standard deviation of local parameters about their atom.
    kmeans : bool
        Whether sites send k-means centres, told their number, instead of true local parameters. They see
        5,000 points of a mixture about these, Dirichlet(1) weights and noise 0.1; ten starts, as was usual.
    seed : int or Generator
        Source of the draw.

    Examples
    --------
    >>> paper_figure(2).atoms.shape
    (50, 50)
    """
    rng = np.random.default_rng(seed)
    drawn = sparse(FIGURE_L, J, FIGURE_D, sd, FIGURE_SPREAD, 1.0, 1.0, mean=FIGURE_MEAN, seed=rng)
    if not kmeans:
        return drawn
    fits = []
    for values, truth in zip(drawn.values, drawn.truth, strict=True):
        origin = rng.choice(len(truth), FIGURE_POINTS, p=rng.dirichlet(np.ones(len(truth))))
        points = values[origin] + FIGURE_POINT_NOISE * rng.standard_normal((FIGURE_POINTS, FIGURE_D))
        fits.append(fit_kmeans(points, truth[origin], len(truth), seed=int(rng.integers(2**31))))
    return _sent(drawn.atoms, fits)


def low_dimensional(name: str = "J8 D2", *, seed: Seed = 0) -> Simulated:
    """Draw many atoms in few dimensions, each held by few sites.

    Parameters
    ----------
    name : {"J8 D2", "J10 D3", "J10 D5", "J10 D10"}
        Number of sites and dimensions.
    seed : int or Generator
        Source of the draw.

    Examples
    --------
    >>> low_dimensional("J10 D3").atoms.shape
    (200, 3)
    """
    if name not in LOW_DIMENSIONAL:
        raise ValueError(f"low_dimensional draws {list(LOW_DIMENSIONAL)}, not {name!r}; name one of these")
    return sparse(*LOW_DIMENSIONAL[name], seed=seed)


def noisy(J: int = 20, *, seed: Seed = 0) -> Simulated:
    """Draw Sparse(50, J, 50, 10, √50, 1, 1): noise has twice the variance of the atoms.

    Parameters
    ----------
    J : int
        Number of sites.
    seed : int or Generator
        Source of the draw.

    Examples
    --------
    >>> noisy(2).atoms.shape
    (50, 50)
    """
    return sparse(FIGURE_L, J, FIGURE_D, 10.0, FIGURE_SPREAD, 1.0, 1.0, seed=seed)


def correlated(D: int = 10, *, seed: Seed = 0) -> Simulated:
    """Draw noise with covariance .4² Q diag(.05 ... 8) Q' at all sites, geometric, Q a random rotation.

    Parameters
    ----------
    D : int
        Dimension.
    seed : int or Generator
        Source of the draw.

    Examples
    --------
    >>> correlated(30).atoms.shape
    (20, 30)
    """
    rng = np.random.default_rng(seed)
    return _base(rng, root=_rotation(rng, D) * np.sqrt(_correlated_variances(D)))


def diagonal(D: int = 10, *, seed: Seed = 0) -> Simulated:
    """Draw noise with variances 1 ... 100 along the axes, geometric, of the mean variance of `correlated`.

    Parameters
    ----------
    D : int
        Dimension.
    seed : int or Generator
        Source of the draw.

    Examples
    --------
    >>> diagonal(30).atoms.shape
    (20, 30)
    """
    variances = np.geomspace(1, 100, D)
    variances *= _correlated_variances(D).mean() / variances.mean()
    return _base(np.random.default_rng(seed), root=np.diag(np.sqrt(variances)))


def standard_errors(*, seed: Seed = 0) -> Simulated:
    """Draw values that rest on few or many points, and say so.

    A site splits 300 points over its values by Dirichlet(1) shares and gives each one more; a value of n
    points has a further error N(0, 2.5²/n). `counts` is n, `variance` is 2.5²/n.

    Parameters
    ----------
    seed : int or Generator
        Source of the draw.

    Examples
    --------
    >>> drawn = standard_errors()
    >>> int(drawn.counts[0].sum()) - len(drawn.values[0])
    300
    """
    rng = np.random.default_rng(seed)
    return _with_errors(rng, _base(rng), least=1)


def over_segmented(share: float = 0.25, *, seed: Seed = 0) -> Simulated:
    """Draw sites that send some atoms in two pieces, each an independent value of the atom.

    Parameters
    ----------
    share : float
        Probability that a local parameter is doubled.
    seed : int or Generator
        Source of the draw.

    Examples
    --------
    >>> all(len(truth) == 2 * len(set(truth)) for truth in over_segmented(1.0).truth)
    True
    """
    return _base(np.random.default_rng(seed), share=share)


def poisoned(kind: str = "gross", *, seed: Seed = 0) -> Simulated:
    """Draw one bad site, the last.

    Parameters
    ----------
    kind : {"gross", "junk", "shift"}
        A thirteenth site of ten values N(0, (1000 spread)²), or of ten values N(0, (10 spread)²); or the
        twelfth with every coordinate shifted by 5 noise.
    seed : int or Generator
        Source of the draw.

    Examples
    --------
    >>> int(poisoned("junk").honest.sum()), int(poisoned("shift").honest.sum())
    (12, 11)
    """
    if kind not in (*JUNK_SCALES, "shift"):
        raise ValueError(f"poisoned draws {[*JUNK_SCALES, 'shift']}, not {kind!r}; name one of these")
    rng = np.random.default_rng(seed)
    drawn = _base(rng)
    if kind in JUNK_SCALES:
        return _with_junk(rng, drawn, JUNK_SCALES[kind])
    shifted = [*drawn.values[:-1], drawn.values[-1] + SHIFT * BASE_NOISE]
    return replace(drawn, values=shifted, honest=np.arange(BASE_J) < BASE_J - 1)


def all_together(*, seed: Seed = 0) -> Simulated:
    """Draw correlated noise, 15 % of values in two pieces, a gross site and standard errors at once.

    Every value, also of the gross site, rests on 5 points and a share of 300 more; pieces count as values.

    Parameters
    ----------
    seed : int or Generator
        Source of the draw.

    Examples
    --------
    >>> int(min(counts.min() for counts in all_together().counts))
    5
    """
    rng = np.random.default_rng(seed)
    root = _rotation(rng, BASE_D) * np.sqrt(_correlated_variances(BASE_D))
    drawn = _with_junk(rng, _base(rng, root=root, share=0.15), JUNK_SCALES["gross"])
    return _with_errors(rng, drawn, least=5)


def estimated_mixtures(J: int = 10, K_local: int = 8, *, seed: Seed = 0) -> Simulated:
    """Draw sites that estimate Gaussian mixtures from 300 to 2,000 points; see `estimated_sites`.

    Parameters
    ----------
    J : int
        Number of sites.
    K_local : int
        Components of each site, at most 20; its mixture is told their number.
    seed : int or Generator
        Source of the draw.

    Examples
    --------
    >>> estimated_mixtures(1, 3).covariances[0].shape
    (3, 6, 6)
    """
    return _sent(*estimated_sites(J, K_local, np.random.default_rng(seed), independent, fit_mixture))


def estimated_hmms(J: int = 10, K_local: int = 8, *, seed: Seed = 0) -> Simulated:
    """Draw sites that estimate hidden Markov models from one sequence of 400 steps; see `estimated_sites`.

    Needs hmmlearn: ``pip install "modelweld[hmm]"``.

    Parameters
    ----------
    J : int
        Number of sites.
    K_local : int
        States of each site, 2 to 20; its model is told their number.
    seed : int or Generator
        Source of the draw.

    Examples
    --------
    >>> estimated_hmms(1, 3).covariances[0].shape
    (3, 6, 6)
    """
    return _sent(*estimated_sites(J, K_local, np.random.default_rng(seed), sticky, fit_hmm))


def _held(rng: np.random.Generator, L: int, J: int, a: float, b: float) -> list[NDArray[np.int64]]:
    """The atoms of each site, in random order."""
    holds = rng.random((J, L)) < rng.beta(a, b, L)
    empty = np.flatnonzero(~holds.any(axis=1))
    holds[empty, rng.integers(L, size=len(empty))] = True
    return [rng.permutation(np.flatnonzero(site)) for site in holds]


def _scatter(
    rng: np.random.Generator,
    atoms: NDArray[np.float64],
    held: list[NDArray[np.int64]],
    root: NDArray[np.float64],
) -> Simulated:
    """Values about the atoms held, with noise covariance root root'."""
    D = atoms.shape[1]
    return Simulated([atoms[of] + rng.standard_normal((len(of), D)) @ root.T for of in held], held, atoms)


def _base(rng: np.random.Generator, *, root: NDArray[np.float64] | None = None, share: float = 0.0) -> Simulated:
    """The small clean set, with noise covariance root root' and a share of its values in two pieces."""
    root = BASE_NOISE * np.eye(BASE_D) if root is None else root
    atoms = BASE_SPREAD * rng.standard_normal((BASE_L, len(root)))
    held = _held(rng, BASE_L, BASE_J, 1.0, 1.0)
    pieces = [rng.permutation(np.repeat(of, 1 + (rng.random(len(of)) < share))) for of in held]
    return _scatter(rng, atoms, pieces, root)


def _correlated_variances(D: int) -> NDArray[np.float64]:
    """Variances of correlated noise along its own axes."""
    return BASE_NOISE**2 * np.geomspace(0.05, 8, D)


def _rotation(rng: np.random.Generator, D: int) -> NDArray[np.float64]:
    """Uniform: with R's diagonal positive Q is unique, so it prefers no direction, as the Gaussian matrix."""
    Q, R = np.linalg.qr(rng.standard_normal((D, D)))
    return np.asarray(Q * np.sign(np.diag(R)))


def _with_junk(rng: np.random.Generator, drawn: Simulated, scale: float) -> Simulated:
    """One more site, whose values belong to nothing."""
    L, D = drawn.atoms.shape
    junk = scale * BASE_SPREAD * rng.standard_normal((JUNK_VALUES, D))
    return replace(
        drawn,
        values=[*drawn.values, junk],
        truth=[*drawn.truth, L + np.arange(JUNK_VALUES)],
        atoms=np.vstack([drawn.atoms, junk]),
        honest=np.append(np.ones(len(drawn.values), bool), False),
    )


def _with_errors(rng: np.random.Generator, drawn: Simulated, *, least: int) -> Simulated:
    """Standard errors from `least` points per value and a random share of the site's further points."""
    shares = [rng.dirichlet(np.ones(len(values))) for values in drawn.values]
    counts = [least + rng.multinomial(POINTS_PER_SITE, share).astype(np.float64) for share in shares]
    D = drawn.atoms.shape[1]
    variance = [np.tile(POINT_NOISE**2 / count[:, None], D) for count in counts]
    values = [rng.normal(exact, np.sqrt(v)) for exact, v in zip(drawn.values, variance, strict=True)]
    return replace(drawn, values=values, counts=counts, variance=variance)


def _sent(
    atoms: NDArray[np.float64], fits: list[LocalFit], fresh: list[NDArray[np.float64]] | None = None
) -> Simulated:
    """What sites with these local models send."""
    return Simulated(
        values=[fit.means for fit in fits],
        truth=[fit.truth for fit in fits],
        atoms=atoms,
        counts=[fit.counts for fit in fits],
        covariances=[fit.covariances for fit in fits if fit.covariances is not None] or None,
        points=[fit.points for fit in fits],
        origin=[fit.origin for fit in fits],
        assigned=[fit.assigned for fit in fits],
        fresh=fresh,
    )


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
