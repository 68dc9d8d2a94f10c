"""The engines that do sweeps: the reference in numpy, the sparse one and the compiled one.

An engine puts values in its canonical order and makes boards of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from modelweld.core.algorithm1 import AnyBoard, State
from modelweld.core.board import Board
from modelweld.core.family import Family
from modelweld.core.prior import Fragments, Prior
from modelweld.core.tally import Tally
from modelweld.core.values import Array, Index, Stack, arrange


class Movable(AnyBoard, Protocol):
    """What the search round Algorithm 1 asks for besides: `increments` are log prior odds, `sizes` those of groups."""

    fragments: Fragments | None
    increments: Array

    @property
    def sizes(self) -> Index:
        """Number of values of every group."""

    @property
    def margin(self) -> float:
        """Nats by which every value is known to be where it is, given the other groups; zero if that is not known."""

    def release(self, groups: Index) -> None:
        """Take these groups out of the matching; the next sweep matches them as if for the first time."""

    def place_new(self) -> None:
        """Sweep over the groups that have no atoms yet, and no others."""

    def state(self) -> State:
        """What `restore` needs to come back to the present matching and hyperparameters."""

    def restore(self, state: State) -> None:
        """Go back to an earlier state."""

    def tally(self) -> Tally:
        """Labels, counts and sums of the atoms, to be moved apart from the board's own."""

    def recount(self) -> None:
        """Number the atoms without gaps and add everything again."""

    def holders(self, atom: int) -> Index:
        """The groups that hold an atom, as `release` takes them."""

    def labels_by_content(self) -> Index:
        """The atom of each value, in an order of values that does not depend on how they arrived."""


class Engine(Protocol):
    """What does the sweeps."""

    def arrange(self, stacks: Sequence[Stack]) -> tuple[Sequence[Stack], Index]:
        """The stacks in canonical order, and where each value stood."""

    def board(
        self,
        stacks: Sequence[Stack],
        families: Sequence[Family],
        prior: Prior,
        fragments: Fragments | None = None,
        labels: Index | None = None,
    ) -> Movable:
        """A board of arranged stacks, at these labels (default: every value is NEW)."""


class Reference:
    """Any families, in plain numpy."""

    arrange = staticmethod(arrange)
    board = staticmethod(Board)


class Sparse:
    """Thousands of values per group, of which the family names the pairs worth scoring."""

    arrange = staticmethod(arrange)

    @staticmethod
    def board(*given: object) -> Board:
        """A sparse board."""
        from modelweld.fit.engines.sparse_board import SparseBoard

        return SparseBoard(*given)  # type: ignore[arg-type]


class Compiled:
    """One array of plain values with a Gaussian family, in compiled code."""

    @staticmethod
    def arrange(stacks: Sequence[Stack]) -> tuple[Sequence[Stack], Index]:
        """Nothing is moved: the order stands beside the values."""
        from modelweld.fit.engines.compiled import pack

        stack, order = pack(stacks[0])
        return [stack], order

    @staticmethod
    def board(
        stacks: Sequence[Stack],
        families: Sequence[Family],
        prior: Prior,
        fragments: Fragments | None = None,
        labels: Index | None = None,
    ) -> Movable:
        """A compiled board."""
        from modelweld.fit.engines.compiled import CompiledBoard

        board = CompiledBoard(stacks[0], families[0], prior)  # type: ignore[arg-type]
        if labels is not None:
            board.restore(State(labels, list(families), prior, None))
        return board
