"""A family from nothing but log densities, of values given their global value and of global values: on a fixed grid.

A row (in place of sufficient statistics) holds, per coordinate, the log density of the value at every node of a grid of
global values. Such rows add up over the members of an atom, and with step s between nodes t_g

    log evidence = sum over coordinates of log sum over g of s exp(row_g + log prior(t_g)),

the trapezoid rule, whose error falls exponentially with the number of nodes if densities are smooth: for a normal
posterior of deviation sigma it is 2 exp(-2 pi^2 sigma^2 / s^2), 5e-9 at s = sigma.

A family from nothing but log densities: of values given their global value, and of global values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, Self

import numpy as np

from modelweld.core.family import (
    ChecksValues,
    Conditional,
    HasStarts,
    Predictive,
    ValueLearner,
    condition_on,
    sum_by_atom,
)
from modelweld.core.values import Array, Index, Stack, total_variance
from modelweld.errors import AccuracyWarning, InputError, check_choice, warn_user
from modelweld.families.capabilities import Hyperparameters, NamesHyperparameters, first_row
from modelweld.families.math.maximise import climb
from modelweld.families.math.start import noise_shares
from modelweld.families.own import grid
from modelweld.families.own.grid import Hyper, fill, log_sum_exp, slices

WORST_ERROR, WRONG_INTEGRAL = 0.01, 0.02
"""Nats by which twice the step may change the evidence of an atom before there is a warning: matches are decided by
differences of whole nats. Distance from one at which an integral of a density is reported."""

SMALLEST_PRODUCT = 1e-250
"""Sums of products of exponentials below this may have lost terms to underflow, and are computed again, exactly."""

LARGEST_FACTOR = 2.0
"""By how much a positive hyperparameter may change (others: by a standard deviation of the global values) before the
nodes of the integral are chosen again: they suit the hyperparameters they were chosen for, and an unbounded search
would run to where the integral is wrong."""

ROUNDS, STEPS, ENOUGH = 2, 30, 1e-4
"""How often nodes are chosen again within one update: up to a fourfold change, and the next update goes on. Steps of
L-BFGS in a round; warm starts need less than ten. Nats below which another round is not worth its time."""

SHARES = (1.0, 0.5, 0.25, 0.125)
"""Shares of a step that are tried until the evidence, with nodes of its own, rises."""


@dataclass(frozen=True, eq=False)
class UserDensity(ChecksValues, Conditional, Predictive, NamesHyperparameters, HasStarts, ValueLearner):
    """A density that is a product over coordinates, written with jax.numpy; see `from_density` for the parameters.

    `log_base` is its `log_prior` (which for families is the prior of hyperparameters). Hyperparameters are the entries
    of `h`, None until `starts` has read them off the values; `warned` says that a warning about the accuracy was given.

    `nodes` (G, D) is the grid that `condition_on` chooses for the values and the present hyperparameters: from
    the lowest to the highest value and on until posteriors of single values have died away, in steps of the standard
    deviation of the posterior of an atom with as many members as there are groups.
    """

    log_density: grid.LogDensity
    log_base: grid.LogPrior
    start: grid.Start
    positive: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()
    guess: grid.Guess | None = None
    learning: Literal["likelihood", "nothing"] = "likelihood"
    h: grid.Given | None = None
    warned: bool = False
    nodes: Array | None = None

    def __post_init__(self) -> None:
        check_choice("from_density: learning", self.learning, ("likelihood", "nothing"))
        h = self.start if self.h is None and isinstance(self.start, Mapping) else self.h
        if h is not None:
            object.__setattr__(self, "h", self._check_hyper(h))

    def _check_hyper(self, h: grid.Given) -> Hyper:
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

    def check(self, stack: Stack) -> None:
        """One number per coordinate, each of its own coordinate alone; the prior a density."""
        D = stack.values.shape[1]
        v = grid.typical_values(stack, 3)
        theta = self.guess_atoms(v)
        with (jax := grid.load_jax()).enable_x64(True):
            value = jax.eval_shape(self.log_density, v[1], theta[1], self.hyper)
            prior = jax.eval_shape(self.log_base, theta[1], self.hyper)
        for name, shape in zip(("log_density", "log_prior"), (value.shape, prior.shape), strict=True):
            if shape != (D,):
                raise InputError(
                    f"from_density: with factorises=True {name} returns one number per coordinate, shape ({D},); found "
                    f"shape {shape}. Leave out the sum over coordinates."
                )
        for d in range(min(D, 2)):
            other, moved = v.copy(), theta.copy()
            other[1, d], moved[1, d] = v[2, d], theta[0, d]
            change = self.densities(other[1:2], moved[1:2]) != self.densities(v[1:2], theta[1:2])
            if np.delete(change[0, 0], d).any():
                raise InputError(
                    "from_density: with factorises=True each number that log_density returns depends on its own "
                    f"coordinate alone, but others change with coordinate {d}. Write a Family of your own."
                )
        self._check_integrals(stack, v[1], theta[1])

    def _check_integrals(self, stack: Stack, v: Array, theta: Array) -> None:
        """Warn of a prior, or of a density of values that are no counts, that does not integrate to one."""
        u = np.linspace(-16, 16, 8001)[:, None]
        unit = grid.spread_of(self, stack)
        stretched, log_width = unit * np.sinh(u), np.log(unit * np.cosh(u) * (u[1] - u[0]))
        logs = {"log_prior": self.priors(theta + stretched)}
        if (stack.values != np.rint(stack.values)).any():
            logs["log_density"] = self.densities(v + stretched, theta[None])[:, 0]
        for name, log_values in logs.items():
            integrals = np.exp(log_sum_exp((log_values + log_width).T))
            worst = integrals[np.abs(integrals - 1).argmax()]
            if abs(worst - 1) > WRONG_INTEGRAL:
                warn_user(
                    f"{name} should be the logarithm of a density, but its exponential integrates to {worst:.3g}: "
                    "include the normalising constant, else learned hyperparameters mean nothing.",
                    AccuracyWarning,
                )

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
        return np.asarray(grid.guesses_of(self.guess)(values), dtype=np.float64)

    @property
    def functions(self) -> grid.Functions:
        """The user's functions, compiled."""
        return grid.functions_of(self.log_density, self.log_base)

    def condition_on(self, stack: Stack) -> Self:
        """With the grid that suits these values."""
        return replace(self, nodes=grid.choose_grid(self, stack))

    def rows(self, values: Array, variance: Array | None = None, weight: Array | None = None) -> Array:
        """[seen (D), log density at the nodes (D, G)] side by side."""
        N, D = values.shape
        table = self.densities(values, self._nodes).transpose(0, 2, 1)
        seen = np.ones((N, D)) if weight is None else (weight > 0).astype(np.float64)
        return np.concatenate([seen, np.where(seen[:, :, None] > 0, table, 0.0).reshape(N, -1)], axis=1)

    def log_evidence(self, rows: Array) -> Array:
        """Log marginal density of the values behind summed rows, by the trapezoid rule."""
        return np.asarray(self._by_coordinate(*self._parts(rows)).sum(-1))

    def evidence_error(self, rows: Array) -> Array:
        """By how much log evidences would change with every second node: for smooth densities the root of the error."""
        seen, table = self._parts(rows)
        whole = self._by_coordinate(seen, table)
        half = np.where(seen > 0, log_sum_exp((table + self._log_mass)[..., ::2]) + np.log(2), 0.0)
        return np.asarray(np.abs(whole - half).sum(-1))

    def estimate(self, rows: Array) -> Array:
        """Posterior mean of the atom."""
        _, table = self._parts(rows)
        joint = table + self._log_mass
        posterior = np.exp(joint - log_sum_exp(joint)[..., None])
        return np.asarray((posterior * self._nodes.T).sum(-1))

    def log_predictive(self, own: Array, sums: Array) -> Array:
        """Log predictive densities: by coordinate one product (L, G) (G, K) of shifted exponentials."""
        seen, values = self._parts(own)
        held, atoms = self._parts(sums)
        before = self._by_coordinate(held, atoms)
        atoms = atoms + self._log_mass
        tops, peaks = values.max(-1), atoms.max(-1)
        result = np.zeros((len(own), len(sums)))
        for d in range(seen.shape[1]):
            x, y = values[:, d], atoms[:, d]
            product = np.exp(x - tops[:, d, None]) @ np.exp(y - peaks[:, d, None]).T
            lost = product < SMALLEST_PRODUCT
            joint = np.log(np.where(lost, 1.0, product)) + tops[:, d, None] + peaks[:, d]
            if lost.any():
                joint[lost] = grid.log_sum_exactly(x, y, *np.nonzero(lost))
            result += np.where(seen[:, d, None] > 0, joint - before[:, d], 0.0)
        return result

    def rows_change(self, stack: Stack) -> bool:
        """Rows are log densities: they depend on all hyperparameters that are learned."""
        return self.learning == "likelihood"

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

    def warn_if_inaccurate(self, sums: Array) -> Self:
        """Warn, once, if twice the step would change an evidence noticeably."""
        error = float(self.evidence_error(sums).max(initial=0.0))
        if error <= WORST_ERROR or self.warned:
            return self
        warn_user(
            f"log evidences are uncertain by up to {error:.2g} nats: {len(self._nodes)} nodes are too few "
            "for log_density or log_prior. They should be smooth functions of theta; noise much smaller than a "
            "thousandth of the range of the values cannot be resolved.",
            AccuracyWarning,
        )
        return replace(self, warned=True)

    def ascend_on_nodes(self, stack: Stack, labels: Index) -> Callable[[Hyper], tuple[float, Hyper]]:
        """Sum of log evidences on the present grid, and its gradient: that of logs weighted by the posterior."""
        f, nodes, size = self.functions, self._nodes, grid.block_size(len(labels))
        present = stack.seen.astype(np.float64)

        def ascent(h: Hyper) -> tuple[float, Hyper]:
            here = replace(self, h=h)
            seen, table = here._parts(sum_by_atom(here.rows(stack.values, stack.variance, stack.weight), labels))
            joint = table + here._log_mass
            logs = log_sum_exp(joint)
            posterior = (np.exp(joint - logs[..., None]) * (seen > 0)[..., None]).transpose(0, 2, 1)
            slopes = [f.prior_slope(h, posterior[:, g].sum(0), nodes[g]) for g in slices(len(nodes), grid.NODES)]
            for n in slices(len(labels), size):
                values, weight = fill(stack.values[n], size), posterior[labels[n]] * present[n, None, :]
                weight = fill(weight, size)
                weight[n.stop - n.start :] = 0.0
                for g in slices(len(nodes), grid.NODES):
                    points = np.broadcast_to(nodes[g], (size, *nodes[g].shape))
                    slopes.append(f.density_slope(h, weight[:, g], values, points))
            total = {name: np.sum([slope[name] for slope in slopes], axis=0) for name in self.free}
            return float(np.where(seen > 0, logs, 0.0).sum()), total

        return ascent

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

    def densities(self, values: Array, nodes: Array) -> Array:
        """Log densities (N, G, D) of values (N, D) at nodes (G, D), or (N, G, D) if each value has its own."""
        return self.functions.densities(self.hyper, values, nodes)

    def priors(self, nodes: Array) -> Array:
        """Log prior densities (G, D) at nodes."""
        return self.functions.priors(self.hyper, nodes)

    @property
    def _nodes(self) -> Array:
        if self.nodes is None:
            raise InputError(
                "from_density: there is no grid yet; family.condition_on(stack) chooses one for the values."
            )
        return self.nodes

    @cached_property
    def _log_mass(self) -> Array:
        """Log prior mass of every node (D, G)."""
        return np.asarray((self.priors(self._nodes) + np.log(self._nodes[1] - self._nodes[0])).T)

    def _parts(self, rows: Array) -> tuple[Array, Array]:
        """Seen (..., D) and the table (..., D, G)."""
        G, D = self._nodes.shape
        return rows[..., :D], rows[..., D:].reshape(*rows.shape[:-1], D, G)

    def _by_coordinate(self, seen: Array, table: Array) -> Array:
        """Log evidences of every coordinate (..., D); zero where nothing is seen."""
        return np.where(seen > 0, log_sum_exp(table + self._log_mass), 0.0)


def from_density(
    log_density: grid.LogDensity,
    log_prior: grid.LogPrior,
    start: grid.Start,
    *,
    factorises: bool = True,
    positive: Sequence[str] = (),
    fixed: Sequence[str] = (),
    guess: grid.Guess | None = None,
    learning: Literal["likelihood", "nothing"] = "likelihood",
) -> UserDensity:
    """Make a family of two functions written with ``jax.numpy``; needs jax, ``pip install "modelweld[jax]"``.

    Parameters
    ----------
    log_density : function (v, theta, h)
        Log density of a local value v (D,) given its global value theta (D,), normalised over v. `h` is a dict of
        hyperparameters, each a number or an array.
    log_prior : function (theta, h)
        Log density of global values, normalised over all real theta. If a global value is positive or a probability,
        let theta be its logarithm or logit.
    start : dict, list of dicts, or function (mean, noise, spread)
        Hyperparameters to start from, by name. From a bad start nothing is ever matched: where units are not known
        beforehand, give a function. It gets mean, noise variance and variance of the global values (D,) as read off the
        values the way `Gaussian` does, and returns a dict. Of several starts the best objective wins.
    factorises : bool
        Both are products over coordinates: they return **one number per coordinate** (D,), and integrals are done on a
        grid. Others are refused; write a `Family` for them (docs/guide/family.md).
    positive : sequence of str
        Hyperparameters that must stay positive (scales, degrees of freedom); they are learned as logarithms.
    fixed : sequence of str
        Hyperparameters that are not learned.
    guess : function (v), optional
        A global value that explains v well; default v itself. It must be given if theta is not in the units of v.
    learning : {"likelihood", "nothing"}
        Whether hyperparameters are learned, by gradient, as the most likely ones given the matching.

    Returns
    -------
    Family
        To be handed to `fuse`. Global values are posterior means.
        ``family.evidence_error(rows)`` says how accurate evidences are; a warning is given if that is not enough for a
        matching. ``family.name_hyperparameters()`` has the hyperparameters.

    Notes
    -----
    A weight of zero means not seen; other weights, and variances, are refused: what they mean is the density's to say.
    Send them as a further array of the same family, so that they stand beside the values in v.

    grid.Functions are compiled once: hand in the same function objects, not new lambdas, when you make many families.
    Densities should be smooth in theta. Everything is computed in float64, whatever jax is set to elsewhere.

    Examples
    --------
    Student-t noise, whose degrees of freedom are learned, about normal atoms:

    >>> import jax.numpy as jnp, numpy as np, modelweld
    >>> from jax.scipy.stats import norm, t
    >>> def log_density(v, theta, h):
    ...     return t.logpdf(v, h["df"], theta, h["scale"])
    >>> def log_prior(theta, h):
    ...     return norm.logpdf(theta, h["mean"], h["spread"])
    >>> def start(mean, noise, spread):
    ...     return {"df": 5.0, "scale": noise**0.5, "mean": mean, "spread": spread**0.5}
    >>> family = from_density(log_density, log_prior, start, factorises=True, positive=("df", "scale", "spread"))
    >>> rng = np.random.default_rng(0)
    >>> atoms = rng.normal(0, 10, (4, 3))
    >>> held = ([0, 1], [1, 2, 3], [3, 0], [0, 1, 2])
    >>> sites = [atoms[own] + 0.1 * rng.standard_t(3, (len(own), 3)) for own in held]
    >>> fusion = modelweld.fuse(sites, family)
    >>> fusion.K, sorted(fusion.diagnosis.family.name_hyperparameters())
    (4, ['df', 'mean', 'scale', 'spread'])
    """
    for name, function in (("log_density", log_density), ("log_prior", log_prior)):
        if not callable(function):
            raise InputError(f"from_density: {name} is a function written with jax.numpy; found {function!r}.")
    if not factorises:
        raise InputError(
            "from_density: a density that does not factorise needs a Family of its own: docs/guide/family.md."
        )
    for what, names in (("positive", positive), ("fixed", fixed)):
        if isinstance(names, str):  # one alone is easily given so
            raise InputError(f"from_density: {what} is a sequence of names; write {what}=({names!r},).")
    return UserDensity(log_density, log_prior, start, tuple(positive), tuple(fixed), guess, learning)
