"""A site that is off by a constant is set aside after the fit, and the others are fitted on without it.

Its values lie among honest ones, so nothing is wrong with any of them alone (`modelweld.screening.outliers` looks for
that before the fit). But hardly any is shared, and after one common shift most would be
(`modelweld.screening.shift_estimate`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from modelweld.errors import OutlierWarning, warn_user
from modelweld.inputs.stack import Index, Stack, offsets_of
from modelweld.matching.board import Board
from modelweld.matching.leave_one_out import leave_out
from modelweld.matching.result import Matching
from modelweld.progress import told
from modelweld.screening.outliers import BREAKDOWN, FEWEST_SITES, OutlierReport
from modelweld.screening.quarantine import with_outliers
from modelweld.screening.shift_estimate import explaining_shift, shiftable_arrays

MOST_SHARED = 0.5
"""Share of a site's values that others hold too, from which on it cannot be shifted as a whole."""


def shifted_sites(matching: Matching, stacks: Sequence[Stack]) -> dict[int, int]:
    """Sites that a common shift explains, and how many of their values it would match; none if they are many."""
    J = len(matching.offsets) - 1
    shared = matching.counts[matching.stacked_labels] > 1
    kept = np.ones(len(shared), dtype=bool) if matching.kept is None else matching.kept
    sizes = np.add.reduceat(np.append(kept, False), matching.offsets[:-1]) * (np.diff(matching.offsets) > 0)
    number = np.add.reduceat(np.append(shared & kept, False), matching.offsets[:-1])
    suspects = np.flatnonzero((sizes > 0) & (number < MOST_SHARED * sizes))
    most = BREAKDOWN * np.count_nonzero(sizes)
    if matching.prior is None or np.count_nonzero(sizes) < FEWEST_SITES or not 0 < len(suspects) <= most:
        return {}
    families = list(matching.families.values())
    board = Board(stacks, families, matching.prior, matching.copies, matching.stacked_labels)
    places = shiftable_arrays(board)
    if len(places) < len(board.families):
        return {}
    looked_at = told([int(j) for j in suspects if j < J], "looking for shifted sites", len(suspects))
    shifts = {j: explaining_shift(board, places, leave_out(board, j)) for j in looked_at}
    return {j: shift.matched for j, shift in shifts.items() if shift is not None}


def without_shifted(
    matching: Matching,
    stacks: Sequence[Stack],
    sites: Sequence[str],
    refit: Callable[[Sequence[Stack], Index], Matching],
) -> Matching:
    """The matching with shifted sites set aside whole, like gross outliers, with a warning; the others refitted."""
    found = shifted_sites(matching, stacks)
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
    rows = np.flatnonzero(keep)
    fitted = [stack.take(rows, offsets_of(left[stay])) for stack in stacks]
    report = OutlierReport(keep, tuple(int(j) for j in empty), {}, reasons, ())
    return with_outliers(refit(fitted, matching.stacked_labels[keep]), report, stacks)
