"""How often a chain starts, moves and stays, its sufficient statistics: fitted models forget them, fusion needs them.

From the sequences, at the site: posterior expectations. From their lengths alone: expectations under the model itself.
From nothing: shares in the long run. What an adapter can be told of them is one group of facts, `ChainFacts`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from modelweld.core.values import Array, Index, offsets_of
from modelweld.errors import InputError
from modelweld.inputs.local_model import LocalModel
from modelweld.kinds.mixture_components import diagonals

if TYPE_CHECKING:
    from hmmlearn.base import BaseHMM

Model = TypeVar("Model")


class ChainFacts(NamedTuple):
    """What the object of a fitted chain forgot."""

    lengths: ArrayLike | None
    X: ArrayLike | None
    features: Sequence[str] | None

    @property
    def none(self) -> bool:
        """Whether nothing is said of the training sequences."""
        return self.X is None and self.lengths is None


def told_of_chain(read: Callable[[Model, ChainFacts], LocalModel]) -> Callable[..., LocalModel]:
    """An adapter's `read` with the facts of a chain spelt out: what every hidden Markov model can be told.

    Parameters
    ----------
    read : callable
        Takes the fitted model and its facts.

    Returns
    -------
    callable
        ``read(model, *, lengths=None, X=None, features=None)``: `lengths`, the frames of each training sequence, from
        which alone numbers are expected ones; `X`, the training sequences, one below the other (`lengths` says where
        they end), to count here; `features`, names of the features, or of the symbols.
    """

    def told(
        model: Model,
        *,
        lengths: ArrayLike | None = None,
        X: ArrayLike | None = None,
        features: Sequence[str] | None = None,
    ) -> LocalModel:
        return read(model, ChainFacts(lengths, X, features))

    for name in ("__module__", "__name__", "__qualname__", "__doc__"):
        setattr(told, name, getattr(read, name))
    return told


class Chain(NamedTuple):
    """Probabilities of starts (K,) and transitions (K, K), and log densities (T, K) of frames in all states."""

    start: Array
    move: Array
    log_density: Callable[[Array], Array]

    @classmethod
    def of(cls, model: BaseHMM) -> Chain:
        """The chain of an hmmlearn model."""
        start, move = (np.asarray(x, dtype=np.float64) for x in (model.startprob_, model.transmat_))
        return cls(start, move, model._compute_log_likelihood)


class ChainCounts(NamedTuple):
    """Expected transitions (K, K), starts (K,), frames (K,); whether they are numbers or only shares.

    `path` has every frame's most probable state, sequence by sequence, where the sequences were there to look at.
    """

    moves: Array
    starts: Array
    counts: Array
    counted: bool
    path: tuple[Index, ...] = ()

    def correlation(self, X: ArrayLike | None, means: Array, spreads: Array) -> dict[str, float]:
        """Frames that are worth one, as the fact `correlation_time`, given the states; nothing without sequences."""
        if X is None or not self.path:
            return {}
        from modelweld.hmm.windows import correlation_time

        deviations = np.sqrt(np.maximum(diagonals(spreads), np.finfo(float).tiny))
        path = np.concatenate(self.path)
        residual = (np.asarray(X, dtype=np.float64) - means[path]) / deviations[path]
        return {"correlation_time": correlation_time(residual, path, offsets_of([len(p) for p in self.path]))}


def chain_counts(chain: Chain, facts: ChainFacts) -> ChainCounts:
    """Expected numbers of a chain."""
    start, move, log_density_of = chain
    lengths, X, _ = facts
    if X is not None:
        frames = np.asarray(X)
        ends = [len(frames)] if lengths is None else np.asarray(lengths, dtype=np.int64)
        if sum(ends) != len(frames):
            raise InputError(f"lengths add up to {sum(ends)}, but X has {len(frames)} frames.")
        log_density = log_density_of(frames)
        found = [posteriors(start, move, log_density[a:b]) for a, b in pairwise(offsets_of(ends))]
        states = [posterior for _, posterior in found]
        return ChainCounts(
            moves=np.sum([moves for moves, _ in found], axis=0),
            starts=np.sum([posterior[0] for posterior in states], axis=0),
            counts=np.sum([posterior.sum(axis=0) for posterior in states], axis=0),
            counted=True,
            path=tuple(posterior.argmax(axis=1) for posterior in states),
        )
    if lengths is not None:
        numbers = np.asarray(lengths, dtype=np.int64)
        if numbers.ndim != 1 or (numbers < 1).any():
            raise InputError("lengths must be a list of positive numbers of frames, one per sequence.")
        here, leaving, counts = start.copy(), np.zeros_like(start), np.zeros_like(start)
        for t in range(int(numbers.max())):
            counts += here * (numbers > t).sum()
            leaving += here * (numbers > t + 1).sum()
            here = here @ move
        return ChainCounts(leaving[:, None] * move, start * len(numbers), counts, True)
    share = stationary(move)
    return ChainCounts(share[:, None] * move, start, share, False)


def posteriors(start: Array, move: Array, log_density: Array) -> tuple[Array, Array]:
    """Expected transitions, and probabilities (T, K) of states, given one sequence: scaled passes to and fro.

    Examples
    --------
    >>> moves, states = posteriors(np.array([0.5, 0.5]), np.full((2, 2), 0.5), np.log([[1, 0.0001]] * 3))
    >>> states.sum(axis=0).round(3), float(moves.sum().round(3))
    (array([3., 0.]), 2.0)
    """
    T, K = log_density.shape
    density = np.exp(log_density - log_density.max(axis=1, keepdims=True))
    forward, backward, scale = np.empty((T, K)), np.ones((T, K)), np.empty(T)
    before = start
    for t in range(T):
        here = before * density[t]
        scale[t] = here.sum()
        forward[t] = here / scale[t]
        before = forward[t] @ move
    for t in range(T - 2, -1, -1):
        backward[t] = move @ (density[t + 1] * backward[t + 1]) / scale[t + 1]
    posterior = forward * backward
    arriving = density[1:] * backward[1:] / scale[1:, None]
    return move * (forward[:-1].T @ arriving), posterior


def stationary(move: Array) -> Array:
    """Shares of time in the long run, from an even start: also where the chain falls apart."""
    share = np.full(len(move), 1.0 / len(move))
    lazy = 0.5 * (np.eye(len(move)) + move)  # no cycles
    for _ in range(60):
        share, lazy = share @ lazy, lazy @ lazy
    return np.asarray(share / share.sum())
