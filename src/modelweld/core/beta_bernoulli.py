"""The paper's prior of a matching: the Beta-Bernoulli process.

Let m_k be the number of groups that hold atom k. With the atoms' probabilities integrated out, a matching of J
groups of sizes L_1 ... L_J has

    log P = sum_k R(m_k) - gamma0 sum_{j=1..J} alpha/(alpha+j-1) - sum_j lgamma(L_j + 1)
    R(m)  = log(alpha gamma0) + lgamma(m) + lgamma(J - m + alpha) - lgamma(J + alpha),    R(0) = 0

so that the log prior odds of one more group at an atom (global parameter) held by m others are `increments[m]` =
R(m+1) - R(m), and those of a new atom `increments[0]`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from modelweld.core.prior import Prior
from modelweld.core.values import Array, Index
from modelweld.errors import InputError

AUTHORS_LARGEST_COUNT = 10
"""The authors' program cuts the number of groups at an atom here (not in the paper; erratum E8)."""

AUTHORS_MOST_ATOMS = 700
"""The authors' program allows max(700 - K, 1) new atoms per group (not in the paper; erratum E8)."""

LOG_ALPHA_BOUNDS = (-7.0, 7.0)
"""Where the concentration is looked for when it is learned: beyond, atoms are in all groups or in one."""


@dataclass(frozen=True)
class BetaBernoulli(Prior):
    """Beta-Bernoulli process over matchings.

    Parameters
    ----------
    alpha : float
        Concentration: how evenly atoms are shared. Small: few atoms in almost all groups, many in one.
    gamma0 : float
        Mass: the expected number of atoms in one group.
    form : {"exact", "paper", "authors"}
        ``"exact"`` is the exchangeable probability above, and the only one with a single objective.
        ``"paper"`` charges the k-th new atom of a group log k (erratum E2), ``"authors"`` moreover cuts counts
        at 10 and limits new atoms, as the authors' program does. Both are for replication.
    learning : bool
        Whether alpha and gamma0 are learned (empirical Bayes). It helps where local parameters are exact, and harms
        where they are estimated: it believes every surplus atom. `Spectrum` is the better prior to learn.

    Examples
    --------
    >>> BetaBernoulli().increments(3).round(3)        # new, second, third group of three
    array([-1.099, -0.693,  0.693])
    """

    alpha: float = 1.0
    gamma0: float = 1.0
    form: Literal["exact", "paper", "authors"] = "exact"
    learning: bool = False

    def __post_init__(self) -> None:
        for name in ("alpha", "gamma0"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value > 0):
                raise InputError(f"BetaBernoulli: {name} must be a positive number; found {value!r}.")
        if self.form not in ("exact", "paper", "authors"):
            raise InputError(f"BetaBernoulli: form is 'exact', 'paper' or 'authors'; found {self.form!r}.")

    def increments(self, J: int) -> Array:
        """`increments[m]`: log score of joining an atom that m other groups hold; `increments[0]`: of a new atom."""
        m = np.arange(max(J, 1), dtype=np.float64)
        if self.form == "authors":
            m = np.minimum(m, AUTHORS_LARGEST_COUNT)
        steps = np.empty_like(m)
        steps[0] = np.log(self.alpha * self.gamma0 / (self.alpha + J - 1))
        steps[1:] = np.log(m[1:] / (self.alpha + J - 1 - m[1:]))
        return steps

    def as_probability(self) -> BetaBernoulli:
        """In the exact form, the only one that is a probability."""
        return replace(self, form="exact")

    def surcharge(self, size: int) -> Array:
        """What the first, second, ... new atom of a group of `size` pays beyond `increments[0]`."""
        if self.form == "exact":
            return np.zeros(size)
        return np.log(np.arange(1, size + 1))

    def most_new(self, size: int, K: int) -> int:
        """How many atoms a group of `size` may open when there are K."""
        return min(size, max(AUTHORS_MOST_ATOMS - K, 1)) if self.form == "authors" else size

    def learn(self, counts: Index, sizes: Index) -> BetaBernoulli:
        """The most probable alpha and gamma0; gamma0 = K / sum_j alpha / (alpha + j - 1) given alpha."""
        if not self.learning or len(counts) == 0:
            return self
        from scipy.optimize import minimize_scalar

        j = np.arange(len(sizes))

        def at(log_alpha: float) -> BetaBernoulli:
            alpha = float(np.exp(log_alpha))
            return replace(self, alpha=alpha, gamma0=float(len(counts) / (alpha / (alpha + j)).sum()))

        best = minimize_scalar(lambda x: -at(x).log_prob(counts, sizes), bounds=LOG_ALPHA_BOUNDS, method="bounded")
        found = at(float(best.x))
        return found if found.log_prob(counts, sizes) > self.log_prob(counts, sizes) else self

    def log_prob(self, counts: Index, sizes: Index) -> float:
        """Log probability of a matching, always in the exact form: the one number all fits are compared by."""
        from scipy.special import gammaln

        J = len(sizes)
        log_R = gammaln(counts) + gammaln(J - counts + self.alpha)
        constant = np.log(self.alpha * self.gamma0) - gammaln(J + self.alpha)
        expected_atoms = self.gamma0 * (self.alpha / (self.alpha + np.arange(J))).sum()
        return float(log_R.sum() + len(counts) * constant - expected_atoms - gammaln(sizes + 1.0).sum())
