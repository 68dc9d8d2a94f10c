"""Leave-one-out: a fit without one of its sites. Sums of rows (sufficient statistics) are
downdated, labels and hyperparameters stay.

So J questions of the kind "what would the others say?" cost about as much as one sweep; and they are asked of many
sites at once, one row of a table for each atom of each site.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from modelweld.core.board import Board
from modelweld.core.values import Array, Index


@dataclass(frozen=True, eq=False)
class Without:
    """Sites' parts in the matching, and what is left of each one's atoms without it alone.

    Attributes
    ----------
    values : int array (L,)
        Where the sites' values stand, those without a label left out.
    site : int array (L,)
        The site of each value.
    sites, atoms : int arrays (A,)
        A site and an atom it holds, sites one after the other.
    where : int array (L,)
        Place of each value's site and atom among these.
    holders : int array (A,)
        Number of other sites at each of them.
    own, rest : lists of arrays (A, k)
        The site's and the others' summed rows at these atoms, one array per family.
    """

    values: Index
    site: Index
    sites: Index
    atoms: Index
    where: Index
    holders: Index
    own: list[Array]
    rest: list[Array]

    @property
    def shared(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Which values have an atom that others hold too."""
        return np.asarray(self.holders[self.where] > 0)

    @property
    def in_fragments(self) -> bool:
        """Whether a site holds an atom in several values."""
        return len(self.atoms) < len(self.values)

    def of(self, j: int) -> Self:
        """Of one site alone."""
        held = slice(*np.searchsorted(self.sites, [j, j + 1]))
        mine = slice(*np.searchsorted(self.site, [j, j + 1]))
        return type(self)(
            self.values[mine],
            self.site[mine],
            self.sites[held],
            self.atoms[held],
            self.where[mine] - held.start,
            self.holders[held],
            [own[held] for own in self.own],
            [rest[held] for rest in self.rest],
        )


def leave_out(board: Board, first: int, last: int | None = None) -> Without:
    """Take each of the sites from `first` to before `last` (default: that one) out, on paper: the board stays."""
    last = first + 1 if last is None else last
    values = np.arange(board.offsets[first], board.offsets[last])
    values = values[board.labels[values] >= 0]
    site, K = board.group[values], len(board.counts)
    held, at, where = np.unique(site * K + board.labels[values], return_index=True, return_inverse=True)
    sites, atoms = np.divmod(held, max(K, 1))
    holders = board.counts[atoms] - 1
    alone = np.flatnonzero(holders == 0)
    own, rest = [], []
    once, where = len(held) == len(values), where.ravel()
    pooled = [rows[values[at]] for rows in board.rows] if once else board.pool_rows(values, where, len(held))
    for sums, mine in zip(board.sums, pooled, strict=True):
        left = sums[atoms]
        left -= mine
        left[alone] = 0.0  # where no other site holds the atom nothing is left, not even rounding
        own.append(mine)
        rest.append(left)
    return Without(values, site, sites, atoms, where, holders, own, rest)
