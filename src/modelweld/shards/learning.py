"""Hyperparameters of values in shards: from sums where these say it all, else in rounds of sums.

Where rows depend on hyperparameters (`Family.row_fields`: what a value is worth), sums that were made with one family
say nothing of another. But shards can state them for any family that the centre asks about, and then the evidence of
all values is known exactly, and `Family.update` learns the rest from these sums. So the centre looks for the top:

1. every shard learns from its own values, as if it were alone, and the mean of what they say is tried;
2. then, field by field, a common factor.

What lowers the objective is not kept. Values with standard errors have exact slopes (`shards.standard_errors`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from modelweld.families import Gaussian
from modelweld.families.base import Family, with_fields
from modelweld.inputs.local_model import Array
from modelweld.inputs.stack import Index
from modelweld.shards import standard_errors
from modelweld.shards.centre import Centre
from modelweld.shards.engine import Engine
from modelweld.shards.shard import Shard
from modelweld.shards.summary import restate

WIDEST_FACTOR, FACTOR_PRECISION, MOST_ASKED = 1.0, 1e-3, 15
"""Of a common factor: bounds and precision of its logarithm, and families asked about, each a round over all shards."""


def learn(engine: Engine, centre: Centre) -> None:
    """Learn whatever the matching teaches; never lowers the objective."""
    centre.learn()
    if not centre.changing or getattr(centre.family, "learning", "") == "nothing":
        return
    family: Family
    if isinstance(centre.family, Gaussian):
        family = standard_errors.refit(
            centre.family,
            lambda at: summed(centre, engine.ask(standard_errors.slopes, *_everyone(engine, at))),
            matched=bool((centre.counts > 1).any()),
        )
    else:
        family = _in_rounds(engine, centre)
    centre.restate(family, stated(engine, family))


def stated(engine: Engine, family: Family) -> list[Array]:
    """Sums of the rows of every shard's atoms, made with this family."""
    return engine.ask(restate, *_everyone(engine, family))


def summed(centre: Centre, rows: Sequence[Array]) -> Array:
    """What shards say of their atoms, added up by atom of the centre."""
    sums = np.zeros((len(centre.counts), rows[0].shape[1]))
    for s in centre.turn:
        sums[centre.places[s]] += rows[s]
    return sums


def pooled(families: Sequence[Family], values: Sequence[int], atoms: Sequence[int]) -> Family:
    """The mean of what shards have learned, by the number of values that taught it: all but the first of every atom."""
    teaching = np.subtract(values, atoms)
    return families[0].pooled(families, teaching if teaching.any() else np.maximum(values, 1))


def learned_here(shard: Shard, labels: Index, family: Family) -> Family:
    """What a shard's own values say, its atoms being those of nobody else."""
    stack, own = shard.fitted(labels)
    return family.learn(stack, own, restate(shard, labels, family)) if len(own) else family


def _in_rounds(engine: Engine, centre: Centre) -> Family:
    """The best family found by asking shards for sums of some."""
    from scipy.optimize import minimize_scalar

    best, highest = centre.family, -np.inf

    def ask(family: Family) -> float:
        nonlocal best, highest
        family = family.bounded(centre.sums[0])
        sums = summed(centre, stated(engine, family))
        family = family.update(sums)
        value = float(family.log_evidence(sums).sum()) + family.log_prior()
        if value > highest:
            best, highest = family, value
        return -value

    ask(centre.family)
    if not (centre.counts > 1).any():
        return best
    taught = engine.ask(learned_here, *_everyone(engine, centre.family))
    own = [centre.own[s] for s in centre.turn]
    ask(pooled([taught[s] for s in centre.turn], [x.values for x in own], [len(x.counts) for x in own]))
    for name in best.row_fields:
        present, at = best, getattr(best, name)
        if at is None or not np.all(np.asarray(at) > 0):
            continue

        def by(log_factor: float, present: Family = present, name: str = name, at: Array = at) -> float:
            return ask(with_fields(present, **{name: at * np.exp(log_factor)}))

        options = {"xatol": FACTOR_PRECISION, "maxiter": MOST_ASKED}
        minimize_scalar(by, bounds=(-WIDEST_FACTOR, WIDEST_FACTOR), method="bounded", options=options)
    return best


def _everyone(engine: Engine, *arguments: object) -> tuple[range, list[tuple[object, ...]]]:
    return range(engine.shards), [arguments] * engine.shards
