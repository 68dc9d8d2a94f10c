import numpy as np
import pytest

from simulated_sets import (
    SETS,
    low_dimensional,
    meta_model,
    over_segmented,
    poisoned,
    sparse,
)

MANY_PER_ATOM = {"over_segmented", "all_together"}


@pytest.fixture(params=list(SETS), scope="module")
def named(request):
    draw = SETS[request.param]
    return request.param, draw, draw(seed=7)


def residuals(drawn):
    return np.concatenate(drawn.values) - drawn.atoms[drawn.stacked_truth]


def within(estimate, expected, standard_error):
    """Whether an average is within four standard errors of its expectation."""
    return np.all(np.abs(estimate - expected) < 4 * standard_error)


def test_same_seed_same_draw(named):
    _, draw, drawn = named
    again, other = draw(seed=7), draw(seed=8)
    for first, second in zip(drawn.values, again.values, strict=True):
        np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(drawn.stacked_truth, again.stacked_truth)
    assert not np.array_equal(drawn.atoms, other.atoms)


def test_truth_indexes_atoms(named):
    name, _, drawn = named
    assert drawn.stacked_truth.dtype.kind == "i"
    assert drawn.stacked_truth.min() >= 0
    assert drawn.stacked_truth.max() < len(drawn.atoms)
    if name not in MANY_PER_ATOM:
        assert all(len(set(truth)) == len(truth) for truth in drawn.truth)


def test_K_counts_the_atoms_of_honest_sites(named):
    drawn = named[2]
    honest = np.ones(len(drawn.truth), bool) if drawn.honest is None else drawn.honest
    held = [truth for truth, kept in zip(drawn.truth, honest, strict=True) if kept]
    assert drawn.K == len(np.unique(np.concatenate(held))) <= len(drawn.atoms)


@pytest.mark.parametrize(("alpha", "gamma0"), [(1.0, 4.0), (3.0, 2.0)])
def test_meta_model_has_the_moments_of_the_buffet(alpha, gamma0):
    J, draws = 6, 400
    drawn = [meta_model(J, alpha=alpha, gamma0=gamma0, seed=seed) for seed in range(draws)]
    expected = gamma0 * sum(alpha / (alpha + j) for j in range(J))  # K is Poisson
    assert within(np.mean([len(draw.atoms) for draw in drawn]), expected, np.sqrt(expected / draws))
    sizes = np.array([[len(truth) for truth in draw.truth] for draw in drawn])  # so is each L_j
    assert within(sizes.mean(axis=0), gamma0, np.sqrt(gamma0 / draws))
    assert sizes.min() == 0
    # Two sites share an atom whose popularity p has intensity alpha gamma0 (1 - p)^(alpha - 1) / p.
    shared = [len(np.intersect1d(draw.truth[0], draw.truth[-1])) for draw in drawn]
    expected = gamma0 / (1 + alpha)
    assert within(np.mean(shared), expected, np.sqrt(expected / draws))
    assert all(len(draw.atoms) == draw.K for draw in drawn)


def test_noise_spread_and_mean_are_as_told():
    drawn = sparse(400, 5, 20, 0.7, 3.0, 1.0, 1.0, mean=2.0)
    noise, atoms = residuals(drawn), drawn.atoms
    assert within(noise.mean(), 0, 0.7 / np.sqrt(noise.size))
    assert within(noise.var(), 0.7**2, 0.7**2 * np.sqrt(2 / noise.size))
    assert within(atoms.mean(), 2, 3 / np.sqrt(atoms.size))
    assert within(atoms.var(), 9, 9 * np.sqrt(2 / atoms.size))


def test_popularities_follow_their_law():
    a, b, L, J = 0.3, 2.0, 4000, 10
    held = np.bincount(sparse(L, J, 1, 1.0, 1.0, a, b).stacked_truth, minlength=L)
    p, pairs = a / (a + b), a * (a + 1) / ((a + b) * (a + b + 1))
    assert within(held.mean(), J * p, held.std() / np.sqrt(L))
    together = held * (held - 1)
    assert within(together.mean(), J * (J - 1) * pairs, together.std() / np.sqrt(L))


def test_no_sparse_site_is_empty():
    drawn = sparse(3, 200, 1, 1.0, 1.0, 0.1, 10.0)
    assert min(map(len, drawn.truth)) == 1


def test_over_segmented_doubles_a_share():
    drawn = [over_segmented(0.25, seed=seed) for seed in range(20)]
    fragments = np.concatenate([np.unique(truth, return_counts=True)[1] for draw in drawn for truth in draw.truth])
    assert set(fragments) == {1, 2}
    assert within(np.mean(fragments == 2), 0.25, np.sqrt(0.25 * 0.75 / len(fragments)))
    noise = np.concatenate([residuals(draw) for draw in drawn])
    assert within(noise.var(), 0.4**2, 0.4**2 * np.sqrt(2 / noise.size))


@pytest.mark.parametrize(("draw", "name"), [(low_dimensional, "J9 D9"), (poisoned, "mild")])
def test_unknown_names_are_refused(draw, name):
    with pytest.raises(ValueError, match="name one of these"):
        draw(name)
