"""Leave-one-out: a fit without one of its sites. Sums of rows (sufficient statistics) are
downdated, labels and hyperparameters stay.

So J questions of the kind "what would the others say?" cost about as much as one sweep.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from modelweld.families.base import sum_by_atom
from modelweld.inputs.local_model import Array
from modelweld.inputs.stack import Index
from modelweld.matching.board import Board


@dataclass(frozen=True, eq=False)
class Without:
    """One site's part in the matching, and what is left of its atoms without it.

    Attributes
    ----------
    values : int array (L,)
        Where the site's values stand, those without a label left out.
    atoms : int array (A,)
        The atoms it holds.
    where : int array (L,)
        Place of each value's atom among `atoms`.
    holders : int array (A,)
        Number of other sites at each of them.
    own, rest : lists of arrays (A, k)
        The site's and the others' summed rows at these atoms, one array per family.
    """

    values: Index
    atoms: Index
    where: Index
    holders: Index
    own: list[Array]
    rest: list[Array]

    @property
    def shared(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Which values have an atom that others hold too."""
        return np.asarray(self.holders[self.where] > 0)


def leave_out(board: Board, j: int) -> Without:
    """Take site j out, on paper: the board is left as it is."""
    values = np.r_[board.values_of(j)]
    values = values[board.labels[values] >= 0]
    atoms, where = np.unique(board.labels[values], return_inverse=True)
    holders = board.counts[atoms] - 1
    own, rest = [], []
    for sums, all_rows in zip(board.sums, board.rows, strict=True):
        mine = sum_by_atom(all_rows[values], where, len(atoms))
        own.append(mine)
        # where nobody else holds the atom nothing is left, not even rounding
        rest.append(np.where(holders[:, None] > 0, sums[atoms] - mine, 0.0))
    return Without(values, atoms, where, holders, own, rest)
