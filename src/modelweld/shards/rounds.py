"""Hyperparameters of values in shards: from sums where these say it all, else in rounds of sums.

Where rows depend on hyperparameters (`Family.row_fields`: what a value is worth), sums that were made with one family
say nothing of another. But shards can state them for any family that the centre asks about, and then the evidence of
all values is known exactly, and `Family.update` learns the rest from these sums. So the centre looks for the top:

1. every shard learns from its own values, as if it were alone, and the mean of what they say is tried;
2. then, field by field, a factor, of all dimensions at once where a field has one number for each.

What lowers the objective is not kept. Values with standard errors have exact slopes (`shards.slopes`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from modelweld.core.family import Family, learn_from_values, log_prior, with_fields
from modelweld.core.values import Array, Index
from modelweld.families import Gaussian
from modelweld.families.capabilities import clip, name_hyperparameters, pool, row_fields_of
from modelweld.shards import slopes as standard_errors
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
        family = standard_errors.refit(
            centre.family,
            lambda at: sum_rows(centre, engine.ask_all(standard_errors.slopes, at)),
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
