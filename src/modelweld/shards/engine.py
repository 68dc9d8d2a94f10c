"""Where shards lie: functions go there, labels stay there, sums of sufficient statistics come back.

`Here` is this machine, with as many processes as joblib is given; `OnDask` is a Dask cluster. What a Dask worker holds
is never the only copy: every result there (a shard, its labels) is a future that Dask can compute again from the
shard's source and the messages sent since. So a worker may be lost, and as all functions are deterministic, the answer
stays the same.
"""

from __future__ import annotations

import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from modelweld.core.family import Family
from modelweld.core.values import Index
from modelweld.shards.shard import Shard, Source, load

Function = Callable[..., Any]
Arguments = tuple[Any, ...]


@dataclass
class Moved:
    """Bytes of messages, as pickled: `down` to the shards, `up` from them."""

    down: int = 0
    up: int = 0


class Engine(ABC):
    """Runs functions where shards lie. Labels stay there; what else functions return travels.

    Attributes
    ----------
    shards : int
        How many there are.
    moved : Moved
        Bytes that travelled so far.
    """

    def __init__(self, shards: int) -> None:
        self.shards, self.moved = shards, Moved()
        self.labels: list[Any] = [None] * shards
        self.proposed = list(self.labels)

    def ask(self, function: Function, which: Sequence[int], arguments: Sequence[Arguments]) -> list[Any]:
        """``function(shard, labels, *arguments)`` of these shards."""
        return self._count(arguments, self._ask(function, which, arguments))

    def change(self, function: Function, which: Sequence[int], arguments: Sequence[Arguments]) -> list[Any]:
        """As `ask`, for functions that return (labels, answer): the labels stay there, as a proposal until `keep`."""
        return self._count(arguments, self._change(function, which, arguments))

    def ask_all(self, function: Function, *arguments: Any) -> list[Any]:
        """``function(shard, labels, *arguments)`` of all shards."""
        return self.ask(function, range(self.shards), [arguments] * self.shards)

    def change_all(self, function: Function, arguments: Sequence[Arguments]) -> list[Any]:
        """As `change`, of all shards; the labels are kept."""
        found = self.change(function, range(self.shards), arguments)
        self.labels = list(self.proposed)
        return found

    def _count(self, down: Sequence[Any], up: list[Any]) -> list[Any]:
        self.moved.down += sum(len(pickle.dumps(x, protocol=5)) for x in down)
        self.moved.up += sum(len(pickle.dumps(x, protocol=5)) for x in up)
        return up

    @abstractmethod
    def _ask(self, function: Function, which: Sequence[int], arguments: Sequence[Arguments]) -> list[Any]: ...

    @abstractmethod
    def _change(self, function: Function, which: Sequence[int], arguments: Sequence[Arguments]) -> list[Any]: ...

    def keep(self, s: int) -> None:
        """The labels last proposed for shard s are its labels now."""
        self.labels[s] = self.proposed[s]


class Here(Engine):
    """All shards in this machine's memory; with `n_jobs` processes at work on them, through joblib."""

    def __init__(self, sources: Sequence[Source], n_jobs: int | None = None, family: Family | None = None) -> None:
        super().__init__(len(sources))
        self.held, self.n_jobs = [load(source, family) for source in sources], n_jobs

    def _ask(self, function: Function, which: Sequence[int], arguments: Sequence[Arguments]) -> list[Any]:
        from joblib import Parallel, delayed

        tasks = (delayed(function)(self.held[s], self.labels[s], *a) for s, a in zip(which, arguments, strict=True))
        return list(Parallel(n_jobs=self.n_jobs)(tasks))

    def _change(self, function: Function, which: Sequence[int], arguments: Sequence[Arguments]) -> list[Any]:
        both = self._ask(function, which, arguments)
        for s, (labels, _) in zip(which, both, strict=True):
            self.proposed[s] = labels
        return [answer for _, answer in both]


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
    >>> from modelweld.shards import OnDask, group_sites
    >>> shards = group_sites([np.full((2, 3), float(site)) for site in range(64)])
    >>> def held(shard, labels):
    ...     return len(shard.sites)
    >>> with Client(processes=False, dashboard_address=None) as client:
    ...     engine = OnDask(client, shards)
    ...     engine.ask(held, range(engine.shards), [(), ()])
    [32, 32]
    """

    def __init__(
        self, client: Any, sources: Sequence[Any], keep: bool = True, retries: int = 2, family: Family | None = None
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
                self.held[s] = self.client.submit(copy, self.held[s], **there, **self.options)


def _at_work(function: Function, held: Any, family: Family | None, labels: Index | None, *arguments: Any) -> Any:
    """A function of a shard that is here, or has yet to be read."""
    return function(held if isinstance(held, Shard) else load(held, family), labels, *arguments)
