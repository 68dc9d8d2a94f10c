"""Centre and scale that no minority of sites can carry away: medians over sites of the sites' means."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from modelweld.core.values import Array, Index, Stack, block_size
from modelweld.fit.search.starts import is_large

FEWEST_SITES = 3
"""For one of them to be named: of two, nobody knows which is right, and how far others lie apart."""

FEWEST_SITES_TO_COMPARE = 4
"""Below this nothing is excluded. A median over sites needs an honest majority, and with three a site that merely
differs makes two camps of one and two; from four on, the middle two are honest when one is not."""


def blocks_of_sites(stack: Stack) -> Iterator[tuple[slice, Index]]:
    """Values of some whole sites that have any, and where these sites begin among them: temporaries stay small."""
    edges = np.unique(stack.offsets)
    step = block_size(stack.values.shape[1])
    first = 0
    while first < len(edges) - 1:
        last = max(first + 1, int(np.searchsorted(edges, edges[first] + step, side="right")) - 1)
        yield slice(int(edges[first]), int(edges[last])), edges[first : last + 1] - edges[first]
        first = last


def site_means(stack: Stack, quantity: Callable[[Stack], Array | None]) -> Array:
    """Means over each site's seen entries of some quantity, (sites that have values, D); NaN where none is seen."""
    means = []
    for part, offsets in blocks_of_sites(stack):
        block = stack.take(part, offsets)
        values = np.asarray(quantity(block))
        if block.weight is None:
            means.append(_sums(values, offsets) / block.sizes[:, None])
            continue
        seen = block.seen
        number = np.add.reduceat(seen.astype(np.float64), offsets[:-1])
        total = np.add.reduceat(np.where(seen, values, 0.0), offsets[:-1])
        means.append(np.where(number > 0, total / np.maximum(number, 1.0), np.nan))
    return np.concatenate(means)


def _sums(values: Array, offsets: Index) -> Array:
    """Sums over the values of each site: as `np.add.reduceat`, five times as quick for many sites."""
    from scipy.sparse import csr_array

    N = len(values)
    return np.asarray(csr_array((np.ones(N), np.arange(N), offsets), shape=(len(offsets) - 1, N)) @ values)


def middle(x: Array) -> Array:
    """Median over the first axis of what is known; NaN where nothing is.

    Examples
    --------
    >>> middle(np.array([[1.0, np.nan], [4.0, np.nan], [2.0, np.nan]])).tolist()
    [2.0, nan]
    """
    ordered = np.sort(np.ascontiguousarray(np.moveaxis(x, 0, -1)), axis=-1)  # what is not known comes last
    if not np.isnan(ordered[..., -1]).any():
        return np.asarray((ordered[..., (len(x) - 1) // 2] + ordered[..., len(x) // 2]) / 2)
    last = (~np.isnan(ordered)).sum(axis=-1, keepdims=True) - 1
    ends = [np.take_along_axis(ordered, np.maximum(at, 0), axis=-1)[..., 0] for at in (last // 2, (last + 1) // 2)]
    return np.asarray((ends[0] + ends[1]) / 2)


def median_over_sites(x: Array) -> Array:
    """Median of each column over the sites that have it; NaN where fewer than FEWEST_SITES_TO_COMPARE have."""
    if not np.isnan(x).any():
        return middle(x) if len(x) >= FEWEST_SITES_TO_COMPARE else np.full(x.shape[1], np.nan)
    enough = np.isfinite(x).sum(0) >= FEWEST_SITES_TO_COMPARE
    result = np.full(x.shape[1], np.nan)
    if enough.any():
        result[enough] = np.nanmedian(x[:, enough], axis=0)
    return result


def centre_and_scale(stack: Stack) -> tuple[Array, Array]:
    """Medians of means; the scale is NaN in a dimension where most sites' values coincide: it tells nobody apart."""
    means, means_about = means_by_site(stack)
    centre = median_over_sites(means)
    centre = np.where(np.isfinite(centre), centre, 0.0)
    scale = np.sqrt(median_over_sites(means_about(centre)))
    rounding = np.finfo(float).eps * np.abs(centre) * stack.sizes.max()
    return centre, np.where(scale > rounding, scale, np.nan)


def means_by_site(stack: Stack) -> tuple[Array, Callable[[Array], Array]]:
    """Means of the values of each site that has some, and of their squared differences from a centre."""
    return (_compiled_means if stack.plain and is_large(stack) else _means)(stack)


def _means(stack: Stack) -> tuple[Array, Callable[[Array], Array]]:
    return site_means(stack, lambda b: b.values), lambda c: site_means(stack, lambda b: _squares(b.values - c))


def _compiled_means(stack: Stack) -> tuple[Array, Callable[[Array], Array]]:
    """As `_means`, of many plain values."""
    from modelweld.fit.screening.screening_kernels import squares_by_site, sums_by_site

    offsets = np.unique(stack.offsets)
    sizes = np.diff(offsets)[:, None]
    return sums_by_site(stack.values, offsets) / sizes, lambda c: squares_by_site(stack.values, offsets, c) / sizes


def _squares(x: Array) -> Array:
    """Square in place."""
    return np.square(x, out=x)


def any_seen(stacks: Sequence[Stack], N: int) -> NDArray[np.bool_]:
    """Values of which at least one entry is seen."""
    if any(s.weight is None for s in stacks):
        return np.ones(N, dtype=bool)
    return np.asarray(np.logical_or.reduce([s.seen.any(1) for s in stacks]))
