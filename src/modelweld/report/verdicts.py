"""Whether fusing was worth it, and how each site gets on with the others, for the report."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from modelweld.diagnostics.sites import TOO_FEW
from modelweld.errors import InputError
from modelweld.inputs.local_model import Array
from modelweld.inputs.names import SHOWN
from modelweld.inputs.stack import Index, group_of_values
from modelweld.posterior.confidence import SURE
from modelweld.report.limits import LEVEL
from modelweld.report.rounding import Content, exact
from modelweld.report.text import several

if TYPE_CHECKING:
    from modelweld.fusion import Fusion
    from modelweld.posterior.confidence import Confidence

MOST_DIAGNOSED = 1_000_000
"""Local parameters up to which sites are diagnosed: about five seconds at five microseconds each, twice."""

CAVEAT = "A yes may also mean that all sites scatter about the same few centres, without sharing single values."
"""What a yes does not say."""


def judge_gain(fusion: Fusion, shown: Index, N: int, notes: list[str]) -> Content | None:
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


def judge_matches(fusion: Fusion, name: str, stated: Confidence | None) -> Content | None:
    """How many groups a set has and how sure its matches are; None where confidences are not known."""
    if stated is None:
        return None
    matching = fusion.matchings[name]
    posterior = fusion.drawn(name) if stated.how == "drawn" else None
    sure, counted = np.concatenate(stated), np.flatnonzero(matching.stacked_labels < matching.K)
    unsure = counted[sure[counted] < SURE]
    worst = unsure[np.argsort(sure[unsure], kind="stable")[:SHOWN]]
    held_by = group_of_values(matching.offsets)
    found: Content = {
        "K": matching.K,
        "K_interval": None if posterior is None else list(posterior.K_interval(LEVEL)),
        "level": LEVEL,
        "how": stated.how,
        "matches": len(counted),
        "unsure": len(unsure),
        "sure_from": SURE,
        "least": [
            {
                "site": fusion.sites[held_by[i]],
                "row": int(i - matching.offsets[held_by[i]]),
                "atom": int(matching.stacked_labels[i]),
                "confidence": exact(float(sure[i])),
            }
            for i in worst
        ],
        "r_hat": None if posterior is None else exact(max(posterior.r_hat.values())),
        "effective_size": None if posterior is None else exact(min(posterior.effective_size.values())),
        "sentences": [],
    }
    cautions = [posterior.caution] if posterior is not None and posterior.caution else []
    return {**found, "sentences": [_about_number(found), _about_matches(found), *cautions]}


def _about_number(found: Content) -> str:
    """How many groups there are, and what an interval of their number means."""
    K, share = several(found["K"], "group"), f"{100 * found['level']:g} %"
    if found["K_interval"] is None:
        return f"{K}; how sure that number is was not computed."
    low, high = found["K_interval"]
    counted = "counting those of single sites, without what is set aside"
    if low == high == found["K"]:
        return f"{K}; with a probability of at least {share} that is their true number, {counted}."
    return f"{K}; with a probability of {share} their true number is {low} to {high}, {counted}."


def _about_matches(found: Content) -> str:
    """How many matches are not sure, and which are the least."""
    given = "" if found["how"] == "drawn" else ", all others taken to be right"
    sure = f"less than {100 * found['sure_from']:g} % sure{given}"
    if not found["unsure"]:
        return f"none of the {found['matches']:,} matches is {sure}."
    least = [(one["row"], one["site"], one["atom"], 100 * (one["confidence"] or 0.0)) for one in found["least"]]
    listed = "; ".join(f"value {i} of site {site!r} in group {k} ({p:.0f} %)" for i, site, k, p in least)
    are = "is" if found["unsure"] == 1 else "are"
    return f"{found['unsure']:,} of the {found['matches']:,} matches {are} {sure}. The least sure: {listed}."


def diagnose_sites(fusion: Fusion, name: str, shown: Index, notes: list[str]) -> list[Content] | None:
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
