"""Where local and global values lie: side by side as columns, how far apart, on a map, and in which order to show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from modelweld.inputs.local_model import Array
from modelweld.inputs.stack import Index, Key
from modelweld.matching.sets import columns_of, stack_of

if TYPE_CHECKING:
    from modelweld.fusion import Fusion

SHARES_ROUNDING = 1e-9
"""Rows that add up to one within this are shares."""

MOST_FITTED = 5_000
"""Local values that principal axes are fitted to, evenly picked: the axes of more would look the same."""


@dataclass(frozen=True, eq=False)
class Values:
    """Local values (N, D) and global ones (K, D) of all arrays that decided a matching, side by side.

    `seen` says which local values are known, `columns` what they are called, `keys` which arrays they are from,
    `labels` (N,) whose global value each is. If global values are `shares` (they add up to one), local ones were made
    so.
    """

    local: Array
    atoms: Array
    seen: NDArray[np.bool_]
    columns: list[str]
    shares: bool
    keys: tuple[Key, ...]
    labels: Index


def gather_values(fusion: Fusion, set_name: str, keys: Sequence[Key] | None = None) -> Values:
    """Values of a set, of all arrays or those named. A local value that was not seen is taken to be its atom's."""
    matching = fusion.matchings[set_name]
    keys = tuple(matching.values) if keys is None else tuple(keys)
    local, atoms, seen, columns, shares = [], [], [], [], []
    for key in keys:
        estimates = matching.values[key]
        stack = stack_of(fusion.models, key, set_name, fusion.matchings)
        values, known = stack.values, np.ones(stack.values.shape, dtype=bool)
        if stack.weight is not None:
            known = stack.weight > 0
        shares.append(_are_shares(estimates))
        if shares[-1]:
            values = np.where(known, values, 0.0)
            values = values / np.maximum(values.sum(axis=1, keepdims=True), np.finfo(float).tiny)
        local.append(np.where(known, values, estimates[matching.stacked_labels]))
        atoms.append(estimates)
        seen.append(known)
        names = columns_of(fusion.models[0], key, set_name, fusion.matchings)
        columns += [f"{key} {name}".strip() for name in names] if len(keys) > 1 and isinstance(key, str) else names
    return Values(
        np.hstack(local), np.hstack(atoms), np.hstack(seen), columns, all(shares), keys, matching.stacked_labels
    )


def _are_shares(values: Array) -> bool:
    return values.shape[1] > 1 and bool(
        (values >= 0).all() and (np.abs(values.sum(axis=1) - 1) < SHARES_ROUNDING).all()
    )


def deviations(values: Values, labels: Index, counts: Index) -> tuple[Array, Array]:
    """How far each local value lies from its atom (N,), in typical deviations, and members' deviations by atom (K, D).

    The typical deviation of a column is the root mean square over the values whose atom several sites hold; a distance
    is a root mean square over columns, so that 1 is usual. Deviations of atoms that one site holds are NaN.
    """
    off = np.where(values.seen, values.local - values.atoms[labels], 0.0)
    shared = counts[labels] > 1
    K, D = values.atoms.shape
    squares, number = np.zeros((K, D)), np.zeros((K, D))
    np.add.at(squares, labels, off * off)
    np.add.at(number, labels, values.seen)
    known = values.seen[shared].sum(axis=0)
    typical = np.sqrt((off[shared] ** 2).sum(axis=0) / np.maximum(known, 1))
    used = typical > 0
    size = np.maximum(values.seen[:, used].sum(axis=1), 1)
    distance = np.sqrt(((off[:, used] / typical[used]) ** 2).sum(axis=1) / size)
    spread = np.where((counts[:, None] > 1) & (number > 1), np.sqrt(squares / np.maximum(number, 1)), np.nan)
    return distance, spread


def plane(values: Values, labels: Index, K: int) -> tuple[Array, Array, Array]:
    """Local and global values on the two principal axes of the local ones, and the share of variance these explain.

    Columns are divided by their standard deviation; of shares, square roots are taken instead. Atoms from number K on
    are set aside, and have no part in the axes.
    """
    local, atoms = values.local, values.atoms
    if values.shares:
        local, atoms = np.sqrt(np.maximum(local, 0)), np.sqrt(np.maximum(atoms, 0))
    rows = np.flatnonzero(labels < K) if K else np.arange(len(labels))
    rows = rows[np.linspace(0, len(rows) - 1, min(len(rows), MOST_FITTED)).astype(np.int64)]
    centre = local[rows].mean(axis=0)
    unit = np.ones(1) if values.shares else local[rows].std(axis=0)
    unit = np.where(unit > 0, unit, 1.0)
    _, singular, found = np.linalg.svd((local[rows] - centre) / unit, full_matrices=False)
    axes, explained, n = np.zeros((2, local.shape[1])), np.zeros(2), min(2, len(found))
    axes[:n] = found[:n] * np.where(found[:n].sum(axis=1) < 0, -1.0, 1.0)[:, None]  # LAPACK's signs are arbitrary
    if (singular > 0).any():
        explained[:n] = singular[:n] ** 2 / (singular**2).sum()
    return (local - centre) / unit @ axes.T, (atoms - centre) / unit @ axes.T, explained


def order_by_likeness(presence: NDArray[np.bool_], K: int) -> tuple[Index, Index]:
    """Orders of sites and atoms in which those that go together are neighbours.

    Both are sorted by the first axis of a correspondence analysis of who holds the shared ones of the first K atoms;
    atoms that one site holds alone follow, in the order of these sites, then those set aside.
    """
    J, total = presence.shape
    held = presence.sum(axis=0)
    shared = np.flatnonzero((held > 1) & (np.arange(total) < K))
    table = presence[:, shared].astype(np.float64)
    rows, columns = np.sqrt(np.maximum(table.sum(axis=1), 1)), np.sqrt(np.maximum(table.sum(axis=0), 1))
    scaled = table / rows[:, None] / columns
    site_score = atom_score = None
    if min(scaled.shape) > 1:
        small = scaled if len(shared) >= J else scaled.T
        _, vectors = np.linalg.eigh(small @ small.T)
        axis = vectors[:, -2] * np.where(vectors[np.abs(vectors[:, -2]).argmax(), -2] < 0, -1.0, 1.0)
        other = small.T @ axis
        site, atom = (axis, other) if len(shared) >= J else (other, axis)
        site_score, atom_score = site / rows, atom / columns
    # rounded, so that ties are ties, and broken by number
    sites = np.arange(J) if site_score is None else np.argsort(site_score.round(9), kind="stable")
    atoms = shared if atom_score is None else shared[np.argsort(atom_score.round(9), kind="stable")]
    rank = np.empty(J, dtype=np.int64)
    rank[sites] = np.arange(J)
    rest = np.setdiff1d(np.arange(total), shared)
    first = rank[presence[:, rest].argmax(axis=0)] if len(rest) else rest
    rest = rest[np.lexsort((rest, first, rest >= K))]
    return sites, np.concatenate([atoms, rest])
