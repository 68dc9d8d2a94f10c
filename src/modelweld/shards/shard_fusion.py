"""What comes back from fusing shards: global atoms here, labels where the shards lie."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from modelweld.core.matching import Matching
from modelweld.core.prior import Fragments
from modelweld.core.values import Array, Index, group_of_values, offsets_of
from modelweld.errors import InputError
from modelweld.fusion import Fusion
from modelweld.inputs.local_model import LocalModel
from modelweld.results.fit_result import FitResult
from modelweld.revision.slim_fusion import SlimFusion
from modelweld.shards.engine import Engine, Moved
from modelweld.shards.shard import COPIES, EXCLUDED, Shard


@dataclass(frozen=True, eq=False, repr=False)
class ShardFusion(SlimFusion):
    """What fusing shards gives: global atoms here, labels where the shards lie.

    Attributes
    ----------
    pattern, families, sums, prior, counts, sizes, names, opened
        As in `SlimFusion`, which it is: it is saved, and sites are added, where sums are all there is to know.
    fragments : Fragments or None
        How probable it is that a site holds an atom in several fragments; None where every site holds its atoms once.
    changing : bool
        Whether rows depend on hyperparameters.
    trace : tuple of (str, float)
        The objective after each stage: "shards", "merge", then "sweep 1", "learning 1", ...; it never falls.
    changed : tuple of int
        How many shards changed in each polishing sweep.
    converged : bool
        Whether the last sweep changed nothing, so that flat sweeps would change nothing either.
    moved : Moved
        Bytes of messages to and from shards.
    reasons : tuple of str
        What was not fitted, and why.
    aside, duplicates : tuples of int
        For each shard, how many values were excluded, and how many sites repeat another and were not fitted.
    places : tuple of int arrays
        For each shard, the atom of each of its own labels.
    engine : Engine
        Where the shards lie.

    Examples
    --------
    >>> from modelweld import simulate
    >>> from modelweld.shards import fuse_shards, group_sites
    >>> drawn = simulate.paper_figure(64, 1.0, seed=0)
    >>> fused = fuse_shards(group_sites(drawn.values))
    >>> fused.K == drawn.K, fused.converged, fused.trace[0][0]
    (True, True, 'shards')
    """

    fragments: Fragments | None
    changing: bool
    trace: tuple[tuple[str, float], ...]
    changed: tuple[int, ...]
    converged: bool
    moved: Moved
    reasons: tuple[str, ...]
    aside: tuple[int, ...]
    duplicates: tuple[int, ...]
    places: tuple[Index, ...]
    engine: Engine

    @property
    def objective(self) -> float:
        """Log probability of the matching plus log evidence: the number `fuse` maximises."""
        return self.trace[-1][1]

    def check_sufficient(self) -> None:
        """Sums are not all there is to know where rows depend on what is learned, or sites hold atoms in fragments."""
        if self.changing or self.fragments is not None:
            raise InputError("sums do not suffice with standard errors, fragments or learned rows: use to_fusion().")

    def labels(self, s: int) -> list[Index]:
        """Atom of each local parameter of shard s, site by site, in the order given: fetched from where it lies.

        Values that were excluded have numbers of their own after those of all atoms; sites that repeat another are
        matched to the atoms as they are.
        """
        [labels] = self.engine.ask(own_labels, [s], [self._places(s)])
        return list(labels)

    def _places(self, s: int) -> tuple[Index, int]:
        """What a shard needs to number its labels as they are numbered here."""
        return self.places[s], len(self.counts) + sum(self.aside[:s])

    def to_fusion(self) -> Fusion:
        """Everything in this process, as `fuse` gives it: for results that fit in memory."""
        everyone = range(len(self.places))
        brought = self.engine.ask(_everything, everyone, [self._places(s) for s in everyone])
        given, labels, copied = ([x for part in several for x in part] for several in zip(*brought, strict=True))
        starts = np.repeat(offsets_of([len(x) for x, _, _ in brought])[:-1], [len(x) for x, _, _ in brought])
        names = [m.site if isinstance(m, LocalModel) else "" for m in given]
        name, set_name = "values", "atom"
        if isinstance(given[0], LocalModel):
            [(name, axes)] = given[0].axes.items()
            set_name = str(axes[0])
        stacked, offsets = np.concatenate(labels), offsets_of([len(x) for x in labels])
        alone = np.flatnonzero(stacked >= len(self.counts))
        sent = np.concatenate([site.arrays[name] if isinstance(site, LocalModel) else site for site in given])
        held = np.unique(np.stack([stacked, group_of_values(offsets)]), axis=1)[0]
        matching = Matching(
            stacked_labels=stacked,
            offsets=offsets,
            counts=np.bincount(held, minlength=len(self.counts)),
            families={name: self.family},
            values={name: np.vstack([self.atoms, sent[alone[np.argsort(stacked[alone])]]])},
            prior=self.prior,
            objective=self.objective,
            history=tuple(value for _, value in self.trace),
            changes=self.changed,
            converged=self.converged,
            engine="shards",
            delta=0.0 if self.fragments is None else self.fragments.delta,
            kept=stacked < len(self.counts) if len(alone) else None,
            reasons=self.reasons,
            duplicates=_find_first(starts + copied) if any(self.duplicates) else None,
        )
        distinct = [site or str(j) for j, site in enumerate(names)]
        if len(set(distinct)) < len(distinct):  # sites of different shards may have the same name
            distinct = [str(j) for j in range(len(given))]
        return Fusion(FitResult(given, distinct, {set_name: matching}))


def _find_first(copied: Index) -> dict[int, int]:
    """Sites that are counted once, and the earliest of those that they coincide with, from whom each was `copied`."""
    alike: dict[int, list[int]] = {}
    for j, first in enumerate(copied.tolist()):
        alike.setdefault(first, []).append(j)
    return {j: sites[0] for sites in alike.values() for j in sites[1:]}


def own_labels(shard: Shard, labels: Index, place: Index, first_aside: int) -> list[Index]:
    """A shard's labels in the centre's numbers, site by site; copies of a value are labelled like it."""
    numbers, fitted, aside, copies = labels.copy(), labels >= 0, labels == EXCLUDED, labels <= COPIES
    numbers[fitted] = place[labels[fitted]]
    numbers[aside] = first_aside + np.arange(int(aside.sum()))
    numbers[copies] = numbers[COPIES - labels[copies]]
    return shard.as_given(numbers)


def _everything(shard: Shard, labels: Index, *places: Any) -> tuple[list[Any], list[Index], Index]:
    """A shard's sites, their labels in the centre's numbers, and of whom each is a copy (most of themselves)."""
    values, numbers = shard.as_given(shard.stack.values), own_labels(shard, labels, *places)
    site, copies = shard.groups[group_of_values(shard.stack.offsets)], labels <= COPIES
    copied = np.arange(len(values))
    copied[site[copies]] = site[COPIES - labels[copies]]
    if shard.stack.plain and not shard.about.array:
        return values, numbers, copied
    set_name, array = shard.about.array.split("/", 1)

    def beside(x: Array | None) -> list[dict[str, Array]]:
        return [{} for _ in values] if x is None else [{array: part} for part in shard.as_given(x)]

    variances, weights = beside(shard.stack.variance), beside(shard.stack.weight)
    sites = [
        LocalModel({array: v}, {array: (set_name, None)}, variance=variance, weight=weight, site=site)
        for v, variance, weight, site in zip(values, variances, weights, shard.sites, strict=True)
    ]
    return sites, numbers, copied
