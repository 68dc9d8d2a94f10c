"""The engines that do sweeps: the reference in numpy, the sparse one and the compiled one.

An engine puts values in its canonical order and makes boards of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from modelweld.core.algorithm1 import Movable, State
from modelweld.core.board import Board
from modelweld.core.family import Family
from modelweld.core.prior import Fragments, Prior
from modelweld.core.values import Index, Stack, arrange


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
