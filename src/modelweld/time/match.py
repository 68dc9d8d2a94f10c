"""One set of groups in time: from values and times to a matching."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from modelweld.errors import ConvergenceWarning, InputError, warn_user
from modelweld.families import Drift, Family
from modelweld.families.fading import Moving, moving
from modelweld.families.suggest import misfit_error
from modelweld.inputs.clock import as_numbers, times_by_site
from modelweld.inputs.local_model import Array, LocalModel, check_squares
from modelweld.inputs.plain_tables import as_model
from modelweld.inputs.stack import Index, Key, Stack
from modelweld.matching.algorithm1 import Run, alternate
from modelweld.matching.plan import MOST_SWEEPS, Plan
from modelweld.matching.result import Matching, make_matching
from modelweld.priors.lives import Lives
from modelweld.screening.pipeline import Fit, Screen, SetValues, through
from modelweld.screening.set_aside import crowds, idle, outliers
from modelweld.screening.twins import fit_distinct
from modelweld.time.search import arrange_in_time, run
from modelweld.time.timeline import Timeline


def put_times(
    given: Sequence[object], times: Sequence[object] | Mapping[str, object], names: Sequence[str]
) -> list[LocalModel]:
    """What sites sent, as LocalModels that say when."""
    moments = times_by_site(times, names)
    return [
        model.with_(time=time) if isinstance(model, LocalModel) else as_model(model, where=f"site {name}", time=time)
        for model, name, time in zip(given, names, moments, strict=True)
    ]


def times_of(models: Sequence[LocalModel], names: Sequence[str]) -> Array | None:
    """When models were trained, as numbers; None if none says so."""
    return as_numbers([model.time for model in models], names)


def match_in_time(
    parts: Mapping[Key, tuple[Stack, Family]], times: Array, sites: Sequence[str], plan: Plan, rng: np.random.Generator
) -> Matching:
    """Which values of one set belong to the same moving atom."""
    prior = check_plan(plan)
    key, stack, family = deciding(parts)
    check_squares(stack.values)
    found = family.misfit(stack)
    if found is not None:
        raise misfit_error(family, found, stack, sites, key)
    return fit_in_time(key, stack, family, times, sites, plan, prior, rng)


def fit_in_time(
    key: Key,
    stack: Stack,
    family: Moving,
    times: Array,
    sites: Sequence[str],
    plan: Plan,
    prior: Lives | None,
    rng: np.random.Generator,
) -> Matching:
    """The matching of all values; what says nothing, was sent twice at one time or lies far out stays out of the fit.

    Screened as without times (`modelweld.match`), but for sites off by a constant: a group that comes later may be.
    A site that sends the same at another time has not changed, and is no twin.
    """
    when = dict(zip(sites, times, strict=True))

    def fit(values: SetValues) -> Matching:
        moments = np.array([when[name] for name in values.sites])
        arranged, ordered, order = arrange_in_time(values.stacks[0], moments)
        board, progress = run(arranged, ordered, family, prior, rng, plan.max_sweeps)
        if plan.warn and not progress.converged:
            warn_user(
                f"no sweep without change among the first {plan.max_sweeps}: the matching is the last one reached. "
                "Raise max_sweeps.",
                ConvergenceWarning,
            )
        return make_matching(board, progress, [key], order, values.offsets, progress.history[-1])

    def twins(values: SetValues, fit: Fit) -> Matching:
        assert values.numbers is not None
        moment = np.repeat(np.unique([when[name] for name in values.sites], return_inverse=True)[1], values.sizes)
        numbers = np.unique(np.stack([values.numbers, moment]), axis=1, return_inverse=True)[1].ravel()
        return fit_distinct(replace(values, numbers=numbers), fit)

    screens: list[Screen] = [
        idle,
        *([twins] if plan.twins == "once" else []),
        *([crowds, outliers] if plan.screen else []),
    ]
    return through(screens, fit)(SetValues([stack], [family], [key], sites, None, np.arange(len(stack.values))))


def check_plan(plan: Plan) -> Lives | None:
    """The prior that was asked for, if any; what cannot be asked of groups in time is refused."""
    if plan.prior != "auto" and not isinstance(plan.prior, Lives):
        raise InputError(
            f"groups that have times take the prior Lives, or none; found {type(plan.prior).__name__}, which presets "
            "have. Leave prior and preset out, or leave the times out."
        )
    if plan.pieces is True or plan.engine == "compiled":
        what = "copies=True" if plan.pieces is True else "engine='compiled'"
        raise InputError(f"{what} is not for groups that have times: leave it out, or leave the times out.")
    return plan.prior if isinstance(plan.prior, Lives) else None


def deciding(parts: Mapping[Key, tuple[Stack, Family]]) -> tuple[Key, Stack, Moving]:
    """The one array whose atoms move, and how; of several the one of real values. Others (covariances) have no say."""
    forms = [(key, stack, moving(family)) for key, (stack, family) in parts.items()]
    able = [(key, stack, family) for key, stack, family in forms if isinstance(family, Moving)]
    able = [one for one in able if isinstance(one[2], Drift)] or able
    if len(able) != 1:
        found = ", ".join(f"{key!r} ({type(family).__name__})" for key, (_, family) in parts.items())
        raise InputError(
            "groups that have times are matched by one array, of real values (Gaussian), compositions (Counts) or "
            f"directions (Directions); found {found}. Name one, families={{name: modelweld.Drift()}}, or leave the "
            "times out: networks, and families of other values, are fused without."
        )
    return able[0]


def timeline_of(matching: Matching, stack: Stack, times: Array, labels: Index | None = None) -> tuple[Timeline, Index]:
    """The board at the end of a fit, or at other labels, and where its values stood in the order given."""
    arranged, moments, order = arrange_in_time(stack, times)
    [family], prior = matching.families.values(), matching.prior
    assert isinstance(family, Moving)
    assert isinstance(prior, Lives)
    own = (matching.stacked_labels if labels is None else labels)[order]
    return Timeline(arranged, moments, family, prior, own.copy()), order


def refit_in_time(
    old: Matching,
    stack: Stack,
    times: Array,
    sites: Sequence[str],
    labels: Index,
    rng: np.random.Generator,
    *,
    learn: bool,
) -> Matching:
    """The matching that one comes to from these labels (NEW: none yet) and the old hyperparameters.

    What was set aside must not be learned from: where something was, learning begins anew.
    """
    if learn and (old.twins or (old.kept is not None and not old.kept.all())):
        [(key, family)] = old.families.items()
        assert isinstance(family, Moving)
        plan = Plan("auto", screen=old.kept is not None)
        return fit_in_time(key, stack, family, times, sites, plan, None, rng)
    board, order = timeline_of(old, stack, times, labels)
    board.place_new()
    progress = Run([board.objective()], [], True)
    if learn:
        board.learn()
        progress = alternate(board, len(times), rng, MOST_SWEEPS)
    return make_matching(board, progress, list(old.families), order, stack.offsets, progress.history[-1])
