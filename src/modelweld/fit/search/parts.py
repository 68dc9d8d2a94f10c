"""A fit too large for one board: boards of a few groups each, on which the atoms are those of all groups.

A board holds the rows (sufficient statistics) of its values, five times as many numbers as Gaussian values are. What is
asked of every group in turn needs the rows of one group, and the atoms' sums of all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from modelweld.core.board import Board
from modelweld.core.family import Conditional, Family, is_signless, sum_by_atom
from modelweld.core.prior import Fragments, Prior
from modelweld.core.values import BLOCK, Array, Index, Stack, group_of_values


class Part(NamedTuple):
    """Groups from `first` to before `last`, on a board that must not be moved: its atoms are those of all groups."""

    first: int
    last: int
    board: Board


class Parts:
    """A matching of all groups, looked at a few groups at a time.

    Parameters are those of `core.board.Board`, the labels without gaps. Families that keep something of the
    values they see, or whose values have no sign but in their atom, are shown all at once: there is one part then.

    Examples
    --------
    >>> from modelweld.families import Gaussian
    >>> from modelweld.core.beta_bernoulli import BetaBernoulli
    >>> stack = Stack(np.array([[1.0], [5.0], [1.5]]), np.array([0, 2, 3]))
    >>> family = Gaussian(mean=0.0, noise=1.0, spread=9.0)
    >>> parts = Parts([stack], [family], BetaBernoulli(), None, np.array([0, 1, 0]), largest=1)
    >>> [(part.first, part.last, part.board.labels.tolist(), part.board.counts.tolist()) for part in parts]
    [(0, 1, [0, 1], [2, 1]), (1, 2, [0], [2, 1])]
    """

    def __init__(
        self,
        stacks: Sequence[Stack],
        families: Sequence[Family],
        prior: Prior,
        fragments: Fragments | None,
        labels: Index,
        largest: int = BLOCK,
    ) -> None:
        self.stacks, self.families, self.prior, self.fragments = list(stacks), list(families), prior, fragments
        self.labels, self.offsets, self.sizes = labels, stacks[0].offsets, stacks[0].sizes
        J = len(self.sizes)
        self._held, self._fragments = np.unique(labels * J + group_of_values(self.offsets), return_counts=True)
        self.counts = np.bincount(self._held // J, minlength=int(labels.max(initial=-1)) + 1)
        self._signless = any(is_signless(family) for family in families)
        sees = self._signless or any(isinstance(family, Conditional) for family in families)
        width = max(len(self.counts), sum(stack.values.shape[1] for stack in stacks))
        self.most_values = len(labels) if sees else largest // max(width, 1)

    def fragments_held(self) -> Index:
        """In how many fragments each (atom, group) is held, one number per pair."""
        return np.asarray(self._fragments)

    @cached_property
    def sums(self) -> list[Array]:
        """Sums (K, k) of the rows of each atom's values, one array per family."""
        if self._signless:
            return self._whole.sums
        total: list[Array] = []
        for first, last in self._spans():
            span = slice(self.offsets[first], self.offsets[last])
            part = self._part(first, last)
            held, cell = np.unique(self.labels[span] * len(self.sizes) + part.group, return_inverse=True)
            rows = part.pool_rows(slice(None), cell, len(held))
            own = [sum_by_atom(x, held // len(self.sizes), len(self.counts)) for x in rows]
            total = [a + b for a, b in zip(total, own, strict=True)] if total else own
        return total

    def __len__(self) -> int:
        return sum(1 for _ in self._spans())

    def __iter__(self) -> Iterator[Part]:
        if self._signless:
            yield Part(0, len(self.sizes), self._whole)
            return
        sums = self.sums
        for first, last in self._spans():
            board = self._part(first, last)
            board.counts, board.sums = self.counts, sums
            board.labels = self.labels[self.offsets[first] : self.offsets[last]]
            yield Part(first, last, board)

    @cached_property
    def _whole(self) -> Board:
        """All groups, their values turned to agree with their atoms."""
        return Board(self.stacks, self.families, self.prior, self.fragments, self.labels)

    def _spans(self) -> Iterator[tuple[int, int]]:
        """Groups, as many together as fit on a board."""
        first, J = 0, len(self.sizes)
        while first < J:
            most = self.offsets[first] + self.most_values
            last = max(first + 1, int(np.searchsorted(self.offsets, most, side="right")) - 1)
            yield first, last
            first = last

    def _part(self, first: int, last: int) -> Board:
        """These groups, in no atom yet, as some of all."""
        rows, offsets = slice(self.offsets[first], self.offsets[last]), self.offsets[first : last + 1]
        stacks = [stack.take(rows, offsets - offsets[0]) for stack in self.stacks]
        board = Board(stacks, self.families, self.prior, self.fragments)
        board.set_prior(self.prior, len(self.sizes))
        return board
