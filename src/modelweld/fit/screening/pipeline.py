"""What stands between the values given and the fit: a pipeline of screens.

A *screen* gets values and the fit of whatever it hands on, and returns the matching of all values that it got. It may
hand on fewer values and put the others back (outliers), fit more than once (duplicates), or look at the matching alone.

    through([a, b], fit)(values)  is  a(values, fit=lambda rest: b(rest, fit))
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from modelweld.core.matching import Matching, by_count, ranks
from modelweld.core.values import Array, Index, Key, Stack, group_of_values, offsets_of
from modelweld.families import Family

Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class SetValues:
    """Values of one set, of all sites: what a screen gets, and hands on.

    Attributes
    ----------
    stacks, families, names : sequences
        The arrays that decide the matching, one below the other for all sites, with family and name of each.
    sites : list of str
        Names of the sites, one per group of the stacks.
    columns : sequence of sequences of str, or None
        Names of the features, for messages.
    rows : int array (N,)
        Which of the values given at first these are.
    numbers : int array (N,)
        The same for values that coincide; empty where that is not known yet.
    times : array (J,), optional
        When the sites were trained. Atoms move from one time to another, and at one they are all in one place.
    """

    stacks: Sequence[Stack]
    families: Sequence[Family]
    names: Sequence[Key]
    sites: Sequence[str]
    columns: Sequence[Sequence[str]] | None
    rows: Index
    numbers: Index = field(default_factory=lambda: np.arange(0))
    times: Array | None = None

    @cached_property
    def offsets(self) -> Index:
        """Where sites begin."""
        return self.stacks[0].offsets

    @cached_property
    def sizes(self) -> Index:
        """Number of values of every site."""
        return self.stacks[0].sizes

    def number(self, which: Flags) -> Index:
        """How many of some values every site has."""
        return np.diff(np.concatenate([[0], np.cumsum(which)])[self.offsets])

    def emptied(self, keep: Flags) -> Index:
        """Sites that had values and keep none."""
        return np.flatnonzero((self.number(keep) == 0) & (self.sizes > 0))

    def keep(self, keep: Flags) -> SetValues:
        """These values alone; sites that keep none are no groups any more."""
        if keep.all():
            return self
        gone, own = self.emptied(keep), np.flatnonzero(keep)
        return self.take(own, np.delete(self.number(keep), gone), np.delete(np.arange(len(self.sites)), gone))

    def take(self, own: Index, sizes: Index, stay: Index) -> SetValues:
        """Some values of some sites."""
        return replace(
            self,
            stacks=[stack.take(own, offsets_of(sizes)) for stack in self.stacks],
            sites=[self.sites[j] for j in stay.tolist()],
            rows=self.rows[own],
            numbers=self.numbers[own] if len(self.numbers) else self.numbers,
            times=None if self.times is None else self.times[stay],
        )

    def of(self, stay: Index) -> SetValues:
        """The values of some sites."""
        return self.take(np.flatnonzero(np.isin(group_of_values(self.offsets), stay)), self.sizes[stay], stay)

    def at_one_time(self, numbers: Index) -> Index:
        """Numbers of values, made others where times are others."""
        if self.times is None:
            return numbers
        time = np.repeat(np.unique(self.times, return_inverse=True)[1], self.sizes)
        return np.unique(np.stack([numbers, time]), axis=1, return_inverse=True)[1].ravel()

    def restore(self, matching: Matching, keep: Flags, atoms: Index | None = None) -> Matching:
        """The matching of those kept, with the others as atoms of their own, after all others, numbered by content.

        One for each value, or for those with the same of some numbers, `atoms`. What was excluded before stays so.
        """
        outside = np.flatnonzero(~keep)
        outside = outside[by_count(np.ones_like(outside), np.hstack([s.values[outside] for s in self.stacks]))]
        _, first, atom, counts = np.unique(
            outside if atoms is None else atoms[outside], return_index=True, return_inverse=True, return_counts=True
        )
        order = np.argsort(first)
        labels = np.empty(len(keep), dtype=np.int64)
        labels[keep] = matching.stacked_labels
        labels[outside] = len(matching.counts) + ranks(order)[atom]
        kept = keep.copy()
        kept[keep] = True if matching.kept is None else matching.kept
        stay = np.delete(np.arange(len(self.sites)), self.emptied(keep)).tolist()
        return replace(
            matching,
            stacked_labels=labels,
            offsets=self.offsets,
            counts=np.concatenate([matching.counts, counts[order]]),
            values={
                name: np.vstack([values, stack.values[outside[first[order]]]])
                for (name, values), stack in zip(matching.values.items(), self.stacks, strict=True)
            },
            kept=kept,
            duplicates=matching.duplicates and {stay[j]: stay[first] for j, first in matching.duplicates.items()},
        )


Fit = Callable[[SetValues], Matching]
"""Values in, their matching out."""


class Screen(Protocol):
    """One step of the pipeline: the matching of all `values`, given the `fit` of those that it hands on."""

    def __call__(self, values: SetValues, fit: Fit) -> Matching:
        """Screen."""
        ...


class Refit(Protocol):
    """The matching of values that one comes to from `labels` and the hyperparameters of an old matching."""

    def __call__(self, old: Matching, values: SetValues, labels: Index, *, learn: bool = True) -> Matching:
        """Fit on."""
        ...


def through(screens: Sequence[Screen], fit: Fit) -> Fit:
    """The fit behind these screens, of which the first sees the values first."""
    for screen in reversed(screens):
        fit = partial(screen, fit=fit)
    return fit
