"""A user's functions, written with jax.numpy, run in float64 whatever jax is set to elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Protocol

import numpy as np

from modelweld.core.values import Array

if TYPE_CHECKING:
    from jax import Array as Traced

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


def load_jax() -> ModuleType:
    """The module jax, or an error that says how to get it."""
    try:
        return import_module("jax")
    except ImportError:
        raise ImportError(
            'families from a density need jax, which is not installed; pip install "modelweld[jax]"'
        ) from None


def compiled(function: Callable[..., object]) -> Compiled:
    """The function compiled by jax and run in float64, whatever the user's own setting."""
    jax = load_jax()
    jitted = jax.jit(function)

    def call(*args: object) -> Traced:
        with jax.enable_x64(True):
            return jitted(*args)

    return call


def bounded(log_density: Traced) -> Traced:
    """Cut off at LOWEST; what is not a number has no density."""
    jnp = load_jax().numpy
    return jnp.maximum(jnp.where(jnp.isnan(log_density), LOWEST, log_density), LOWEST)


def untransformed(free: TracedHyper, units: TracedHyper, others: TracedHyper, positive: Sequence[str]) -> TracedHyper:
    """Hyperparameters from transformed ones, inside a compiled function."""
    jnp = load_jax().numpy
    return {**others, **{n: jnp.exp(x) if n in positive else x * units[n] for n, x in free.items()}}


def returned_shapes(
    log_density: LogDensity, log_prior: LogPrior, v: Array, theta: Array, h: Hyper
) -> dict[str, tuple[int, ...]]:
    """Shapes of what the two functions return, by their names in `from_density`."""
    jax = load_jax()
    with jax.enable_x64(True):
        return {
            "log_density": jax.eval_shape(log_density, v, theta, h).shape,
            "log_prior": jax.eval_shape(log_prior, theta, h).shape,
        }


def log_sum_exp(x: Array) -> Array:
    """Log of the sum of exponentials over the last axis."""
    top = x.max(-1)
    return np.asarray(top + np.log(np.exp(x - top[..., None]).sum(-1)))
