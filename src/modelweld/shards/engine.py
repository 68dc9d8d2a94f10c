"""Where shards lie: functions go there, labels stay there, sums of sufficient statistics come back.

`Here` is this machine, with as many processes as joblib is given; `modelweld.shards.dask.OnDask` a cluster.
"""

from __future__ import annotations

import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from modelweld.core.family import Family
from modelweld.shards.shard import Source, load

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
