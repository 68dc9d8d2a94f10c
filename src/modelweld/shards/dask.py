"""Shards on a Dask cluster: read, fused and polished on the workers; only sums come to the client.

What a worker holds is never the only copy: every result there (a shard, its labels) is a future that Dask can compute
again from the shard's source and the messages sent since. A worker that is lost is therefore survived, and as all
functions are deterministic, the answer is the one it would have been.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any

from modelweld.core.family import Family
from modelweld.core.plan import Auto, Effort
from modelweld.core.prior import Prior
from modelweld.core.values import Index
from modelweld.progress import Progress, progress_to
from modelweld.request import Request, Screens
from modelweld.shards.default_call import MOST_POLISH, run
from modelweld.shards.engine import Arguments, Engine, Function
from modelweld.shards.shard import Shard, load
from modelweld.shards.shard_fusion import ShardFusion

RETRIES = 2
"""How often a task that failed is tried again: file systems have their moments."""


def fuse_on_dask(
    client: Any,
    shards: Iterable[Any],
    family: Family | None = None,
    prior: Prior | Auto = "auto",
    *,
    search: Effort = "auto",
    splits: bool | Auto = "auto",
    screens: Screens = "auto",
    seed: int = 0,
    sweeps: int = MOST_POLISH,
    keep: bool = True,
    retries: int = RETRIES,
    progress: Progress = None,
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
    family, prior, search, splits, screens, seed, sweeps, progress
        As in `modelweld.shards.default_call.fuse_shards`.
    keep : bool
        Whether workers hold their shards in memory between steps. False: shards are read again at each step, so that
        more can be fused than the cluster's memory holds, and values never move between workers either (with True,
        shards move to workers that join late, and Dask may move one from a busy worker to an idle one).
    retries : int
        How often a task that failed is tried again. Workers that die are another matter: Dask's
        ``distributed.scheduler.allowed-failures`` says how many a task may survive.

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
    asked = Request(family, prior, None, search, splits, screens, seed)
    with progress_to(progress, "fusing shards"):
        return run(OnDask(client, list(shards), keep, retries, family), asked, sweeps)


class OnDask(Engine):
    """Shards on the workers of a Dask cluster: futures of shards and of their labels.

    `fuse_on_dask` makes one; by hand it asks where shards lie what only their worker can see.

    Parameters
    ----------
    client, sources, keep, retries, family
        As in `fuse_on_dask`; `sources` are its shards, in a list.

    Examples
    --------
    >>> import numpy as np
    >>> from distributed import Client
    >>> from modelweld.shards import OnDask, grouped
    >>> shards = grouped([np.full((2, 3), float(site)) for site in range(64)])
    >>> def held(shard, labels):
    ...     return len(shard.sites)
    >>> with Client(processes=False, dashboard_address=None) as client:
    ...     engine = OnDask(client, shards)
    ...     engine.ask(held, range(engine.shards), [(), ()])
    [32, 32]
    """

    def __init__(
        self,
        client: Any,
        sources: Sequence[Any],
        keep: bool = True,
        retries: int = RETRIES,
        family: Family | None = None,
    ) -> None:
        super().__init__(len(sources))
        self.client, self.family, self.holds = client, family, keep
        self.options = {"pure": False, "retries": retries}
        sources = [client.compute(x) if hasattr(x, "__dask_graph__") else x for x in sources]
        self.held = [client.submit(load, x, family, **self.options) if keep else x for x in sources]

    def _ask(self, function: Function, which: Sequence[int], arguments: Sequence[Arguments]) -> list[Any]:
        return list(self.client.gather(self._submit(function, which, arguments)))

    def _change(self, function: Function, which: Sequence[int], arguments: Sequence[Arguments]) -> list[Any]:
        both = self._submit(function, which, arguments)
        for s, future in zip(which, both, strict=True):
            self.proposed[s] = self.client.submit(itemgetter(0), future, pure=False)
        return list(self.client.gather([self.client.submit(itemgetter(1), future, pure=False) for future in both]))

    def _submit(self, function: Function, which: Sequence[int], arguments: Sequence[Arguments]) -> list[Any]:
        if self.holds:
            self._spread()
        return [
            self.client.submit(_at_work, function, self.held[s], self.family, self.labels[s], *a, **self.options)
            for s, a in zip(which, arguments, strict=True)
        ]

    def _spread(self) -> None:
        """Give workers that hold nothing, as those that joined late, their share of the shards by threads.

        Dask runs a task where its shard lies, so that without this a late worker would have next to nothing to do.
        Shards that have yet to be read are Dask's to place.
        """
        holders = self.client.who_has(self.held)
        if not all(holders.values()):
            return
        threads = self.client.nthreads()
        homes: dict[str, list[int]] = {address: [] for address in threads}
        for s, future in enumerate(self.held):
            homes.setdefault(holders[future.key][0], []).append(s)
        for late in [address for address in threads if not homes[address]]:
            for _ in range(self.shards * threads[late] // sum(threads.values())):
                s = max(homes.values(), key=len).pop()
                there = {"workers": [late], "allow_other_workers": True}  # others, should it leave again
                self.held[s] = self.client.submit(_same, self.held[s], **there, **self.options)


def _same(shard: Shard) -> Shard:
    """What is submitted to a worker for a shard to lie there."""
    return shard


def _at_work(function: Function, held: Any, family: Family | None, labels: Index | None, *arguments: Any) -> Any:
    """A function of a shard that is here, or has yet to be read."""
    return function(held if isinstance(held, Shard) else load(held, family), labels, *arguments)
