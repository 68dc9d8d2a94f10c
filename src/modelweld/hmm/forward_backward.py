"""The chain: posterior of paths and the most probable path, given weights of moves and log densities of frames.

Weights need not add up to one: in variational ascent they are exp E ln pi. With f_t the normalised forward vector, c_t
its scale, e_t the densities of frame t over their largest and b_t the backward vector (1 at the end of a sequence),

    f_t = e_t (f_{t-1} A) / c_t          arriving_t = e_t b_t / c_t          b_{t-1} = A arriving_t
    P(z_t = k) = f_tk b_tk               E moves = A * sum_t f_{t-1} arriving_t'        ln Z = sum_t ln c_t + max

The compiled functions are the plain ones below, handed to numba.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from modelweld.compilers import exact
from modelweld.core.values import Array, Index

LEAST_LOG = -340.0
"""Logarithms of weights and of relative densities do not fall below this, so that the product of two stays a number: a
path that needs such a move costs that much, and the next step sees the move happen."""

NEGLIGIBLE = 1e-30
"""Posterior probabilities below this are zero, and so is what such states add to moves: denormal numbers would make
every product that follows several times slower."""


class Paths(NamedTuple):
    """Posterior of paths: states (T, K), expected moves (K, K) and starts (K,), log sum over all paths."""

    states: Array
    moves: Array
    starts: Array
    log_sum: float


def forward_backward(log_start: Array, log_move: Array, log_density: Array, offsets: Index) -> Paths:
    """Posterior of the paths of all sequences.

    Parameters
    ----------
    log_start, log_move : arrays (K,), (K, K)
        Log weights of starts and moves.
    log_density : array (T, K)
        Of every frame in every state.
    offsets : int array (S + 1,)
        Where sequences begin.

    Examples
    --------
    >>> half = np.log(np.full((2, 2), 0.5))
    >>> paths = forward_backward(half[0], half, np.log([[0.9, 0.1], [0.9, 0.1]]), np.array([0, 2]))
    >>> paths.states.round(3).tolist(), paths.moves.round(3).tolist(), round(float(np.exp(paths.log_sum)), 3)
    ([[0.9, 0.1], [0.9, 0.1]], [[0.81, 0.09], [0.09, 0.01]], 0.25)
    """
    start, move = (np.exp(np.maximum(x, LEAST_LOG)) for x in (log_start, log_move))
    density, forward, arriving, states = (np.empty(log_density.shape) for _ in range(4))
    scale = np.empty(len(log_density))
    log_sum = _forward(start, move, np.ascontiguousarray(log_density), offsets, density, forward, scale)
    _backward(move, offsets, density, scale, forward, arriving, states)
    moves = move * (forward[:-1].T @ arriving[1:])
    return Paths(states, moves, states[offsets[:-1]].sum(axis=0), log_sum)


def most_probable(log_start: Array, log_move: Array, log_density: Array, offsets: Index) -> Index:
    """The most probable path of every sequence (Viterbi)."""
    path = np.empty(len(log_density), dtype=np.int64)
    _viterbi(log_start, np.ascontiguousarray(log_move.T), np.ascontiguousarray(log_density), offsets, path)
    return path


@exact
def _forward(
    start: Array, move: Array, log_density: Array, offsets: Index, density: Array, forward: Array, scale: Array
) -> float:
    K, log_sum = len(start), 0.0
    for s in range(len(offsets) - 1):
        for t in range(offsets[s], offsets[s + 1]):
            highest = log_density[t].max()
            for k in range(K):
                density[t, k] = np.exp(max(log_density[t, k] - highest, LEAST_LOG))
            if t == offsets[s]:
                forward[t, :] = start
            else:
                forward[t, :] = 0.0
                for i in range(K):
                    before = forward[t - 1, i]
                    for k in range(K):
                        forward[t, k] += before * move[i, k]
            total = 0.0
            for k in range(K):
                forward[t, k] *= density[t, k]
                total += forward[t, k]
            for k in range(K):
                forward[t, k] /= total
            scale[t] = total
            log_sum += np.log(total) + highest
    return log_sum


@exact
def _backward(
    move: Array, offsets: Index, density: Array, scale: Array, forward: Array, arriving: Array, states: Array
) -> None:
    K = len(move)
    backward, towards = np.empty(K), np.empty(K)
    for s in range(len(offsets) - 1):
        backward[:] = 1.0
        for t in range(offsets[s + 1] - 1, offsets[s] - 1, -1):
            for k in range(K):
                towards[k] = density[t, k] * backward[k] / scale[t]
                probability = forward[t, k] * backward[k]
                kept = probability >= NEGLIGIBLE
                states[t, k] = probability if kept else 0.0
                # nothing moves from one sequence to the next
                arriving[t, k] = towards[k] if kept and t > offsets[s] else 0.0
                if not kept:
                    forward[t, k] = 0.0
            for i in range(K):
                total = 0.0
                for k in range(K):
                    total += move[i, k] * towards[k]
                backward[i] = total


@exact
def _viterbi(log_start: Array, log_move_to: Array, log_density: Array, offsets: Index, path: Index) -> None:
    T, K = log_density.shape
    came_from = np.empty((T, K), dtype=np.int64)
    best, before = np.empty(K), np.empty(K)
    for s in range(len(offsets) - 1):
        for t in range(offsets[s], offsets[s + 1]):
            before[:] = best
            for k in range(K):
                if t == offsets[s]:
                    best[k] = log_start[k] + log_density[t, k]
                    continue
                at = 0
                for i in range(1, K):
                    if before[i] + log_move_to[k, i] > before[at] + log_move_to[k, at]:
                        at = i
                came_from[t, k] = at
                best[k] = before[at] + log_move_to[k, at] + log_density[t, k]
        here = np.argmax(best)
        for t in range(offsets[s + 1] - 1, offsets[s] - 1, -1):
            path[t] = here
            here = came_from[t, here]
