"""One set of groups in time: from values and times to a matching."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from modelweld.errors import InputError
from modelweld.families import Drift, Family
from modelweld.families.fading import Moving, moving
from modelweld.inputs.clock import as_numbers, times_by_site
from modelweld.inputs.local_model import Array, LocalModel
from modelweld.inputs.plain_tables import as_model
from modelweld.inputs.stack import Index, Key, Stack
from modelweld.match import check, limits_met
from modelweld.matching.algorithm1 import NEW, Run, alternate
from modelweld.matching.plan import MOST_SWEEPS, Plan
from modelweld.matching.result import Matching, make_matching
from modelweld.priors.lives import Lives
from modelweld.screening.pipeline import SetValues, through
from modelweld.screening.screens import screens_of
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
    parts: Mapping[Key, tuple[Stack, Family]],
    times: Array,
    sites: Sequence[str],
    plan: Plan,
    rng: np.random.Generator,
    columns: Sequence[Sequence[str]] | None = None,
) -> Matching:
    """Which values of one set belong to the same moving atom: screened and fitted as `modelweld.match` does.

    A site that sends the same at another time has not changed, and is no duplicate; one that is off by a constant from
    all others of its own time has not drifted.
    """
    prior = check_plan(plan)
    key, stack, family = deciding(parts)
    check({key: (stack, family)}, sites)
    named = None if columns is None else [columns[list(parts).index(key)]]
    values = SetValues([stack], [family], [key], list(sites), named, np.arange(len(stack.values)), times=times)

    def fit(values: SetValues) -> Matching:
        return fit_in_time(values, plan, prior, rng)

    def refit(old: Matching, values: SetValues, labels: Index, *, learn: bool = True) -> Matching:
        return fit(values)  # what was learned from sites that are set aside now is forgotten

    return through(screens_of(plan, refit), fit)(values)


def fit_in_time(values: SetValues, plan: Plan, prior: Lives | None, rng: np.random.Generator) -> Matching:
    """The matching of values that are taken for honest and independent."""
    [stack], [family], times = values.stacks, values.families, values.times
    assert times is not None
    assert isinstance(family, Moving)
    arranged, ordered, order = arrange_in_time(stack, times)
    board, progress = run(arranged, ordered, family, prior, rng, plan.max_sweeps)
    matching = make_matching(board, progress, values.names, order, values.offsets, progress.history[-1])
    return matching.say(*limits_met(progress, plan)) if plan.warn else matching


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
    old: Matching, values: SetValues, labels: Index, *, rng: np.random.Generator, learn: bool = True
) -> Matching:
    """The matching that one comes to from these labels (NEW: none yet) and the old hyperparameters."""
    assert values.times is not None
    known = labels != NEW
    labels = labels.copy()
    labels[known] = np.unique(labels[known], return_inverse=True)[1]
    board, order = timeline_of(old, values.stacks[0], values.times, labels)
    board.place_new()
    progress = Run([board.objective()], [], True)
    if learn:
        board.learn()
        progress = alternate(board, len(values.times), rng, MOST_SWEEPS)
    return make_matching(board, progress, list(old.families), order, values.offsets, progress.history[-1])
