"""Have the chains mixed, and what are their draws worth? Split R-hat and bulk effective sample size.

Gelman et al., *Bayesian Data Analysis* (2013), 11.4-11.5; Vehtari, Gelman, Simpson, Carpenter, Bürkner,
*Rank-normalization, folding, and localization*, Bayesian Analysis 2021.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from modelweld.errors import InputError
from modelweld.inputs.local_model import Array

DISAGREE = 1.1
"""R-hat from which chains are said to disagree: together they are a tenth wider than each by itself, more than chance
does to two hundred draws (of 48 simulated fusions none was above 1.09)."""

FEWEST_DRAWS = 4
"""Halves of two draws are the least that have a variance."""


def split_r_hat(draws: ArrayLike) -> float:
    """Split R-hat of draws (chains, n): how much wider all half chains together are than each by itself.

    1 means that the chains agree; above 1.01 they should run longer. All draws equal give 1, chains that never move
    but differ give infinity.

    Examples
    --------
    >>> import numpy as np
    >>> chains = np.random.default_rng(0).normal(size=(4, 1000))
    >>> round(split_r_hat(chains), 2), round(split_r_hat(chains + np.arange(4)[:, None]), 2)
    (1.0, 1.58)
    """
    within, total = _variances(_halves(draws))
    if total == 0:
        return 1.0
    return float(np.sqrt(total / within)) if within > 0 else np.inf


def effective_size(draws: ArrayLike) -> float:
    """Bulk effective size of draws (chains, n): how many independent draws would tell as much about the centre.

    Draws are replaced by the normal scores of their ranks, chains are cut in halves, and autocorrelations are added up
    by Geyer's initial monotone sequence. All draws equal give NaN: nothing was seen to move.

    Examples
    --------
    >>> import numpy as np
    >>> chains = np.random.default_rng(0).normal(size=(4, 1000))
    >>> 3500 < effective_size(chains) < 4500
    True
    """
    halves = _normal_scores(_halves(draws))
    m, n = halves.shape
    within, total = _variances(halves)
    if total == 0:
        return np.nan
    covariance = np.mean([_autocovariance(half) for half in halves], axis=0) * n / (n - 1)
    rho = 1.0 - (within - covariance) / total
    rho[0] = 1.0
    pairs = rho[: n // 2 * 2].reshape(-1, 2).sum(1)
    # sums of two neighbours are positive and fall, in truth: what does not is noise
    ends = np.flatnonzero(pairs < 0)
    pairs = np.minimum.accumulate(pairs[: ends[0]] if len(ends) else pairs)
    time = -1.0 + 2.0 * pairs.sum()
    # chains that alternate can be worth more than independent ones, but not by more than their logarithm
    return float(m * n / max(time, 1.0 / np.log10(m * n)))


def _halves(draws: ArrayLike) -> Array:
    """Every chain's first and second half: (2 chains, n // 2), the middle one of an odd number left out."""
    chains = np.asarray(draws, dtype=np.float64)
    if chains.ndim != 2 or chains.shape[1] < FEWEST_DRAWS:
        raise InputError(f"draws must be (chains, n) with n at least {FEWEST_DRAWS}; found shape {chains.shape}.")
    half = chains.shape[1] // 2
    return np.concatenate([chains[:, :half], chains[:, -half:]])


def _variances(halves: Array) -> tuple[float, float]:
    """Mean variance within, and the estimate of the whole variance from within and between."""
    n = halves.shape[1]
    within = float(halves.var(1, ddof=1).mean())
    between = float(halves.mean(1).var(ddof=1))
    return within, within * (n - 1) / n + between


def _normal_scores(halves: Array) -> Array:
    from scipy.special import ndtri
    from scipy.stats import rankdata

    ranks = rankdata(halves).reshape(halves.shape)
    return np.asarray(ndtri((ranks - 0.375) / (halves.size + 0.25)))


def _autocovariance(x: Array) -> Array:
    """At lags 0 ... n - 1, by the Fourier transform of the padded chain."""
    n = len(x)
    power = np.abs(np.fft.rfft(x - x.mean(), 2 * n)) ** 2
    return np.asarray(np.fft.irfft(power, 2 * n)[:n] / n)
