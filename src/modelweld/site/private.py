"""Centres of clusters under differential privacy, where the site's own algorithm bounds what one row can change.

Rows go to the nearest of K centres that were fixed before anyone looked at them; their differences from that centre are
cut to a given length; numbers and sums of differences per centre leave with discrete Gaussian noise from OpenDP. A row
changes one number by one and one sum by at most the given length, whatever the other rows are: that is the whole proof.

What the statement (epsilon, delta) covers: the numbers and means that leave, against someone who knows all rows but
one and tells whether that one was there (neighbours differ by one row added or removed). What it does not cover: the
centres and the length, which must come from public data or agreement and not from these rows; names of features; a
person with several rows, who has the statement with epsilon times as many; other releases of the same rows, which add.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from importlib.metadata import version

import numpy as np
from numpy.typing import ArrayLike, NDArray

from modelweld.errors import InputError, load_extra
from modelweld.inputs.local_model import LocalModel, check_values

STEPS, COUNT_STEPS = 2**20, 2**19
"""Steps of the grid per clipping length: sums are of whole numbers, so that no rounding is hidden from the proof. What
a row weighs in the counts: a fifth of the squared sensitivity; the rest goes to sums, which are harder."""

SENSITIVITY = math.nextafter(math.hypot(COUNT_STEPS, STEPS), math.inf)
"""Euclidean length by which one row more or less moves the statistic, at most."""

LEAST_EPSILON, MOST_EPSILON = 1e-4, 100.0
"""Below, nothing but noise would leave; above, the statement would say nothing."""

SUREST_NUMBER = 4.0
"""Noise deviations that a number of rows must exceed: below, a centre's mean is the noise's and does not leave."""


def statistic(X: ArrayLike, centres: ArrayLike, clip: float) -> NDArray[np.int64]:
    """Whole numbers that one row more or less moves by at most `SENSITIVITY`: counts, then sums of differences.

    Examples
    --------
    >>> found = statistic([[0.0], [9.0], [9.5]], [[0.0], [9.0]], clip=1.0)
    >>> (found[:2] // COUNT_STEPS).tolist(), (found[2:] / STEPS).tolist()
    ([1, 2], [0.0, 0.5])
    """
    rows, places = check_values(X, "X"), check_values(centres, "centres")
    if rows.ndim != 2 or places.ndim != 2 or rows.shape[1] != places.shape[1] or not len(places):
        raise InputError(f"X is (rows, D) and centres (K, D); found shapes {rows.shape} and {places.shape}.")
    if not 0 < clip < math.inf:
        raise InputError(f"clip is the largest length of a difference that counts, above zero; found {clip}.")
    # row by row: in a product of matrices the rounding of one row may depend on the others
    nearest = np.array([np.square(places - row).sum(axis=1).argmin() for row in rows], dtype=np.int64)
    off = (rows - places[nearest]) / clip
    off /= np.maximum((1 + 1e-9) * np.linalg.norm(off, axis=1, keepdims=True), 1.0)  # rounding does not exceed one
    sums = np.zeros(places.shape, dtype=np.int64)
    np.add.at(sums, nearest, np.trunc(off * STEPS).astype(np.int64))
    return np.concatenate([np.bincount(nearest, minlength=len(places)) * COUNT_STEPS, sums.ravel()])


def private_centres(
    X: ArrayLike,
    centres: ArrayLike,
    *,
    clip: float,
    epsilon: float,
    delta: float,
    features: Sequence[str] | None = None,
    site: str = "",
) -> LocalModel:
    """Means and numbers of the rows near public centres, with an (epsilon, delta) that travels in their facts.

    Parameters
    ----------
    X : array (rows, D)
        The site's rows, in units in which lengths make sense.
    centres : array (K, D)
        Fixed without these rows.
    clip : float
        Length to which differences from the nearest centre are cut; fixed without these rows.
    epsilon, delta : float
        The statement; `delta` well below one over the number of rows.
    features : sequence of str, optional
        Names of the features.
    site : str, optional
        Name of the site.

    Returns
    -------
    LocalModel
        `values (atom, feature)` with the noise's `variance`, and `counts`; centres with too few rows are left out.
        For `modelweld.export`.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.repeat([[0.0, 0.0], [10.0, 10.0]], 4000, axis=0)
    >>> released = private_centres(X, [[1.0, 1.0], [9.0, 9.0]], clip=3.0, epsilon=1.0, delta=1e-6)
    >>> bool(np.allclose(released.arrays["values"], [[0.0, 0.0], [10.0, 10.0]], atol=0.2))  # noise of .01
    True
    >>> released.facts["privacy"]["epsilon"]
    1.0
    """
    dp = load_extra("opendp.prelude", "differential privacy needs", "modelweld[dp]")
    if not (LEAST_EPSILON <= epsilon <= MOST_EPSILON and 0 < delta < 1):
        raise InputError(f"epsilon is between 0.0001 and 100, delta between 0 and 1; found {epsilon} and {delta}.")
    found = statistic(X, centres, clip)
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="f64")

    def noisy(scale: float) -> Callable[[list[int]], list[int]]:
        release: Callable[[list[int]], list[int]] = dp.c.make_fix_delta(
            dp.c.make_zCDP_to_approxDP(dp.m.make_gaussian(*space, scale)), delta
        )
        return release

    bounds = SENSITIVITY / MOST_EPSILON, SENSITIVITY / LEAST_EPSILON**2
    scale = dp.binary_search_param(noisy, d_in=SENSITIVITY, d_out=(epsilon, delta), bounds=bounds)
    release = np.array(noisy(scale)(found.tolist()), dtype=np.float64)
    places = np.asarray(centres, dtype=np.float64)
    K = len(places)
    counts, unit = release[:K] / COUNT_STEPS, clip / STEPS
    kept = counts > SUREST_NUMBER * scale / COUNT_STEPS
    n = counts[kept, None]
    statement = {"epsilon": float(epsilon), "delta": float(delta), "neighbours": "one row added or removed"}
    mechanism = {"clip": float(clip), "mechanism": f"discrete Gaussian, opendp {version('opendp')}"}
    return LocalModel(
        {"values": places[kept] + unit * release[K:].reshape(places.shape)[kept] / n, "counts": counts[kept]},
        {"values": ("atom", None if features is None else "feature"), "counts": ("atom",)},
        variance={"values": np.broadcast_to((unit * scale / n) ** 2, places[kept].shape)},
        auxiliary=["counts"],
        site=site,
        coordinates={} if features is None else {"feature": features},
        facts={"privacy": statement | mechanism},
    )
