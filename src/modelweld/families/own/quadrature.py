"""Densities that factorise over coordinates: the integral over each coordinate on a fixed grid.

A row (in place of sufficient statistics) holds, per coordinate, the log density of the value at every node of a grid of
global values. Such rows add up over the members of an atom, and with step s between nodes t_g

    log evidence = sum over coordinates of log sum over g of s exp(row_g + log prior(t_g)),

the trapezoid rule, whose error falls exponentially with the number of nodes if densities are smooth: for a normal
posterior of deviation sigma it is 2 exp(-2 pi^2 sigma^2 / s^2), 5e-9 at s = sigma.

A family from nothing but log densities: of values given their global value, and of global values.

Which nodes suit the values and densities of a family: range and step of a grid, and work on it in even blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Literal, NamedTuple, Self

import numpy as np

from modelweld.core.family import Conditional, Predictive, sum_by_atom
from modelweld.core.values import Array, Index, Stack
from modelweld.errors import AccuracyWarning, InputError, warn_user
from modelweld.families.own import user_density

if TYPE_CHECKING:
    from jax import Array as Traced


WORST_ERROR = 0.01
"""Nats by which twice the step may change the evidence of an atom before there is a warning: matches are decided by
differences of whole nats."""

SMALLEST_PRODUCT = 1e-250
"""Sums of products of exponentials below this may have lost terms to underflow, and are computed again, exactly."""

WRONG_INTEGRAL = 0.02
"""Distance from one at which an integral of a density is reported."""


class Functions(NamedTuple):
    """The user's functions, compiled for blocks of values (V, D), nodes (P, D) and points of each value (V, P, D).

    `density` and `prior` are logarithms at points; the slopes are gradients of their weighted sums with respect to
    hyperparameters, which come first.
    """

    density: user_density.Compiled
    prior: user_density.Compiled
    density_slope: user_density.Compiled
    prior_slope: user_density.Compiled


@lru_cache(maxsize=32)
def functions_of(log_density: user_density.LogDensity, log_prior: user_density.LogPrior) -> Functions:
    """Compiled once for all families that share these functions, whatever their hyperparameters."""
    jax = user_density.load_jax()

    def density(h: user_density.TracedHyper, values: Traced, points: Traced) -> Traced:
        own = jax.vmap(log_density, in_axes=(None, 0, None))
        return user_density.cut_off(jax.vmap(own, in_axes=(0, 0, None))(values, points, h))

    def prior(h: user_density.TracedHyper, nodes: Traced) -> Traced:
        return user_density.cut_off(jax.vmap(log_prior, in_axes=(0, None))(nodes, h))

    def slope(function: Callable[..., Traced]) -> Callable[..., user_density.TracedHyper]:
        found: Callable[..., user_density.TracedHyper] = jax.grad(
            lambda h, weight, *at: (weight * function(h, *at)).sum()
        )
        return found

    functions = (density, prior, slope(density), slope(prior))
    return Functions(*(user_density.compile_in_float64(function) for function in functions))


@dataclass(frozen=True, eq=False)
class FactorisingDensity(Conditional, Predictive, user_density.UserDensity):
    """A user's density that is a product over coordinates; made by `from_density`.

    `nodes` (G, D) is the grid that `condition_on` chooses for the values and the present hyperparameters: from
    the lowest to the highest value and on until posteriors of single values have died away, in steps of the standard
    deviation of the posterior of an atom with as many members as there are groups.
    """

    nodes: Array | None = None

    @property
    def functions(self) -> Functions:
        """The user's functions, compiled."""
        return functions_of(self.log_density, self.log_base)

    def condition_on(self, stack: Stack) -> Self:
        """With the grid that suits these values."""
        return replace(self, nodes=choose_grid(self, stack))

    def check(self, stack: Stack) -> None:
        """One number per coordinate, each of its own coordinate alone; the prior a density."""
        D = stack.values.shape[1]
        v = typical_values(stack, 3)
        theta = self.guess_atoms(v)
        with (jax := user_density.load_jax()).enable_x64(True):
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
        unit = spread_of(self, stack)
        stretched, log_width = unit * np.sinh(u), np.log(unit * np.cosh(u) * (u[1] - u[0]))
        logs = {"log_prior": self.priors(theta + stretched)}
        if (stack.values != np.rint(stack.values)).any():
            logs["log_density"] = self.densities(v + stretched, theta[None])[:, 0]
        for name, log_values in logs.items():
            integrals = np.exp(user_density.log_sum_exp((log_values + log_width).T))
            worst = integrals[np.abs(integrals - 1).argmax()]
            if abs(worst - 1) > WRONG_INTEGRAL:
                warn_user(
                    f"{name} should be the logarithm of a density, but its exponential integrates to {worst:.3g}: "
                    "include the normalising constant, else learned hyperparameters mean nothing.",
                    AccuracyWarning,
                )

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
        half = np.where(seen > 0, user_density.log_sum_exp((table + self._log_mass)[..., ::2]) + np.log(2), 0.0)
        return np.asarray(np.abs(whole - half).sum(-1))

    def estimate(self, rows: Array) -> Array:
        """Posterior mean of the atom."""
        _, table = self._parts(rows)
        joint = table + self._log_mass
        posterior = np.exp(joint - user_density.log_sum_exp(joint)[..., None])
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
                joint[lost] = log_sum_exactly(x, y, *np.nonzero(lost))
            result += np.where(seen[:, d, None] > 0, joint - before[:, d], 0.0)
        return result

    def rows_change(self, stack: Stack) -> bool:
        """Rows are log densities: they depend on all hyperparameters that are learned."""
        return self.learning == "likelihood"

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

    def ascend_on_nodes(
        self, stack: Stack, labels: Index
    ) -> Callable[[user_density.Hyper], tuple[float, user_density.Hyper]]:
        """Sum of log evidences on the present grid, and its gradient: that of logs weighted by the posterior."""
        f, nodes, size = self.functions, self._nodes, block_size(len(labels))
        present = stack.seen.astype(np.float64)

        def ascent(h: user_density.Hyper) -> tuple[float, user_density.Hyper]:
            here = replace(self, h=h)
            seen, table = here._parts(sum_by_atom(here.rows(stack.values, stack.variance, stack.weight), labels))
            joint = table + here._log_mass
            logs = user_density.log_sum_exp(joint)
            posterior = (np.exp(joint - logs[..., None]) * (seen > 0)[..., None]).transpose(0, 2, 1)
            slopes = [f.prior_slope(h, posterior[:, g].sum(0), nodes[g]) for g in slices(len(nodes), NODES)]
            for n in slices(len(labels), size):
                values, weight = fill(stack.values[n], size), posterior[labels[n]] * present[n, None, :]
                weight = fill(weight, size)
                weight[n.stop - n.start :] = 0.0
                for g in slices(len(nodes), NODES):
                    points = np.broadcast_to(nodes[g], (size, *nodes[g].shape))
                    slopes.append(f.density_slope(h, weight[:, g], values, points))
            total = {name: np.sum([slope[name] for slope in slopes], axis=0) for name in self.free}
            return float(np.where(seen > 0, logs, 0.0).sum()), total

        return ascent

    def densities(self, values: Array, nodes: Array) -> Array:
        """Log densities (N, G, D) of values (N, D) at nodes (G, D), or (N, G, D) if each value has its own."""
        G, D = nodes.shape[-2:]
        nodes = np.broadcast_to(nodes, (len(values), G, D))
        result = np.empty((len(values), G, D))
        size = block_size(len(values))
        for n in slices(len(values), size):
            block = fill(values[n], size)
            for g in slices(G, NODES):
                points = fill(fill(nodes[n, g], size).transpose(1, 0, 2), NODES).transpose(1, 0, 2)
                logs = np.asarray(self.functions.density(self.hyper, block, points))
                result[n, g] = logs[: n.stop - n.start, : g.stop - g.start]
        return result

    def priors(self, nodes: Array) -> Array:
        """Log prior densities (G, D) at nodes."""
        parts = [
            np.asarray(self.functions.prior(self.hyper, fill(nodes[g], NODES)))[: g.stop - g.start]
            for g in slices(len(nodes), NODES)
        ]
        return np.concatenate(parts)

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
        return np.where(seen > 0, user_density.log_sum_exp(table + self._log_mass), 0.0)


def from_density(
    log_density: user_density.LogDensity,
    log_prior: user_density.LogPrior,
    start: user_density.Start,
    *,
    factorises: bool = True,
    positive: Sequence[str] = (),
    fixed: Sequence[str] = (),
    guess: user_density.Guess | None = None,
    learning: Literal["likelihood", "nothing"] = "likelihood",
) -> user_density.UserDensity:
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

    Functions are compiled once: hand in the same function objects, not new lambdas, when you make many families.
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
    return FactorisingDensity(log_density, log_prior, start, tuple(positive), tuple(fixed), guess, learning)


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
    theta = family.guess_atoms(typical_values(stack, TYPICAL_VALUES))
    each = theta.std(0)
    typical = float(each.max()) if np.ptp(theta, axis=0).any() else float(np.abs(theta).max()) or 1.0
    return np.where(np.ptp(theta, axis=0) > 0, each, typical)


def choose_grid(family: FactorisingDensity, stack: Stack) -> Array:
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
    return np.concatenate([user_density.log_sum_exp(x[rows[s]] + y[columns[s]]) for s in slices(len(rows), fragment)])
