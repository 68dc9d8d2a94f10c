"""Families with hyperparameters and ways to draw their values: what the laws in test_families.py run over.

One file per family with a dict `CASES`; this module collects them.
"""

from dataclasses import dataclass, fields, replace
from importlib import import_module
from pathlib import Path

import numpy as np

from modelweld.core.family import Family, condition_on, gather, log_prior
from modelweld.core.values import Stack, offsets_of
from modelweld.families.capabilities import name_hyperparameters


@dataclass(frozen=True)
class Drawn:
    """Local values of some atoms, and which atom each belongs to."""

    values: np.ndarray
    labels: np.ndarray
    variance: np.ndarray | None = None
    weight: np.ndarray | None = None

    @property
    def beside(self):
        return self.variance, self.weight

    @property
    def stack(self):
        return Stack(self.values, offsets_of([len(self.values)]), *self.beside)

    def seen_by(self, family):
        return condition_on(family, self.stack)

    def rows(self, family):
        return self._gathered(family)[0]

    def sums(self, family):
        return self._gathered(family)[1]

    def _gathered(self, family):
        family = self.seen_by(family)
        return gather(family, family.rows(self.values, *self.beside), self.labels, int(self.labels.max(initial=-1)) + 1)

    def evidence(self, family):
        """What learning must not lower."""
        return float(self.seen_by(family).log_evidence(self.sums(family)).sum()) + log_prior(family)


class Case:
    """A family whose hyperparameters are known, and what a law needs to know about it.

    Subclasses write `draw`, `log_density`, `log_evidence` and `merit`.
    """

    family: Family
    marks = ()
    """Of pytest, for families that need an extra."""
    tolerance = 1e-8
    """Of `log_evidence` below, in nats."""
    many = 6000
    """Atoms from which hyperparameters are learned well."""
    recovered = 0.15
    """Largest error of hyperparameters learned from so many atoms, in the units of `error`."""

    def draw(self, counts, rng) -> Drawn:
        """Values of atoms with these counts."""
        raise NotImplementedError

    def log_evidence(self, drawn) -> float:
        """Log marginal density of values of one atom, by integral, joint density or Monte Carlo."""
        raise NotImplementedError

    def merit(self, theta, drawn) -> float:
        """What the estimate of one atom maximises over global values theta."""
        raise NotImplementedError

    def neighbour(self, theta, rng):
        """A global value near theta."""
        return theta + rng.normal(0, 0.05, theta.shape) * np.maximum(np.abs(theta), 0.1)

    def perturbed(self, family, scale, rng) -> Family:
        """The family with other hyperparameters: positive ones stay positive."""
        changes = {}
        for name in self.free(family):
            x = np.asarray(getattr(family, name), dtype=float)
            step = scale * rng.normal(size=x.shape)
            changes[name] = x * np.exp(step) if (x > 0).all() else x + step
            if np.ndim(getattr(family, name)) == 0:
                changes[name] = float(changes[name])
        return replace(family, **changes)

    def free(self, family) -> list[str]:
        """Names of the hyperparameters that are learned."""
        return [f.name for f in fields(family) if f.name in name_hyperparameters(family)]

    def error(self, family) -> float:
        """Largest error of the learned hyperparameters: of logarithms of positive ones, else of values."""
        worst = 0.0
        for name in self.free(family):
            x, truth = (np.asarray(getattr(f, name), dtype=float) for f in (family, self.family))
            off = np.log(x / truth) if (truth > 0).all() else x - truth
            worst = max(worst, float(np.abs(off).max()))
        return worst

    def untaught(self) -> Family:
        """The family with hyperparameters away from the true ones, to learn from."""
        return self.perturbed(self.family, 0.5, np.random.default_rng(5))


def collected() -> dict[str, Case]:
    """All cases of all families."""
    found = {}
    for path in sorted(Path(__file__).parent.glob("[a-z]*.py")):
        for name, case in import_module(f"cases.{path.stem}").CASES.items():
            found[f"{path.stem}: {name}"] = case
    return found
