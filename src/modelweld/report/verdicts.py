"""The test of shared structure, and how each site agrees with the others, for the report.

What in a matching is not certain: doubtful matches, parameters excluded, atoms in fragments.

What to look at first: why values were excluded, then sites that stand out, those farthest off first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

import modelweld
from modelweld.core.matching import Matching
from modelweld.core.values import Array, Index, group_of_values
from modelweld.errors import SHOWN, InputError, sites_named
from modelweld.report.text import LEVEL, MOST_PAIRS, NAMED, NOTED, Content, exact, round_digits, several
from modelweld.results.diagnostics.merge_value import MergeVerdict
from modelweld.results.diagnostics.notes import excluded, fragments
from modelweld.results.diagnostics.sites import TOO_FEW
from modelweld.results.posterior.conditional import conditional
from modelweld.results.posterior.confidence import SURE, Confidence, shares_at

MOST_DIAGNOSED = 1_000_000
"""Local parameters up to which sites are diagnosed: about five seconds at five microseconds each, twice."""

CAVEAT = "A yes may also mean that all sites scatter about the same few centres, without sharing single values."
"""What a yes does not say."""


def judge_gain(fusion: modelweld.Fusion, shown: Index, N: int, notes: list[str]) -> Content | None:
    """What fusing N local parameters gains, in all and by site; None with a note if it cannot be computed."""
    if N > MOST_DIAGNOSED:
        notes.append(f"Beyond {MOST_DIAGNOSED:,} local parameters the gain of fusing is left out: worth_merging().")
        return None
    try:
        found = fusion.worth_merging()
    except InputError as error:
        notes.append(f"The gain of fusing is left out: {error}")
        return None
    return list_gains(found, shown)


def list_gains(found: MergeVerdict, shown: Iterable[int]) -> Content:
    """The test of shared structure as plain data, in all and for these sites."""
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


def judge_matches(fusion: modelweld.Fusion, name: str, stated: Confidence | None, worth: bool | None) -> Content | None:
    """The number of groups of a set and the confidence of its matches; None where confidences are not known.

    Where nothing speaks for sharing (`worth` is False) numbers have no intervals: these would take it for granted.
    """
    if stated is None:
        return None
    matching = fusion.matchings[name]
    posterior = fusion.posterior.draws(name) if stated.how == "drawn" else None
    counted_draws = None if worth is False else posterior
    sure, counted = np.concatenate(stated), np.flatnonzero(matching.stacked_labels < matching.K)
    unsure = counted[sure[counted] < SURE]
    worst = unsure[np.argsort(sure[unsure], kind="stable")[:SHOWN]]
    located = _locate(fusion, matching, worst)
    found: Content = {
        "K": matching.K,
        "K_interval": None if counted_draws is None else list(counted_draws.K_interval(LEVEL)),
        "shared": matching.shared,
        "shared_interval": None if counted_draws is None else list(counted_draws.shared_interval(LEVEL)),
        "level": LEVEL,
        "how": stated.how,
        "matches": len(counted),
        "unsure": len(unsure),
        "sure_from": SURE,
        "least": [{**one, "confidence": exact(p)} for one, p in zip(located, sure[worst], strict=True)],
        "r_hat": None if posterior is None else exact(max(posterior.r_hat.values())),
        "effective_size": None if posterior is None else exact(min(posterior.effective_size.values())),
    }
    cautions = [posterior.caution] if posterior is not None and posterior.caution else []
    return {**found, "sentences": [_about_number(found), _about_matches(found), *cautions]}


def _locate(fusion: modelweld.Fusion, matching: Matching, rows: Index) -> list[Content]:
    """Site, number there, and group of local parameters."""
    held_by = group_of_values(matching.offsets)[rows]
    return [
        {"site": fusion.sites[j], "row": int(i - matching.offsets[j]), "atom": int(matching.stacked_labels[i])}
        for i, j in zip(rows, held_by, strict=True)
    ]


def _about_number(found: Content) -> str:
    """How many groups there are, and what an interval of their number means."""
    groups = f"{several(found['K'], 'group')}, {found['shared']:,} of them shared by several sites"
    if found["K_interval"] is None:
        why = "is not stated without evidence of sharing" if found["how"] == "drawn" else "was not computed"
        return f"{groups}; the uncertainty of these numbers {why}."
    (low, high), (least, most) = found["K_interval"], found["shared_interval"]
    K, shared = f"{low} to {high}" if low < high else low, f"{least} to {most}" if least < most else least
    level = f"with a probability of at least {100 * found['level']:g} % each"
    return f"{groups}; {level}, their true number is {K} and that of shared ones {shared}, without what is excluded."


def _about_matches(found: Content) -> str:
    """How many matches are not sure, and which are the least."""
    given = "" if found["how"] == "drawn" else ", all others taken to be right"
    sure = f"less than {100 * found['sure_from']:g} % sure{given}"
    if not found["unsure"]:
        return f"none of the {found['matches']:,} matches is {sure}."
    least = [(one["row"], one["site"], one["atom"], 100 * (one["confidence"] or 0.0)) for one in found["least"]]
    listed = "; ".join(f"group {i} of site {site!r} in group {k} ({p:.0f} %)" for i, site, k, p in least)
    are = "is" if found["unsure"] == 1 else "are"
    return f"{found['unsure']:,} of the {found['matches']:,} matches {are} {sure}. The least sure: {listed}."


def diagnose_sites(fusion: modelweld.Fusion, name: str, shown: Index, notes: list[str]) -> list[Content] | None:
    """Each listed site's diagnostics; None with a note if they cannot be computed."""
    if len(fusion.matchings[name].stacked_labels) > MOST_DIAGNOSED:
        notes.append(f"Beyond {MOST_DIAGNOSED:,} local parameters sites are not diagnosed: fusion.diagnosis.sites().")
        return None
    try:
        found = fusion.diagnosis.sites(name)
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
            "shift": exact(d.shift[np.nanargmax(np.abs(d.shift))]) if np.isfinite(d.shift).any() else None,
            "influence": exact(d.influence),
            "warning": d.warning,
        }
        for d in (found[j] for j in shown)
    ]


def state_confidence(fusion: modelweld.Fusion, name: str, notes: list[str], *, draws: bool = True) -> Confidence | None:
    """Confidence of each match, from `draws` where these are affordable; None with a note if it cannot be computed."""
    matching = fusion._fit.drop_oversized().matchings[name]
    if len(matching.stacked_labels) * len(matching.counts) > MOST_PAIRS:
        notes.append(
            f"Beyond {MOST_PAIRS:,} pairs of local parameters and atoms, confidences are left out and matches far from "
            "their atom are listed: fusion.confidence() computes them."
        )
        return None
    try:
        return fusion.confidence(name, None if draws else "conditional")
    except InputError as error:
        notes.append(f"Confidences are left out: {error}")
        return None


def list_doubtful(fusion: modelweld.Fusion, name: str, stated: Confidence | None, distance: Array) -> list[Content]:
    """The least certain matches, with the most probable other atom (None: a new one); else the farthest ones."""
    matching = fusion.matchings[name]
    sure = None if stated is None else np.concatenate(stated)
    worst = _worst(matching, sure, distance)
    found, unknown = _locate(fusion, matching, worst), {"other": None, "other_probability": None}
    for one, i in zip(found, worst, strict=True):
        confidence = None if sure is None else exact(sure[i])
        one |= {"distance": round_digits(distance[i], 3), "confidence": confidence, **unknown}
    if stated is not None and found:
        drawn = fusion.posterior.draws(name) if stated.how == "drawn" else None
        labels = matching.stacked_labels
        tables = _tables(fusion, name, worst) if drawn is None else shares_at(drawn, labels, worst)
        for doubt, rival in zip(found, tables, strict=True):
            rival[doubt["atom"]] = -1.0
            best = int(rival.argmax())
            doubt["other"] = best if best < len(matching.counts) else None
            doubt["other_probability"] = exact(rival[best])
    return found


def _worst(matching: Matching, sure: Array | None, distance: Array) -> Index:
    """Which matches are listed, worst first."""
    labels = matching.stacked_labels
    counted = labels < matching.K
    if sure is None:
        candidates, score = np.flatnonzero(counted & (matching.counts[labels] > 1)), -distance
    else:
        candidates, score = np.flatnonzero(counted & (sure < SURE)), sure
    return candidates[np.argsort(score[candidates], kind="stable")[:NAMED]]


def _tables(fusion: modelweld.Fusion, name: str, rows: Index) -> Array:
    """Probabilities (n, K + 1) of every atom for these values, given all others; the last is that of a new atom."""
    matching, board = fusion.matchings[name], fusion._fit.board(name)
    held_by = group_of_values(matching.offsets)[rows].tolist()
    by_site = {j: conditional(board, j) for j in dict.fromkeys(held_by)}
    tables = np.stack([by_site[j][i - matching.offsets[j]] for i, j in zip(rows.tolist(), held_by, strict=True)])
    alone = np.flatnonzero(matching.counts[matching.stacked_labels[rows]] == 1)
    tables[alone, matching.stacked_labels[rows[alone]]] = tables[alone, -1]
    tables[alone, -1] = 0.0
    return tables


def list_aside(fusion: modelweld.Fusion, name: str, matching: Matching) -> Content:
    """What is not counted, and why."""
    single = fragments(fusion, name)
    outliers = 0 if matching.kept is None else int((~matching.kept).sum())
    aside = excluded(fusion, name) if len(matching.excluded) <= NOTED else []
    return {
        "excluded": [
            {"site": one.site, "row": one.row, "atom": int(matching.stacked_labels[row]), "nearest": one.nearest}
            for row, one in zip(matching.excluded.tolist(), aside, strict=False)
        ],
        "set_aside_number": {"outliers": outliers, "all": len(matching.excluded)},
        "reasons": list(matching.reasons[:NOTED]),
        "fragments": [one.sentence for one in single[:NOTED]],
        "pieces_number": len(single),
    }


def rank_alerts(
    reasons: Sequence[str],
    diagnostics: Sequence[Content] | None,
    sites: Sequence[str],
    others: Sequence[str] = (),
) -> list[Content]:
    """Sentences of a matching and of its sites: what changed the result first, then by how far a site is off.

    A site is off by the largest of its shift, in noise deviations, and of how much worse it fits than the typical one,
    in robust deviations. Reasons may also be about `others` than the sites that were diagnosed.

    Examples
    --------
    >>> calm = {"unshared": 0, "score": 1.0, "surprise": 0.0, "influence": 0.1}
    >>> found = [{**calm, "shift": x, "warning": f"{site} is off."} for site, x in (("north", 2.0), ("south", -9.0))]
    >>> alerts = rank_alerts(["site 'west' was excluded."], found, ["north", "south"], ["west"])
    >>> [(alert["sites"], alert["text"]) for alert in alerts]
    [(['west'], "site 'west' was excluded."), (['south'], 'south is off.'), (['north'], 'north is off.')]
    """
    warned = [(site, d) for site, d in zip(sites, diagnostics or [], strict=False) if d["warning"]]
    warned.sort(key=lambda one: -max(abs(one[1]["shift"] or 0.0), -(one[1]["surprise"] or 0.0)))
    quoted = {repr(site): site for site in (*sites, *others)} if reasons else {}
    first: list[Content] = [{"sites": sites_named(reason, quoted), "text": reason} for reason in reasons]
    return first + [{"sites": [site], "text": str(d["warning"])} for site, d in warned]
