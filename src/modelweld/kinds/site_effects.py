"""Site effects of models: estimated from what decides the matching of their set, and corrected in all arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from modelweld.core.match import Plan
from modelweld.core.matching import Matching
from modelweld.core.values import Array
from modelweld.families import Family, Gaussian
from modelweld.families.fading import Moving
from modelweld.fit.effects.corrections import SiteEffects
from modelweld.fit.effects.first_look import find_site_effects
from modelweld.fit.effects.within_times import compare_within_times
from modelweld.inputs.local_model import LocalModel
from modelweld.inputs.sets import stack_of
from modelweld.kinds.kind import Kind


def estimate_effects(
    models: Sequence[LocalModel],
    kind: Kind,
    matchings: Mapping[str, Matching],
    plan: Plan,
    family_of: Callable[[Sequence[LocalModel]], Family],
    times: Array | None = None,
) -> SiteEffects | None:
    """What sites differ by, where one array of real values decides the matching of the only set; None: nothing.

    `family_of` chooses the family of models, which may depend on their widths: these are taken in common units. Atoms
    that move do so from one time to another: of sites with times, those of one are compared, if they are four.
    """
    if len(matchings) != 1 or not kind.has_places(models[0]) or not plan.looks_for_effects:
        return None
    [(set_name, matching)] = matchings.items()
    if len(matching.families) != 1 or (times is not None and len(np.unique(times)) == len(times)):
        return None
    [(key, family)] = matching.families.items()
    if not isinstance(key, str) or np.ndim(models[0].arrays[key]) != 2 or not isinstance(family, Gaussian | Moving):
        return None
    stack = stack_of(models, key, set_name, {})
    known = [kind.totals(model) for model in models] if kind.name else []
    totals = known if known and all(t is not None and t.mean.shape == stack.values.shape[1:] for t in known) else None

    def in_units(units: SiteEffects | None) -> Family:
        sites = models if units is None or len(units.offset) < len(models) else correct_sites(models, units, kind)
        found = family_of(sites)
        return found.still() if isinstance(found, Moving) else found

    if times is not None:
        return compare_within_times(stack, times, plan, in_units, totals)
    return find_site_effects(stack, matching, plan, in_units, totals)


def correct_sites(models: Sequence[LocalModel], effects: SiteEffects, kind: Kind) -> list[LocalModel]:
    """The models as if sites did not differ."""
    differ = (effects.offset != 0).any(1) | (effects.log_scale != 0).any(1)
    return [
        kind.rescale(model, np.exp(-effects.log_scale[j]), -effects.offset[j]) if differ[j] else model
        for j, model in enumerate(models)
    ]
