"""Plain arrays on their way to a Fusion: one set of one array, matched in one stage."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from modelweld.core.family import Family, has_places
from modelweld.errors import InputError, OutOfRangeError
from modelweld.families import Gaussian
from modelweld.fit.effects.first_look import find_site_effects
from modelweld.fit.effects.words import describe_effects
from modelweld.fit.screening.bounds import as_models
from modelweld.fit.screening.distances import lie_unevenly
from modelweld.fit.screening.swapped_columns import name_swapped
from modelweld.fit.screening.totals import total_stack
from modelweld.fit.static_matcher import match
from modelweld.inputs.local_model import check_finite
from modelweld.inputs.stacks import stack_arrays
from modelweld.stages import Job, match_models, without_effects


def match_arrays(job: Job) -> Job:
    """Plain arrays: one set, one array."""
    family = Gaussian() if job.families is None else job.families
    if not isinstance(family, Family):
        raise InputError("plain arrays take one Family, not a mapping.")
    stack = stack_arrays(job.sites)
    try:
        matching = match({"values": (stack, family)}, job.names, job.plan, job.rng)
    except OutOfRangeError:
        for j, array in enumerate(job.sites):  # the fast look at all values said no; say where
            check_finite(np.asarray(array, dtype=np.float64), f"site {j}")
        raise
    totals = total_stack(stack) if job.plan.outliers and has_places(family) else None
    if totals is not None:
        job = without_effects(job, name_swapped(totals, None, job.names))
    if job.plan.outliers and lie_unevenly(stack, matching):
        weighed = match_models(replace(job, sites=as_models(stack, job.names), matchings={"atom": matching}))
        if any(model.weight for model in weighed.sites):
            return weighed
        effects = weighed.matchings["atom"].effects
    elif job.plan.looks_for_effects:
        effects = find_site_effects(stack, matching, job.plan, lambda _: family, of_values=totals)
    else:
        effects = None
    if effects is None:
        return replace(job, matchings={"atom": matching})
    stack = effects.correct(stack)
    matching = match({"values": (stack, family)}, job.names, job.plan, job.rng)
    matchings = {"atom": replace(matching, effects=effects)}
    job = replace(job, sites=np.split(stack.values, stack.offsets[1:-1]), matchings=matchings)
    return job.say(*describe_effects(effects, job.names, [f"dimension {d}" for d in range(stack.values.shape[1])]))
