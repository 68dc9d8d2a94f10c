"""What is handed in: frames of all sequences one below the other, and where the sequences end. The border of this
package.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from modelweld.errors import InputError
from modelweld.inputs.local_model import LARGEST_VALUE, Array
from modelweld.inputs.stack import Index, offsets_of


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
