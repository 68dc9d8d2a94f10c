"""One set, stage by stage: from values to a matching.

| stage | what it does | where |
|---|---|---|
| check | values that no family takes are refused | `families.suggest` |
| count once | what was not seen, or sent before, stays out | `screening.twins`, `screening.quarantine` |
| screen | gross outliers and sites of far too many values stay out | `screening.outliers`, `screening.crowds` |
| run | start, Algorithm 1 and the search round it | `matching.search` |
| finish | far pieces join atoms; atoms by count, mixtures of them last | `screening.artefacts`, `matching.result` |
| take back | matches that a site's own values contradict, for kinds that ask for it | `screening.own_neighbours` |
| put back | outliers are in the result, each an atom of its own | `screening.quarantine` |
| screen again | a site that is off by a constant is set aside, the others refitted | `screening.quarantine` |
| put back | sites that coincide are labelled alike | `screening.twins` |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from modelweld.errors import ConvergenceWarning, InputError, warn_user
from modelweld.families import Family
from modelweld.families.suggest import misfit_error
from modelweld.inputs.local_model import check_squares
from modelweld.inputs.stack import Index, Key, Stack
from modelweld.matching.afresh import MOST_SWEEPS_AFRESH
from modelweld.matching.algorithm1 import AnyBoard, Run, alternate
from modelweld.matching.board import Board
from modelweld.matching.moves import MOST_ROUNDS
from modelweld.matching.piece_guard import falls_together, name_oversplit
from modelweld.matching.plan import MOST_SWEEPS, Plan, default_prior
from modelweld.matching.result import Matching, make_matching
from modelweld.matching.search import board_at, run
from modelweld.progress import tell
from modelweld.screening.artefacts import artefacts, join_shadows
from modelweld.screening.near_twins import number_likely, number_near
from modelweld.screening.own_neighbours import take_back
from modelweld.screening.quarantine import (
    put_outliers_back,
    set_crowds_aside,
    set_idle_aside,
    set_outliers_aside,
    set_shifted_aside,
    staying,
)
from modelweld.screening.twins import Fit, fit_distinct, number_values

Parts = Mapping[Key, tuple[Stack, Family]]
"""The arrays that decide a set's matching: their values of all sites, and their families."""


def match(
    parts: Parts,
    sites: Sequence[str],
    plan: Plan,
    rng: np.random.Generator,
    columns: Sequence[Sequence[str]] | None = None,
) -> Matching:
    """Which values of one set are copies of the same atom; `columns` names features in warnings."""
    check(parts, sites)
    given, families = [f.upright(stack) for stack, f in parts.values()], [family for _, family in parts.values()]

    def fit(stacks: Sequence[Stack], names: Sequence[str], _: Index) -> Matching:
        return fit_independent(stacks, families, list(parts), names, plan, rng, columns)

    if plan.search == "plain":
        return fit(given, sites, np.arange(0))
    return fit_once(given, families, sites, fit, once=plan.twins == "once")


def fit_once(
    given: Sequence[Stack], families: Sequence[Family], sites: Sequence[str], fit: Fit, *, once: bool
) -> Matching:
    """The matching of all values; `fit` sees those that say something, and of sites that coincide (`once`) one."""
    numbers = number_values(given, families)
    stacks, report, atoms = set_idle_aside(given, sites, numbers)
    rows, names = np.flatnonzero(report.keep), staying(sites, report)
    numbers = numbers[rows]
    if once:
        likely = number_likely(stacks, families, numbers)
        if likely is not numbers:
            judged = fit_distinct(stacks, likely, names, rows, fit, warn=False)
            numbers = number_near(judged, stacks, families, numbers, likely)
        matching = fit_distinct(stacks, numbers, names, rows, fit)
        near = number_near(matching, stacks, families, numbers)
        matching = matching if near is numbers else fit_distinct(stacks, near, names, rows, fit)
    else:
        matching = fit(stacks, names, rows)
    return matching if report.clean else put_outliers_back(matching, report, given, atoms)


def fit_independent(
    given: Sequence[Stack],
    families: Sequence[Family],
    names: Sequence[Key],
    sites: Sequence[str],
    plan: Plan,
    rng: np.random.Generator,
    columns: Sequence[Sequence[str]] | None,
) -> Matching:
    """The matching of sites that are taken for independent."""
    stacks, report = given, None
    if plan.screen:
        stacks, crowds = set_crowds_aside(given, sites)
        if not crowds.clean:
            others = staying(sites, crowds)
            matching = fit_independent(stacks, families, names, others, plan, rng, columns)
            return put_outliers_back(matching, crowds, given)
        tell("looking for outliers", 0)
        stacks, report = set_outliers_aside(given, families, sites, names, columns)
    board, progress, order = run(stacks, families, default_prior(plan.prior, len(sites)), plan, rng)
    limits = limits_met(progress, plan) if plan.warn else []
    for limit in limits:
        warn_user(limit, ConvergenceWarning)
    matching = finish(board, progress, names, order, stacks[0].offsets)
    matching = replace(matching, reasons=(*matching.reasons, *limits)) if limits else matching
    if plan.guard:
        matching = take_strangers_back(matching, stacks, staying(sites, report), rng)
    matching = put_outliers_back(matching, report, given)
    if matching.copies is not None:
        name_oversplit(matching, sites)
    return replace(set_aside_shifted(matching, given, sites, rng), screened=True) if plan.screen else matching


def limits_met(progress: Run, plan: Plan) -> list[str]:
    """Which bounds on effort ended the search before it was done: they stand among the reasons of the Fusion, too."""
    found = []
    if not progress.converged:
        found.append(
            f"no sweep without change among the first {plan.max_sweeps}: the matching is the last one reached. Raise "
            "max_sweeps; with preset='paper' or 'authors' runs can go round in circles (erratum E2)."
        )
    if progress.cut_short:
        afresh = f"{MOST_SWEEPS_AFRESH} sweeps" if plan.search != "thorough" else f"{MOST_ROUNDS} rounds"
        found.append(
            f"matching sites afresh, or merging and splitting atoms, still found better matchings after {afresh}, "
            "and was ended there: the matching is the best one found."
            + ("" if plan.search == "thorough" else " search='thorough' goes on.")
        )
    return found


def check(parts: Parts, sites: Sequence[str]) -> None:
    """Refuse values that cannot be matched: where, why, and what to do."""
    for name, (stack, family) in parts.items():
        if stack.values.shape[1] == 0 and len(stack.values):
            raise InputError(f"array {name!r} has no columns: there is nothing to match by. Send values with features.")
        check_squares(stack.values)
        found = family.misfit(stack)
        if found is not None:
            raise misfit_error(family, found, stack, sites, name)


def finish(board: AnyBoard, progress: Run, names: Sequence[Key], order: Index, offsets: Index) -> Matching:
    """The matching a user sees: far pieces of atoms joined to them, mixtures of atoms set aside."""
    objective = progress.history[-1]
    found = artefacts(board) if isinstance(board, Board) and board.pieces is not None else []
    if isinstance(board, Board) and any(artefact.is_piece for artefact in found):
        joined, left = join_shadows(board, found)
        if falls_together(joined):  # neighbours in a continuum, each at most sites, are no pieces of each other
            found = [artefact for artefact in found if not artefact.is_piece]
        else:
            board, found, objective = joined, left, joined.objective()
    return make_matching(board, progress, names, order, offsets, objective, found)


def take_strangers_back(
    matching: Matching, stacks: Sequence[Stack], sites: Sequence[str], rng: np.random.Generator
) -> Matching:
    """The matching without matches that the sites' own values contradict; hyperparameters stay."""

    def at(labels: Index) -> Matching:
        return refit(matching, stacks, labels, rng, learn=False)

    return take_back(matching, stacks, sites, at)


def set_aside_shifted(
    matching: Matching, stacks: Sequence[Stack], sites: Sequence[str], rng: np.random.Generator
) -> Matching:
    """The matching without sites that are off by a constant; the others are fitted on."""

    def fitted_on(stacks: Sequence[Stack], labels: Index) -> Matching:
        return refit(matching, stacks, labels, rng)

    return set_shifted_aside(matching, stacks, sites, fitted_on)


def refit(
    old: Matching, stacks: Sequence[Stack], labels: Index, rng: np.random.Generator, *, learn: bool = True
) -> Matching:
    """The matching of these stacks that one comes to from `labels` (NEW: none yet) and the old hyperparameters."""
    board, order = board_at(old, stacks, labels, anew=learn)
    board.place_new()
    progress = Run([board.objective()], [], True)
    if learn:
        board.learn()
        progress = alternate(board, len(stacks[0].sizes), rng, MOST_SWEEPS)
    return finish(board, progress, list(old.families), order, stacks[0].offsets)
