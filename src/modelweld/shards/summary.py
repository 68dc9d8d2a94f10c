"""A shard's matching as sums of rows (sufficient statistics): what of it travels, and how it is stated and renamed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from modelweld.families.base import Family, sum_by_atom
from modelweld.families.math.blocks import block_size
from modelweld.inputs.local_model import Array
from modelweld.inputs.stack import Index, Stack, group_of_values
from modelweld.shards.shard import Shard


@dataclass(frozen=True, eq=False)
class Summary:
    """A shard's matching as sums.

    Attributes
    ----------
    place : int array (K,)
        Each atom's number at the centre; numbers from that of the centre's atoms upwards are new ones.
    counts : int array (K,)
        Number of sites that hold each.
    rows : array (K, k)
        Sums of the rows of their values.
    family : Family
        What the rows were made with.
    values : int
        How many values there are: more than sites at atoms where sites hold atoms in pieces.
    ways : float
        In how many ways pieces could stand, as a logarithm: the lgamma of `modelweld.matching.pieces.prior`, summed.
    """

    place: Index
    counts: Index
    rows: Array
    family: Family
    values: int
    ways: float


def summarise(shard: Shard, labels: Index, numbers: Index, family: Family) -> tuple[Index, Summary]:
    """Labels of the shard's own from any `numbers` of atoms of the fitted values, and what the centre needs of them."""
    from scipy.special import gammaln

    place, own = np.unique(numbers, return_inverse=True)
    labels = labels.copy()
    labels[labels >= 0] = own
    stack, own = shard.fitted(labels)
    J = len(stack.sizes)
    held, pieces = np.unique(own * J + group_of_values(stack.offsets), return_counts=True)
    counts = np.bincount(held // max(J, 1), minlength=len(place))
    ways = float(gammaln(pieces[pieces > 1] + 1.0).sum())
    return labels, Summary(place, counts, _sums(stack, own, len(place), family), family, len(own), ways)


def restate(shard: Shard, labels: Index, family: Family) -> Array:
    """Sums (K, k) of the rows of the shard's atoms, made with this family."""
    stack, own = shard.fitted(labels)
    return _sums(stack, own, int(own.max(initial=-1)) + 1, family)


def summary_of(shard: Shard, labels: Index, family: Family) -> Summary:
    """The shard's matching as it is, by this family."""
    return relabel(shard, labels, np.arange(int(labels.max(initial=-1)) + 1), family)[1]


def relabel(shard: Shard, labels: Index, place: Index, family: Family) -> tuple[Index, Summary]:
    """The same matching with each of the shard's atoms at a `place` of the centre's; several at one become one."""
    return summarise(shard, labels, place[labels[labels >= 0]], family)


def _sums(stack: Stack, labels: Index, K: int, family: Family) -> Array:
    """Rows added up by atom, some values at a time."""
    block, total = block_size(5 * stack.values.shape[1]), None
    for a in range(0, max(len(labels), 1), block):
        part = slice(a, a + block)
        beside = (None if x is None else x[part] for x in (stack.variance, stack.weight))
        sums = sum_by_atom(family.rows(stack.values[part], *beside), labels[part], K)
        total = sums if total is None else total + sums
    assert total is not None
    return total
