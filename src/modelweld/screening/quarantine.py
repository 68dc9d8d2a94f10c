"""What stays out of the fit and in the result: each value an atom of its own, set aside, named with the reason.

Gross outliers are set aside before the fit (`screening.outliers` finds them). A site that is off by a constant is set
aside after it: its values lie among honest ones, so nothing is wrong with any of them alone, but hardly any is shared,
and after one common shift most would be (`screening.shift_estimate`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from modelweld.errors import OutlierWarning, warn_user
from modelweld.families import Family
from modelweld.inputs.stack import Index, Key, Stack, arrays_of, offsets_of
from modelweld.matching.board import Board
from modelweld.matching.leave_one_out import leave_out
from modelweld.matching.result import Matching
from modelweld.progress import track
from modelweld.screening.outliers import BREAKDOWN, FEWEST_SITES_TO_COMPARE, OutlierReport, find_outliers
from modelweld.screening.shift_estimate import explaining_shift, shiftable_arrays

MOST_SHARED = 0.5
"""Share of a site's values that others hold too, from which on it cannot be shifted as a whole."""


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
    if report.clean:
        return list(stacks), report
    sizes = np.add.reduceat(np.append(report.keep, False), stacks[0].offsets[:-1]) * (stacks[0].sizes > 0)
    stay = np.setdiff1d(np.arange(len(sizes)), report.sites)
    kept = np.flatnonzero(report.keep)
    return [stack.take(kept, offsets_of(sizes[stay])) for stack in stacks], report


def staying(sites: Sequence[str], report: OutlierReport | None) -> list[str]:
    """Names of the sites that are not set aside whole."""
    return [site for j, site in enumerate(sites) if report is None or j not in report.sites]


def put_outliers_back(matching: Matching, report: OutlierReport | None, stacks: Sequence[Stack]) -> Matching:
    """The matching of the values fitted, with those set aside put back: each an atom of its own, after all others."""
    if report is None:
        return matching
    if report.clean:
        return replace(matching, kept=report.keep)
    outside = ~report.keep
    labels = np.empty(len(outside), dtype=np.int64)
    labels[report.keep] = matching.stacked_labels
    labels[outside] = len(matching.counts) + np.arange(outside.sum())
    return replace(
        matching,
        stacked_labels=labels,
        offsets=stacks[0].offsets,
        counts=np.concatenate([matching.counts, np.ones(outside.sum(), dtype=np.int64)]),
        values={
            name: np.vstack([values, stack.values[outside]])
            for (name, values), stack in zip(matching.values.items(), stacks, strict=True)
        },
        kept=report.keep,
        reasons=(*matching.reasons, *report.reasons),
    )


def find_shifted(matching: Matching, stacks: Sequence[Stack]) -> dict[int, int]:
    """Sites that a common shift explains, and how many of their values it would match; none if they are many."""
    J = len(matching.offsets) - 1
    shared = matching.counts[matching.stacked_labels] > 1
    kept = np.ones(len(shared), dtype=bool) if matching.kept is None else matching.kept
    sizes = np.add.reduceat(np.append(kept, False), matching.offsets[:-1]) * (np.diff(matching.offsets) > 0)
    number = np.add.reduceat(np.append(shared & kept, False), matching.offsets[:-1])
    suspects = np.flatnonzero((sizes > 0) & (number < MOST_SHARED * sizes))
    most = BREAKDOWN * np.count_nonzero(sizes)
    if matching.prior is None or np.count_nonzero(sizes) < FEWEST_SITES_TO_COMPARE or not 0 < len(suspects) <= most:
        return {}
    families = list(matching.families.values())
    board = Board(stacks, families, matching.prior, matching.copies, matching.stacked_labels)
    places = shiftable_arrays(board)
    if len(places) < len(board.families):
        return {}
    looked_at = track([int(j) for j in suspects if j < J], "looking for shifted sites", len(suspects))
    shifts = {j: explaining_shift(board, places, leave_out(board, j)) for j in looked_at}
    return {j: shift.matched for j, shift in shifts.items() if shift is not None}


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
    left = np.add.reduceat(np.append(keep, False), offsets[:-1]) * (np.diff(offsets) > 0)
    empty = np.flatnonzero((left == 0) & (np.diff(offsets) > 0))
    stay = np.setdiff1d(np.arange(len(left)), empty)
    kept = np.flatnonzero(keep)
    fitted = [stack.take(kept, offsets_of(left[stay])) for stack in stacks]
    report = OutlierReport(keep, tuple(int(j) for j in empty), {}, reasons, ())
    return put_outliers_back(refit(fitted, matching.stacked_labels[keep]), report, stacks)
