"""What comes back from fusing shards: global atoms here, labels where the shards lie."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from modelweld.fusion import Fusion
from modelweld.inputs.local_model import Array, LocalModel
from modelweld.inputs.stack import Index, offsets_of
from modelweld.matching.atom_sums import AtomSums
from modelweld.matching.result import Matching
from modelweld.shards.engine import Engine, Moved
from modelweld.shards.shard import Shard


@dataclass(frozen=True, eq=False)
class ShardFusion(AtomSums):
    """What fusing shards gives: global atoms here, labels where the shards lie.

    Attributes
    ----------
    families, sums, prior, counts, sizes
        As in `AtomSums`; the one array is called "values".
    trace : tuple of (str, float)
        The objective after each stage: "shards", "merge", then "sweep 1", "learning 1", ...; it never falls.
    rounds : tuple of int
        How often shards had to be asked in each polishing sweep: 1 where all proposals were taken at once.
    changed : tuple of int
        How many shards changed in each polishing sweep.
    moved : Moved
        Bytes of messages to and from shards.
    places : tuple of int arrays
        For each shard, the atom of each of its own labels.
    engine : Engine
        Where the shards lie.
    """

    trace: tuple[tuple[str, float], ...]
    rounds: tuple[int, ...]
    changed: tuple[int, ...]
    moved: Moved
    places: tuple[Index, ...]
    engine: Engine = field(repr=False)

    @property
    def objective(self) -> float:
        """Log probability of the matching plus log evidence: the number `fuse` maximises."""
        return self.trace[-1][1]

    @property
    def converged(self) -> bool:
        """Whether the last sweep changed nothing, so that flat sweeps would change nothing either."""
        return bool(self.changed) and self.changed[-1] == 0

    def labels(self, s: int) -> list[Index]:
        """Atom of each local parameter of shard s, site by site, in the order given: fetched from where it lies."""
        [labels] = self.engine.ask(_own_labels, [s], [(self.places[s],)])
        return list(labels)

    def to_fusion(self) -> Fusion:
        """Everything in this process, as `fuse` gives it: for results that fit in memory."""
        brought = self.engine.ask(_everything, range(len(self.places)), [(place,) for place in self.places])
        given = [site for sites, _ in brought for site in sites]
        labels = [x for _, per_site in brought for x in per_site]
        names = [m.site if isinstance(m, LocalModel) else "" for m in given]
        name, set_name = "values", "atom"
        if isinstance(given[0], LocalModel):
            [(name, axes)] = given[0].axes.items()
            set_name = str(axes[0])
        matching = Matching(
            stacked_labels=np.concatenate(labels),
            offsets=offsets_of([len(x) for x in labels]),
            counts=self.counts,
            families={name: self.family},
            values={name: self.atoms},
            prior=self.prior,
            objective=self.objective,
            history=tuple(value for _, value in self.trace),
            changes=self.changed,
            converged=self.converged,
            engine="shards",
        )
        distinct = [site or str(j) for j, site in enumerate(names)]
        if len(set(distinct)) < len(distinct):  # sites of different shards may have the same name
            distinct = [str(j) for j in range(len(given))]
        return Fusion(given, distinct, {set_name: matching})


def _own_labels(shard: Shard, labels: Index, place: Index) -> list[Index]:
    """A shard's labels in the centre's numbers, site by site."""
    return shard.as_given(place[labels])


def _everything(shard: Shard, labels: Index, place: Index) -> tuple[list[Any], list[Index]]:
    """A shard's sites, and their labels in the centre's numbers."""
    values = shard.as_given(shard.stack.values)
    if shard.stack.plain and not shard.array:
        return values, shard.as_given(place[labels])
    set_name, array = shard.array.split("/", 1)

    def beside(x: Array | None) -> list[dict[str, Array]]:
        return [{} for _ in values] if x is None else [{array: part} for part in shard.as_given(x)]

    variances, weights = beside(shard.stack.variance), beside(shard.stack.weight)
    sites = [
        LocalModel({array: v}, {array: (set_name, None)}, variance=variance, weight=weight, site=site)
        for v, variance, weight, site in zip(values, variances, weights, shard.sites, strict=True)
    ]
    return sites, shard.as_given(place[labels])
