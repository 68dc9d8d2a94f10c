"""Fusing more than one machine holds: sites in shards, shards fused where they lie, sums merged, matchings polished.

1. Every shard is fused where it lies, as `fuse` fuses its sites, and sends its atoms up as sums of rows (sufficient
   statistics of the family).
2. The centre merges shards by these sums, by the exact gain of the one objective (`modelweld.shards.centre`).
3. Polish: sweeps over all sites given the atoms of all shards, hyperparameters learned in between, and moves that join
   atoms, until nothing raises the objective.

All shards sweep at once, against sums that are a little stale by the time they answer. So a shard's new matching is
only a *proposal*: the centre goes through them in an order that depends on content alone, takes those that raise the
exact objective as it stands at that moment, and asks the other shards again. The first of every round has seen the
present sums, so each round ends at least one shard's turn; in practice nearly all are taken at once, because shards
that disagree are rare. Every step that is taken raises the objective, and the answer does not depend on how many
workers there are or who is quicker.

Values never travel; only sums, hyperparameters and numbers do. `modelweld.shards.dask` runs this on a cluster.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from modelweld.core.algorithm1 import CLEAR, alternate
from modelweld.core.family import Family
from modelweld.core.matching import by_count, ranks
from modelweld.core.plan import MOST_SWEEPS, Auto, Effort, Plan
from modelweld.core.prior import Fragments, Prior
from modelweld.core.values import Index
from modelweld.errors import announce
from modelweld.fit.priors.spectrum import default_prior
from modelweld.fit.search.moves import dissolve
from modelweld.inputs.local_model import LocalModel
from modelweld.inputs.names import SHOWN
from modelweld.progress import Progress, progress_to, report_progress
from modelweld.request import Request, Screens
from modelweld.shards.asked import (
    FEWEST_SITES_OF_A_SHARD,
    check_alike,
    check_asked,
    name_aside,
    of_shard,
)
from modelweld.shards.centre import Centre
from modelweld.shards.engine import Engine, Here
from modelweld.shards.fit import GONE, Learned, Survey, duplicates_of, fuse_shard, oversized_of, propose, survey
from modelweld.shards.rounds import learn, pooled
from modelweld.shards.shard import Source, Summary, summary_of
from modelweld.shards.shard_fusion import ShardFusion
from modelweld.shards.shard_moves import join
from modelweld.threads import check_n_jobs

MOST_POLISH = 20
"""Sweeps over all sites after the merge: a bound. Runs end by themselves where nothing raises the objective."""


def fuse_shards(
    shards: Iterable[Source],
    family: Family | None = None,
    prior: Prior | Auto = "auto",
    *,
    search: Effort = "auto",
    splits: bool | Auto = "auto",
    screens: Screens = "auto",
    seed: int = 0,
    sweeps: int = MOST_POLISH,
    n_jobs: int | None = None,
    progress: Progress = None,
) -> ShardFusion:
    """Fuse sites that lie in shards, in this machine; `modelweld.shards.dask.fuse_on_dask` does it on a cluster.

    Parameters
    ----------
    shards : iterable of shards
        Each is a list of sites (arrays (L_j, D), LocalModels with one matched array, fitted models), a file or files
        of sites, or a function without arguments that brings them. `grouped` makes shards of a list of sites.
    family : Family, optional
        How values scatter about their global value; default: as in `fuse`. Any whose sums say all that is to be
        learned, or can be stated for other hyperparameters: `Gaussian` (not full), `NormalGamma`, `Counts`,
        `Directions` (not axial), `Rates`, `Proportions`. Values may have `variance` and `weight`.
    prior, search, splits : optional
        As in `fuse`.
    screens : "auto" or collection of {"duplicates", "outliers"}
        As in `fuse`; every shard looks for outliers among its own sites, and of sites in different shards those are
        duplicates that sent the same values to the last bit.
    seed : int
        Draws the order of groups and shards. The order in which shards or sites are given does not matter.
    sweeps : int
        How many polishing sweeps there are at most.
    n_jobs : int, optional
        Processors to use, here as workers of joblib; None means 1 or what ``joblib.parallel_config`` says, -1 all.
    progress : bool or callable, optional
        As in `fuse`.

    Returns
    -------
    ShardFusion
        What ``fuse(sites)`` gives, but for what takes more than sums to see: docs/federate.md has the list.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> atoms = rng.normal(0, 10, (4, 3))
    >>> sites = [atoms[rng.permutation(4)[:3]] + rng.normal(0, 0.1, (3, 3)) for _ in range(64)]
    >>> fused = fuse_shards(grouped(sites))
    >>> fused.K, fused.converged, [stage for stage, _ in fused.trace]
    (4, True, ['shards', 'merge', 'sweep 1'])
    """
    check_n_jobs(n_jobs)
    asked = Request(family, prior, None, search, splits, screens, seed)
    with progress_to(progress, "fusing shards"):
        return run(Here(list(shards), n_jobs, family), asked, sweeps)


def grouped(sites: Sequence[Any], size: int = FEWEST_SITES_OF_A_SHARD) -> list[list[Any]]:
    """Sites in shards of at least `size`, drawn by their content, so that the order given does not matter.

    Examples
    --------
    >>> [len(shard) for shard in grouped([[[float(i)]] for i in range(100)])]
    [33, 33, 34]
    """
    ranked = sorted(sites, key=_mark)
    number = max(1, len(ranked) // size)
    return [ranked[a:b] for a, b in pairwise(i * len(ranked) // number for i in range(number + 1))]


def _mark(site: Any) -> bytes:
    """A number drawn from what a site sent, in whatever order it stands."""
    arrays = [a for _, a in sorted(site.arrays.items())] if isinstance(site, LocalModel) else [site]
    return hashlib.blake2b(
        b"".join(np.sort(np.asarray(a, dtype=np.float64), axis=None).tobytes() for a in arrays)
    ).digest()


def run(engine: Engine, asked: Request | None = None, sweeps: int = MOST_POLISH) -> ShardFusion:
    """The three stages, wherever the shards lie."""
    asked = Request() if asked is None else asked
    _, plan = asked.decide()
    check_asked(asked, sweeps)
    everyone, moving = range(engine.shards), plan.search != "plain"
    surveys: list[Survey] = engine.change(survey, everyone, [(moving,)] * engine.shards)
    for s in everyone:
        engine.keep(s)
    check_alike(surveys)
    turn = np.array(sorted(everyone, key=lambda s: surveys[s].mark))
    in_turn = [surveys[s] for s in turn]
    nobody = [np.arange(0)] * engine.shards
    oversized = _of_shards(oversized_of(in_turn), turn) if moving and plan.outliers else nobody
    duplicates = _of_shards(duplicates_of(in_turn), turn) if moving and plan.duplicates else nobody
    reasons = [r for s in everyone for r in of_shard(s, surveys[s].reasons)]
    reasons += name_aside(engine, surveys, oversized, duplicates)
    number = sum(
        (x.sizes != GONE).sum() - len(a) - len(b) for x, a, b in zip(surveys, oversized, duplicates, strict=True)
    )
    prior = default_prior(asked.prior, int(number))
    errors, once = any(x.errors for x in surveys), any(x.once for x in surveys)
    fragments = plan.splits is True or (plan.splits == "auto" and errors and not once)
    plan = replace(
        plan, splits=fragments, prior=prior, outliers=bool(plan.outliers) and all(x.screened for x in surveys)
    )

    report_progress("fusing shards", 0, engine.shards)
    arguments = [(plan, prior, asked.seed, oversized[s], duplicates[s]) for s in everyone]
    learned: list[Learned] = engine.change(fuse_shard, everyone, arguments)
    for s in everyone:
        engine.keep(s)
    families, values, atoms = zip(*(learned[s][:3] for s in turn), strict=True)
    family, sizes = pooled(families, values, atoms), np.sort(np.concatenate([x.sizes for x in learned]))
    reasons += [r for s in everyone for r in of_shard(s, learned[s].reasons)]
    announce(reasons, SHOWN)
    summaries: list[Summary] = engine.ask(summary_of, everyone, [(family,)] * engine.shards)
    held = Fragments() if any(x.values > x.counts.sum() for x in summaries) else None
    centre = Centre(summaries, turn, family, prior, sizes, held, changing=any(x.changing for x in surveys))
    centre.learn()
    trace = [("shards", centre.objective())]

    report_progress("merging shards", 0)
    merge(engine, centre, asked.seed, plan)
    trace.append(("merge", centre.objective()))
    if centre.changing and sweeps:
        learn(engine, centre)
        trace.append(("learning", centre.objective()))
    rounds, changed, settled = [], [], False
    for t in range(1, sweeps + 1):
        report_progress("polishing", t - 1, sweeps)
        asked_for, moved = polish(engine, centre, (asked.seed, t))
        rounds.append(asked_for)
        changed.append(moved)
        trace.append((f"sweep {t}", centre.objective()))
        if not moved:
            settled = not (moving and join(engine, centre))
            if settled:
                break
            trace.append((f"moves {t}", centre.objective()))
        learn(engine, centre)
        trace.append((f"learning {t}", centre.objective()))
    return _finish(
        engine,
        centre,
        surveys[0],
        trace=tuple(trace),
        rounds=tuple(rounds),
        changed=tuple(changed),
        converged=settled,
        reasons=tuple(reasons),
        aside=tuple(x.aside for x in learned),
        duplicates=tuple(x.duplicates for x in learned),
    )


def _of_shards(found: Sequence[Index], turn: Index) -> list[Index]:
    """What was found of shards in turn, shard by shard."""
    return [found[i] for i in ranks(turn)]


def merge(engine: Engine, centre: Centre, seed: int, plan: Plan) -> None:
    """Algorithm 1 with shards for groups; where that leaves doubt, small atoms are dissolved."""
    rng, S = np.random.default_rng(seed), engine.shards
    centre.release(np.arange(S))
    progress = alternate(centre, S, rng, MOST_SWEEPS)
    if plan.search != "plain" and S > 1 and centre.margin < CLEAR:
        dissolve(centre, S, rng, progress, MOST_SWEEPS)


def polish(engine: Engine, centre: Centre, seed: tuple[int, ...]) -> tuple[int, int]:
    """One sweep over all sites of all shards: in how many rounds, and how many shards changed."""
    rank = np.argsort(centre.turn)
    waiting, rounds, changed = [int(s) for s in centre.turn], 0, 0
    while waiting:
        known, atoms = len(centre.counts), centre.atoms
        arguments = [(centre.places[s], atoms, (*seed, int(rank[s]))) for s in waiting]
        proposals: list[Summary | None] = engine.change(propose, waiting, arguments)
        refused = []
        for s, proposal in zip(waiting, proposals, strict=True):
            if proposal is None:
                continue
            if centre.accept(s, proposal, known):
                engine.keep(s)
                changed += 1
            else:
                refused.append(s)
        rounds += 1
        if len(refused) == len(waiting):  # only rounding can have it so: nothing is to be gained
            break
        waiting = refused
    centre.gather()
    return rounds, changed


def _finish(engine: Engine, centre: Centre, first: Survey, **course: Any) -> ShardFusion:
    """Atoms by decreasing count, as in `fuse`."""
    set_name, _, name = (first.array or "atom/values").partition("/")
    column = "feature" if first.columns else None
    pattern = LocalModel(
        {name: np.zeros((0, first.width))},
        {name: (set_name, column)},
        coordinates={column: first.columns} if column else {},
    )
    number = by_count(centre.counts, centre.estimates()[0])
    rank = ranks(number)
    return ShardFusion(
        pattern=pattern,
        families={name: centre.family},
        sums={name: centre.sums[0][number]},
        counts=centre.counts[number],
        names=np.arange(len(number)),
        opened=len(number),
        prior=centre.prior,
        sizes=centre.sizes,
        fragments=centre.fragments,
        changing=centre.changing,
        moved=replace(engine.moved),
        places=tuple(rank[place] for place in centre.places),
        engine=engine,
        **course,
    )
