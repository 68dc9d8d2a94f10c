"""The family in examples/own_family.py runs, and keeps all laws."""

from dataclasses import dataclass
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit
from scipy.stats import beta, nbinom

import test_families
from cases import Case, Drawn
from programs import printed_by

EXAMPLE = Path(__file__).parents[1] / "examples" / "own_family.py"


def loaded():
    spec = spec_from_file_location("own_family", EXAMPLE)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


own_family = loaded()


@dataclass(frozen=True)
class BoutLengthsCase(Case):
    family: own_family.BoutLengths
    dimensions: int = 2
    tolerance: float = 1e-7

    def draw(self, counts, rng):
        labels = np.repeat(np.arange(len(counts)), counts)
        p = rng.beta(self.family.ending, self.family.going_on, (len(counts), self.dimensions))[labels]
        n = rng.integers(1, 20, p.shape)
        return Drawn(rng.negative_binomial(n, p) / n, labels, weight=n.astype(float))

    def joint(self, drawn, d, p):
        """Log density of values and log odds in coordinate d."""
        n = drawn.weight[:, d]
        values = nbinom.logpmf(np.rint(n * drawn.values[:, d]), n, p).sum()
        return values + beta.logpdf(p, self.family.ending, self.family.going_on) + np.log(p) + np.log1p(-p)

    def log_evidence(self, drawn):
        total = 0.0
        for d in range(self.dimensions):
            grid = np.linspace(-12, 12, 201)
            heights = np.array([self.joint(drawn, d, expit(x)) for x in grid])
            centre, top = grid[heights.argmax()], heights.max()

            def density(x, d=d, top=top):
                return np.exp(self.joint(drawn, d, expit(x)) - top)

            parts = [quad(density, *ends, epsabs=0, limit=200)[0] for ends in ((-14, centre), (centre, 14))]
            total += top + np.log(sum(parts))
        return total

    def merit(self, theta, drawn):
        return sum(self.joint(drawn, d, 1 / (1 + x)) for d, x in enumerate(theta))


CASES = {"bout lengths": BoutLengthsCase(own_family.BoutLengths(2.0, 6.0))}


@pytest.fixture(params=CASES)
def case(request):
    return CASES[request.param]


rng = test_families.rng
laws = {name: law for name, law in vars(test_families).items() if name.startswith("test_")}
del laws["test_nothing_is_learned_if_told_so"]  # this one cannot be told
globals().update(laws)


def test_the_example_runs():
    assert printed_by(EXAMPLE).startswith("10 behaviours, agreement with the truth 1.00")


def test_the_family_is_short():
    lines = EXAMPLE.read_text().splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("class "))
    last = next(i for i, line in enumerate(lines) if line.startswith("def main"))
    assert last - first < 42  # two blank lines
    assert len(lines) < 80


def test_it_refuses_what_is_no_length():
    with pytest.raises(own_family.modelweld.InputError, match="BoutLengths takes values that are not negative"):
        own_family.modelweld.fuse([[[1.0]], [[-1.0]]], own_family.BoutLengths())
