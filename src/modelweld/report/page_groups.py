"""The table of groups as the page carries it: means with intervals, and how much features differ, in their units."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from modelweld.errors import InputError
from modelweld.inputs.local_model import Array
from modelweld.inputs.stack import Index
from modelweld.posterior.confidence import Confidence
from modelweld.report.group_table import GroupTable
from modelweld.report.groups import groups_of, shown_keys
from modelweld.report.limits import LEVEL
from modelweld.report.rounding import Content, Number, Numbers, carried_digits, exact, rounded, short

if TYPE_CHECKING:
    from modelweld.fusion import Fusion


def list_groups(fusion: Fusion, name: str, stated: Confidence | None, rows: Index, most_columns: int) -> Content:
    """The groups of a set, with intervals if draws are behind the stated confidence.

    Points are told for the local parameters `rows` that the page lists; features are those in which groups differ most.
    """
    table = groups_of(fusion, name)
    noise, spread = _deviations(fusion, name, len(table.features))
    listed = np.sort(rank_features(table.means, noise**2)[:most_columns])
    low, high = _intervals(fusion, name, stated, table)
    points = None if table.counts is None else _points(fusion, name, rows)
    decimals = [table.decimals[d] for d in listed]
    digits = carried_digits(table.means[:, listed], decimals)
    return {
        "word": table.word,
        "counted": table.counted,
        "shares": table.are_shares,
        "features": [table.features[d] for d in listed],
        "units": [table.units[d] for d in listed],
        "decimals": decimals,
        "columns": len(table.features),
        "means": short(table.means[:, listed], digits),
        "errors": short(table.errors[:, listed], 3),
        "fused": short(table.fused[:, listed], digits),
        "low": None if low is None else short(low[:, listed], digits),
        "high": None if high is None else short(high[:, listed], digits),
        "level": LEVEL,
        "noise": [rounded(x, 3) for x in noise[listed]],
        "spread": [rounded(x, 3) for x in spread[listed]],
        "points": None if table.whole_points is None else [exact(n) for n in table.whole_points],
        "aside": None if table.aside is None else exact(table.aside),
        "members": points,
        "held": _held(fusion, name, stated),
    }


def rank_features(means: Array, within: Array) -> Index:
    """Features, those first in which groups (K, D) differ most beside how much they vary within (D,).

    Examples
    --------
    >>> rank_features(np.array([[0.0, 0.0], [100.0, 1.0]]), np.array([1e6, 0.01])).tolist()
    [1, 0]
    """
    between = np.array([np.var(own[np.isfinite(own)]) if np.isfinite(own).any() else 0.0 for own in means.T])
    share = np.where(between > 0, between / np.where(between > 0, between + np.nan_to_num(within), 1.0), 0.0)
    return np.argsort(-share, kind="stable")


def _deviations(fusion: Fusion, name: str, D: int) -> tuple[Array, Array]:
    """Learned deviations (D,) from site to site and from group to group, in features' units; NaN: there are none."""
    matching = fusion.matchings[name]
    found = []
    for key in shown_keys(fusion, name):
        family, size = matching.families.get(key), matching.values[key].shape[1]
        learned = None if family is None else family.variances()
        both = np.full((2, size), np.nan)
        if learned is not None:
            both[0], both[1] = np.sqrt(learned.noise), np.sqrt(learned.spread)
        found.append(both)
    noise, spread = np.hstack(found) if found else np.zeros((2, D))
    return noise, spread


def _intervals(
    fusion: Fusion, name: str, stated: Confidence | None, table: GroupTable
) -> tuple[Array, Array] | tuple[None, None]:
    """Ends of the intervals of fused values (K, D); None where no draws are at hand, or the family has none."""
    matching = fusion.matchings[name]
    if stated is None or stated.how != "drawn" or tuple(matching.families) != tuple(shown_keys(fusion, name)):
        return None, None
    try:
        found = fusion.atom_intervals(LEVEL, name)
    except InputError:  # a family that does not say how its atoms scatter
        return None, None
    return found.low[: len(table)], found.high[: len(table)]


def _held(fusion: Fusion, name: str, stated: Confidence | None) -> Numbers:
    """Of every group the expected number of sites and the ends of its interval; None without confidences."""
    if stated is None:
        return None
    found = fusion.sharing(LEVEL, name, stated=stated)
    return list(short(np.column_stack([found.expected, found.low, found.high])))


def _points(fusion: Fusion, name: str, rows: Index) -> list[Number]:
    """Points behind these local parameters; None where a site did not say."""
    points = [np.asarray(m.arrays["counts"]) * (np.nan if m.facts.get("nominal") else 1.0) for m in fusion.models]
    return [rounded(n) for n in np.concatenate(points)[rows]]
