"""What sites sent of each group: points at each site, and their means, compared with the fused values.

The table of groups as the page carries it: means with intervals, and how much features differ, in their units.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import modelweld
from modelweld.core.family import Family, sum_by_atom
from modelweld.core.matching import Matching
from modelweld.core.values import Array, Index, Key, Stack, arrays_of, blocks, group_of_values
from modelweld.errors import InputError
from modelweld.families.capabilities import variances_of
from modelweld.kinds import kind_named
from modelweld.report import text
from modelweld.report.coordinates import Values, gather_values, is_timed, places_last_seen
from modelweld.report.group_table import GroupTable, whole_numbers
from modelweld.report.verdicts import state_confidence
from modelweld.results.posterior.confidence import Confidence


def groups_of(
    fusion: modelweld.Fusion, set_name: str | None = None, *, confidence: bool = False, allow_small: bool = False
) -> GroupTable:
    """The table of groups behind ``fusion.table()``, the page, the demonstration and ``modelweld inspect``.

    Parameters
    ----------
    fusion : Fusion
        Whose groups to list; those excluded are none.
    set_name : str, optional
        Which set; needed when there are several.
    confidence : bool
        Whether to say how sure groups are, which takes seconds (at its first use on a machine more).
    allow_small : bool
        Whether to show numbers of points below five, and what groups of so few are like.

    Examples
    --------
    >>> import modelweld
    >>> from modelweld.kinds.mixture import mixture
    >>> ones = [[1.0], [1.0]]
    >>> sites = [mixture(means, ones, [30, 10], counted=True) for means in ([[0.0], [9.0]], [[1.0], [9.0]])]
    >>> table = groups_of(modelweld.fuse(sites))
    >>> table.means.round(1).tolist(), table.points.tolist()
    ([[0.5], [9.0]], [60.0, 20.0])
    """
    if not fusion.matchings:
        raise InputError("nothing was matched (classes are aligned by name): fusion.parameters() has them.")
    name, matching = fusion._fit.find_set(set_name)
    K, values = matching.K, _display_values(fusion, name)
    own = _numbers(fusion, name)
    once = ~np.isin(group_of_values(matching.offsets), list(matching.duplicates or ()))
    if is_timed(fusion, name) and values.places is not None:
        means, errors = places_last_seen(fusion, name)  # where it was on average it may never have been
    else:
        means, errors = _own_means(fusion, name, values, own, once)
    counts, points, aside = _count(matching, own, once)
    kind, units = kind_named(fusion._fit.models[0].kind), text.units_of(fusion)
    least = _least_sure(fusion, name) if confidence else None
    return GroupTable(
        word=text.group_word(name),
        counted="" if own is None or kind is None else str(fusion._fit.models[0].facts.get("points", kind.counted)),
        are_shares=own is not None and not are_numbers(fusion),
        sites=tuple(fusion.sites),
        features=tuple(values.columns),
        units=tuple(units.get(column, "") for column in values.columns),
        held_by=matching.counts[:K],
        held=matching.presence[:, :K].T if K * len(fusion.sites) <= text.MOST_PAIRS else None,
        counts=counts,
        points=points,
        aside=aside,
        means=means[:K],
        errors=errors[:K],
        fused=values.atoms[:K],
        confidence=least,
        words=tuple(tuple(str(word) for word, _ in row) for row in (text.list_words(fusion, name) or [])[:K]),
        shared=None if least is None else fusion.posterior.sharing(set_name=name).first(K),
        at_several=matching.shared,
        allow_small=allow_small,
    )


class _Numbers(NamedTuple):
    """Points behind each local parameter (N,), and whether the site stated it: else they are nominal weights.

    `whole` are whole numbers of which those of a site add up; shares as they are.
    """

    points: Array
    stated: NDArray[np.bool_]
    whole: Array


def _numbers(fusion: modelweld.Fusion, name: str) -> _Numbers | None:
    """What the array `counts` says of every member of the set; None if there is no such array."""
    models = fusion._fit.models
    if any(model.axes.get("counts") != (name,) for model in models):
        return None
    points = [np.asarray(model.arrays["counts"]) for model in models]
    stated = np.repeat([not model.facts.get("nominal") for model in models], [len(own) for own in points])
    whole = [whole_numbers(own) for own in points] if are_numbers(fusion) else points
    return _Numbers(np.concatenate(points), stated, np.concatenate(whole))


def are_numbers(fusion: modelweld.Fusion) -> bool:
    """Whether counts are numbers of points, or shares of a site's."""
    return all(bool(model.facts.get("counted", True)) for model in fusion._fit.models)


class Small(NamedTuple):
    """Which atoms (A,), those excluded among them, and which local parameters (N,) stand for too few points."""

    atoms: NDArray[np.bool_]
    rows: NDArray[np.bool_]


def find_small(fusion: modelweld.Fusion, name: str, allow_small: bool) -> Small:
    """What of a set is not shown; nothing where that is allowed, or numbers of points are not known."""
    matching, own = fusion.matchings[name], _numbers(fusion, name)
    if allow_small or own is None or not are_numbers(fusion):
        return Small(np.zeros(len(matching.counts), dtype=bool), np.zeros(len(matching.stacked_labels), dtype=bool))
    points = np.where(own.stated, own.whole, 0.0)
    of_atoms = np.bincount(matching.stacked_labels, points, len(matching.counts)).astype(np.float64)
    return Small(text.are_few(of_atoms), text.are_few(points))


def display_keys(fusion: modelweld.Fusion, name: str) -> list[Key]:
    """The arrays by which people know this kind's members."""
    kind = kind_named(fusion._fit.models[0].kind)
    return [
        key
        for key in fusion.matchings[name].values
        if kind is None or kind.shown is None or any(array in kind.shown for array in arrays_of(key))
    ]


def _display_values(fusion: modelweld.Fusion, name: str) -> Values:
    """Local and fused values of these arrays."""
    matching, keys = fusion.matchings[name], display_keys(fusion, name)
    if keys:
        return gather_values(fusion, name, keys)
    none = np.zeros((len(matching.stacked_labels), 0))
    return Values(none, np.zeros((len(matching.counts), 0)), none > 0, [], False, (), matching.stacked_labels)


def _own_means(
    fusion: modelweld.Fusion, name: str, values: Values, own: _Numbers | None, once: NDArray[np.bool_]
) -> tuple[Array, Array]:
    """Means (K, D) of what sites sent of each group, weighted by points where these are known, and standard errors."""
    matching = fusion.matchings[name]
    labels, factor = matching.stacked_labels, once.astype(np.float64)
    if own is not None:
        empty = np.bincount(labels, own.points, len(matching.counts))[labels] == 0  # then all members are alike
        factor = factor * (own.points + empty)
    total, means, errors = np.zeros((3, *values.atoms.shape))
    for sums, power in ((total, 0), (means, 1), (errors, 2)):
        for part in blocks(len(labels), values.local.shape[1]):
            weight = values.seen[part] * factor[part, None]
            if power == 1:
                weight = weight * values.local[part]
            elif power == 2:
                weight = weight**2 * _variances(fusion, name, values, means, part)
            sums += sum_by_atom(weight, labels[part], len(sums))
        if power == 1:
            means[:] = np.where(total > 0, means / np.where(total > 0, total, 1.0), np.nan)
    return means, np.where(total > 0, np.sqrt(errors) / np.where(total > 0, total, 1.0), np.nan)


def _variances(fusion: modelweld.Fusion, name: str, values: Values, means: Array, part: slice) -> Array:
    """How uncertain each local value of a part is as one of its group (n, D).

    By the learned noise and the sites' standard errors where values scatter so; else by how far the group's members
    lie from their mean, which one alone does not tell.
    """
    matching = fusion.matchings[name]
    stacks, labels = dict(zip(matching.values, fusion._fit.stacks(name), strict=True)), matching.stacked_labels[part]
    members = np.bincount(matching.stacked_labels, minlength=len(matching.counts))[labels][:, None]
    parts, first = [], 0
    for key in values.keys:
        stack = stacks[key].take(part, stacks[key].offsets)
        columns = slice(first, first + stack.values.shape[1])
        first = columns.stop
        known = _value_variances(matching.families.get(key), stack)
        if known is None:
            off = values.local[part, columns] - means[labels][:, columns]
            off = np.where(values.seen[part, columns], off, 0.0)
            known = np.where(members > 1, off**2 * members / np.maximum(members - 1, 1), np.nan)
        parts.append(known)
    return np.hstack(parts) if parts else np.zeros(values.local[part].shape)


def _value_variances(family: Family | None, stack: Stack) -> Array | None:
    """Noise and standard errors of a Gaussian's values; None for others."""
    learned = None if family is None else variances_of(family)
    if learned is None:
        return None
    noise = learned.noise + np.zeros(stack.values.shape)
    if stack.weight is not None:
        noise = noise / np.where(stack.weight > 0, stack.weight, 1.0)
    return noise if stack.variance is None else noise + learned.inflation * stack.variance


def _count(
    matching: Matching, own: _Numbers | None, once: NDArray[np.bool_]
) -> tuple[Array | None, Array | None, float | None]:
    """Points by group and site (K, J), NaN where not stated; by group (K,), of repeated sites once; those excluded."""
    if own is None:
        return None, None, None
    J, A, K = len(matching.offsets) - 1, len(matching.counts), matching.K
    labels, stated = matching.stacked_labels, np.where(own.stated, own.whole, 0.0)
    points: Array = np.bincount(labels, stated * once, A).astype(np.float64)
    if A * J > text.MOST_PAIRS:
        return None, points[:K], float(points[K:].sum())
    counts = np.where(matching.presence.T, 0.0, np.nan)
    np.add.at(counts, (labels, group_of_values(matching.offsets)), np.where(own.stated, own.whole, np.nan))
    return counts[:K], points[:K], float(points[K:].sum())


def _least_sure(fusion: modelweld.Fusion, name: str) -> Array | None:
    """Confidence in the least certain match of each group; None if it is not known."""
    matching, stated = fusion.matchings[name], state_confidence(fusion, name, [])
    if stated is None:
        return None
    least = np.ones(len(matching.counts))
    np.minimum.at(least, matching.stacked_labels, np.nan_to_num(np.concatenate(stated), nan=1.0))
    return least[: matching.K]


def list_groups(
    fusion: modelweld.Fusion, name: str, stated: Confidence | None, rows: Index, most_columns: int, small: Small
) -> text.Content:
    """The groups of a set, with intervals if draws are behind the stated confidence.

    Points are those of the local parameters `rows` that the page lists; features are those in which groups differ most.
    """
    table = groups_of(fusion, name)
    few = small.atoms[: len(table)]
    noise, spread = _deviations(fusion, name, len(table.features))
    listed = np.sort(rank_features(table.means, noise**2)[:most_columns])
    low, high = _intervals(fusion, name, stated, table)
    own = None if table.counts is None else _numbers(fusion, name)
    decimals = [table.decimals[d] for d in listed]
    digits = text.digits_needed(table.means[:, listed], decimals)
    return {
        "word": table.word,
        "counted": table.counted,
        "shares": table.are_shares,
        "features": [table.features[d] for d in listed],
        "units": [table.units[d] for d in listed],
        "decimals": decimals,
        "columns": len(table.features),
        "means": text.hide(text.short(table.means[:, listed], digits), few),
        "errors": text.hide(text.short(table.errors[:, listed], 3), few),
        "fused": text.hide(text.short(table.fused[:, listed], digits), few),
        "low": None if low is None else text.hide(text.short(low[:, listed], digits), few),
        "high": None if high is None else text.hide(text.short(high[:, listed], digits), few),
        "level": text.LEVEL,
        "noise": [text.round_digits(x, 3) for x in noise[listed]],
        "spread": [text.round_digits(x, 3) for x in spread[listed]],
        "points": None if table.points is None else text.hide([text.exact(n) for n in table.points], few, text.FEW),
        "aside": None if table.aside is None else text.exact(table.aside),
        "members": None
        if own is None
        else text.hide(text.short(np.where(own.stated, own.whole, np.nan)[rows]), small.rows[rows], text.FEW),
        "held": _sharing(fusion, name, stated),
    }


def rank_features(means: Array, within: Array) -> Index:
    """Features, those first in which groups (K, D) differ most compared with how much they vary within (D,).

    Examples
    --------
    >>> rank_features(np.array([[0.0, 0.0], [100.0, 1.0]]), np.array([1e6, 0.01])).tolist()
    [1, 0]
    """
    between = np.array([np.var(own[np.isfinite(own)]) if np.isfinite(own).any() else 0.0 for own in means.T])
    share = np.where(between > 0, between / np.where(between > 0, between + np.nan_to_num(within), 1.0), 0.0)
    return np.argsort(-share, kind="stable")


def _deviations(fusion: modelweld.Fusion, name: str, D: int) -> tuple[Array, Array]:
    """Learned deviations (D,) from site to site and from group to group, in features' units; NaN: there are none."""
    matching = fusion.matchings[name]
    found = []
    for key in display_keys(fusion, name):
        family, size = matching.families.get(key), matching.values[key].shape[1]
        learned = None if family is None else variances_of(family)
        both = np.full((2, size), np.nan)
        if learned is not None:
            both[0], both[1] = np.sqrt(learned.noise), np.sqrt(learned.spread)
        found.append(both)
    noise, spread = np.hstack(found) if found else np.zeros((2, D))
    return noise, spread


def _intervals(
    fusion: modelweld.Fusion, name: str, stated: Confidence | None, table: GroupTable
) -> tuple[Array, Array] | tuple[None, None]:
    """Ends of the intervals of fused values (K, D); None where no draws are at hand, or the family has none."""
    matching = fusion.matchings[name]
    if stated is None or stated.how != "drawn" or tuple(matching.families) != tuple(display_keys(fusion, name)):
        return None, None
    try:
        found = fusion.posterior.atom_intervals(text.LEVEL, name)
    except InputError:  # a family that does not say how its atoms scatter
        return None, None
    return found.low[: len(table)], found.high[: len(table)]


def _sharing(fusion: modelweld.Fusion, name: str, stated: Confidence | None) -> text.Numbers:
    """Of every group the expected number of sites and the ends of its interval; None without confidences."""
    if stated is None:
        return None
    found = fusion.posterior.sharing(text.LEVEL, name, stated=stated)
    return list(text.short(np.column_stack([found.expected, found.low, found.high])))
