"""What sites' sparse Gaussian processes share: a kernel halfway between theirs, and averages of matched points."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from modelweld.gp.kernels import NAMES, Kernel
from modelweld.gp.model import SparseGP
from modelweld.inputs.local_model import Array
from modelweld.inputs.stack import Index


def agreed(sites: Sequence[SparseGP]) -> bool:
    """Whether all sites have the same kernel and mean."""
    first = sites[0]
    return all(
        gp.mean == first.mean
        and (gp.kernel.name, gp.kernel.outputscale) == (first.kernel.name, first.kernel.outputscale)
        and np.array_equal(gp.kernel.lengthscales, first.kernel.lengthscales)
        for gp in sites
    )


def common(sites: Sequence[SparseGP]) -> tuple[Kernel, float]:
    """Kernel and mean halfway between the sites': the most frequent function, medians of its parameters.

    Medians, because a site that cannot tell (a feature that hardly varies there) may send any lengthscale.
    """
    number = Counter(gp.kernel.name for gp in sites)
    name = min(number, key=lambda n: (-number[n], NAMES.index(n)))
    scales = np.median([gp.kernel.lengthscales for gp in sites], axis=0)
    outputscale = float(np.median([gp.kernel.outputscale for gp in sites]))
    return Kernel(scales, outputscale, name), float(np.median([gp.mean for gp in sites]))


def averages(sites: Sequence[SparseGP], labels: Index) -> tuple[Array, Array, Array, float]:
    """Inputs and values of every atom, how many points it has, and the variance of values about it."""
    Z, u = np.concatenate([gp.inputs for gp in sites]), np.concatenate([gp.values for gp in sites])
    K = int(labels.max()) + 1
    number: Array = np.bincount(labels, minlength=K).astype(np.float64)
    inputs = np.stack([np.bincount(labels, column, K) for column in Z.T], axis=1) / number[:, None]
    values: Array = np.bincount(labels, u, K) / number
    left = float(np.square(u - values[labels]).sum())
    return inputs, values, number, left / max(len(u) - K, 1)
