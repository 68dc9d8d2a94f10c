"""Simulated sets of the tests, beside those of `modelweld.simulate`; `SETS` names them all.

Most have a trouble each, added to the clean Sparse(20, 12, 10, .4, 2.5, 1, 1) (see `sparse`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from modelweld.core.values import Array
from modelweld.demo.simulate import (
    BASE_D,
    BASE_J,
    BASE_NOISE_SD,
    BASE_SPREAD_SD,
    FIGURE_D,
    FIGURE_L,
    FIGURE_SPREAD_SD,
    Seed,
    clean,
    scatter,
)
from modelweld.demo.simulate import (
    Simulated as Simulated,
)
from modelweld.demo.simulate import (
    low_dimensional as low_dimensional,
)
from modelweld.demo.simulate import (
    over_segmented as over_segmented,
)
from modelweld.demo.simulate import (
    paper_figure as paper_figure,
)
from modelweld.demo.simulate import (
    sparse as sparse,
)
from modelweld.errors import InputError

POINTS_PER_SITE, POINT_SD = 300, 2.5
"""Behind values with standard errors: a site's points beyond the least, and their deviation, that of the atoms."""

JUNK_VALUES, BACKGROUND_SCALES = 10, {"gross": 1000.0, "background": 10.0}
"""Values of a site that belong to nothing, and how many times wider than the atoms they scatter."""

SHIFT = 5.0
"""Noises by which a shifted site is off in every coordinate."""


def noisy(J: int = 20, *, seed: Seed = 0) -> Simulated:
    """Draw J sites of Sparse(50, J, 50, 10, √50, 1, 1): noise has twice the variance of the atoms.

    Examples
    --------
    >>> noisy(2).atoms.shape
    (50, 50)
    """
    return sparse(FIGURE_L, J, FIGURE_D, 10.0, FIGURE_SPREAD_SD, 1.0, 1.0, seed=seed)


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


def correlated(D: int = 10, *, seed: Seed = 0) -> Simulated:
    """Draw noise with covariance .4² Q diag(.05 ... 8) Q' at all sites, geometric, Q a random rotation.

    Examples
    --------
    >>> correlated(30).atoms.shape
    (20, 30)
    """
    rng = np.random.default_rng(seed)
    return clean(rng, root=_rotation(rng, D) * np.sqrt(_correlated_variances(D)))


def diagonal(D: int = 10, *, seed: Seed = 0) -> Simulated:
    """Draw noise with variances 1 ... 100 along the axes, geometric, of the mean variance of `correlated`.

    Examples
    --------
    >>> diagonal(30).atoms.shape
    (20, 30)
    """
    variances = np.geomspace(1, 100, D)
    variances *= _correlated_variances(D).mean() / variances.mean()
    return clean(np.random.default_rng(seed), root=np.diag(np.sqrt(variances)))


def standard_errors(*, seed: Seed = 0) -> Simulated:
    """Draw values that rest on few or many points, and say so.

    A site splits 300 points over its values by Dirichlet(1) shares and gives each one more; a value of n points has a
    further error N(0, 2.5²/n). `counts` is n, `variance` is 2.5²/n.

    Examples
    --------
    >>> drawn = standard_errors()
    >>> int(drawn.counts[0].sum()) - len(drawn.values[0])
    300
    """
    rng = np.random.default_rng(seed)
    return _with_errors(rng, clean(rng), least=1)


def poisoned(kind: str = "gross", *, seed: Seed = 0) -> Simulated:
    """Draw one bad site, the last.

    Parameters
    ----------
    kind : {"gross", "background", "shift"}
        A thirteenth site of ten values N(0, (1000 spread_sd)²), or of ten values N(0, (10 spread_sd)²); or the twelfth
        with every coordinate shifted by 5 noise_sd.
    seed : int or Generator
        Source of the draw.

    Examples
    --------
    >>> int(poisoned("background").honest.sum()), int(poisoned("shift").honest.sum())
    (12, 11)
    """
    if kind not in (*BACKGROUND_SCALES, "shift"):
        raise InputError(f"poisoned draws {[*BACKGROUND_SCALES, 'shift']}, not {kind!r}; name one of these.")
    rng = np.random.default_rng(seed)
    drawn = clean(rng)
    if kind in BACKGROUND_SCALES:
        return _with_background(rng, drawn, BACKGROUND_SCALES[kind])
    shifted = [*drawn.values[:-1], drawn.values[-1] + SHIFT * BASE_NOISE_SD]
    return replace(drawn, values=shifted, honest=np.arange(BASE_J) < BASE_J - 1)


def all_together(*, seed: Seed = 0) -> Simulated:
    """Draw correlated noise, 15 % of values in two pieces, a gross site and standard errors at once.

    Every value, also of the gross site, rests on 5 points and a share of 300 more; pieces count as values.

    Examples
    --------
    >>> int(min(counts.min() for counts in all_together().counts))
    5
    """
    rng = np.random.default_rng(seed)
    root = _rotation(rng, BASE_D) * np.sqrt(_correlated_variances(BASE_D))
    drawn = _with_background(rng, clean(rng, root=root, share=0.15), BACKGROUND_SCALES["gross"])
    return _with_errors(rng, drawn, least=5)


def _correlated_variances(D: int) -> Array:
    """Variances of correlated noise along its own axes."""
    return BASE_NOISE_SD**2 * np.geomspace(0.05, 8, D)


def _rotation(rng: np.random.Generator, D: int) -> Array:
    """Uniform: with R's diagonal positive Q is unique, so it prefers no direction, as the Gaussian matrix."""
    Q, R = np.linalg.qr(rng.standard_normal((D, D)))
    return np.asarray(Q * np.sign(np.diag(R)))


def _with_background(rng: np.random.Generator, drawn: Simulated, scale: float) -> Simulated:
    """One more site, whose values belong to nothing."""
    L, D = drawn.atoms.shape
    background = scale * BASE_SPREAD_SD * rng.standard_normal((JUNK_VALUES, D))
    return replace(
        drawn,
        values=[*drawn.values, background],
        truth=[*drawn.truth, L + np.arange(JUNK_VALUES)],
        atoms=np.vstack([drawn.atoms, background]),
        honest=np.append(np.ones(len(drawn.values), bool), False),
    )


def _with_errors(rng: np.random.Generator, drawn: Simulated, *, least: int) -> Simulated:
    """Standard errors from `least` points per value and a random share of the site's further points."""
    shares = [rng.dirichlet(np.ones(len(values))) for values in drawn.values]
    counts = [least + rng.multinomial(POINTS_PER_SITE, share).astype(np.float64) for share in shares]
    D = drawn.atoms.shape[1]
    variance = [np.tile(POINT_SD**2 / count[:, None], D) for count in counts]
    values = [rng.normal(exact, np.sqrt(v)) for exact, v in zip(drawn.values, variance, strict=True)]
    return replace(drawn, values=values, counts=counts, variance=variance)


SETS: dict[str, Callable[..., Simulated]] = {
    "meta_model": partial(meta_model, 20),
    "paper_figure": partial(paper_figure, 20, 1.0),
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
    "poisoned_junk": partial(poisoned, "background"),
    "poisoned_shift": partial(poisoned, "shift"),
    "all_together": all_together,
}
"""Name -> a function of `seed`."""
