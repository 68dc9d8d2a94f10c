"""Gross outliers stay out of the fit and in the result: each an atom of its own, set aside, named with the reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from modelweld.errors import OutlierWarning, warn_user
from modelweld.families import Family
from modelweld.inputs.keys import Key, arrays_of
from modelweld.inputs.stack import Stack, offsets_of
from modelweld.matching.result import Matching
from modelweld.screening.outliers import OutlierReport, set_aside


def without_outliers(
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
    report = set_aside(
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
    rows = np.flatnonzero(report.keep)
    return [stack.take(rows, offsets_of(sizes[stay])) for stack in stacks], report


def with_outliers(matching: Matching, report: OutlierReport | None, stacks: Sequence[Stack]) -> Matching:
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
        reasons=tuple(report.reasons),
    )
