"""Which nodes suit the values and densities of a family: range and step of a grid, and work on it in even blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from modelweld.core.values import Array, Index, Stack
from modelweld.families.own.user_density import log_sum_exp

if TYPE_CHECKING:
    from modelweld.families.own.quadrature import FactorisingDensity

LARGEST_ATOM = 16
"""Members an atom may have at least before the step is too large; more if there are more groups."""

NEGLIGIBLE = 24.0
"""Nats below its maximum at which a posterior is cut off: what lies beyond is about 1e-10 of the whole."""

HALF_A_NAT = 0.5
"""Drop of a log density one standard deviation from its mode, where its width is measured."""

TYPICAL_VALUES = 64
"""Quantiles of the values, the extremes included, that range and step are chosen for."""

OCTAVES = np.exp2(np.arange(-40, 20) / 2)
"""Distances tried, in standard deviations of all values: from a millionth to a thousand."""

FEW, MANY, NODES = 32, 1024, 128
"""Values (few or many) and nodes that are computed in one go: of one size, so that functions are compiled once."""

MOST_BLOCKS = 64
"""Blocks of nodes at most: 8192 nodes, which resolve noise of a few thousandths of the range of the values."""

LARGEST_TABLE = 100_000_000
"""Numbers in the rows of all values, at most (800 MB)."""


def spread_of(family: FactorisingDensity, stack: Stack) -> Array:
    """Standard deviations (D,) of the global values, positive."""
    theta = family.guessed(typical_values(stack, TYPICAL_VALUES))
    each = theta.std(0)
    typical = float(each.max()) if np.ptp(theta, axis=0).any() else float(np.abs(theta).max()) or 1.0
    return np.where(np.ptp(theta, axis=0) > 0, each, typical)


def chosen_grid(family: FactorisingDensity, stack: Stack) -> Array:
    """Nodes (G, D): range and step from the values and the density."""
    v = typical_values(stack, TYPICAL_VALUES)
    theta, reach = family.guessed(v), OCTAVES[:, None] * spread_of(family, stack)
    low, high = theta.min(0), theta.max(0)
    points = np.concatenate([low - reach[::-1], theta, high + reach])
    prior = family.priors(points)
    joint = family.densities(v, points) + prior
    alive = (joint > joint.max(1, keepdims=True) - NEGLIGIBLE).any(0)
    P = len(points)
    first = np.minimum(np.maximum(alive.argmax(0) - 1, 0), len(reach) - 1)
    last = np.maximum(np.minimum(P - alive[::-1].argmax(0), P - 1), P - len(reach))
    columns = np.arange(v.shape[1])
    low, high = points[first, columns], points[last, columns]
    members = max(LARGEST_ATOM, len(stack.sizes))
    noise = _width(lambda at: family.densities(v, at), theta, reach)
    likeliest = points[prior.argmax(0), columns]
    spread = _width(lambda at: family.priors(at[0])[None], likeliest[None], reach)
    step = 1 / np.sqrt(members / noise**2 + 1 / spread**2)
    most = min(MOST_BLOCKS, max(1, LARGEST_TABLE // max(1, stack.values.size * NODES)))
    blocks = int(np.ceil(min(((high - low) / step).max() / NODES, most)))
    return np.linspace(low, high, max(1, blocks) * NODES)


def typical_values(stack: Stack, number: int) -> Array:
    """Quantiles (number, D) of the seen values of every coordinate, the extremes included; zeros if there are none."""
    result = np.zeros((number, stack.values.shape[1]))
    for d, column in enumerate(stack.values.T):
        values = np.sort(column if stack.weight is None else column[stack.weight[:, d] > 0])
        if len(values):
            result[:, d] = values[np.linspace(0, len(values) - 1, number).round().astype(np.int64)]
    return result


def _width(log_density: Callable[[Array], Array], centre: Array, reach: Array) -> Array:
    """Smallest standard deviation (D,) of densities about their centres (M, D), from where they have dropped."""
    D = centre.shape[1]
    both = np.concatenate([np.zeros((1, D)), reach, -reach])
    logs = log_density(centre[:, None] + both)
    drop = (logs[:, :1] - logs[:, 1:]).reshape(len(centre), 2, len(reach), D)
    distance = np.where(drop >= HALF_A_NAT, reach / np.sqrt(2 * np.maximum(drop, HALF_A_NAT)), np.inf)
    nearest = (drop >= HALF_A_NAT).argmax(2)
    at_nearest = np.take_along_axis(distance, nearest[:, :, None], axis=2)[:, :, 0]
    return np.asarray(np.minimum(at_nearest.min((0, 1)), reach[-1]))


def slices(length: int, size: int) -> list[slice]:
    """Consecutive fragments of at most `size`."""
    return [slice(a, min(a + size, length)) for a in range(0, length, size)]


def block_size(length: int) -> int:
    """In what blocks so many values are computed."""
    return FEW if length <= MANY // 2 else MANY


def filled(x: Array, size: int) -> Array:
    """Rows of x, the last one repeated until there are `size`."""
    return x[np.minimum(np.arange(size), len(x) - 1)]


def log_sum_exactly(x: Array, y: Array, rows: Index, columns: Index) -> Array:
    """Log sums of exponentials of x[row] + y[column], in fragments of bounded size."""
    fragment = max(1, 2_000_000 // x.shape[1])
    parts = [slice(a, a + fragment) for a in range(0, len(rows), fragment)]
    return np.concatenate([log_sum_exp(x[rows[part]] + y[columns[part]]) for part in parts])
