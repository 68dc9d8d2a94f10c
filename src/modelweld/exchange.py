"""Single components moved between atoms until the fused density gets no better: `fusion.model(how="density")`.

A matching by means is made for identities, not for density. Starting from it, with K kept, components are moved one by
one to the atom where they cost least,

    cost = 1/2 sum over atoms of  W_k log|P_k|,

W_k the points and P_k the covariance of the components merged at atom k (the price of merging them, as in `reduce`).
A site still holds an atom once, unless it already held one in pieces: where a move is barred by a sister component, the
two may change places.
"""

from __future__ import annotations

import numpy as np

from modelweld.local import Array
from modelweld.reduce import log_volumes
from modelweld.stack import Index

SMALLEST_FALL = 1e-9
"""Share of the total mass that a move must save: below it is rounding."""

MOST_SWEEPS = 100
"""Every move lowers the cost, so sweeps end by themselves; this only bounds the time."""


class Heaps:
    """Sums over the components of each atom, from which its cost follows: mass, first and second moments."""

    def __init__(self, means: Array, spreads: Array, counts: Array, labels: Index) -> None:
        self.full = spreads.ndim == 3
        squares = means[:, :, None] * means[:, None, :] if self.full else means * means
        weight = counts.reshape(-1, *[1] * (spreads.ndim - 1))
        self.parts = (counts, counts[:, None] * means, weight * (spreads + squares))
        self.labels = labels.copy()
        K = int(labels.max()) + 1
        self.sums = tuple(np.zeros((K, *part.shape[1:])) for part in self.parts)
        for total, part in zip(self.sums, self.parts, strict=True):
            np.add.at(total, labels, part)
        self.sizes = np.bincount(labels, minlength=K)
        self.costs = self.cost(*self.sums)

    def cost(self, mass: Array, first: Array, second: Array) -> Array:
        """W log|P| / 2 of heaps with these sums; zero without mass."""
        held = np.where(mass > 0, mass, 1.0)
        mean = first / held[:, None]
        squares = mean[:, :, None] * mean[:, None, :] if self.full else mean * mean
        spread = second / held.reshape(-1, *[1] * (second.ndim - 1)) - squares
        return np.where(mass > 0, 0.5 * mass * log_volumes(spread), 0.0)

    def with_(self, atoms: Index, signed: list[tuple[int, int]]) -> Array:
        """Costs of these atoms after components were added (i, +1) or taken away (i, -1)."""
        sums = []
        for total, part in zip(self.sums, self.parts, strict=True):
            changed = total[atoms]
            for i, sign in signed:
                changed = changed + sign * part[i]
            sums.append(changed)
        return self.cost(*sums)

    def move(self, i: int, atom: int) -> None:
        """Take component i to another atom."""
        old = self.labels[i]
        for total, part in zip(self.sums, self.parts, strict=True):
            total[old] -= part[i]
            total[atom] += part[i]
        self.sizes[old] -= 1
        self.sizes[atom] += 1
        self.labels[i] = atom
        changed = np.array([old, atom])
        self.costs[changed] = self.cost(*(total[changed] for total in self.sums))


def exchanged(means: Array, spreads: Array, counts: Array, labels: Index, groups: Index) -> Index:
    """Labels with a cost no higher, none of which can be lowered by moving or swapping one component.

    Examples
    --------
    >>> means, ones = np.array([[0.0], [9.0], [9.1], [0.1]]), np.ones((4, 1))
    >>> exchanged(means, ones, np.ones(4), np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1])).tolist()
    [1, 0, 0, 1]
    """
    heaps = Heaps(means, spreads, counts, labels)
    smallest = SMALLEST_FALL * float(counts.sum())
    pairs = np.unique(np.stack([labels, groups]), axis=1).shape[1]
    pieces = pairs < len(labels)  # sites that hold an atom in pieces may go on doing so
    order = np.lexsort((counts, *means.T[::-1]))  # by content: the order of sites does not matter
    for _ in range(MOST_SWEEPS):
        moved = [_improve(heaps, int(i), groups, pieces, smallest) for i in order]
        if not any(moved):
            break
    return heaps.labels


def _improve(heaps: Heaps, i: int, groups: Index, pieces: bool, smallest: float) -> bool:
    """Do the best move or swap of component i, if one lowers the cost."""
    old, K = int(heaps.labels[i]), len(heaps.sizes)
    atoms = np.flatnonzero(np.arange(K) != old)
    sisters = np.full(K, -1)
    mates = np.flatnonzero((groups == groups[i]) & (np.arange(len(groups)) != i))
    sisters[heaps.labels[mates]] = mates
    barred = (sisters[atoms] >= 0) if not pieces else np.zeros(len(atoms), dtype=bool)
    change = np.full(len(atoms), np.inf)
    free = atoms[~barred]
    if heaps.sizes[old] > 1 and len(free):
        leaving = heaps.with_(np.array([old]), [(i, -1)])[0] - heaps.costs[old]
        change[~barred] = heaps.with_(free, [(i, 1)]) - heaps.costs[free] + leaving
    for n in np.flatnonzero(barred):
        b, sister = int(atoms[n]), int(sisters[atoms[n]])
        after = heaps.with_(np.array([b]), [(i, 1), (sister, -1)])[0]
        after += heaps.with_(np.array([old]), [(i, -1), (sister, 1)])[0]
        change[n] = after - heaps.costs[b] - heaps.costs[old]
    best = int(np.argmin(change)) if len(change) else 0
    if not len(change) or change[best] >= -smallest:
        return False
    target = int(atoms[best])
    heaps.move(i, target)
    if barred[best]:
        heaps.move(int(sisters[target]), old)
    return True
