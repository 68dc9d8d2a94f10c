"""Factors: Gaussian values whose signs mean nothing, with and without weights."""

from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from cases.gaussian import GaussianCase
from modelweld.families import Factors


@dataclass(frozen=True)
class FactorsCase(GaussianCase):
    def draw(self, counts, rng):
        drawn = super().draw(counts, rng)
        return replace(drawn, values=drawn.values * rng.choice([-1.0, 1.0], (len(drawn.values), 1)))

    def turned(self, drawn):
        """The values with the best of all signs."""
        signs = [np.array([1.0, *rest])[:, None] for rest in product([-1.0, 1.0], repeat=len(drawn.values) - 1)]
        ways = [replace(drawn, values=drawn.values * sign) for sign in signs]
        return max(ways, key=super().log_evidence)

    def log_evidence(self, drawn):
        return super().log_evidence(self.turned(drawn)) - (len(drawn.values) - 1) * np.log(2)

    def merit(self, theta, drawn):
        turned = self.turned(drawn)
        return max(super(FactorsCase, self).merit(side * theta, turned) for side in (1.0, -1.0))

    def free(self, family):
        return ["noise", "spread"]


def factors(**kwargs):
    return Factors(mean=np.zeros(3), noise=[0.1, 0.24, 0.06], spread=[4.0, 2.0, 6.0], **kwargs)


CASES = {
    "diagonal": FactorsCase(factors(), 3),
    "scalar": FactorsCase(Factors(mean=np.zeros(4), noise=0.1, spread=2.5, shape="scalar"), 4),
    "weight": FactorsCase(factors(), 3, weight=True),
    "believed": FactorsCase(factors(squares=[0.05, 0.4, 1.0], near=0.1, floor=1e-9), 3),
}
