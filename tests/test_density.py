"""Families from a user's density: what is particular to them. The laws run over cases/density.py."""

import sys
from dataclasses import replace

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402
from jax.scipy.special import gammaln  # noqa: E402
from jax.scipy.stats import norm  # noqa: E402

from modelweld import Gaussian, InputError, fuse, simulate  # noqa: E402
from modelweld.core.values import Stack  # noqa: E402
from modelweld.errors import AccuracyWarning  # noqa: E402
from modelweld.families.own.user_density import from_density  # noqa: E402
from modelweld.inputs.stacks import stack_arrays  # noqa: E402

pytestmark = pytest.mark.jax

POSITIVE = ("scale", "spread")
START = {"mean": np.array([0.3, -0.1]), "scale": np.array([0.5, 0.8]), "spread": np.array([2.0, 1.5])}


def normal(v, theta, h):
    return norm.logpdf(v, theta, h["scale"])


def prior(theta, h):
    return norm.logpdf(theta, h["mean"], h["spread"])


def read_off(mean, noise, spread):
    return {"mean": mean, "scale": noise**0.5, "spread": spread**0.5}


def by_grid(log_density=normal, log_prior=prior, start=START, **kwargs):
    return from_density(log_density, log_prior, start, **{"factorises": True, "positive": POSITIVE} | kwargs)


@pytest.fixture
def stack():
    return stack_arrays(simulate.sparse(6, 4, 2, 0.5, 2.0, 1, 1, seed=3).values)


def test_a_normal_density_is_the_gaussian_family(stack):
    labels = np.arange(len(stack.values)) % 5
    gaussian = Gaussian(mean=START["mean"], noise=START["scale"] ** 2, spread=START["spread"] ** 2)
    family = by_grid().condition_on(stack)
    for _ in range(2):
        results = []
        for f in (gaussian, family):
            rows = f.rows(stack.values)
            sums = np.stack([rows[labels == k].sum(0) for k in range(5)])
            results.append((f.log_evidence(sums), f.log_predictive(rows, sums), f.estimate(sums)))
            last = sums
        for a, b in zip(*results, strict=True):
            assert np.allclose(a, b, rtol=0, atol=1e-6)
        assert family.evidence_error(last).max() < 1e-3
        family = family.learn(stack, labels, last)
        h = family.name_hyperparameters()
        gaussian = replace(gaussian, mean=h["mean"], noise=h["scale"] ** 2, spread=h["spread"] ** 2)


def test_fusing_with_a_normal_density_is_fusing_with_the_gaussian():
    values = simulate.sparse(8, 5, 3, 0.2, 3.0, 1, 1, seed=1).values
    options = {"screens": ["duplicates"]}
    plain, ours = fuse(values, **options), fuse(values, by_grid(start=read_off), **options)
    assert all(np.array_equal(a, b) for a, b in zip(plain.labels, ours.labels, strict=True))
    assert np.allclose(plain.atoms, ours.atoms, atol=1e-2)
    [gaussian] = plain.matching.families.values()
    assert abs(plain.objective - gaussian.log_prior() - ours.objective) < 0.05  # ours believes nothing beforehand
    again = fuse(values[::-1], by_grid(start=read_off), **options)
    assert all(np.array_equal(a, b) for a, b in zip(again.labels[::-1], ours.labels, strict=True))


def test_gains_that_underflow_are_exact(stack):
    family = by_grid(start=START | {"scale": 0.01}).condition_on(stack)
    rows = family.rows(stack.values)
    plain = family.log_evidence(rows[:, None] + rows[None]) - family.log_evidence(rows)[None]
    assert np.isfinite(plain).all()
    assert plain.min() < -5000
    assert np.allclose(family.log_predictive(rows, rows), plain, rtol=1e-9)


def test_functions_are_compiled_once(stack):
    traced = []

    def counted(v, theta, h):
        traced.append(1)
        return normal(v, theta, h)

    family = by_grid(counted).condition_on(stack)
    labels = np.arange(len(stack.values)) % 5
    sums = np.stack([family.rows(stack.values)[labels == k].sum(0) for k in range(5)])
    family = family.learn(stack, labels, sums)
    before = len(traced)
    again = by_grid(counted, start={**START, "mean": 1.0}).condition_on(stack)
    again.rows(stack.values)
    assert len(traced) <= before + 2  # `mean` has another shape
    now = len(traced)
    family.learn(stack, labels, np.stack([family.rows(stack.values)[labels == k].sum(0) for k in range(5)]))
    assert len(traced) == now


def test_the_users_precision_is_left_alone(stack):
    by_grid().condition_on(stack).rows(stack.values)
    assert jnp.ones(1).dtype == (jnp.float64 if jax.config.jax_enable_x64 else jnp.float32)


def test_a_global_value_in_other_units():
    # counts whose logarithmic rate is normal
    def poisson(v, theta, h):
        return v * theta - jnp.exp(theta) - gammaln(v + 1)

    def log_half(v):
        return jnp.log(v + 0.5)

    rng = np.random.default_rng(0)
    rates = np.exp(rng.normal(3, 1.5, (6, 4)))
    values = [rng.poisson(rates[rng.permutation(6)[:4]]).astype(float) for _ in range(5)]
    start = {"mean": 3.0, "spread": 1.5}
    family = from_density(poisson, prior, start, factorises=True, positive=("spread",), guess=log_half)
    fusion = fuse(values, family)
    assert fusion.K == 6
    distance = np.abs(np.log(rates)[:, None] - fusion.atoms).max(-1).min(1)
    assert (distance < 1.0).all()


def test_missing_jax_names_the_extra(monkeypatch, stack):
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(ImportError, match=r"pip install modelweld\[jax\]"):
        by_grid(lambda v, theta, h: v).condition_on(stack)


@pytest.mark.parametrize(
    ("family", "words"),
    [
        (lambda: by_grid(lambda v, theta, h: normal(v, theta, h).sum()), "one number per coordinate"),
        (lambda: by_grid(lambda v, theta, h: normal(v, theta[::-1], h)), "own coordinate alone"),
        (lambda: by_grid(factorises=False), "does not factorise"),
        (lambda: by_grid(positive=("skale",)), "no 'skale'"),
        (lambda: by_grid(positive="scale"), r"positive=\('scale',\)"),
        (lambda: by_grid(start=START | {"scale": -1.0}), "must be positive"),
        (lambda: by_grid(learning="moments"), "'likelihood' or 'nothing'"),
        (lambda: by_grid(3), "log_density is a function"),
    ],
)
def test_what_cannot_be_is_refused(family, words, stack):
    with pytest.raises(InputError, match=words):
        family().starts(stack)


def test_weights_other_than_zero_and_one_are_refused(stack):
    weight = np.ones_like(stack.values)
    weight[2, 1] = 0.5
    row, words = by_grid().misfit(Stack(stack.values, stack.offsets, None, weight))
    assert row == 2
    assert "weight 0 or 1" in words
    assert by_grid().misfit(Stack(stack.values, stack.offsets, weight))[0] == 0
    weight[2, 1] = 0.0
    seen = Stack(stack.values, stack.offsets, None, weight)
    assert by_grid().misfit(seen) is None


def test_densities_that_are_none_are_reported(stack):
    with pytest.warns(AccuracyWarning, match="log_density should be the logarithm of a density"):
        by_grid(lambda v, theta, h: -0.5 * ((v - theta) / h["scale"]) ** 2).starts(stack)
    with pytest.warns(AccuracyWarning, match="log_prior should"):
        by_grid(log_prior=lambda theta, h: prior(theta, h) + 1.0).starts(stack)


def test_a_grid_that_is_too_coarse_is_reported(stack):
    family = by_grid(learning="nothing").condition_on(stack)
    coarse = replace(family, nodes=family.nodes[::32])
    rows = coarse.rows(stack.values)
    assert coarse.evidence_error(rows).max() > 0.01
    with pytest.warns(AccuracyWarning, match="nodes are too few"):
        warned = coarse.learn(stack, np.arange(len(rows)), rows)
    assert warned.learn(stack, np.arange(len(rows)), rows) is warned
