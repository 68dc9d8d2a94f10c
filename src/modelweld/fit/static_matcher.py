"""One set: values in, a matching out. Screens stand round the fit, which is the search round Algorithm 1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from modelweld.core.algorithm1 import Run
from modelweld.core.board import Board
from modelweld.core.family import canonical_sign, find_misfit
from modelweld.core.match import MOST_SWEEPS, Auto, Parts, Plan, Screen, through
from modelweld.core.matching import Matching, make_matching
from modelweld.core.prior import Prior
from modelweld.core.values import SetValues, check_squares
from modelweld.errors import ConvergenceWarning, Finding, InputError
from modelweld.families.capabilities import misfit_error
from modelweld.fit.engines.choice import engine_for
from modelweld.fit.engines.sweep_engines import Reference
from modelweld.fit.presets import fit_as_printed
from modelweld.fit.priors.spectrum import Spectrum
from modelweld.fit.screening import screens
from modelweld.fit.screening.duplicates import duplicates
from modelweld.fit.search.moves import join_common_splits
from modelweld.fit.search.starts import run


def match(
    parts: Parts,
    sites: Sequence[str],
    plan: Plan,
    rng: np.random.Generator,
    columns: Sequence[Sequence[str]] | None = None,
) -> Matching:
    """Which values of one set are copies of the same atom; `columns` names features in warnings."""
    check(parts, sites)
    values = values_of(parts, sites, columns)
    return through(screens_of(plan), partial(fit, plan=plan, rng=rng))(values)


def screens_of(plan: Plan) -> list[Screen]:
    """The screens of a plan, the first one outermost: one list for sites at once, with times, later or in shards."""
    asked: dict[Screen, bool | str] = {
        screens.exclude_unobserved: plan.search != "plain",
        duplicates: plan.search != "plain" and plan.duplicates,
        screens.exclude_oversized: plan.outliers,
        screens.oversplit: plan.splits,
        screens.exclude_outliers: plan.outliers,
    }
    return [screen for screen, wanted in asked.items() if wanted]


def values_of(parts: Parts, sites: Sequence[str], columns: Sequence[Sequence[str]] | None) -> SetValues:
    """What the first screen gets."""
    stacks, families = [canonical_sign(f, stack) for stack, f in parts.values()], [f for _, f in parts.values()]
    return SetValues(stacks, families, list(parts), list(sites), columns, np.arange(len(stacks[0].values)))


def fit(values: SetValues, plan: Plan, rng: np.random.Generator) -> Matching:
    """The matching of values that are taken for honest and independent; the paper's where the search is plain."""
    prior = default_prior(plan.prior)
    plain = plan.search == "plain" and not plan.splits_of(values.stacks)
    if plain and isinstance(engine_for(values.stacks, values.families, prior, plan), Reference):
        matching = fit_as_printed(values, prior, plan.max_sweeps, rng)
        return matching.say(*limits_met(Run(converged=matching.converged), plan)) if plan.warn else matching
    board, progress, order = run(values.stacks, values.families, prior, plan, rng)
    common = 0
    if plan.search != "plain" and plan.splits_of(values.stacks) and isinstance(board, Board):
        board, progress, common = join_common_splits(board, progress)
    matching = replace(make_matching(board, progress, values.names, order, values.offsets), common_splits=common)
    return matching.say(*limits_met(progress, plan)) if plan.warn else matching


def default_prior(prior: Prior | Auto) -> Prior:
    """The prior itself, or the one whose sharing frequencies are learned."""
    return prior if isinstance(prior, Prior) else Spectrum()


def limits_met(progress: Run, plan: Plan) -> list[Finding]:
    """Which bounds on effort ended the search before it was done."""
    found = []
    if not progress.converged:
        found.append(
            f"no sweep without change among the first {plan.max_sweeps}: the matching is the last one reached. Raise "
            "search=Search(max_sweeps=...); with preset='paper' or 'authors' runs can go round in circles (erratum E2)."
        )
    if progress.cut_short:
        found.append(
            f"merging, splitting and dissolving atoms still found better matchings after {MOST_SWEEPS} rounds, and was "
            "ended there: the matching is the best one found."
        )
    return [Finding(limit, ConvergenceWarning) for limit in found]


def check(parts: Parts, sites: Sequence[str]) -> None:
    """Refuse values that cannot be matched: where, why, and what to do."""
    for name, (stack, family) in parts.items():
        if stack.values.shape[1] == 0 and len(stack.values):
            raise InputError(f"array {name!r} has no columns: there is nothing to match by. Send values with features.")
        check_squares(stack.values)
        found = find_misfit(family, stack)
        if found is not None:
            raise misfit_error(family, found, stack, sites, name)
