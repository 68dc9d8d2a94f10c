"""Hyperparameters of values in shards: from sums where these say it all, else in rounds of sums.

Where rows depend on hyperparameters (`Family.row_fields`: what a value is worth), sums that were made with one family
say nothing of another. But shards can state them for any family that the centre asks about, and then the evidence of
all values is known exactly, and `Family.update` learns the rest from these sums. So the centre looks for the top:

1. every shard learns from its own values, as if it were alone, and the mean of what they say is tried;
2. then, field by field, a factor, of all dimensions at once where a field has one number for each.

What lowers the objective is not kept. Values with standard errors have exact slopes (`slopes`).

Hyperparameters of values in shards that bring their own variance: the exact likelihood and its slope from sums.

As in `modelweld.families.math.standard_errors`, var_i = noise / weight_i + inflation variance_i, p_i = 1 / var_i, and
an atom has posterior mean M and precision P. Its share of the slope in noise is

    1/2 sum_i a_i [p_i^2 ((y_i - M)^2 + 1 / P) - p_i]
        = 1/2 [A3 - 2 M A2 + (M^2 + 1 / P) A1 - A0],    a_i = 1 / weight_i,   A0 .. A3 = sums of a p, a p^2 (1, y, y^2),

So every shard adds up four numbers per atom and dimension besides the rows, and one round gives the centre the
likelihood of all values and its whole gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import scipy

from modelweld.core.family import Family, learn_from_values, log_prior, sum_by_atom, with_fields
from modelweld.core.random_effects import SMALLEST_RATIO, Hyperparameters
from modelweld.core.values import Array, Index
from modelweld.families import Gaussian
from modelweld.families.capabilities import clip, name_hyperparameters, pool, row_fields_of
from modelweld.families.math.maximise import LARGEST_LOG_STEP
from modelweld.shards.centre import Centre
from modelweld.shards.engine import Engine
from modelweld.shards.shard import Shard, restate

FACTORS_APART = (0.5, 0.1, 0.02)
"""Three points of a parabola, in the logarithm of a factor; each parabola is three rounds over all shards."""


def learn(engine: Engine, centre: Centre) -> None:
    """Learn whatever the matching teaches; never lowers the objective."""
    centre.learn()
    if not centre.changing or getattr(centre.family, "learning", "") == "nothing":
        return
    family: Family
    if isinstance(centre.family, Gaussian):
        family = refit(
            centre.family,
            lambda at: sum_rows(centre, engine.ask_all(slopes, at)),
            matched=bool((centre.counts > 1).any()),
        )
    else:
        family = _in_rounds(engine, centre)
    centre.restate(family, state_rows(engine, family))


def state_rows(engine: Engine, family: Family) -> list[Array]:
    """Sums of the rows of every shard's atoms, made with this family."""
    return engine.ask_all(restate, family)


def sum_rows(centre: Centre, rows: Sequence[Array]) -> Array:
    """What shards say of their atoms, added up by atom of the centre."""
    sums = np.zeros((len(centre.counts), rows[0].shape[1]))
    for s in centre.turn:
        sums[centre.places[s]] += rows[s]
    return sums


def pool_families(families: Sequence[Family], values: Sequence[int], atoms: Sequence[int]) -> Family:
    """The mean of what shards have learned, by the number of values that taught it: all but the first of every atom."""
    teaching = np.subtract(values, atoms)
    return pool(families, teaching if teaching.any() else np.maximum(values, 1))


def learn_here(shard: Shard, labels: Index, family: Family) -> Family:
    """Hyperparameters learned from a shard's own values, as if no other shard held its atoms."""
    stack, own = shard.select_fitted(labels)
    return learn_from_values(family, stack, own, restate(shard, labels, family)) if len(own) else family


class Trials:
    """Families whose sums shards have computed, one for each dimension where those are independent, and the best."""

    def __init__(self, engine: Engine, centre: Centre) -> None:
        self.engine, self.centre = engine, centre
        self.best = _by_dimension(centre.family)
        self.highest = np.full(len(self.best), -np.inf)
        self.sums: list[Array] = []
        self(self.best)

    def __call__(self, families: Sequence[Family]) -> Array:
        """Log evidences of families, the rest of which is learned; keeps those that are better."""
        if self.sums:
            families = [clip(family, sums) for family, sums in zip(families, self.sums, strict=True)]
        stated = sum_rows(self.centre, self.engine.ask_all(restate_dimensions, families))
        self.sums = np.split(stated, len(families), axis=1)
        found = [family.update(sums) for family, sums in zip(families, self.sums, strict=True)]
        values = [float(f.log_evidence(x).sum()) + log_prior(f) for f, x in zip(found, self.sums, strict=True)]
        better = np.array(values) > self.highest
        self.best = [new if use else old for new, old, use in zip(found, self.best, better, strict=True)]
        self.highest = np.where(better, values, self.highest)
        return np.array(values)

    def climb(self, name: str) -> None:
        """Look for the best factor of a field: by parabolas through three points, ever closer to each other."""
        present = self.best
        at = np.array([float(np.asarray(getattr(family, name) or 0.0).item()) for family in present])
        if not at.all():
            return

        def by(logs: Array) -> Array:
            fields = zip(present, at * np.exp(logs), strict=True)
            return self([with_fields(f, **{name: np.full_like(getattr(f, name), x)[()]}) for f, x in fields])

        middle, value = np.zeros(len(at)), self.highest
        for apart in FACTORS_APART:
            low, high = by(middle - apart), by(middle + apart)
            bend = np.maximum(2 * value - low - high, np.finfo(float).tiny)
            new = middle + np.clip(apart * (high - low) / (2 * bend), -2 * apart, 2 * apart)
            reached = by(new)
            middle, value = np.where(reached > value, new, middle), np.maximum(reached, value)


def _in_rounds(engine: Engine, centre: Centre) -> Family:
    """The best family found by asking shards for sums of some."""
    trials = Trials(engine, centre)
    if (centre.counts > 1).any():
        taught = engine.ask_all(learn_here, centre.family)
        own = [centre.own[s] for s in centre.turn]
        mean = pool_families([taught[s] for s in centre.turn], [x.values for x in own], [len(x.counts) for x in own])
        trials(_by_dimension(mean))
        for name in row_fields_of(centre.family):
            trials.climb(name)
    return _join_dimensions(centre.family, trials.best)


def restate_dimensions(shard: Shard, labels: Index, families: Sequence[Family]) -> Array:
    """Sums of the rows of the shard's atoms, made with one family, or side by side with one for each dimension."""
    if len(families) == 1:
        return restate(shard, labels, families[0])
    columns = range(len(families))
    return np.concatenate([restate(shard.column(d), labels, families[d]) for d in columns], axis=1)


def _by_dimension(family: Family) -> list[Family]:
    """One family for each dimension, if what a value is worth differs by dimension, which are then independent."""
    D = max((np.size(getattr(family, name)) for name in row_fields_of(family)), default=1)
    if D == 1:
        return [family]
    fields = {name: np.asarray(x) for name, x in name_hyperparameters(family).items() if np.asarray(x).size == D}
    return [with_fields(family, **{name: x[[d]] for name, x in fields.items()}) for d in range(D)]


def _join_dimensions(family: Family, parts: Sequence[Family]) -> Family:
    """The family of all dimensions."""
    if len(parts) == 1:
        return parts[0]
    fields = [name for name, x in name_hyperparameters(family).items() if np.asarray(x).size == len(parts)]
    return with_fields(family, **{name: np.concatenate([getattr(part, name) for part in parts]) for name in fields})


BLOCK = 20_000
"""Values of which these are made at a time, so that a pass over a shard needs little more memory than the shard."""

STATISTICS = 9
"""Numbers per dimension that `slopes` adds up: the five of the rows and these four."""

MOST_ROUNDS = 40
"""Evaluations of the likelihood in one refit: each is a pass over all shards. The next refit goes on from there."""

SMALLEST_SLOPE = 1e-3
"""Nats per standard error at which a refit ends: about a millionth of a nat is left then."""


def slopes(shard: Shard, labels: Index, family: Gaussian) -> Array:
    """Rows of the shard's atoms with the four sums: (K, 5 D + 4 D)."""
    stack, own = shard.select_fitted(labels)
    K, noise = int(own.max(initial=-1)) + 1, family.hyperparameters.noise
    beside = np.zeros((K, 4 * stack.values.shape[1]))
    for a in range(0, len(own), BLOCK):
        part = slice(a, a + BLOCK)
        y = stack.values[part] - np.asarray(family.origin)
        weight = np.ones_like(y) if stack.weight is None else stack.weight[part]
        inverse = np.where(weight > 0, 1.0 / np.where(weight > 0, weight, 1.0), 0.0)
        variance = np.zeros_like(y) if stack.variance is None else stack.variance[part]
        p = (weight > 0) / np.where(weight > 0, noise * inverse + family.inflation * variance, 1.0)
        powers = [p, p * p, p * p * y, p * p * y * y]
        beside += sum_by_atom(np.concatenate([x * inverse for x in powers], axis=1), own[part], K)
    return np.concatenate([restate(shard, labels, family), beside], axis=1)


def refit(family: Gaussian, ask: Callable[[Gaussian], Array], matched: bool) -> Gaussian:
    """The most likely family; never less likely than the one given.

    Parameters
    ----------
    family : Gaussian
        Where to start.
    ask : callable
        Sums (K, STATISTICS D) of `slopes` over all shards, for a family.
    matched : bool
        Whether any atom has two values; if not, noise and spread cannot be distinguished and move together.
    """
    if family.learning == "nothing":
        return family
    old, floor = family.hyperparameters, np.asarray(family.floor)
    D, H = len(old.mean), len(old.noise)
    sums = ask(family)
    start, K, N = likelihood(family, sums)[0], len(sums), sums[:, :D].sum() / D
    # what is looked for is measured in its own standard errors, so that all slopes are alike and few rounds do
    parts = [(D, K), (H, N / 2), (H, K / 2)] if matched else [(D, K), (H, N / 2)]
    unit = np.concatenate([np.full(n, 1 / np.sqrt(max(information, 1.0))) for n, information in parts])
    scale = np.sqrt(old.noise + old.spread)

    def at(z: Array) -> Gaussian:
        x = unit * z
        log_noise, log_spread = x[D : D + H], x[D + H : D + 2 * H] if matched else x[D : D + H]
        here = Hyperparameters(
            mean=old.mean + scale * x[:D],
            noise=np.maximum(old.noise * np.exp(log_noise), floor),
            spread=np.maximum(old.spread * np.exp(log_spread), SMALLEST_RATIO * floor),
        )
        return family.with_hyperparameters(here)

    def cost(z: Array) -> tuple[float, Array]:
        here = at(z)
        value, slope = likelihood(here, ask(here) if z.any() else sums)
        log_noise, log_spread = slope.noise * here.hyperparameters.noise, slope.spread * here.hyperparameters.spread
        if family.scalar:
            log_noise, log_spread = log_noise.sum(keepdims=True), log_spread.sum(keepdims=True)
        by_noise, by_spread = here.noise_prior.slopes(*here.hyperparameters)
        log_noise, log_spread = log_noise + by_noise, log_spread + by_spread
        logs = [log_noise, log_spread] if matched else [log_noise + log_spread]
        return start - value, -unit * np.concatenate([slope.mean * scale, *logs])

    low, high = np.full(len(unit), -LARGEST_LOG_STEP), np.full(len(unit), LARGEST_LOG_STEP)
    low[:D], high[:D] = -np.inf, np.inf
    low[D : D + H] = np.maximum(np.log(np.maximum(floor, np.finfo(float).tiny) / old.noise), -LARGEST_LOG_STEP)
    found = scipy.optimize.minimize(
        cost,
        np.zeros(len(unit)),
        jac=True,
        method="L-BFGS-B",
        bounds=list(zip(low / unit, high / unit, strict=True)),
        options={"maxfun": MOST_ROUNDS, "gtol": SMALLEST_SLOPE},
    )
    return at(found.x) if found.fun < 0 else family


def likelihood(family: Gaussian, sums: Array) -> tuple[float, Hyperparameters]:
    """Log likelihood with the log prior, and gradient (D,) in mean, noise and spread."""
    D = sums.shape[1] // STATISTICS
    _, W, S = (sums[:, i * D : (i + 1) * D] for i in range(3))
    mean, noise, spread = family.hyperparameters
    P = 1.0 / spread + W / noise
    M = (mean / spread + S / noise) / P
    a0, a1, a2, a3 = (sums[:, (5 + i) * D : (6 + i) * D] for i in range(4))
    off = M - mean
    gradient = Hyperparameters(
        mean=(off / spread).sum(0),
        noise=0.5 * (a3 - 2 * M * a2 + (M * M + 1.0 / P) * a1 - a0).sum(0),
        spread=(0.5 * ((off * off + 1.0 / P) / spread - 1) / spread).sum(0),
    )
    value = float(family.log_evidence(sums[:, : 5 * D]).sum()) + family.log_prior()
    return value, gradient
