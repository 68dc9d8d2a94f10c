"""Values that have no sign: v and -v are one. Which way round each is, given those it shares an atom with.

The signs of an atom's values are part of what is matched. Given theirs, an atom is an atom as ever; of all signs those
are best at which the sum of the values is longest. Half of the 2^n ways to sign n values are the others with the atom
turned round, so that n values with these signs have 2^(n - 1) times less evidence than n that had them to begin with.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from modelweld.core.values import Array, Index, Stack, offsets_of

LOG_2 = float(np.log(2.0))
"""Nats that a value pays for having had the choice of a sign, unless it is the first of its atom."""

ROUNDS = 10
"""Rounds of turning every value once, after the first: two or three is what it takes."""

Facing = Callable[[Array, Array], Array]
"""Rows (L, k) and sums (L, k) -> the rows as they are added to these: turned where that makes sums longer."""


def upright(values: Array) -> Array:
    """Values (N, D) turned so that the largest entry of each is positive.

    Examples
    --------
    >>> upright(np.array([[0.6, -0.8], [0.8, -0.6]])).tolist()
    [[-0.6, 0.8], [0.8, -0.6]]
    """
    largest = np.take_along_axis(values, np.abs(values).argmax(-1, keepdims=True), axis=-1)
    return np.where(largest < 0, -values, values)


def mirror(stack: Stack) -> Stack:
    """Every value of a group and the same turned round: what can be said of them whatever their signs.

    Examples
    --------
    >>> mirror(Stack(np.array([[1.0], [5.0], [2.0]]), np.array([0, 2, 3]))).values.ravel().tolist()
    [1.0, -1.0, 5.0, -5.0, 2.0, -2.0]
    """
    both = np.repeat(stack.values, 2, axis=0)
    both[1::2] *= -1.0
    twice = replace(stack.take(np.repeat(np.arange(len(stack.values)), 2), offsets_of(2 * stack.sizes)), moments=None)
    order = None if stack.value_order is None else np.repeat(2 * stack.value_order, 2) + np.arange(len(both)) % 2
    return replace(twice, values=both, value_order=order)


def orient(facing: Facing, rows: Array, labels: Index, K: int) -> tuple[Array, Array]:
    """Rows (N, k) turned to agree with those of the same label (negative: with none), and their sums (K, k).

    An atom's values in turn face the sum of those before, and then, until none turns, that of all others.

    Examples
    --------
    >>> def facing(rows, sums):
    ...     return np.where((rows * sums).sum(1, keepdims=True) < 0, -rows, rows)
    >>> rows, sums = orient(facing, np.array([[1.0, 0.1], [-1.0, 0.2], [0.3, 1.0]]), np.array([0, 0, 1]), 2)
    >>> rows.tolist(), sums.tolist()
    ([[1.0, 0.1], [1.0, -0.2], [0.3, 1.0]], [[2.0, -0.1], [0.3, 1.0]])
    """
    rows, sums, turns = rows.copy(), np.zeros((K, rows.shape[1])), _turns(labels)
    for values in turns:
        rows[values] = facing(rows[values], sums[labels[values]])
        sums[labels[values]] += rows[values]
    for _ in range(ROUNDS):
        turned = False
        for values in turns:
            own, atoms = rows[values], labels[values]
            rest = sums[atoms] - own
            rows[values] = facing(own, rest)
            sums[atoms] = rest + rows[values]
            turned = turned or not np.array_equal(own, rows[values])
        if not turned:
            break
    return rows, sums


def _turns(labels: Index) -> list[Index]:
    """The first value of every atom, the second of all that have two, and so on."""
    order = np.argsort(labels, kind="stable")
    order = order[labels[order] >= 0]
    first = np.flatnonzero(np.diff(labels[order], prepend=-1))
    size = np.diff(np.append(first, len(order)))
    rank = np.arange(len(order)) - np.repeat(first, size)
    by_rank = np.argsort(rank, kind="stable")
    return np.split(order[by_rank], np.cumsum(np.bincount(rank))[:-1]) if len(order) else []
