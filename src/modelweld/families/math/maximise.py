"""Hyperparameters of greatest likelihood by gradient: L-BFGS between bounds, and never a step down."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy

from modelweld.core.values import Array, Index

MOST_CLIMB_STEPS = 100
"""Of one climb. Learning is called after every sweep and goes on from where it was, so it need not end here."""


LARGEST_LOG_STEP = 12.0
"""How far one update may move a logarithm: a factor of 160,000 either way."""

LogLikelihood = Callable[[Array], tuple[float, Array]]
"""Value and gradient at a vector of hyperparameters."""


def climb(
    log_likelihood: LogLikelihood,
    start: Array,
    low: Array,
    high: Array,
    unit: Array | float = 1.0,
    *,
    most_steps: int = MOST_CLIMB_STEPS,
) -> Array:
    """Where the log likelihood is greatest between `low` and `high`; `start` if nowhere more.

    The search is in coordinates x times `unit`: it goes straight up where curvatures are about one in these.

    Examples
    --------
    >>> parabola = lambda x: (-((x - 3) ** 2).sum(), -2 * (x - 3))
    >>> climb(parabola, np.zeros(1), np.zeros(1), np.full(1, 9.0)).round(3)
    array([3.])
    """

    def measure(x: Array) -> tuple[float, Array]:
        value, gradient = log_likelihood(x / unit)
        return value, gradient / unit

    start, low, high = start * unit, low * unit, high * unit
    before, slope = measure(start)
    scale = max(1.0, float(np.abs(slope).max()))  # first step of length one at most: x are logarithms

    def descent(x: Array) -> tuple[float, Array]:
        value, gradient = measure(x)
        return -value / scale, -gradient / scale

    inside = np.clip(start, low, high)
    found = scipy.optimize.minimize(
        descent,
        inside,
        jac=True,
        method="L-BFGS-B",
        bounds=list(zip(low, high, strict=True)),
        options={"maxiter": most_steps, "ftol": 1e-12, "gtol": 1e-6 / scale},
    )
    return np.asarray((found.x if -found.fun * scale > before else start) / unit)


def log_bounds(free: bool, now: float, low: float, high: float) -> tuple[float, float]:
    """Of a logarithm measured from its present value, which is always allowed."""
    if not free:
        return 0.0, 0.0
    lower, upper = np.log(low / now), np.log(high / now)
    return float(np.clip(lower, -LARGEST_LOG_STEP, 0.0)), float(np.clip(upper, 0.0, LARGEST_LOG_STEP))


class ByAtom:
    """Sums over the values of each atom, quick enough to be taken at every step of a climb."""

    def __init__(self, labels: Index, K: int | None = None) -> None:
        N, K = len(labels), int(labels.max(initial=-1)) + 1 if K is None else K
        self.labels = labels
        self._members = scipy.sparse.csr_matrix((np.ones(N), (labels, np.arange(N))), shape=(K, N))

    def __call__(self, x: Array, times: Array | None = None) -> Array:
        """Sums (K, D) of x (N, D), each row times a number (N,) if given."""
        if times is None:
            return np.asarray(self._members @ x)
        members = self._members.copy()
        members.data = times[members.indices]
        return np.asarray(members @ x)
