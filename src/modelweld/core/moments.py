"""What a Gaussian's hyperparameters are learned from when the matching is known, and the paper's closed forms for them.

Atom k has theta_k ~ N(mean, spread) and values v ~ N(theta_k, noise / w), with W_k = sum w and the atoms' averages
y_k = sum w v / W_k. Maximum likelihood of the same is in `families.math.random_effects`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from modelweld.core.values import Array


class Hyperparameters(NamedTuple):
    """Mean (D,), noise and spread (D,) or (1,)."""

    mean: Array
    noise: Array
    spread: Array


@dataclass(frozen=True, eq=False)
class Effects:
    """What the likelihood needs to know of a matching. Atoms of equal weight share a line (C lines).

    weight (C, D or 1), atoms (C, D or 1): W and how many atoms have it; averages, squares (C, D): sums over
    those atoms of y and y^2; within (D,): sum of w (v - y)^2; seen (D,): number of values; log_weight (D,): sum
    of log w.
    """

    weight: Array
    atoms: Array
    averages: Array
    squares: Array
    within: Array
    seen: Array
    log_weight: Array

    @classmethod
    def from_counts(cls, counts: NDArray[np.int64], sums: Array, total_squares: Array) -> Effects:
        """Of atoms with `counts` equally known values, their `sums` (K, D) and all values' squares (D,)."""
        distinct, line = np.unique(counts, return_inverse=True)
        C, D = len(distinct), sums.shape[1]
        y = sums / counts[:, None]
        member = np.zeros((C, len(counts)))
        member[line, np.arange(len(counts))] = 1.0
        within = total_squares - (counts[:, None] * y * y).sum(0)
        return cls(
            weight=distinct[:, None].astype(np.float64),
            atoms=member.sum(1)[:, None],
            averages=member @ y,
            squares=member @ (y * y),
            within=np.maximum(within, 0.0),
            seen=np.full(D, float(counts.sum())),
            log_weight=np.zeros(D),
        )

    @classmethod
    def from_sums(cls, n: Array, W: Array, S: Array, Q: Array, G: Array) -> Effects:
        """Of atoms with these numbers of values, and sums (K, D) of w, w y, w y^2 and log w."""
        if (n == n[:, :1]).all() and (n == W).all():
            return cls.from_counts(n[:, 0].astype(np.int64), S, Q.sum(0))
        y = S / np.where(W > 0, W, 1.0)
        return cls(
            weight=W,
            atoms=(W > 0).astype(np.float64),
            averages=y,
            squares=y * y,
            within=np.maximum(Q - W * y * y, 0.0).sum(0),
            seen=n.sum(0),
            log_weight=G.sum(0),
        )

    @property
    def free(self) -> Array:
        """Values beyond the first of their atom (D,): where there are none, the ratio cannot be learned."""
        return np.asarray(self.seen - np.broadcast_to(self.atoms, self.averages.shape).sum(0))

    def residuals(self, mean: Array) -> Array:
        """Sum over the atoms of a line of (y - mean)^2: (C, D)."""
        return np.asarray(self.squares - 2 * mean * self.averages + mean * mean * self.atoms)


def step_by_moments(effects: Effects, old: Hyperparameters, floor: Array, scalar: bool) -> Hyperparameters:
    """The paper's closed forms (equation 8), 1/L before both sums of spread (erratum E4). The likelihood may fall.

    Where nothing is matched (N = K: the authors' program divides by zero) the old values stay.
    """
    K = np.maximum(effects.atoms.sum(0), 1.0)
    mean = effects.averages.sum(0) / K
    within, free = effects.within, effects.free
    between = effects.residuals(mean).sum(0) / K
    if scalar:
        within, free, between = (x.sum(keepdims=True) for x in (within, free, between))
        between = between / len(effects.within)
    noise = np.where(free > 0, within / np.maximum(free, 1), old.noise)
    spread = np.where(free > 0, between - noise * (effects.atoms / effects.weight).sum(0) / K, old.spread)
    return Hyperparameters(mean, np.maximum(noise, floor), np.maximum(spread, floor))
