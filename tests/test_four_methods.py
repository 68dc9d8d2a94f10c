"""A family of four methods and nothing else keeps all laws, and every public call works with it."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import norm

import modelweld
import test_families
from cases import Case, Drawn
from modelweld.families.capabilities import FAMILIES
from modelweld.shards import fuse_shards, group_sites


@dataclass(frozen=True, eq=False)
class Plain(modelweld.Family):
    """v ~ N(theta, 1), theta ~ N(0, spread): rows are [n, sum, sum of squares]."""

    spread: float = 10.0

    def rows(self, values, variance=None, weight=None):
        n = np.ones_like(values) if weight is None else (weight > 0).astype(float)
        return np.concatenate([n, n * values, n * values**2], axis=-1)

    def log_evidence(self, rows):
        n, s, q = np.split(rows, 3, axis=-1)
        shrunk = self.spread * s * s / (1 + n * self.spread)
        return -0.5 * (n * np.log(2 * np.pi) + np.log1p(n * self.spread) + q - shrunk).sum(-1)

    def estimate(self, rows):
        n, s, _ = np.split(rows, 3, axis=-1)
        return self.spread * s / (1 + n * self.spread)

    def update(self, sums):
        def loss(x):
            return -replace(self, spread=float(np.exp(x))).log_evidence(sums).sum()

        best = float(np.exp(minimize_scalar(loss, bounds=(-7, 10), method="bounded").x))
        return max(self, replace(self, spread=best), key=lambda family: family.log_evidence(sums).sum())


class PlainCase(Case):
    """Values of atoms in two dimensions."""

    family: ClassVar = Plain()

    def draw(self, counts, rng):
        labels = np.repeat(np.arange(len(counts)), counts)
        atoms = rng.normal(0, np.sqrt(self.family.spread), (len(counts), 2))
        return Drawn(atoms[labels] + rng.normal(size=(len(labels), 2)), labels)

    def log_evidence(self, drawn):
        n = len(drawn.values)
        joint = np.eye(n) + self.family.spread
        solved = np.linalg.solve(joint, drawn.values)
        return float(-0.5 * ((drawn.values * solved).sum() + 2 * (np.linalg.slogdet(2 * np.pi * joint)[1])))

    def merit(self, theta, drawn):
        return float(norm.logpdf(drawn.values, theta).sum() + norm.logpdf(theta, 0, self.family.spread**0.5).sum())

    def neighbour(self, theta, rng):
        return theta + rng.normal(0, 0.1, theta.shape)


@pytest.fixture
def case():
    return PlainCase()


rng = test_families.rng
laws = {name: law for name, law in vars(test_families).items() if name.startswith("test_") and "drawn" not in name}
del laws["test_nothing_is_learned_if_told_so"]  # this one cannot be told
del laws["test_values_that_follow_their_atoms_are_values"]  # nor draws it atoms
globals().update(laws)


def sites(J=6):
    rng = np.random.default_rng(0)
    atoms = rng.normal(0, 12, (5, 3))
    return [atoms[rng.permutation(5)[:4]] + rng.normal(0, 1, (4, 3)) for _ in range(J)]


@pytest.fixture(scope="module")
def fusion():
    return modelweld.fuse(sites(), Plain())


def test_a_family_is_four_methods():
    assert {name for name in dir(modelweld.Family) if name[0] != "_"} == {"rows", "log_evidence", "estimate", "update"}


def test_it_is_matched_and_learned(fusion):
    assert (fusion.K, fusion.atoms.shape) == (5, (5, 3))
    assert fusion.diagnosis.hyperparameters["spread"] == fusion.diagnosis.family.spread != Plain().spread


ASKED = {
    "arrays": lambda f: f.parameters.estimate("values"),
    "table": lambda f: f.table(),
    "page": lambda f: repr(f),
    "confidence": lambda f: f.confidence(),
    "draws": lambda f: f.posterior.sample(20, 2),
    "fixed draws": lambda f: f.posterior.sample(20, 2, fixed=True),
    "conditional": lambda f: f.posterior.conditional(0),
    "add": lambda f: f.add(sites()[0] + 0.1, site="new"),
    "remove": lambda f: f.remove(0),
    "remove from scratch": lambda f: f.remove(0, from_scratch=True),
    "diagnose": lambda f: f.diagnosis.sites(),
    "sharing": lambda f: f.posterior.sharing(),
    "slim": lambda f: f.slim().add(sites()[1]),
}


@pytest.mark.parametrize("name", ASKED)
@pytest.mark.filterwarnings("ignore::modelweld.ModelweldWarning")
def test_every_question_has_an_answer(fusion, name):
    assert ASKED[name](fusion) is not None


def test_without_distances_no_verdict_is_given_and_intervals_are_refused(fusion):
    assert "the family Plain has no distances" in fusion.worth_merging().sentence
    with pytest.raises(modelweld.InputError, match="no family lists any as `sampled`"):
        fusion.posterior.atom_intervals()


def test_it_is_saved_and_reported(fusion, tmp_path):
    modelweld.families.register(Plain)
    try:
        fusion.save(tmp_path / "fusion.safetensors")
        assert modelweld.load(tmp_path / "fusion.safetensors").diagnosis.family.spread == fusion.diagnosis.family.spread
    finally:
        FAMILIES.pop("Plain")
    assert "Plain" in fusion.report(tmp_path / "page.html").read_text()


def test_times_are_refused_in_words():
    with pytest.raises(modelweld.InputError, match="Plain"):
        modelweld.fuse(sites(), Plain(), times=range(6))


@pytest.mark.filterwarnings("ignore::modelweld.errors.SmallShardWarning")
def test_shards_find_the_same_groups(fusion):
    assert fuse_shards(group_sites(sites(), 2), Plain()).K == fusion.K


def test_a_capability_that_is_not_inherited_is_refused():
    with pytest.raises(TypeError, match=r"defines 'starts'.*class Own\(HasStarts, Family\)"):
        type("Own", (modelweld.Family,), {"starts": lambda self, stack: [self]})
