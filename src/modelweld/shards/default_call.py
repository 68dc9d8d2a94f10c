"""Fusing more than one machine holds: sites in shards, shards fused where they lie, sums merged, matchings polished.

1. Every shard is fused where it lies, as `fuse` fuses its sites, and sends its atoms up as sums of rows (sufficient
   statistics of the family).
2. The centre merges shards by these sums, by the exact gain of the one objective (`modelweld.shards.centre`).
3. Polish: sweeps over all sites given the atoms of all shards, hyperparameters learned in between, until nothing
   changes.

All shards sweep at once, against sums that are a little stale by the time they answer. So a shard's new matching is
only a *proposal*: the centre goes through them in an order that depends on content alone, takes those that raise the
exact objective as it stands at that moment, and asks the other shards again. The first of every round has seen the
present sums, so each round ends at least one shard's turn; in practice nearly all are taken at once, because shards
that disagree are rare. Every step that is taken raises the objective, and the answer does not depend on how many
workers there are or who is quicker.

Values never travel; only sums, hyperparameters and numbers do.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from modelweld.core.algorithm1 import alternate
from modelweld.core.beta_bernoulli import BetaBernoulli
from modelweld.core.family import Conditional, Family, is_signless, with_fields
from modelweld.core.match import MOST_SWEEPS, Auto, Effort
from modelweld.core.matching import by_count, ranks
from modelweld.core.prior import Fragments, Prior
from modelweld.errors import SHOWN, Finding, InputError, SmallShardWarning, announce, warn_user
from modelweld.families import Gaussian
from modelweld.families.capabilities import pool, row_fields_of
from modelweld.fit.priors.birth_death import BirthDeath
from modelweld.fit.static_matcher import default_prior
from modelweld.inputs.local_model import LocalModel
from modelweld.progress import Progress, progress_to, report_progress
from modelweld.request import Request, Screens, Search
from modelweld.shards.centre import Centre
from modelweld.shards.engine import Engine, Here, OnDask
from modelweld.shards.shard import (
    About,
    Learned,
    Source,
    Summary,
    fuse_shard,
    learn_here,
    propose,
    restate,
    summary_of,
    survey,
)
from modelweld.shards.shard_fusion import ShardFusion
from modelweld.threads import check_n_jobs

FEWEST_SITES_OF_A_SHARD = 32
"""Sites that a shard should have: enough to learn hyperparameters and to find most atoms by itself."""

MOST_POLISH = 20
"""Sweeps over all sites after the merge: a bound. Runs end by themselves where nothing raises the objective."""


def fuse_shards(
    shards: Iterable[Source] | Engine,
    family: Family | None = None,
    prior: Prior | Auto = "auto",
    *,
    search: Search | Effort = "auto",
    screens: Screens = "auto",
    seed: int = 0,
    sweeps: int = MOST_POLISH,
    n_jobs: int | None = None,
    progress: Progress = None,
) -> ShardFusion:
    """Fuse sites that lie in shards, in this machine; `fuse_on_dask` does it on a cluster.

    Parameters
    ----------
    shards : iterable of shards
        Each is a list of sites (arrays (L_j, D), LocalModels with one matched array, fitted models), a file or files
        of sites, or a function without arguments that brings them. `group_sites` makes shards of a list of sites.
        Or an Engine that holds the shards already.
    family : Family, optional
        How values scatter about their global value; default: as in `fuse`. Any whose sums say all that is to be
        learned, or can be stated for other hyperparameters: `Gaussian` (not full), `NormalGamma`, `Counts`,
        `Directions` (not axial), `Rates`, `Proportions`. Values may have `variance` and `weight`.
    prior, search : optional
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
    >>> fused = fuse_shards(group_sites(sites))
    >>> fused.K, fused.converged, [stage for stage, _ in fused.trace]
    (4, True, ['shards', 'merge', 'sweep 1'])
    """
    check_n_jobs(n_jobs)
    request = Request(family, prior, None, search, "auto", screens, seed)
    with progress_to(progress, "fusing shards"):
        engine = shards if isinstance(shards, Engine) else Here(list(shards), n_jobs, family)
        return run(engine, request, sweeps)


def fuse_on_dask(
    client: Any,
    shards: Iterable[Any],
    family: Family | None = None,
    prior: Prior | Auto = "auto",
    *,
    keep: bool = True,
    retries: int = 2,
    **options: Any,
) -> ShardFusion:
    """Fuse shards on the workers of a Dask cluster.

    Parameters
    ----------
    client : distributed.Client
        The cluster. Workers need modelweld, and one thread each serves best.
    shards : iterable
        One entry per shard, of 32 sites or more: a file or a list of files that the workers can read, a function
        without arguments that brings the sites, a ``dask.delayed`` list of sites, or a list of sites (which then
        travels there, once).
    family, prior
        As in `fuse_shards`.
    keep : bool
        Whether workers hold their shards in memory between steps. False: shards are read again at each step, so that
        more can be fused than the cluster's memory holds, and values never move between workers either (with True,
        shards move to workers that join late, and Dask may move one from a busy worker to an idle one).
    retries : int
        How often a task that failed is tried again. Workers that die are another matter: Dask's
        ``distributed.scheduler.allowed-failures`` says how many a task may survive.
    **options
        For `fuse_shards`: search, screens, seed, sweeps, progress.

    Returns
    -------
    ShardFusion
        Global atoms, hyperparameters, the objective after each stage, bytes moved. Labels stay on the workers as long
        as the result lives: ``result.labels(s)`` fetches those of shard s.

    Notes
    -----
    The answer is the same, bit for bit, for any number of workers, also when some join or leave on the way: each step
    is spread over those that are there when it begins. ``examples/dask_shards.py`` is a complete program::

        with LocalCluster(n_workers=4, threads_per_worker=1) as cluster, Client(cluster) as client:
            fused = fuse_on_dask(client, sorted(Path("shards").glob("*.safetensors")))
            print(fused.K, fused.trace, fused.moved)
    """
    return fuse_shards(OnDask(client, list(shards), keep, retries, family), family, prior, **options)


def group_sites(sites: Sequence[Any], size: int = FEWEST_SITES_OF_A_SHARD) -> list[list[Any]]:
    """Sites in shards of at least `size`, drawn by their content, so that the order given does not matter.

    Examples
    --------
    >>> [len(shard) for shard in group_sites([[[float(i)]] for i in range(100)])]
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


def run(engine: Engine, request: Request | None = None, sweeps: int = MOST_POLISH) -> ShardFusion:
    """Fuse the shards of an engine: shards, merge, polish."""
    request = request or Request()
    _, plan = request.decide()
    check_request(request, sweeps)
    surveys: list[About] = engine.ask_all(survey)
    check_alike(surveys)
    everyone = range(engine.shards)
    turn = np.array(sorted(everyone, key=lambda s: surveys[s].mark))
    prior = default_prior(request.prior)
    errors, once = any(x.errors for x in surveys), any(x.once for x in surveys)
    fragments = plan.splits is True or (plan.splits == "auto" and errors and not once)
    plan = replace(
        plan, splits=fragments, prior=prior, outliers=bool(plan.outliers) and all(x.screened for x in surveys)
    )

    report_progress("fusing shards", 0, engine.shards)
    learned: list[Learned] = engine.change_all(fuse_shard, [(plan, request.seed)] * engine.shards)
    families, values, atoms = zip(*(learned[s][:3] for s in turn), strict=True)
    family, sizes = pool_families(families, values, atoms), np.sort(np.concatenate([x.sizes for x in learned]))
    reasons = [
        Finding(f"shard {s}: {reason}", getattr(reason, "category", None))
        for s in everyone
        for reason in (*surveys[s].reasons, *learned[s].reasons)
    ]
    announce(reasons, SHOWN)
    summaries: list[Summary] = engine.ask_all(summary_of, family)
    held = Fragments() if any(x.values > x.counts.sum() for x in summaries) else None
    centre = Centre(summaries, turn, family, prior, sizes, held, changing=any(x.changing for x in surveys))
    centre.learn()
    trace = [("shards", centre.objective())]

    report_progress("merging shards", 0)
    centre.release()
    alternate(centre, engine.shards, np.random.default_rng(request.seed), MOST_SWEEPS)
    trace.append(("merge", centre.objective()))
    if centre.changing and sweeps:
        learn(engine, centre)
        trace.append(("learning", centre.objective()))
    changed = list[int]()
    for t in range(1, sweeps + 1):
        report_progress("polishing", t - 1, sweeps)
        changed.append(polish(engine, centre, (request.seed, t))[1])
        trace.append((f"sweep {t}", centre.objective()))
        if not changed[-1]:
            break
        learn(engine, centre)
        trace.append((f"learning {t}", centre.objective()))
    return _finish(
        engine,
        centre,
        surveys[0],
        trace=tuple(trace),
        changed=tuple(changed),
        converged=changed[-1:] == [0],
        reasons=tuple(reasons),
        aside=tuple(x.aside for x in learned),
        duplicates=tuple(x.duplicates for x in learned),
    )


FIRST_STEP, LAST_STEP = 0.1, 0.005
"""Of the logarithm of what rows depend on: what shards learn apart is a tenth off where each has few sites."""

MOST_ENTRIES = 32
"""Entries of a field that are moved one by one: all shards state their sums again some seven times for each."""


def learn(engine: Engine, centre: Centre) -> None:
    """Learn whatever the matching teaches; never lowers the objective.

    Where rows depend on hyperparameters, sums that were made with one family say nothing of another. Then every shard
    learns from its own values, as if it were alone, and states its sums again for the mean of what they say, and for
    what lies about it.
    """
    centre.learn()
    if not centre.changing or getattr(centre.family, "learning", "") == "nothing":
        return
    before, family, rows = centre.objective(), centre.family, [x.rows for x in centre.own]
    taught: list[Family] = engine.ask_all(learn_here, family)
    own = [centre.own[s] for s in centre.turn]
    pooled = pool_families([taught[s] for s in centre.turn], [x.values for x in own], [len(x.counts) for x in own])
    if not try_family(engine, centre, pooled, before):
        centre.restate(family, rows)
    climb_row_fields(engine, centre)


def try_family(engine: Engine, centre: Centre, family: Family, before: float) -> bool:
    """State all sums for this family, and learn the rest of it from them; whether that is above an objective."""
    centre.restate(family, engine.ask_all(restate, family))
    if row_fields_of(family):
        centre.families = [family.update(centre.sums[0])]
    return centre.objective() > before


def climb_row_fields(engine: Engine, centre: Centre) -> None:
    """Move what rows depend on, all entries of a field at once and each by itself, as long as the objective rises."""
    for field in row_fields_of(centre.family):
        size = np.size(getattr(centre.family, field))
        for entry in [slice(None), *range(size if 1 < size <= MOST_ENTRIES else 0)]:
            step = FIRST_STEP
            while abs(step) > LAST_STEP:
                before, family, rows = centre.objective(), centre.family, [x.rows for x in centre.own]
                moved = np.array(getattr(family, field), dtype=np.float64, ndmin=1)
                moved[entry] *= np.exp(step)
                there = {field: moved if np.ndim(getattr(family, field)) else float(moved[0])}
                if not try_family(engine, centre, with_fields(family, **there), before):
                    centre.restate(family, rows)
                    step /= -2


def pool_families(families: Sequence[Family], values: Sequence[int], atoms: Sequence[int]) -> Family:
    """One family of those that shards have learned, by how many values teach each: those beyond one per atom."""
    teaching = np.subtract(values, atoms)
    return pool(families, teaching if teaching.any() else np.maximum(values, 1))


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


def _finish(engine: Engine, centre: Centre, first: About, **course: Any) -> ShardFusion:
    """Atoms by decreasing count, as in `fuse`."""
    set_name, _, name = (first.array or "atom/values").partition("/")
    column = "feature" if first.columns else None
    pattern = LocalModel(
        {name: np.zeros((0, first.width))},
        {name: (set_name, column)},
        coordinates={column: first.columns} if column else {},
    )
    number = by_count(centre.counts, centre.family.estimate(centre.sums[0]))
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


def check_request(request: Request, sweeps: int) -> None:
    """Refuse what has no exact objective; `Request.decide` has refused what `fuse` refuses."""
    if not (request.families is None or isinstance(request.families, Family)):
        raise InputError(f"shards are fused by one array: give one Family; found {request.families!r}.")
    if isinstance(request.prior, BetaBernoulli) and request.prior.form != "exact":
        raise InputError(f"shards need the exact form of the prior; found {request.prior.form!r}.")
    if isinstance(request.prior, BirthDeath):
        raise InputError("shards are fused without times, which BirthDeath needs: use modelweld.fuse.")
    if sweeps < 0:
        raise InputError(f"sweeps must be a number, not negative; found {sweeps}.")


def check_alike(surveys: Sequence[About]) -> None:
    """All shards send the same columns of the same array, of a family whose sums say enough; small ones are named."""
    if not surveys:
        raise InputError("there is nothing to fuse: give at least one shard.")
    first = surveys[0]
    for s, x in enumerate(surveys):
        if (x.array, x.columns, x.width) != (first.array, first.columns, first.width):
            own, other = (f"{y.array or 'plain arrays'}, {y.width} columns {list(y.columns[:5])}" for y in (x, first))
            raise InputError(f"shard {s}: all shards must send the same array and columns; found {own}; {other}.")
        check_family(x.family, x.changing)
    small = [s for s, x in enumerate(surveys) if x.sites < FEWEST_SITES_OF_A_SHARD]
    if small and len(surveys) > 1:
        warn_user(
            f"{len(small)} of {len(surveys)} shards have fewer than {FEWEST_SITES_OF_A_SHARD} sites (first: shard "
            f"{small[0]} with {surveys[small[0]].sites}): their own matchings rest on little. Make larger shards.",
            SmallShardWarning,
        )


def check_family(family: Family, changing: bool) -> None:
    """Refuse a family whose sums do not say enough.

    They do where rows depend on no hyperparameter, or on `row_fields` alone, for which shards state them again.
    """
    sees = isinstance(family, Conditional)
    plain = type(family) is Gaussian and family.shape != "full"
    changes = changing and not (plain or row_fields_of(family))
    moments = getattr(family, "learning", "") == "moments"
    if sees or changes or moments or is_signless(family):
        raise InputError(
            "shards take Gaussian ('diagonal' or 'scalar', not learning by 'moments'), NormalGamma, Counts, "
            "Directions that are not axial, Rates, Proportions, or a family whose rows depend on no hyperparameter; "
            f"found {family!r}. Use modelweld.fuse."
        )
