"""A user's functions, compiled, and the grid of global values that suits them: range, step, and work in even blocks.

Functions that are written with jax.numpy run in float64 whatever jax is set to elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from modelweld.core.values import Array, Index, Stack
from modelweld.errors import load_extra

if TYPE_CHECKING:
    from jax import Array as Traced

    from modelweld.families.own.user_density import UserDensity

Hyper = dict[str, Array]
"""Hyperparameters by name."""

TracedHyper = Mapping[str, "Traced"]

LogDensity = Callable[["Traced", "Traced", TracedHyper], "Traced"]
"""Of a value, given its atom's and hyperparameters."""

LogPrior = Callable[["Traced", TracedHyper], "Traced"]
"""Of an atom's value."""

Guess = Callable[["Traced"], "Traced"]
"""An atom's value that explains a local one."""

Given = Mapping[str, object]
"""Hyperparameters as a user gives them: what `numpy.asarray` makes numbers of."""

Start = Given | Sequence[Given] | Callable[[Array, Array, Array], Given]


class Compiled(Protocol):
    """A function of arrays (and trees of them) that jax has compiled."""

    def __call__(self, *args: object) -> Traced:
        """What it returns for arrays."""


LOWEST = -1e6
"""Log densities are cut off here. Rows are added and subtracted, so infinities would leave NaN behind; at this size
sums still keep ten digits after the point, and exp(-1e6) is nothing beside any other member of an atom."""


def load_jax() -> Any:
    """The module jax, or an error that says how to get it."""
    return load_extra("jax", "families from a density need", "modelweld[jax]")


def compile_in_float64(function: Callable[..., object]) -> Compiled:
    """The function compiled by jax and run in float64, whatever the user's own setting."""
    jax = load_jax()
    jitted = jax.jit(function)

    def call(*args: object) -> Traced:
        with jax.enable_x64(True):
            return jitted(*args)

    return call


def cut_off(log_density: Traced) -> Traced:
    """Cut off at LOWEST; what is not a number has no density."""
    jnp = load_jax().numpy
    return jnp.maximum(jnp.where(jnp.isnan(log_density), LOWEST, log_density), LOWEST)


def log_sum_exp(x: Array) -> Array:
    """Log of the sum of exponentials over the last axis."""
    top = x.max(-1)
    return np.asarray(top + np.log(np.exp(x - top[..., None]).sum(-1)))


@lru_cache(maxsize=32)
def guesses_of(guess: Guess) -> Compiled:
    """The same of many local values."""
    return compile_in_float64(load_jax().vmap(guess))


class Functions(NamedTuple):
    """The user's functions, compiled for blocks of values (V, D), nodes (P, D) and points of each value (V, P, D).

    `density` and `prior` are logarithms at points; the slopes are gradients of their weighted sums with respect to
    hyperparameters, which come first.
    """

    density: Compiled
    prior: Compiled
    density_slope: Compiled
    prior_slope: Compiled

    def densities(self, h: Hyper, values: Array, nodes: Array) -> Array:
        """Log densities (N, G, D) of values (N, D) at nodes (G, D), or (N, G, D) if each value has its own."""
        G, D = nodes.shape[-2:]
        nodes = np.broadcast_to(nodes, (len(values), G, D))
        result = np.empty((len(values), G, D))
        size = block_size(len(values))
        for n in slices(len(values), size):
            block = fill(values[n], size)
            for g in slices(G, NODES):
                points = fill(fill(nodes[n, g], size).transpose(1, 0, 2), NODES).transpose(1, 0, 2)
                logs = np.asarray(self.density(h, block, points))
                result[n, g] = logs[: n.stop - n.start, : g.stop - g.start]
        return result

    def priors(self, h: Hyper, nodes: Array) -> Array:
        """Log prior densities (G, D) at nodes."""
        parts = [
            np.asarray(self.prior(h, fill(nodes[g], NODES)))[: g.stop - g.start] for g in slices(len(nodes), NODES)
        ]
        return np.concatenate(parts)


@lru_cache(maxsize=32)
def functions_of(log_density: LogDensity, log_prior: LogPrior) -> Functions:
    """Compiled once for all families that share these functions, whatever their hyperparameters."""
    jax = load_jax()

    def density(h: TracedHyper, values: Traced, points: Traced) -> Traced:
        own = jax.vmap(log_density, in_axes=(None, 0, None))
        return cut_off(jax.vmap(own, in_axes=(0, 0, None))(values, points, h))

    def prior(h: TracedHyper, nodes: Traced) -> Traced:
        return cut_off(jax.vmap(log_prior, in_axes=(0, None))(nodes, h))

    def slope(function: Callable[..., Traced]) -> Callable[..., TracedHyper]:
        found: Callable[..., TracedHyper] = jax.grad(lambda h, weight, *at: (weight * function(h, *at)).sum())
        return found

    functions = (density, prior, slope(density), slope(prior))
    return Functions(*(compile_in_float64(function) for function in functions))


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

MOST_BLOCKS, LARGEST_TABLE = 64, 100_000_000
"""Blocks of nodes at most: 8192 nodes, which resolve noise of a few thousandths of the range of the values. Numbers in
the rows of all values, at most (800 MB)."""


def spread_of(family: UserDensity, stack: Stack) -> Array:
    """Standard deviations (D,) of the global values, positive."""
    theta = family.guess_atoms(typical_values(stack, TYPICAL_VALUES))
    each = theta.std(0)
    typical = float(each.max()) if np.ptp(theta, axis=0).any() else float(np.abs(theta).max()) or 1.0
    return np.where(np.ptp(theta, axis=0) > 0, each, typical)


def choose_grid(family: UserDensity, stack: Stack) -> Array:
    """Nodes (G, D): range and step from the values and the density."""
    v = typical_values(stack, TYPICAL_VALUES)
    theta, reach = family.guess_atoms(v), OCTAVES[:, None] * spread_of(family, stack)
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


def fill(x: Array, size: int) -> Array:
    """Rows of x, the last one repeated until there are `size`."""
    return x[np.minimum(np.arange(size), len(x) - 1)]


def log_sum_exactly(x: Array, y: Array, rows: Index, columns: Index) -> Array:
    """Log sums of exponentials of x[row] + y[column], in fragments of bounded size."""
    fragment = max(1, 2_000_000 // x.shape[1])
    return np.concatenate([log_sum_exp(x[rows[s]] + y[columns[s]]) for s in slices(len(rows), fragment)])
