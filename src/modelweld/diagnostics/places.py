"""Local values as points that would lie about evenly in all directions if sites had nothing to do with each other.

Whether sites come closer to each other than chance (`diagnostics.pair_scan`) is asked by turning them. Turned sites
look like real ones only if all values together look the same from all sides, whatever their units, skewness, tails and
correlations; so these are taken out first, by maps too smooth to pull apart values that lie close together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from modelweld.families.base import Family
from modelweld.inputs.local_model import Array
from modelweld.inputs.stack import Stack

VALUES_PER_AXIS = 4
"""Values behind every principal axis that is kept: with fewer, axes fit the values (with as many axes as values all lie
equally far apart, and nothing is left to see)."""

BANDWIDTH = 1.5
"""Of the smoothed distribution function, in units of N^(-1/5) robust deviations. 1 is Silverman's, best for densities;
a shared value is a lump that should survive: power .81, .85, .88 at 1, 1.5, 2, at 2 uniform values begin to show."""

GRID = 128
"""Points at which the distribution function is computed; between them it is a straight line."""


class Places(NamedTuple):
    """Points (N, q) of mean zero and covariance one; `used` features (D,), and the point (q,) of a step along each.

    With one feature there is nothing to turn but a circle: points (N,) are then on one of length one.
    """

    points: Array
    used: NDArray[np.bool_]
    axes: Array

    @property
    def on_circle(self) -> bool:
        """Whether there is but one feature."""
        return self.points.ndim == 1


def embed(stacks: Sequence[Stack], families: Sequence[Family]) -> Array | None:
    """Values of all arrays side by side, (N, D), NaN where not seen; None where a family has no points for them."""
    parts = []
    for stack, family in zip(stacks, families, strict=True):
        points = family.embedded(stack.values)
        if points is None:
            return None
        if stack.weight is not None:
            same = points.shape == stack.values.shape
            seen = stack.weight > 0 if same else (stack.weight > 0).all(1, keepdims=True)
            points = np.where(seen, points, np.nan)
        parts.append(points)
    return np.concatenate(parts, axis=1)


def place(values: Array) -> Places | None:
    """Where values (N, D) with NaN for unseen entries lie; None if no feature differs between values."""
    seen = np.isfinite(values)
    low = values.min(0, initial=np.inf, where=seen)
    high = values.max(0, initial=-np.inf, where=seen)
    used = high - low > np.sqrt(np.finfo(float).eps) * np.maximum(np.abs(low), np.abs(high))
    if not used.any():
        return None
    exponent = np.frexp(np.maximum(np.abs(low), np.abs(high))[used])[1]
    x = _unskewed(_standard(np.ldexp(values[:, used], -exponent)))  # else squares may be beyond all numbers
    shares = np.stack([_smoothed_shares(column) for column in x.T], axis=1)
    if shares.shape[1] == 1:
        return Places(_stretched(shares[:, 0]), used, np.ones((1, 1)))
    points, axes = _whitened(shares)
    return Places(points, used, axes)


def _standard(x: Array) -> Array:
    """Mean zero and deviation one in every column."""
    return np.asarray((x - np.nanmean(x, axis=0)) / np.nanstd(x, axis=0))


def _unskewed(x: Array) -> Array:
    """Every column by Yeo and Johnson's power transform under which it is most likely normal, in standard units."""
    from sklearn.preprocessing import PowerTransformer

    with np.errstate(all="ignore"):
        return np.asarray(PowerTransformer().fit_transform(x))


def _smoothed_shares(x: Array) -> Array:
    """Share of all values below each, by a distribution function too smooth to see single ones; NaN where not seen."""
    from scipy.special import ndtr

    known = x[np.isfinite(x)]
    low, high = np.quantile(known, [0.25, 0.75])
    width = BANDWIDTH * min(1.0, (high - low) / 1.34 or 1.0) * len(known) ** -0.2
    grid = np.linspace(known.min(), known.max(), GRID)
    return np.asarray(np.interp(x, grid, ndtr((grid[:, None] - known) / width).mean(1)))  # NaN stays NaN


def _stretched(share: Array) -> Array:
    """Shares over the whole circle: smoothing has drawn them in from its ends."""
    n = np.isfinite(share).sum()
    return np.asarray((share - np.nanmin(share)) / np.ptp(share[np.isfinite(share)]) * (n - 1) / n)


def _whitened(shares: Array) -> tuple[Array, Array]:
    """Normal scores on their first principal axes, of variance one; what was not seen is at the mean. And the axes."""
    from scipy.special import ndtri

    z = np.nan_to_num(_standard(ndtri(shares)))
    N, D = z.shape
    u, length, axes = np.linalg.svd(z, full_matrices=False)
    q = min(D, max(2, N // VALUES_PER_AXIS), int((length > np.sqrt(np.finfo(float).eps) * length[0]).sum()))
    return u[:, :q] * np.sqrt(N), axes[:q].T / length[:q] * np.sqrt(N)
