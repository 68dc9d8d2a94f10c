"""What the data say of states, their sufficient statistics: sums of features, moves between them, starts. All adds.

What a fitted model remembers of its data, in the units of the data: all that fusion needs, and it adds.

What is handed in: frames of all sequences one below the other, and where the sequences end. The border of this
package.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from modelweld.core.values import Index, offsets_of
from modelweld.errors import InputError
from modelweld.inputs.local_model import LARGEST_VALUE, Array


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


VARIANCE_ROUNDING = 1e-12
"""Variance, as a share of the mean square, that is no more than rounding; added, so that no variance is negative."""


@dataclass(frozen=True, eq=False)
class Summary:
    """Expected numbers and moments of the frames of K states.

    Parameters
    ----------
    counts : array (K,)
        Frames, each worth one whatever zeta is.
    means, covariances : arrays (K, D), (K, D, D)
        Of these frames: with the counts they are the sums of frames and of their squares, without loss of digits.
    moves, starts : arrays (K, K), (K,)
        Transitions, and sequences that begin in a state.
    """

    counts: Array
    means: Array
    covariances: Array
    moves: Array
    starts: Array

    @property
    def visits(self) -> Array:
        """How often each state is entered: starts, and moves from other states. Frames of one visit are kin."""
        return np.asarray(self.starts + self.moves.sum(axis=0) - np.diag(self.moves))

    @property
    def centre(self) -> Array:
        """Mean of all frames (D,)."""
        return np.asarray(self.counts @ self.means / self.counts.sum())

    @property
    def unit(self) -> Array:
        """Standard deviation of all frames (D,)."""
        spread = np.einsum("kii->ki", self.covariances) + np.square(self.means - self.centre)
        return np.asarray(np.sqrt(self.counts @ spread / self.counts.sum()))

    def statistics(self) -> Statistics:
        """Sums of features of frames that are centred and in these units."""
        centre, unit = self.centre, self.unit
        mean = (self.means - centre) / unit
        second = self.covariances / unit[:, None] / unit + mean[:, :, None] * mean[:, None, :]
        i, j = np.triu_indices(len(unit))
        per_frame = np.column_stack([np.ones(len(mean)), mean, second[:, i, j]])
        return Statistics(self.counts[:, None] * per_frame, self.moves, self.starts)

    @classmethod
    def of(cls, statistics: Statistics, centre: Array, unit: Array) -> Summary:
        """The reverse."""
        n, first, second = moments(statistics.sums)
        mean, square = first / n[:, None], second / n[:, None, None]
        covariance = square - mean[:, :, None] * mean[:, None, :] + VARIANCE_ROUNDING * square * np.eye(len(unit))
        return cls(
            n.copy(),
            centre + unit * mean,
            covariance * unit[:, None] * unit,
            statistics.moves,
            statistics.starts,
        )


class Sequences(NamedTuple):
    """Frames (T, D); sequence s is ``frames[offsets[s] : offsets[s + 1]]``."""

    frames: Array
    offsets: Index

    def in_canonical_order(self) -> Sequences:
        """The same sequences in an order that depends on their content alone."""
        parts = sorted(
            (self.frames[a:b] for a, b in zip(self.offsets[:-1], self.offsets[1:], strict=True)),
            key=lambda part: (len(part), tuple(part[0]), part.tobytes()),
        )
        return Sequences(np.concatenate(parts), offsets_of([len(part) for part in parts]))

    def units(self) -> tuple[Array, Array]:
        """Means and standard deviations of features (D,), or an `InputError` if they tell no states apart."""
        T, D = self.frames.shape
        if T < D + 2:
            raise InputError(f"{T} frames are too few for states with {D} features: at least {D + 2} are needed.")
        centre, unit = self.frames.mean(axis=0), self.frames.std(axis=0)
        constant = np.flatnonzero(unit <= np.finfo(float).eps * np.abs(centre))
        if constant.size:
            raise InputError(
                f"feature {constant[0]} is constant ({centre[constant[0]]:g}): it tells no states apart, drop it."
            )
        return centre, unit


def checked_sequences(X: ArrayLike, lengths: ArrayLike | None = None, features: int | None = None) -> Sequences:
    """Frames and offsets, or an `InputError` that says what is wrong.

    Parameters
    ----------
    X : array (T, D)
        Frames.
    lengths : sequence of int, optional
        Frames of each sequence; default: X is one.
    features : int, optional
        How many columns a fitted model knows.
    """
    try:
        frames = np.array(X, dtype=np.float64, order="C")
    except (TypeError, ValueError):
        raise InputError(f"X must be an array of real numbers (frames, features); found {type(X).__name__}.") from None
    if frames.ndim != 2 or 0 in frames.shape:
        hint = " One feature is X.reshape(-1, 1)." if frames.ndim == 1 else ""
        raise InputError(f"X must have the shape (frames, features), neither zero; found {frames.shape}.{hint}")
    bad = np.flatnonzero(~(np.abs(frames) <= LARGEST_VALUE).all(axis=1))
    if bad.size:
        column = int(np.flatnonzero(~(np.abs(frames[bad[0]]) <= LARGEST_VALUE))[0])
        raise InputError(
            f"X must be finite: found {frames[bad[0], column]} in frame {bad[0]}, feature {column} ({bad.size} such "
            "frames). Cut the sequences there (see `lengths`), or fill the gaps."
        )
    if features is not None and frames.shape[1] != features:
        raise InputError(f"this model knows {features} features; X has {frames.shape[1]}.")
    return Sequences(frames, _check_offsets(lengths, len(frames)))


def _check_offsets(lengths: ArrayLike | None, frames: int) -> Index:
    if lengths is None:
        return offsets_of([frames])
    found = np.atleast_1d(np.asarray(lengths))
    if found.ndim != 1 or found.dtype.kind not in "iu" or (found < 1).any():
        raise InputError(f"lengths must be whole numbers of frames, at least 1 each; found {lengths!r}.")
    if found.sum() != frames:
        raise InputError(f"lengths add up to {found.sum()}, but X has {frames} frames: say how long each sequence is.")
    return offsets_of(found.astype(np.int64))
