"""Rows of transition probabilities (moves) and of starts: Dirichlet posteriors given the shares of states.

Row k of K states has theta_kl = eta bbar_l + kappa [k = l] + N_kl for l <= K, and eta bbar_{K+1} for all states that
are not there; the row of starts, the last one here, theta_0l = eta0 bbar_l + n_l. E ln pi_kl = psi(theta_kl) -
psi(theta_k.).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, psi

from modelweld.inputs.local_model import Array


class Concentrations(NamedTuple):
    """Hyperparameters: of moves, of staying, of starts, of the stick."""

    eta: float
    kappa: float
    eta0: float
    gamma: float


def seen(moves: Array, starts: Array) -> Array:
    """Moves, starts as last row, and a last column of zeros for all states that are not there: (K + 1, K + 1)."""
    K = len(starts)
    result = np.zeros((K + 1, K + 1))
    result[:K, :K] = moves
    result[K, :K] = starts
    return result


def theta(shares: Array, numbers: Array, at: Concentrations) -> Array:
    """Parameters of all rows (K + 1, K + 1), given expected shares (K + 1,) and numbers as `seen` makes them."""
    K = len(shares) - 1
    weights = np.append(np.full(K, at.eta), at.eta0)
    result = np.outer(weights, shares) + numbers
    result[np.arange(K), np.arange(K)] += at.kappa
    return np.asarray(result)


@dataclass(frozen=True, eq=False)
class Rows:
    """Posteriors of the rows (K + 1, K + 1): their parameters, and the numbers of moves in them."""

    theta: Array
    numbers: Array

    @cached_property
    def expected_log(self) -> Array:
        """E ln pi."""
        return np.asarray(psi(self.theta) - psi(self.theta.sum(axis=1, keepdims=True)))

    @property
    def log_move(self) -> Array:
        """Of the states that are there (K, K)."""
        return np.asarray(self.expected_log[:-1, :-1])

    @property
    def log_start(self) -> Array:
        """Of the states that are there (K,)."""
        return np.asarray(self.expected_log[-1, :-1])

    @property
    def mean(self) -> Array:
        """Expected probabilities of moves and, last, starts, among the states that are there (K + 1, K)."""
        there = self.theta[:, :-1]
        return np.asarray(there / there.sum(axis=1, keepdims=True))

    def bound(self) -> float:
        """What rows add to the bound beside the sticks' part: -sum_k [c(theta_k) + sum_l N_kl E ln pi_kl]."""
        log_beta = gammaln(self.theta).sum() - gammaln(self.theta.sum(axis=1)).sum()
        return float(log_beta - (self.numbers * self.expected_log).sum())
