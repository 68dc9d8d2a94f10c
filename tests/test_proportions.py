"""What is particular to proportions: trials, entries that were not seen, and which values are refused."""

import numpy as np
import pytest

from modelweld import InputError, LocalModel, fuse, metrics
from modelweld.core.family import sum_by_atom
from modelweld.core.values import Stack, offsets_of
from modelweld.families.rates import Proportions


def test_a_large_between_is_almost_exact():
    weight, values = np.array([[4.0], [20.0]]), np.array([[0.5], [0.35]])
    exact, almost = (Proportions(successes=1.0, failures=2.0, between=b) for b in (np.inf, 1e7))
    sums = [f.rows(values, weight=weight).sum(0) for f in (exact, almost)]
    assert exact.log_evidence(sums[0]) == pytest.approx(float(almost.log_evidence(sums[1])), abs=1e-4)


@pytest.mark.parametrize(("a", "b"), [(2.0, 2.0), (0.5, 0.5), (0.5, 5.0)])
@pytest.mark.parametrize("sent", [True, False])
def test_what_values_are_worth_is_learned(a, b, sent):
    # every site draws its own proportion, as far from the atom's as shares of 20 trials, then sees 50 trials
    rng = np.random.default_rng(1)
    labels = np.repeat(np.arange(400), 4)
    p = rng.beta(a, b, (400, 1))[labels]
    own = rng.beta(np.maximum(19 * p, 1e-9), np.maximum(19 * (1 - p), 1e-9))
    values, weight = (rng.binomial(50, own) / 50.0, np.full(p.shape, 50.0)) if sent else (own, None)
    stack = Stack(values, offsets_of([len(labels)]), None, weight)
    family = Proportions().starts(stack)[0]
    for _ in range(10):
        family = family.learn(stack, labels, sum_by_atom(family.rows(stack.values, weight=stack.weight), labels))
    assert 0.8 < family.between / 20.0 < 1.3


def test_proportions_that_were_partly_not_seen_are_matched():
    rng = np.random.default_rng(5)
    atoms = rng.beta(0.7, 0.7, (8, 8))
    models, truth = [], []
    for _ in range(8):
        held = rng.permutation(8)[:5]
        weight = rng.integers(30, 300, (5, 8)).astype(float)
        values = rng.binomial(weight.astype(int), atoms[held]) / weight
        weight[rng.random(weight.shape) < 0.15] = 0.0
        values = np.where(weight > 0, values, 7.0)
        models.append(LocalModel({"features": values}, {"features": ("s", None)}, weight={"features": weight}))
        truth.append(held)
    fusion = fuse(models, Proportions())
    assert metrics.adjusted_rand(truth, fusion.labels) == 1.0


@pytest.mark.parametrize("value", [-0.5, 1.5])
def test_what_is_no_proportion_is_refused(value):
    with pytest.raises(InputError, match=f"Proportions takes values that lie between 0 and 1; found {value}"):
        fuse([[[0.5, 0.2]], [[1.0, value]]], Proportions())


def test_what_cannot_be_used_is_refused():
    stack = Stack(np.full((3, 2), 0.5), offsets_of([3]))
    with pytest.raises(InputError, match="takes no variance"):
        Proportions(1.0, 1.0, 1.0).rows(stack.values, variance=stack.values)
    with pytest.raises(InputError, match="3 entries but the values have 2"):
        Proportions(successes=[1.0, 2.0, 3.0]).starts(stack)
    with pytest.raises(InputError, match="send it as weight"):
        Proportions(between=np.inf).starts(stack)


def test_ones_and_zeros_are_values():
    rng = np.random.default_rng(0)
    atoms = rng.integers(0, 2, (6, 12)).astype(float)
    sites = [atoms[rng.permutation(6)[:4]] for _ in range(6)]
    fusion = fuse(sites, Proportions())
    assert len(np.unique(np.concatenate(sites), axis=0)) == fusion.K
