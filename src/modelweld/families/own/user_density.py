"""What families made from a user's density share: hyperparameters, and how these are learned.

A user's functions, written with jax.numpy, run in float64 whatever jax is set to elsewhere.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Literal, Protocol, Self

import numpy as np

from modelweld.core.family import ChecksValues, HasStarts, ValueLearner, condition_on, sum_by_atom
from modelweld.core.values import Array, Index, Stack, total_variance
from modelweld.errors import InputError
from modelweld.families.capabilities import Hyperparameters, NamesHyperparameters, first_row
from modelweld.families.math.maximise import climb
from modelweld.families.math.start import noise_shares

if TYPE_CHECKING:
    from jax import Array as Traced


LARGEST_FACTOR = 2.0
"""By how much a positive hyperparameter may change (others: by a standard deviation of the global values) before the
nodes of the integral are chosen again: they suit the hyperparameters they were chosen for, and an unbounded search
would run to where the integral is wrong."""

ROUNDS = 2
"""How often nodes are chosen again within one update: up to a fourfold change, and the next update goes on."""

STEPS = 30
"""Steps of L-BFGS in a round; warm starts need less than ten."""

SHARES = (1.0, 0.5, 0.25, 0.125)
"""Shares of a step that are tried until the evidence, with nodes of its own, rises."""

ENOUGH = 1e-4
"""Nats below which another round is not worth its time."""


@dataclass(frozen=True, eq=False)
class UserDensity(ChecksValues, NamesHyperparameters, HasStarts, ValueLearner):
    """A family given by log densities that were written with jax.numpy; see `from_density` for the parameters.

    `log_base` is its `log_prior` (which for families is the prior of hyperparameters). Hyperparameters are the entries
    of `h`, None until `starts` has read them off the values; `warned` says that a warning about the accuracy was given.
    """

    log_density: LogDensity
    log_base: LogPrior
    start: Start
    positive: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()
    guess: Guess | None = None
    learning: Literal["likelihood", "nothing"] = "likelihood"
    h: Given | None = None
    warned: bool = False

    def __post_init__(self) -> None:
        if self.learning not in ("likelihood", "nothing"):
            raise InputError(f"from_density: learning is 'likelihood' or 'nothing'; found {self.learning!r}.")
        h = self.start if self.h is None and isinstance(self.start, Mapping) else self.h
        if h is not None:
            object.__setattr__(self, "h", self._check_hyper(h))

    def _check_hyper(self, h: Given) -> Hyper:
        """Hyperparameters as arrays of float64, in an order that does not depend on how they were written."""
        try:
            arrays = {name: np.asarray(h[name], dtype=np.float64) for name in sorted(h)}
        except (TypeError, ValueError):
            raise InputError(f"from_density: start gives numbers or arrays of numbers by name; found {h!r}.") from None
        for name in (*self.positive, *self.fixed):
            if name not in arrays:
                raise InputError(
                    f"from_density: positive and fixed name hyperparameters, but start has no {name!r}; "
                    f"it has {sorted(arrays)}."
                )
        for name, x in arrays.items():
            if not np.isfinite(x).all() or (name in self.positive and (x <= 0).any()):
                what = "positive" if name in self.positive else "finite"
                raise InputError(f"from_density: hyperparameter {name!r} must be {what}; found {h[name]!r}.")
        return arrays

    @property
    def hyper(self) -> Hyper:
        """The hyperparameters; an error if they are still to be read off values."""
        if self.h is None:
            raise InputError("from_density: hyperparameters are not known yet; family.starts(stack) reads them off.")
        return {name: np.asarray(x) for name, x in self.h.items()}

    def starts(self, stack: Stack) -> list[Self]:
        """The hyperparameters given, or what `start` makes of mean, noise and spread of the values."""
        if callable(self.start):
            mean, total = total_variance(stack, pooled=False)
            shares = noise_shares(stack, total)
            found = [replace(self, h=self.start(mean, share * total, (1 - share) * total)) for share in shares]
        elif isinstance(self.start, Mapping):
            found = [self]
        else:
            found = [replace(self, h=start) for start in self.start]
        for family in found:
            family.check(stack)
        return found

    @abstractmethod
    def check(self, stack: Stack) -> None:
        """Refuse functions that do not return what they should for such values."""

    def misfit(self, stack: Stack) -> tuple[int, str] | None:
        """Values have weight 0 or 1 and no variance: what is known about a value belongs into its density."""
        remedy = "(how well a value is known goes into the density: send it as a further array of the same family)"
        if stack.variance is not None and (row := first_row(np.any(stack.variance > 0, axis=1))) is not None:
            return row, f"come without variance {remedy}; found {stack.variance[row].max():g}"
        if stack.weight is not None:
            odd = (stack.weight != 0) & (stack.weight != 1)
            if (row := first_row(odd.any(-1))) is not None:
                return row, f"have weight 0 or 1 {remedy}; found {stack.weight[row][odd[row]][0]:g}"
        return None

    def guess_atoms(self, values: Array) -> Array:
        """Global values (N, d) that explain each local value (N, D) well."""
        if self.guess is None or len(values) == 0:
            return values
        return np.asarray(_guesses(self.guess)(values), dtype=np.float64)

    def update(self, sums: Array) -> Self:
        """The same family: learning needs the values themselves, see `learn`."""
        return self

    def learn(self, stack: Stack, labels: Index, sums: Array) -> Self:
        """Hyperparameters by gradient, nodes held, then with nodes of their own; kept only if the evidence rises."""
        best = self
        if self.learning == "likelihood" and self.free:
            value, unit = self.log_evidence(sums).sum(), self._units(stack)
            for _ in range(ROUNDS):
                step = best._climb(unit, stack, labels)
                for share in SHARES:
                    nearer = condition_on(replace(best, h=best._move(share * step, unit)), stack)
                    rows = nearer.rows(stack.values, stack.variance, stack.weight)
                    found = nearer.log_evidence(atoms := sum_by_atom(rows, labels)).sum()
                    if found > value:
                        break
                else:
                    break
                best, rise, value, sums = nearer, found - value, found, atoms
                if rise < ENOUGH:
                    break
        return best.warn_if_inaccurate(sums)

    @abstractmethod
    def warn_if_inaccurate(self, sums: Array) -> Self:
        """The same family, after a warning if the evidences of these atoms are not accurate enough."""

    @abstractmethod
    def ascend_on_nodes(self, stack: Stack, labels: Index) -> Callable[[Hyper], tuple[float, Hyper]]:
        """Sum of log evidences with the present nodes, and its gradient, by hyperparameters."""

    def name_hyperparameters(self) -> Hyperparameters:
        """All hyperparameters by name."""
        return {name: float(x) if x.ndim == 0 else x for name, x in self.hyper.items()}

    @property
    def free(self) -> list[str]:
        """Names of the hyperparameters that are learned."""
        return [name for name in self.hyper if name not in self.fixed]

    def _units(self, stack: Stack) -> Hyper:
        """What changes of hyperparameters are measured in: standard deviations of the global values."""
        theta = self.guess_atoms(stack.values if stack.weight is None else stack.values[(stack.weight > 0).any(-1)])
        each = np.where(np.ptp(theta, axis=0) > 0, theta.std(0), 0.0) if len(theta) else np.zeros(theta.shape[1])
        typical = float(np.sqrt(np.square(each).mean())) or 1.0
        each = np.where(each > 0, each, typical)
        return {
            name: each if self.hyper[name].shape == each.shape else np.full(self.hyper[name].shape, typical)
            for name in self.free
        }

    def _move(self, x: Array, unit: Hyper) -> Hyper:
        """Hyperparameters moved by x, all that are free in one vector: logarithms of positive ones, others in units."""
        found, begin = self.hyper, 0
        for name in self.free:
            part = x[begin : (begin := begin + found[name].size)].reshape(found[name].shape)
            found[name] = found[name] * np.exp(part) if name in self.positive else found[name] + unit[name] * part
        return found

    def _climb(self, unit: Hyper, stack: Stack, labels: Index) -> Array:
        """The best move within reach, by L-BFGS on the evidence with the present nodes."""
        held = self.ascend_on_nodes(stack, labels)

        def log_likelihood(x: Array) -> tuple[float, Array]:
            h = self._move(x, unit)
            value, slopes = held(h)
            by = (slopes[name] * (h[name] if name in self.positive else unit[name]) for name in self.free)
            return value, np.concatenate([slope.ravel() for slope in by])

        widths = [np.log(LARGEST_FACTOR) if name in self.positive else 1.0 for name in self.free]
        reach = np.repeat(widths, [self.hyper[name].size for name in self.free])
        if not np.isfinite(log_likelihood(0 * reach)[1]).all():
            raise InputError(
                "from_density: the gradient of the evidence is not finite at the present hyperparameters; log_density "
                "and log_prior must have finite derivatives for all values and all real theta, also in branches that "
                "jnp.where does not choose."
            )
        return climb(log_likelihood, 0 * reach, -reach, reach, most_steps=STEPS)


@lru_cache(maxsize=32)
def _guesses(guess: Guess) -> Compiled:
    return compile_in_float64(load_jax().vmap(guess))


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
