"""Whether fusing was worth it, and how each site gets on with the others, for the report."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from modelweld.diagnostics.sites import TOO_FEW
from modelweld.errors import InputError
from modelweld.inputs.local_model import Array
from modelweld.inputs.stack import Index
from modelweld.report.contents import Diagnosis, Verdict
from modelweld.report.rounding import exact

if TYPE_CHECKING:
    from modelweld.fusion import Fusion

MOST_DIAGNOSED = 200_000
"""Local parameters up to which sites are diagnosed: about five seconds at twenty microseconds each, twice."""

CAVEAT = "A yes may also mean that all sites scatter about the same few centres, without sharing single values."
"""What a yes does not say."""


def judge_gain(fusion: Fusion, shown: Index, N: int, notes: list[str]) -> Verdict | None:
    """What fusing N local parameters gains, in all and by site; None with a note if it cannot be said."""
    if N > MOST_DIAGNOSED:
        notes.append(f"Beyond {MOST_DIAGNOSED:,} local parameters the gain of fusing is left out: worth_merging().")
        return None
    try:
        found = fusion.worth_merging()
    except InputError as error:
        notes.append(f"The gain of fusing is left out: {error}")
        return None
    return {
        "gain": exact(found.gain),
        "p_value": exact(found.p_value),
        "worth": found.worth,
        "level": found.level,
        "sentence": found.sentence,
        "strangers": [site.site for site in found.strangers],
        "sites": [
            {"gain": exact(site.gain), "shared": site.shared, "p_value": exact(site.p_value), "worth": site.worth}
            for site in (found.sites[j] for j in shown)
        ],
    }


def diagnose_sites(fusion: Fusion, name: str, shown: Index, notes: list[str]) -> list[Diagnosis] | None:
    """Each listed site's diagnostics; None with a note if they cannot be said."""
    if len(fusion.matchings[name].stacked_labels) > MOST_DIAGNOSED:
        notes.append(f"Beyond {MOST_DIAGNOSED:,} local parameters sites are not diagnosed: fusion.diagnose().")
        return None
    try:
        found = fusion.diagnose(name)
    except InputError as error:
        notes.append(f"Sites are not diagnosed: {error}")
        return None
    if not all(d.judged for d in found):
        notes.append(f"No warnings: {TOO_FEW}")
    return [
        {
            "unshared": d.unshared,
            "score": exact(d.score),
            "surprise": exact(d.surprise),
            "shift": exact(_largest(d.shift)),
            "influence": exact(d.influence),
            "warning": d.warning,
        }
        for d in (found[j] for j in shown)
    ]


def _largest(shift: Array) -> float:
    """The largest shift of any column, with its sign; NaN if none is known."""
    return float(shift[np.nanargmax(np.abs(shift))]) if np.isfinite(shift).any() else np.nan
