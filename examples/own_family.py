# ruff: noqa: D102 (what each method gives is said in modelweld.core.family.Family)
"""A family of your own: how long states last. Run me: ``python examples/own_family.py``.

Sites watched the same kinds of behaviour, each under its own numbering, and send for every behaviour how many steps it
went on for on average (v) in six conditions, and in how many bouts that was seen (weight n). The length of a bout is
geometric: it ends after each step with probability p, and p ~ Beta(ending, going_on). With y = n v,

    p(v | p) = C(n + y - 1, y) p^n (1 - p)^y,      log evidence = log B(ending + N, going_on + Y) - log B + sum log C.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize
from scipy.special import betaln, gammaln

import modelweld
from modelweld import metrics
from modelweld.families import Family
from modelweld.families.capabilities import ChecksValues, HasStarts


@dataclass(frozen=True, eq=False)
class BoutLengths(ChecksValues, HasStarts, Family):
    """Mean lengths of geometric bouts; `weight` is the number of bouts (default one)."""

    ending: float = 1.0
    going_on: float = 1.0

    def misfit(self, stack):
        negative = (stack.values < 0).any(1)
        return (int(negative.argmax()), "are not negative") if negative.any() else None

    def starts(self, stack):
        return [replace(self, going_on=float(stack.values.mean()) + 1e-3)]  # p about 1 / (1 + mean length), vague

    def rows(self, values, variance=None, weight=None):
        n = np.ones_like(values) if weight is None else weight
        y = np.where(n > 0, n * values, 0.0)
        some = np.where(n > 0, n, 1.0)
        ways = gammaln(some + y) - gammaln(y + 1) - gammaln(some)
        return np.concatenate([n, y, np.where(n > 0, ways, 0.0).sum(-1, keepdims=True)], axis=-1)

    def log_evidence(self, rows):
        D = rows.shape[-1] // 2
        N, Y, ways = rows[..., :D], rows[..., D : 2 * D], rows[..., 2 * D]
        return (betaln(self.ending + N, self.going_on + Y) - betaln(self.ending, self.going_on)).sum(-1) + ways

    def estimate(self, rows):
        D = rows.shape[-1] // 2
        return (self.going_on + rows[..., D : 2 * D]) / (self.ending + rows[..., :D])

    def update(self, sums):
        def loss(x):
            return -replace(self, ending=float(np.exp(x[0])), going_on=float(np.exp(x[1]))).log_evidence(sums).sum()

        found = minimize(loss, np.log([self.ending, self.going_on]), method="Nelder-Mead", bounds=[(-7, 14)] * 2)
        return replace(self, ending=float(np.exp(found.x[0])), going_on=float(np.exp(found.x[1])))


def main():
    """Eight sites, ten behaviours."""
    rng = np.random.default_rng(0)
    ends = rng.beta(2.0, 6.0, (10, 6))
    sites, truth = [], []
    for _ in range(8):
        held = rng.permutation(10)[: rng.integers(4, 9)]
        bouts = rng.integers(10, 80, (len(held), 6))
        lengths = rng.negative_binomial(bouts, ends[held]) / bouts
        axes = {"lengths": ("behaviour", None)}
        sites.append(modelweld.LocalModel({"lengths": lengths}, axes, weight={"lengths": bouts}))
        truth.append(held)
    fusion = modelweld.fuse(sites, BoutLengths())
    found = metrics.adjusted_rand(truth, fusion.labels)
    print(f"{fusion.K} behaviours, agreement with the truth {found:.2f}, learned {fusion.diagnosis.hyperparameters}")


if __name__ == "__main__":
    main()
