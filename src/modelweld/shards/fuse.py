"""Fusing more than one machine holds: sites in shards, shards fused where they lie, sums merged, matchings polished.

1. Every shard is fused where it lies (Algorithm 1 on its own sites) and sends its atoms up as sums of
   rows (sufficient statistics).
2. The centre merges shards by these sums, by the exact gain of the one objective (`modelweld.shards.centre`).
3. Polish: at most three sweeps over all sites given the atoms of all shards, hyperparameters learned in between.

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

from modelweld.errors import InputError, SmallShardWarning, warn_user
from modelweld.families import Gaussian
from modelweld.families.math.start import usable_variance
from modelweld.inputs.local_model import Array, LocalModel
from modelweld.matching.algorithm1 import alternate
from modelweld.matching.plan import MOST_SWEEPS, Auto, default_prior
from modelweld.matching.result import by_count, ranks
from modelweld.priors.beta_bernoulli import BetaBernoulli, Prior
from modelweld.progress import Progress, listen, tell
from modelweld.shards.centre import Centre
from modelweld.shards.engine import Engine, Here
from modelweld.shards.result import ShardFusion
from modelweld.shards.shard import Source, Summary, Survey, fuse_shard, propose, restate, survey
from modelweld.shards.standard_errors import STATISTICS, refit, slopes
from modelweld.threads import check_n_jobs

FEWEST_SITES_OF_A_SHARD = 32
"""Sites that a shard should have: enough to learn hyperparameters and to find most atoms by itself."""

MOST_POLISH = 3
"""Sweeps over all sites after the merge: on simulated sets later ones changed nothing that matters."""


def fuse_shards(
    shards: Iterable[Source],
    family: Gaussian | None = None,
    prior: Prior | Auto = "auto",
    *,
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
    family : Gaussian, optional
        Diagonal or scalar; values may have `variance` and `weight`.
    prior : Prior or "auto"
        As in `fuse`.
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
        Compare it with ``fuse(sites, search="plain", copies=False)``: gross outliers are not looked for, sites do not
        hold atoms in pieces, and atoms are not split or merged after the sweeps.

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
    with listen(progress, "fusing shards"):
        return run(Here(list(shards), n_jobs), family, prior, seed=seed, sweeps=sweeps)


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


def run(engine: Engine, family: Gaussian | None, prior: Prior | Auto, *, seed: int, sweeps: int) -> ShardFusion:
    """The three stages, wherever the shards lie."""
    family = Gaussian() if family is None else family
    _check_asked(family, prior, sweeps)
    everyone = range(engine.shards)
    surveys: list[Survey] = engine.ask(survey, everyone, [()] * engine.shards)
    _check_alike(surveys)
    turn = np.array(sorted(everyone, key=lambda s: surveys[s].mark))
    sizes = np.sort(np.concatenate([x.sizes for x in surveys]))
    prior = default_prior(prior, len(sizes))
    origin, total = _common_scale([surveys[s] for s in turn], family.scalar)

    tell("fusing shards", 0, engine.shards)
    summaries: list[Summary] = engine.change(
        fuse_shard, everyone, [(family, origin, total, prior, seed)] * engine.shards
    )
    for s in everyone:
        engine.keep(s)
    varying = any(x.varying for x in surveys)
    start = _pool([summaries[s] for s in turn])
    centre = Centre(summaries, turn, start, prior, sizes, varying)
    if varying:  # every shard sent sums for the noise that it had learned by itself
        centre.restate(start, engine.ask(restate, everyone, [(start,)] * engine.shards))
    trace = [("shards", centre.objective())]

    tell("merging shards", 0)
    centre.release()
    alternate(centre, engine.shards, np.random.default_rng(seed), MOST_SWEEPS)
    trace.append(("merge", centre.objective()))
    if varying and sweeps:
        _learn(engine, centre)
        trace.append(("learning", centre.objective()))
    rounds, changed = [], []
    for t in range(1, sweeps + 1):
        tell("polishing", t - 1, sweeps)
        asked, moved = polish(engine, centre, (seed, t))
        rounds.append(asked)
        changed.append(moved)
        trace.append((f"sweep {t}", centre.objective()))
        if moved == 0:
            break
        _learn(engine, centre)
        trace.append((f"learning {t}", centre.objective()))
    return _finish(engine, centre, trace, rounds, changed)


def polish(engine: Engine, centre: Centre, seed: tuple[int, ...]) -> tuple[int, int]:
    """One sweep over all sites of all shards: in how many rounds, and how many shards changed."""
    rank = np.argsort(centre.turn)
    waiting, rounds, changed = [int(s) for s in centre.turn], 0, 0
    while waiting:
        known = len(centre.counts)
        common = centre.counts, centre.sums[0], centre.family, centre.prior, len(centre.sizes)
        arguments = [(centre.places[s], *common, (*seed, int(rank[s]))) for s in waiting]
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


def _learn(engine: Engine, centre: Centre) -> None:
    """Hyperparameters from sums; where values have their own variance, in rounds of sums and slopes."""
    centre.learn()
    if not centre.varying:
        return
    D, everyone = len(np.asarray(centre.family.mean)), range(engine.shards)

    def ask(family: Gaussian) -> Array:
        sums = np.zeros((len(centre.counts), STATISTICS * D))
        answers = engine.ask(slopes, everyone, [(family,)] * engine.shards)
        for s in centre.turn:
            sums[centre.places[s]] += answers[s]
        return sums

    family = refit(centre.family, ask, matched=bool((centre.counts > 1).any()))
    centre.restate(family, engine.ask(restate, everyone, [(family,)] * engine.shards))


def _finish(
    engine: Engine, centre: Centre, trace: list[tuple[str, float]], rounds: list[int], changed: list[int]
) -> ShardFusion:
    """Atoms by decreasing count, as in `fuse`."""
    number = by_count(centre.counts, centre.family.estimate(centre.sums[0]))
    rank = ranks(number)
    return ShardFusion(
        families={"values": centre.family},
        sums={"values": centre.sums[0][number]},
        counts=centre.counts[number],
        prior=centre.prior,
        sizes=centre.sizes,
        trace=tuple(trace),
        rounds=tuple(rounds),
        changed=tuple(changed),
        moved=replace(engine.moved),
        places=tuple(rank[place] for place in centre.places),
        engine=engine,
    )


def _check_asked(family: Gaussian, prior: Prior | Auto, sweeps: int) -> None:
    """Refuse what has no exact objective, or needs more than sums."""
    if type(family) is not Gaussian or family.shape == "full" or family.learning == "moments":
        raise InputError(
            "shards are fused with a Gaussian of shape 'diagonal' or 'scalar' and learning by 'likelihood' or "
            f"'nothing': its sums are sufficient. Found {family!r}; use modelweld.fuse for other families."
        )
    if not (prior == "auto" or isinstance(prior, Prior)):
        raise InputError(f"prior must be a Prior, such as BetaBernoulli(), or 'auto'; found {prior!r}.")
    if isinstance(prior, BetaBernoulli) and prior.form != "exact":
        raise InputError(f"shards need the exact form of the prior, by which merges are scored; found {prior.form!r}.")
    if sweeps < 0:
        raise InputError(f"sweeps is a number of polishing sweeps, not negative; found {sweeps}.")


def _check_alike(surveys: Sequence[Survey]) -> None:
    """All shards send the same columns of the same array; small ones are named."""
    if not surveys:
        raise InputError("there is nothing to fuse: give at least one shard.")
    first = surveys[0]
    for s, x in enumerate(surveys):
        if (x.array, x.columns, len(x.mean)) != (first.array, first.columns, len(first.mean)):
            raise InputError(
                f"shard {s}: all shards must send the same array with the same columns in the same order. It has "
                f"{x.array or 'plain arrays'} with {len(x.mean)} columns {list(x.columns[:5])}, the first shard "
                f"{first.array or 'plain arrays'} with {len(first.mean)} columns {list(first.columns[:5])}."
            )
    small = [s for s, x in enumerate(surveys) if len(x.sizes) < FEWEST_SITES_OF_A_SHARD]
    if small and len(surveys) > 1:
        warn_user(
            f"{len(small)} of {len(surveys)} shards have fewer than {FEWEST_SITES_OF_A_SHARD} sites (first of them is "
            f"shard {small[0]} with {len(surveys[small[0]].sizes)}): their own matchings rest on little. Put more "
            "sites into a shard.",
            SmallShardWarning,
        )


def _common_scale(surveys: Sequence[Survey], pooled: bool) -> tuple[Array, Array]:
    """The origin from which all shards measure, and the total variance, as `Gaussian.starts` would have them flat."""
    seen = np.maximum(sum(x.seen for x in surveys), 1.0)
    origin = sum(x.seen * x.mean for x in surveys) / seen
    total = sum(x.squares + x.seen * np.square(x.mean - origin) for x in surveys) / seen
    extremes = np.array([x.bounds for x in surveys])
    return origin, usable_variance(origin, total, extremes[np.isfinite(extremes)], pooled)


def _pool(summaries: Sequence[Summary]) -> Gaussian:
    """Hyperparameters to merge with: what the shards learned, by the number of values that taught them."""
    values = np.array([x.counts.sum() for x in summaries], dtype=np.float64)
    teaching = values - [len(x.counts) for x in summaries]
    share = teaching / teaching.sum() if teaching.any() else values / values.sum()

    def mean(name: str) -> Any:
        return sum(w * np.asarray(getattr(x.family, name)) for w, x in zip(share, summaries, strict=True))

    names = (
        "mean",
        "noise",
        "spread",
        "squares",
    )  # plain means: a shard that takes its noise for nothing must not decide
    return replace(
        summaries[0].family,
        **{name: mean(name) for name in names},
        trust=float(mean("trust")),
        near=float(mean("near")),
    )
