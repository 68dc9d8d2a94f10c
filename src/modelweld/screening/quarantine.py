"""What stays out of the fit and in the result: each value an atom of its own, set aside, named with the reason.

Values of which nothing was seen, and those that repeat another of their site (dead units), have nothing to say. Gross
outliers and sites of far too many values are set aside before the fit (`screening.outliers` and `screening.crowds` find
them). A site that is off by a constant is set aside
after it: its values lie among honest ones, so nothing is wrong with any of them alone, but hardly any is shared, and
after one common shift most would be (`screening.shift_estimate`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from modelweld.errors import OutlierWarning, warn_user
from modelweld.families import Family
from modelweld.inputs.stack import Index, Key, Stack, arrays_of, group_of_values, offsets_of
from modelweld.matching.leave_one_out import leave_out
from modelweld.matching.parts import Parts
from modelweld.matching.result import Matching, by_count, ranks
from modelweld.progress import tell
from modelweld.screening.crowds import find_crowds
from modelweld.screening.outliers import BREAKDOWN, FEWEST_SITES_TO_COMPARE, Flags, OutlierReport, find_outliers
from modelweld.screening.shift_estimate import explaining_shift, shiftable_arrays
from modelweld.screening.site_medians import any_seen
from modelweld.screening.twins import repetitions

MOST_SHARED = 0.5
"""Share of a site's values that others hold too, from which on it cannot be shifted as a whole."""


def set_idle_aside(
    stacks: Sequence[Stack], sites: Sequence[str], numbers: Index
) -> tuple[list[Stack], OutlierReport, Index]:
    """Stacks without values that say nothing or repeat another of their site (by their `numbers`), and what was found.

    They would be atoms at every site that has some. Where no value says anything, all are kept. Also numbers of atoms
    at which to put them back: second copies of a value are one, third ones another.
    """
    seen = any_seen(stacks, len(numbers))
    seen = seen if seen.any() else ~seen
    numbers = np.where(seen, numbers, len(numbers) + np.arange(len(numbers)))
    before = repetitions(stacks, numbers)
    if seen.all() and not before.any():
        return list(stacks), _nothing(stacks[0]), numbers
    unseen, again = (_number(which, stacks[0].offsets) for which in (~seen, before > 0))
    reasons = [
        f"site {sites[j]!r}: {found[j]} of its {stacks[0].sizes[j]} values {why}. They are set aside."
        for found, why in (
            (unseen, "were not seen (weight zero)"),
            (again, "repeat another of them"),
        )
        for j in np.flatnonzero(found).tolist()
    ]
    report = _report((before == 0) & seen, stacks[0].offsets, reasons)
    return _keep(stacks, report), report, before * (int(numbers.max(initial=0)) + 1) + numbers


def _nothing(stack: Stack) -> OutlierReport:
    """That every value is kept."""
    return OutlierReport(np.ones(len(stack.values), dtype=bool), (), {}, [], ())


def _report(keep: Flags, offsets: Index, reasons: list[str]) -> OutlierReport:
    """What is set aside, for these reasons; sites of which nothing is kept go whole."""
    empty = (_number(keep, offsets) == 0) & (np.diff(offsets) > 0)
    return OutlierReport(keep, tuple(np.flatnonzero(empty).tolist()), {}, reasons, ())


def _number(which: Flags, offsets: Index) -> Index:
    """How many of these values every site has."""
    return np.diff(np.concatenate([[0], np.cumsum(which)])[offsets])


def _keep(stacks: Sequence[Stack], report: OutlierReport) -> list[Stack]:
    """Stacks of the values to fit; sites set aside whole are no groups any more."""
    if report.clean:
        return list(stacks)
    sizes = np.delete(_number(report.keep, stacks[0].offsets), report.sites)
    rows = np.flatnonzero(report.keep)
    return [stack.take(rows, offsets_of(sizes)) for stack in stacks]


def set_crowds_aside(stacks: Sequence[Stack], sites: Sequence[str]) -> tuple[list[Stack], OutlierReport]:
    """Stacks without sites that send far more values than others, and what was found."""
    sizes, offsets = stacks[0].sizes, stacks[0].offsets
    crowds = find_crowds(sizes)
    if not crowds.size:
        return list(stacks), _nothing(stacks[0])
    typical = float(np.median(sizes[sizes > 0]))
    reasons = [
        f"site {sites[j]!r} sent {sizes[j]:,} values, a typical site {typical:g}: the whole site is set aside, so that "
        "its number decides nothing. Ask its owner for a model with fewer components; filter_outliers=False takes it."
        for j in crowds.tolist()
    ]
    for reason in reasons:
        warn_user(reason, OutlierWarning)
    report = _report(~np.isin(group_of_values(offsets), crowds), offsets, reasons)
    return _keep(stacks, report), report


def set_outliers_aside(
    stacks: Sequence[Stack],
    families: Sequence[Family],
    sites: Sequence[str],
    names: Sequence[Key],
    columns: Sequence[Sequence[str]] | None = None,
) -> tuple[list[Stack], OutlierReport | None]:
    """Stacks of the values to fit, and what was found; sites set aside whole are no groups any more.

    Only values that have places can be far from others: arrays of other families do not decide.
    """
    real = [i for i, family in enumerate(families) if family.has_places]
    if not real:
        return list(stacks), None
    report = find_outliers(
        [stacks[i] for i in real],
        list(sites),
        [", ".join(arrays_of(names[i])) for i in real],
        None if columns is None else [columns[i] for i in real],
    )
    for reason in report.reasons:
        warn_user(reason, OutlierWarning)
    return _keep(stacks, report), report


def staying(sites: Sequence[str], report: OutlierReport | None) -> list[str]:
    """Names of the sites that are not set aside whole."""
    return [site for j, site in enumerate(sites) if report is None or j not in report.sites]


def put_outliers_back(
    matching: Matching, report: OutlierReport | None, stacks: Sequence[Stack], atoms: Index | None = None
) -> Matching:
    """The matching of the values fitted, with those set aside put back: atoms of their own, after all others.

    One for each value, or for those with the same of some numbers, `atoms`. They are numbered by content, not as they
    arrived. Those that were set aside before stay so.
    """
    if report is None:
        return matching
    if report.clean:
        return replace(matching, kept=report.keep)
    outside = np.flatnonzero(~report.keep)
    outside = outside[by_count(np.ones_like(outside), np.hstack([stack.values[outside] for stack in stacks]))]
    _, first, atom, counts = np.unique(
        outside if atoms is None else atoms[outside], return_index=True, return_inverse=True, return_counts=True
    )
    order = np.argsort(first)
    labels = np.empty(len(report.keep), dtype=np.int64)
    labels[report.keep] = matching.stacked_labels
    labels[outside] = len(matching.counts) + ranks(order)[atom]
    kept = report.keep.copy()
    kept[kept] = True if matching.kept is None else matching.kept
    stay = np.delete(np.arange(len(stacks[0].sizes)), report.sites).tolist()
    return replace(
        matching,
        stacked_labels=labels,
        offsets=stacks[0].offsets,
        counts=np.concatenate([matching.counts, counts[order]]),
        values={
            name: np.vstack([values, stack.values[outside[first[order]]]])
            for (name, values), stack in zip(matching.values.items(), stacks, strict=True)
        },
        kept=kept,
        reasons=(*matching.reasons, *report.reasons),
        twins=matching.twins and {stay[j]: stay[first] for j, first in matching.twins.items()},
    )


def find_shifted(matching: Matching, stacks: Sequence[Stack]) -> dict[int, int]:
    """Sites that a common shift explains, and how many of their values it would match; none if they are many."""
    shared = matching.counts[matching.stacked_labels] > 1
    kept = np.ones(len(shared), dtype=bool) if matching.kept is None else matching.kept
    sizes, number = _number(kept, matching.offsets), _number(shared & kept, matching.offsets)
    suspects = np.flatnonzero((sizes > 0) & (number < MOST_SHARED * sizes))
    most = BREAKDOWN * np.count_nonzero(sizes)
    if matching.prior is None or np.count_nonzero(sizes) < FEWEST_SITES_TO_COMPARE or not 0 < len(suspects) < most:
        return {}
    families = list(matching.families.values())
    parts = Parts(stacks, families, matching.prior, matching.copies, matching.stacked_labels)
    places = shiftable_arrays(parts)
    if len(places) < len(families):
        return {}
    found = {}
    tell("looking for shifted sites", 0)
    for first, last, board in parts:
        for j in suspects[(suspects >= first) & (suspects < last)].tolist():
            shift = explaining_shift(board, places, leave_out(board, j - first))
            if shift is not None:
                found[j] = shift.matched
    return found


def set_shifted_aside(
    matching: Matching,
    stacks: Sequence[Stack],
    sites: Sequence[str],
    refit: Callable[[Sequence[Stack], Index], Matching],
) -> Matching:
    """The matching with shifted sites set aside whole, like gross outliers, with a warning; the others refitted."""
    found = find_shifted(matching, stacks)
    if not found:
        return matching
    offsets = stacks[0].offsets
    keep = np.ones(len(matching.stacked_labels), dtype=bool) if matching.kept is None else matching.kept.copy()
    reasons = list(matching.reasons)
    for j, matched in found.items():
        reasons.append(
            f"site {sites[j]!r}: moved by one constant shift, {matched} of its {offsets[j + 1] - offsets[j]} values "
            "would match atoms of the others; as they are, hardly any does. The whole site is set aside: ask its owner "
            "about units, calibration or preprocessing (fusion.diagnose() says how far it is off)."
        )
        warn_user(reasons[-1], OutlierWarning)
        keep[offsets[j] : offsets[j + 1]] = False
    report = _report(keep, offsets, reasons)
    return put_outliers_back(refit(_keep(stacks, report), matching.stacked_labels[keep]), report, stacks)
