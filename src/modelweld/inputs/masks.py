"""Masks of numpy's masked arrays, as weights: what is masked was not seen."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray


def without_masks(arrays: Mapping[str, ArrayLike]) -> tuple[dict[str, ArrayLike], dict[str, NDArray[np.bool_]]]:
    """Arrays with zeros where they were masked, and of those that had such entries which were seen.

    Examples
    --------
    >>> arrays, seen = without_masks({"v": np.ma.masked_values([1.0, -9.0], -9.0), "w": [2.0]})
    >>> arrays["v"].tolist(), seen["v"].tolist(), list(seen)
    ([1.0, 0.0], [True, False], ['v'])
    """
    masked = {name: values for name, values in arrays.items() if isinstance(values, np.ma.MaskedArray)}
    seen = {name: ~np.ma.getmaskarray(values) for name, values in masked.items() if np.ma.is_masked(values)}
    return {**arrays, **{name: values.filled(0) for name, values in masked.items()}}, seen


def with_masks(
    weight: Mapping[str, NDArray[np.float64]], seen: Mapping[str, NDArray[np.bool_]]
) -> dict[str, NDArray[np.float64]]:
    """Weights, zero where an entry was masked."""
    return {**weight, **{name: np.where(there, weight.get(name, 1.0), 0.0) for name, there in seen.items()}}
