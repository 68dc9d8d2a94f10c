"""What the data say of states, their sufficient statistics: sums of features, moves between them, starts. All adds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from modelweld.inputs.local_model import Array
from modelweld.inputs.stack import Index


def features(x: Array) -> Array:
    """[1, x, x_i x_j for i <= j] of frames (T, D): sums of these are all a Gaussian asks of its frames."""
    i, j = np.triu_indices(x.shape[1])
    return np.column_stack([np.ones(len(x)), x, x[:, i] * x[:, j]])


def dimensions(width: int) -> int:
    """D of features of this width, 1 + D + D (D + 1) / 2."""
    return int((np.sqrt(8 * width + 1) - 3) / 2)


def moments(sums: Array) -> tuple[Array, Array, Array]:
    """Number (...), sum (..., D) and sum of squares (..., D, D) from sums of features."""
    D = dimensions(sums.shape[-1])
    i, j = np.triu_indices(D)
    second = np.empty((*sums.shape[:-1], D, D))
    second[..., i, j] = second[..., j, i] = sums[..., 1 + D :]
    return sums[..., 0], sums[..., 1 : 1 + D], second


@dataclass(frozen=True, eq=False)
class Statistics:
    """Expected sums of features (K, P), moves (K, K) and starts (K,) of K states; frames count fully (not tempered)."""

    sums: Array
    moves: Array
    starts: Array

    @property
    def counts(self) -> Array:
        """Expected frames of each state."""
        return np.asarray(self.sums[:, 0])

    @property
    def by_size(self) -> Index:
        """States by decreasing number of frames."""
        return np.argsort(-self.counts, kind="stable")

    def taken(self, order: Index) -> Statistics:
        """These states only, in this order."""
        return Statistics(self.sums[order], self.moves[np.ix_(order, order)], self.starts[order])

    def merged(self, i: int, j: int) -> Statistics:
        """State j added to state i."""
        into = np.arange(len(self.sums))
        into[j] = i
        join = np.delete(np.eye(len(into))[into], j, axis=1)  # (K, K - 1), one 1 in every row
        return Statistics(join.T @ self.sums, join.T @ self.moves @ join, join.T @ self.starts)
