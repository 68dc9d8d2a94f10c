"""How much an autocorrelated frame counts (effective sample size): by the autocorrelation time within states.

Frames of a movement are no independent draws: ten of them may say no more of a state than one. The evidence that takes
them for independent makes a state of every bout. With residuals whitened by their state's covariance, within runs of
one state, and rho_h their correlation h frames apart,

    tau = 1 + 2 sum_h rho_h     (median over channels; the sum ends where rho falls below 0.05)

and a power zeta of the densities takes n frames for the zeta n independent ones they are worth,

    zeta = 1 / (1 + 1.8 (tau - 1)).

One look, at a fit with zeta 1. That fit cuts movements too finely and leaves too little within its states, so that tau
is too short: hence the factor. Repeated looks would not do: smaller zeta makes wider states and longer tau, and runs
away.
"""

from __future__ import annotations

import numpy as np

from modelweld.hmm.emissions import Emissions
from modelweld.inputs.local_model import Array
from modelweld.inputs.stack import Index

LEAST_CORRELATION = 0.05
"""Below, a correlation is taken for noise, and the sum ends."""

LONGEST_LAG = 200
"""Frames apart at which the sum ends in any case."""

FEWEST_PAIRS = 20
"""Pairs of frames from which a correlation is taken."""


SLOPE = 1.8
"""Best on 24 pairs of motion-capture sessions (of 1, 1.4, 1.8 and 2.4): Hamming distance less adjusted Rand index of
the fused segmentation; see experiments/mocap/choose.py."""


def power(tau: float) -> float:
    """The power zeta of the densities for an autocorrelation time tau."""
    return 1 / (1 + SLOPE * (tau - 1))


def autocorrelation_time(x: Array, path: Index, offsets: Index, emissions: Emissions) -> float:
    """The time tau of frames x (T, D) given their states, at least 1."""
    root = np.linalg.cholesky(emissions.covariance)
    residual = np.empty_like(x)
    for k in np.unique(path):
        own = path == k
        residual[own] = np.linalg.solve(root[k], (x[own] - emissions.mean[k]).T).T
    return correlation_time(residual, path, offsets)


def correlation_time(residual: Array, path: Index, offsets: Index) -> float:
    """The time tau of residuals (T, D) in units of their state's deviations, within runs of one state; at least 1.

    Examples
    --------
    >>> rng, one = np.random.default_rng(0), np.zeros(2000, dtype=int)
    >>> white = rng.normal(size=(2000, 3))
    >>> correlation_time(white, one, np.array([0, 2000]))
    1.0
    >>> slow = np.apply_along_axis(np.convolve, 0, white, np.ones(8), "same")
    >>> round(correlation_time(slow, one, np.array([0, 2000])))
    8
    """
    begins = np.zeros(len(residual), dtype=bool)
    begins[offsets[:-1]] = True
    begins[1:] |= path[1:] != path[:-1]
    run = np.cumsum(begins)
    variance = np.square(residual).mean(axis=0)
    D = residual.shape[1]
    total, open_ = np.ones(D), np.ones(D, dtype=bool)
    for lag in range(1, min(LONGEST_LAG, len(residual) - 1) + 1):
        same = run[lag:] == run[:-lag]
        if same.sum() < FEWEST_PAIRS or not open_.any():
            break
        rho = (residual[lag:][same] * residual[:-lag][same]).mean(axis=0) / np.maximum(variance, 1e-300)
        open_ &= rho >= LEAST_CORRELATION
        total += np.where(open_, 2 * rho, 0.0)
    return float(np.median(total))
