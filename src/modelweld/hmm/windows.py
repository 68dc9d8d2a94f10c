"""The start: short windows of frames, pooled pair by pair where that raises the evidence most (or lowers it least).

A frame alone says nothing of a state's covariance, k-means forgets time. A window of frames does neither, and what is
true of most windows is that they lie within one state. Any hidden Markov model gains from this start, EM as much as
variational ascent.

How much an autocorrelated frame counts (effective sample size): by the autocorrelation time within states.

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

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from modelweld.core.values import Array, Index
from modelweld.errors import InputError
from modelweld.hmm.ascent import Problem
from modelweld.hmm.statistics import (
    Emissions,
    Prior,
    Statistics,
    check_sequences,
    features,
    log_evidence,
    pooling_gains,
)
from modelweld.libraries.hidden_markov import correlation_time

MOST_FRAGMENTS = 400
"""Windows compared all with all; where there are more, neighbours in time are pooled first. Time and memory grow with
the square."""

FIRST_SHARE = 0.1
"""Covariance expected of a state, as a share of the variance of all frames: states are narrower than the whole, and
where the scale is learned it soon moves away."""

MEAN_PRECISION = 0.01
"""What the prior mean is worth, in frames: means of states within some ten deviations of theirs from it are usual."""


class WindowStart(NamedTuple):
    """A state for every frame (T,), and the means (K, D) and covariances (K, D, D) of the states.

    Examples
    --------
    >>> import numpy as np
    >>> from modelweld.hmm import window_start
    >>> X = np.repeat([[0.0], [9.0]], 60, axis=0) + np.random.default_rng(0).normal(size=(120, 1))
    >>> found = window_start(X, n_states=2, random_state=0)
    >>> found.labels.shape, found.means.shape, found.covars.shape
    ((120,), (2, 1), (2, 1, 1))
    """

    labels: Index
    means: Array
    covars: Array


def window_start(
    X: ArrayLike,
    lengths: ArrayLike | None = None,
    n_states: int = 10,
    *,
    window: int = 20,
    zeta: float = 1.0,
    random_state: int | np.random.RandomState | None = None,
) -> WindowStart:
    """First states for a hidden Markov model of any library.

    Parameters
    ----------
    X : array (T, D)
        Frames, sequences one below the other.
    lengths : sequence of int, optional
        Frames of each sequence.
    n_states : int
        How many states are wanted; fewer come back if there are fewer windows.
    window : int
        Frames of a window: the shortest thing that may be a state.
    zeta : float
        How much a frame counts, at most 1: below, autocorrelated frames are not taken for independent ones.
    random_state : int, RandomState or None
        Draws where the first window ends.

    Returns
    -------
    WindowStart
        Labels, means and covariances; the latter have the prior's share in them and can be inverted.

    Examples
    --------
    With hmmlearn: ``GaussianHMM(K, covariance_type="full", init_params="st")``, then set ``means_`` and ``covars_``.

    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(m, 1.0, (50, 2)) for m in (0, 9, 0)])
    >>> found = window_start(X, n_states=2, window=10, random_state=0)
    >>> first, middle, last = found.labels[[0, 75, 149]]
    >>> bool(first == last), bool(first == middle), found.means.shape
    (True, False, (2, 2))
    """
    given = check_sequences(X, lengths)
    if n_states < 1 or window < 1:
        raise InputError(f"n_states and window are at least 1; found {n_states} and {window}.")
    centre, unit = given.units()
    phi = features((given.frames - centre) / unit)
    prior = Prior(np.full(given.frames.shape[1], FIRST_SHARE), MEAN_PRECISION)
    phase = int(check_random_state(random_state).randint(window))
    labels = pool_windows(phi, given.offsets, n_states, window=window, phase=phase, zeta=zeta, prior=prior)
    at = Emissions.of(statistics_of(labels, phi, given.offsets).sums, prior)
    return WindowStart(labels, centre + unit * at.mean, at.covariance * unit[:, None] * unit)


def pool_windows(
    phi: Array, offsets: Index, n_states: int, *, window: int, phase: int, zeta: float, prior: Prior
) -> Index:
    """Labels (T,) of windows pooled down to `n_states`, given features of centred frames."""
    first = window_edges(offsets, window, phase)
    label = np.arange(len(first))
    sums = zeta * np.add.reduceat(phi, first, axis=0)
    new_sequence = np.isin(first, offsets[:-1])
    if len(first) > max(MOST_FRAGMENTS, n_states):
        label, sums = _pool_neighbours(sums, new_sequence, max(MOST_FRAGMENTS, n_states), prior)
    if len(sums) > n_states:
        label = _pool(sums, n_states, prior)[label]
    return np.repeat(label, np.diff(np.append(first, offsets[-1])))


def window_edges(offsets: Index, window: int, phase: int) -> Index:
    """Where windows begin; at the ends of a sequence, fragments shorter than half a window join their neighbour.

    Examples
    --------
    >>> window_edges(np.array([0, 25, 32]), window=10, phase=7).tolist()
    [0, 7, 17, 25]
    """
    edges = []
    for start, end in pairwise(offsets.tolist()):
        inner = [t for t in range(start + phase, end, window) if 2 * (t - start) >= window and 2 * (end - t) >= window]
        edges += [start, *inner]
    return np.array(edges, dtype=np.int64)


def statistics_of(labels: Index, phi: Array, offsets: Index) -> Statistics:
    """What frames with known states say."""
    K = int(labels.max()) + 1
    sums, moves = np.zeros((K, phi.shape[1])), np.zeros((K, K))
    np.add.at(sums, labels, phi)
    inner = np.ones(len(labels), dtype=bool)
    inner[offsets[:-1]] = False
    arrivals = np.flatnonzero(inner)
    np.add.at(moves, (labels[arrivals - 1], labels[arrivals]), 1.0)
    return Statistics(sums, moves, np.bincount(labels[offsets[:-1]], minlength=K).astype(np.float64))


def pool_statistics(problem: Problem, n_states: int, window: int, prior: Prior, rng: np.random.Generator) -> Statistics:
    """The start by windows whose ends are drawn."""
    phi, offsets, phase = problem.features, problem.offsets, int(rng.integers(window))
    labels = pool_windows(phi, offsets, n_states, window=window, phase=phase, zeta=problem.setting.zeta, prior=prior)
    return statistics_of(labels, phi, offsets)


def draw_statistics(phi: Array, n_states: int, rng: np.random.Generator) -> Statistics:
    """Another start: one frame drawn for each state, which has not moved anywhere yet."""
    K = min(n_states, len(phi))
    chosen = np.sort(rng.choice(len(phi), K, replace=False))
    return Statistics(phi[chosen], np.zeros((K, K)), np.zeros(K))


def _pool(sums: Array, n_states: int, prior: Prior) -> Index:
    """Greedily, any two."""
    sums, label = sums.copy(), np.arange(len(sums))
    gains = pooling_gains(sums, prior)
    for _ in range(len(sums) - n_states):
        i, j = sorted(np.unravel_index(int(gains.argmax()), gains.shape))
        label[label == j] = i
        sums[i] += sums[j]
        gains[j, :] = gains[:, j] = -np.inf
        fresh = pooling_gains(sums, prior, with_state=int(i))
        fresh[np.isneginf(gains[i])] = -np.inf
        gains[i, :] = gains[:, i] = fresh
    return np.asarray(np.unique(label, return_inverse=True)[1])


def _pool_neighbours(sums: Array, new: NDArray[np.bool_], n_fragments: int, prior: Prior) -> tuple[Index, Array]:
    """Greedily, neighbours in time only; where a sequence begins, windows are `new`."""
    parts, begins = list(sums), list(new)
    members = [[i] for i in range(len(parts))]
    alone = list(log_evidence(sums, prior))

    def gain(i: int) -> float:
        """Of pooling part i with the one after it."""
        if i < 0 or i + 1 >= len(parts) or begins[i + 1]:
            return -np.inf
        return float(log_evidence(parts[i] + parts[i + 1], prior) - alone[i] - alone[i + 1])

    gains = [gain(i) for i in range(len(parts))]
    while len(parts) > n_fragments and max(gains) > -np.inf:
        i = int(np.argmax(gains))
        parts[i] = parts[i] + parts.pop(i + 1)
        members[i] += members.pop(i + 1)
        del begins[i + 1], alone[i + 1], gains[i + 1]
        alone[i] = float(log_evidence(parts[i], prior))
        gains[i] = gain(i)
        if i > 0:
            gains[i - 1] = gain(i - 1)
    label = np.empty(len(sums), dtype=np.int64)
    for i, own in enumerate(members):
        label[own] = i
    return label, np.array(parts)


SLOPE = 1.8
"""Best on 24 pairs of motion-capture sessions (of 1, 1.4, 1.8 and 2.4): Hamming distance less adjusted Rand index of
the fused segmentation."""


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
