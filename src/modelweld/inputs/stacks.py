"""Stacks of values: plain arrays of all sites one below the other, or several arrays side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from modelweld.core.values import Array, Stack, offsets_of
from modelweld.errors import InputError
from modelweld.inputs.local_model import check_values


def stack_arrays(given: Sequence[Any]) -> Stack:
    """Plain arrays (L_j, D), one per group, one below the other."""
    arrays = [
        a if type(a) is np.ndarray and a.dtype == np.float64 else check_values(a, f"site {j}")
        for j, a in enumerate(given)
    ]
    if len({a.shape[1:] for a in arrays}) > 1 or arrays[0].ndim != 2:
        arrays = _reshape(arrays)
    if arrays[0].shape[1] == 0 or not any(len(a) for a in arrays):
        raise InputError("there is nothing to fuse: no site sent a local parameter.")
    return Stack(np.ascontiguousarray(np.concatenate(arrays)), offsets_of([len(a) for a in arrays]))


def _reshape(arrays: list[Array]) -> list[Array]:
    """Arrays that are empty in one way or another with the columns of the others; an error if columns differ."""
    width = next((a.shape[-1] for a in arrays if a.ndim == 2 and a.size), 0)
    for j, a in enumerate(arrays):
        if a.size == 0 and (a.ndim == 1 or len(a) == 0):
            continue
        if a.ndim != 2 or a.shape[1] != width:
            what = "one row per local parameter: two axes" if a.ndim != 2 else f"{width} columns like the first site"
            hint = " For one-dimensional parameters use shape (L, 1)." if a.ndim == 1 else ""
            raise InputError(f"site {j}: its array must have {what}; found shape {a.shape}.{hint}")
    return [a if a.size else np.zeros((0, width)) for a in arrays]


def side_by_side(stacks: Sequence[Stack]) -> Stack:
    """Stacks of the same rows as one: their columns follow each other."""

    def join(name: str, absent: float) -> Array | None:
        parts = [getattr(s, name) for s in stacks]
        if all(part is None for part in parts):
            return None
        full = [np.full(s.values.shape, absent) if p is None else p for s, p in zip(stacks, parts, strict=True)]
        return np.concatenate(full, axis=1)

    values = np.concatenate([s.values for s in stacks], axis=1)
    return Stack(values, stacks[0].offsets, join("variance", 0.0), join("weight", 1.0))
