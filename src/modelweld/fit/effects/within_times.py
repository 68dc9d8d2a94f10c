"""Site effects where sites have times: atoms move from one time to another, so that sites of one time are compared."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from modelweld.core.family import Family
from modelweld.core.match import Plan
from modelweld.core.values import Array, Stack, group_of_values, offsets_of
from modelweld.fit.effects.corrections import SiteEffects
from modelweld.fit.effects.first_look import find_site_effects
from modelweld.fit.screening.distances import FEWEST_SITES_TO_COMPARE
from modelweld.fit.screening.totals import Totals
from modelweld.fit.static_matcher import match


def compare_within_times(
    stack: Stack,
    times: Array,
    plan: Plan,
    family_of: Callable[[SiteEffects | None], Family],
    totals: list[Totals | None] | None,
) -> SiteEffects | None:
    """What sites of one time differ by, where these are four or more; None: nothing."""
    found = np.zeros((2, len(times), stack.values.shape[1]))
    moments, number = np.unique(times, return_counts=True)
    for moment in moments[number >= FEWEST_SITES_TO_COMPARE]:
        at = np.flatnonzero(times == moment)
        rows = np.flatnonzero(np.isin(group_of_values(stack.offsets), at))
        part = stack.take(rows, offsets_of(stack.sizes[at]))
        alone = match({"values": (part, family_of(None))}, [str(j) for j in at], plan, np.random.default_rng(0))
        effects = find_site_effects(part, alone, plan, family_of, totals and [totals[j] for j in at])
        if effects is not None:
            found[:, at] = effects
    return SiteEffects(*found) if found.any() else None
