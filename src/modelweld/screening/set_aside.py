"""Screens that set values aside: out of the fit and in the result, each an atom of its own, named with the reason.

Values of which nothing was seen, and those that repeat another of their site, have nothing to say (`idle`). Gross
outliers (`outliers`) and sites of far too many values (`crowds`) are set aside before the fit. A site that is off by a
constant is set aside after it (`shifted`): its values lie among honest ones, so nothing is wrong with any of them
alone, but hardly any is shared, and after one common shift most would be (`screening.shift_estimate`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from modelweld.errors import OutlierWarning, warn_user
from modelweld.inputs.stack import Index, arrays_of, group_of_values
from modelweld.matching.leave_one_out import leave_out
from modelweld.matching.parts import Parts
from modelweld.matching.piece_guard import name_oversplit
from modelweld.matching.result import Matching
from modelweld.progress import tell
from modelweld.screening.crowds import find_crowds
from modelweld.screening.outliers import BREAKDOWN, FEWEST_SITES_TO_COMPARE, find_outliers
from modelweld.screening.pipeline import Fit, Flags, Refit, SetValues
from modelweld.screening.shift_estimate import explaining_shift, shiftable_arrays
from modelweld.screening.site_medians import any_seen
from modelweld.screening.twins import number_values, repetitions

MOST_SHARED = 0.5
"""Share of a site's values that others hold too, from which on it cannot be shifted as a whole."""


def idle(values: SetValues, fit: Fit) -> Matching:
    """Set aside what says nothing: values that were not seen, or repeat another of their site (dead units).

    They would be atoms at every site that has some. Where no value says anything, all are kept.
    """
    values = replace(values, numbers=number_values(values.stacks, values.families))
    keep, reasons, atoms = find_idle(values)
    return fit(values) if keep.all() else values.put_back(fit(values.keep(keep)), keep, reasons, atoms)


def find_idle(values: SetValues) -> tuple[Flags, list[str], Index]:
    """Values that say something, why the others do not, and atoms of these: second copies of a value are one."""
    assert values.numbers is not None
    N, numbers = len(values.rows), values.numbers
    seen = any_seen(values.stacks, N)
    seen = seen if seen.any() else ~seen
    numbers = np.where(seen, numbers, N + np.arange(N))
    before = repetitions(values.stacks, numbers)
    found = ((~seen, "were not seen (weight zero)"), (before > 0, "repeat another of them"))
    reasons = [
        f"site {values.sites[j]!r}: {number[j]} of its {values.sizes[j]} values {why}. They are set aside."
        for number, why in ((values.number(which), why) for which, why in found if which.any())
        for j in np.flatnonzero(number).tolist()
    ]
    return (before == 0) & seen, reasons, before * (int(numbers.max(initial=0)) + 1) + numbers


def crowds(values: SetValues, fit: Fit) -> Matching:
    """Set aside sites that send far more values than others."""
    found, sizes = find_crowds(values.sizes), values.sizes
    if not found.size:
        return fit(values)
    typical = float(np.median(sizes[sizes > 0]))
    reasons = [
        f"site {values.sites[j]!r} sent {sizes[j]:,} values, a typical site {typical:g}: the whole site is set aside, "
        "so that its number decides nothing. Ask its owner for a model with fewer components; filter_outliers=False "
        "takes it."
        for j in found.tolist()
    ]
    for reason in reasons:
        warn_user(reason, OutlierWarning)
    keep = ~np.isin(group_of_values(values.offsets), found)
    return values.put_back(crowds(values.keep(keep), fit), keep, reasons)


def outliers(values: SetValues, fit: Fit) -> Matching:
    """Set aside gross outliers. Only values that have places can be far from others: other arrays do not decide."""
    real = [i for i, family in enumerate(values.families) if family.has_places]
    if not real:
        return fit(values)
    tell("looking for outliers", 0)
    names = [", ".join(arrays_of(values.names[i])) for i in real]
    columns = None if values.columns is None else [values.columns[i] for i in real]
    report = find_outliers([values.stacks[i] for i in real], list(values.sites), names, columns)
    for reason in report.reasons:
        warn_user(reason, OutlierWarning)
    if report.clean:
        return replace(fit(values), kept=report.keep)
    return values.put_back(fit(values.keep(report.keep)), report.keep, report.reasons)


def shifted(values: SetValues, fit: Fit, refit: Refit) -> Matching:
    """Set aside whole sites that are off by a constant, with a warning; the others are fitted on."""
    matching = replace(fit(values), screened=True)
    found = find_shifted(matching, values)
    if not found:
        return matching
    keep = np.ones(len(values.rows), dtype=bool) if matching.kept is None else matching.kept.copy()
    reasons = list(matching.reasons)
    for j, matched in found.items():
        reasons.append(
            f"site {values.sites[j]!r}: moved by one constant shift, {matched} of its {values.sizes[j]} values "
            "would match atoms of the others; as they are, hardly any does. The whole site is set aside: ask its owner "
            "about units, calibration or preprocessing (fusion.diagnose() says how far it is off)."
        )
        warn_user(reasons[-1], OutlierWarning)
        keep[values.offsets[j] : values.offsets[j + 1]] = False
    matching = refit(matching, values.keep(keep), matching.stacked_labels[keep])
    return replace(values.put_back(matching, keep, reasons), screened=True)


def oversplit(values: SetValues, fit: Fit) -> Matching:
    """Set nothing aside: name sites that sent their atoms in pieces, where most did not."""
    matching = fit(values)
    if matching.copies is not None:
        name_oversplit(matching, values.sites)
    return matching


def find_shifted(matching: Matching, values: SetValues) -> dict[int, int]:
    """Sites that a common shift explains, and how many of their values it would match; none if they are many."""
    shared = matching.counts[matching.stacked_labels] > 1
    kept: Flags = np.ones(len(shared), dtype=bool) if matching.kept is None else matching.kept
    sizes, number = values.number(kept), values.number(shared & kept)
    suspects = np.flatnonzero((sizes > 0) & (number < MOST_SHARED * sizes))
    most = BREAKDOWN * np.count_nonzero(sizes)
    if matching.prior is None or np.count_nonzero(sizes) < FEWEST_SITES_TO_COMPARE or not 0 < len(suspects) < most:
        return {}
    families = list(matching.families.values())
    parts = Parts(values.stacks, families, matching.prior, matching.copies, matching.stacked_labels)
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
