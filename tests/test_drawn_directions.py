"""Draws of directions have the law of von Mises and Fisher, and what follows an atom turns with it."""

import numpy as np
import pytest

from modelweld import Directions
from modelweld.families.math.bessel import slope
from modelweld.families.math.sphere import draw_directions


def unit(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


@pytest.mark.parametrize(("D", "kappa"), [(1, 0.7), (2, 3.0), (3, 0.5), (4, 20.0), (50, 200.0)])
def test_draws_have_their_mean_and_are_even_across_it(D, kappa):
    rng, n = np.random.default_rng(0), 20_000
    mean = unit(rng.normal(size=D))
    drawn = draw_directions(np.tile(mean, (n, 1)), np.full(n, kappa), rng)
    assert np.linalg.norm(drawn, axis=1) == pytest.approx(np.ones(n))
    cosine = float(kappa * slope(D, np.asarray(kappa**2)))
    assert np.abs(drawn.mean(0) - cosine * mean).max() < 5 / np.sqrt(n)
    # of v.v = 1, what is not along the mean: 1 - E cos^2 = (D - 1) E cos / kappa
    assert (1 - np.square(drawn @ mean)).mean() == pytest.approx((D - 1) * cosine / kappa, abs=5 / np.sqrt(n))


@pytest.mark.parametrize("diversity", [0.0, 1.0])
def test_atoms_are_drawn_from_their_posterior(diversity):
    family = Directions(mean=[1.0, 0.0, 0.0], concentration=8.0, base_concentration=2.0, diversity=diversity)
    sums = family.rows(unit(np.array([[0.2, 1.0, 0.0], [0.0, 1.0, 0.3]]))).sum(0)
    drawn = family.draw_atoms(np.tile(sums, (20_000, 1)), np.random.default_rng(1))
    expected, integral = np.zeros(3), family.law.of_rows(sums)
    for kappa, share in zip(np.exp(integral.t), integral.shares, strict=True):
        pull = 2.0 * np.array([1.0, 0.0, 0.0]) + kappa * sums[-3:]
        expected += share * float(slope(3, np.asarray(pull @ pull))) * pull
    assert np.abs(drawn.mean(0) - expected).max() < 0.02


def test_values_turn_with_their_atom():
    rng = np.random.default_rng(2)
    before, after, values = unit(rng.normal(size=(3, 6, 4)))
    turned = Directions().follow(values, before, after)
    assert np.linalg.norm(turned, axis=1) == pytest.approx(np.ones(6))
    assert (turned * after).sum(1) == pytest.approx((values * before).sum(1))
    assert Directions().follow(before, before, after) == pytest.approx(after)
    assert Directions().follow(before, before, -before) == pytest.approx(-before)
