"""Simulated sets with a trouble each, added to the clean Sparse(20, 12, 10, .4, 2.5, 1, 1); see `simulate.sparse`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from modelweld.errors import InputError
from modelweld.inputs.local_model import Array
from modelweld.studies.known_truth import Seed, Simulated, draw_held, scatter

BASE_L, BASE_J, BASE_D = 20, 12, 10
"""Atoms, sites and dimensions of the clean set."""

BASE_NOISE_SD, BASE_SPREAD_SD = 0.4, 2.5
"""Its standard deviations: the nearest two of its atoms lie twelve noises apart on average."""

POINTS_PER_SITE, POINT_SD = 300, 2.5
"""Behind values with standard errors: a site's points beyond the least, and their deviation, that of the atoms."""

JUNK_VALUES, JUNK_SCALES = 10, {"gross": 1000.0, "junk": 10.0}
"""Values of a site that belong to nothing, and how many times wider than the atoms they scatter."""

SHIFT = 5.0
"""Noises by which a shifted site is off in every coordinate."""


def correlated(D: int = 10, *, seed: Seed = 0) -> Simulated:
    """Draw noise with covariance .4² Q diag(.05 ... 8) Q' at all sites, geometric, Q a random rotation.

    Examples
    --------
    >>> correlated(30).atoms.shape
    (20, 30)
    """
    rng = np.random.default_rng(seed)
    return _base(rng, root=_rotation(rng, D) * np.sqrt(_correlated_variances(D)))


def diagonal(D: int = 10, *, seed: Seed = 0) -> Simulated:
    """Draw noise with variances 1 ... 100 along the axes, geometric, of the mean variance of `correlated`.

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

    A site splits 300 points over its values by Dirichlet(1) shares and gives each one more; a value of n points has a
    further error N(0, 2.5²/n). `counts` is n, `variance` is 2.5²/n.

    Examples
    --------
    >>> drawn = standard_errors()
    >>> int(drawn.counts[0].sum()) - len(drawn.values[0])
    300
    """
    rng = np.random.default_rng(seed)
    return _with_errors(rng, _base(rng), least=1)


def over_segmented(share: float = 0.25, *, seed: Seed = 0) -> Simulated:
    """Draw sites that send a share of their atoms in two pieces, each an independent value of the atom.

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
        A thirteenth site of ten values N(0, (1000 spread_sd)²), or of ten values N(0, (10 spread_sd)²); or the twelfth
        with every coordinate shifted by 5 noise_sd.
    seed : int or Generator
        Source of the draw.

    Examples
    --------
    >>> int(poisoned("junk").honest.sum()), int(poisoned("shift").honest.sum())
    (12, 11)
    """
    if kind not in (*JUNK_SCALES, "shift"):
        raise InputError(f"poisoned draws {[*JUNK_SCALES, 'shift']}, not {kind!r}; name one of these.")
    rng = np.random.default_rng(seed)
    drawn = _base(rng)
    if kind in JUNK_SCALES:
        return _with_junk(rng, drawn, JUNK_SCALES[kind])
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
    drawn = _with_junk(rng, _base(rng, root=root, share=0.15), JUNK_SCALES["gross"])
    return _with_errors(rng, drawn, least=5)


def _base(rng: np.random.Generator, *, root: Array | None = None, share: float = 0.0) -> Simulated:
    """The small clean set, with noise covariance root root' and a share of its values in two pieces."""
    root = BASE_NOISE_SD * np.eye(BASE_D) if root is None else root
    atoms = BASE_SPREAD_SD * rng.standard_normal((BASE_L, len(root)))
    held = draw_held(rng, BASE_L, BASE_J, 1.0, 1.0)
    pieces = [rng.permutation(np.repeat(of, 1 + (rng.random(len(of)) < share))) for of in held]
    return scatter(rng, atoms, pieces, root)


def _correlated_variances(D: int) -> Array:
    """Variances of correlated noise along its own axes."""
    return BASE_NOISE_SD**2 * np.geomspace(0.05, 8, D)


def _rotation(rng: np.random.Generator, D: int) -> Array:
    """Uniform: with R's diagonal positive Q is unique, so it prefers no direction, as the Gaussian matrix."""
    Q, R = np.linalg.qr(rng.standard_normal((D, D)))
    return np.asarray(Q * np.sign(np.diag(R)))


def _with_junk(rng: np.random.Generator, drawn: Simulated, scale: float) -> Simulated:
    """One more site, whose values belong to nothing."""
    L, D = drawn.atoms.shape
    junk = scale * BASE_SPREAD_SD * rng.standard_normal((JUNK_VALUES, D))
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
    variance = [np.tile(POINT_SD**2 / count[:, None], D) for count in counts]
    values = [rng.normal(exact, np.sqrt(v)) for exact, v in zip(drawn.values, variance, strict=True)]
    return replace(drawn, values=values, counts=counts, variance=variance)
