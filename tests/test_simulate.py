import builtins

import numpy as np
import pytest

from shared import simulate
from shared.local_fits import _majority
from shared.simulate import (
    SETS,
    Simulated,
    correlated,
    diagonal,
    estimated_hmms,
    estimated_mixtures,
    low_dimensional,
    meta_model,
    over_segmented,
    paper_figure_kmeans,
    poisoned,
    sparse,
    standard_errors,
)
from shared.simulate_estimated import sticky

# Estimated sets with few sites, so that the laws take seconds.
FEW_SITES = {
    "paper_figure_kmeans": lambda seed: paper_figure_kmeans(1, 1.0, seed=seed),
    "estimated_mixtures": lambda seed: estimated_mixtures(2, 4, seed=seed),
    "estimated_hmms": lambda seed: estimated_hmms(2, 4, seed=seed),
}
MANY_PER_ATOM = {*FEW_SITES, "over_segmented", "all_together"}
OPTIONAL = {
    "standard_errors": {"variance", "counts"},
    "poisoned_gross": {"honest"},
    "poisoned_junk": {"honest"},
    "poisoned_shift": {"honest"},
    "all_together": {"variance", "counts", "honest"},
    "paper_figure_kmeans": {"counts", "points", "origin", "assigned"},
    "estimated_mixtures": {"counts", "covariances", "points", "origin", "assigned", "fresh"},
    "estimated_hmms": {"counts", "covariances", "points", "origin", "assigned", "fresh"},
}


@pytest.fixture(
    params=[pytest.param(name, marks=pytest.mark.hmm if "hmm" in name else ()) for name in SETS],
    scope="module",
)
def named(request):
    draw = FEW_SITES.get(request.param, SETS[request.param])
    return request.param, draw, draw(seed=7)


def residuals(drawn):
    return np.concatenate(drawn.values) - drawn.atoms[drawn.stacked_truth]


def within(estimate, expected, standard_error):
    """Whether an average is within four standard errors of its expectation."""
    return np.all(np.abs(estimate - expected) < 4 * standard_error)


def test_shapes(named):
    name, _, drawn = named
    D = drawn.atoms.shape[1]
    assert [values.shape for values in drawn.values] == [(len(truth), D) for truth in drawn.truth]
    present = {
        field
        for field in ("variance", "counts", "covariances", "honest", "points", "origin", "assigned", "fresh")
        if getattr(drawn, field) is not None
    }
    assert present == OPTIONAL.get(name, set())
    for j, truth in enumerate(drawn.truth):
        if drawn.variance is not None:
            assert drawn.variance[j].shape == (len(truth), D)
        if drawn.counts is not None:
            assert drawn.counts[j].shape == (len(truth),)
        if drawn.covariances is not None:
            assert drawn.covariances[j].shape == (len(truth), D, D)
        if drawn.points is not None:
            assert drawn.points[j].shape[1] == D
            assert drawn.counts[j].sum() == pytest.approx(len(drawn.points[j]))
            assert drawn.origin[j].shape == drawn.assigned[j].shape == (len(drawn.points[j]),)
        if drawn.fresh is not None:
            assert drawn.fresh[j].shape == drawn.points[j].shape
    if drawn.honest is not None:
        assert drawn.honest.shape == (len(drawn.values),)


def test_finite(named):
    drawn = named[2]
    for arrays in (
        drawn.values,
        drawn.variance,
        drawn.counts,
        drawn.covariances,
        drawn.points,
        drawn.fresh,
        [drawn.atoms],
    ):
        assert all(np.isfinite(array).all() for array in arrays or [])


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


def test_K_of_a_set_without_values():
    assert Simulated([np.empty((0, 2))], [np.empty(0, int)], np.empty((0, 2))).K == 0


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


def test_rows_come_in_no_order():
    assert any(np.any(np.diff(truth) < 0) for truth in low_dimensional().truth)


def test_correlated_noise_has_its_spectrum():
    draws = [residuals(correlated(10, seed=seed)) for seed in range(3)]
    for noise in draws:
        spectrum = np.linalg.eigvalsh(noise.T @ noise / len(noise))
        np.testing.assert_allclose(spectrum, 0.4**2 * np.geomspace(0.05, 8, 10), rtol=0.6)
    first, second = (np.linalg.eigh(noise.T @ noise)[1][:, -1] for noise in draws[:2])
    assert abs(first @ second) < 0.99


def test_diagonal_noise_has_its_variances():
    noise = np.concatenate([residuals(diagonal(10, seed=seed)) for seed in range(20)])
    variances = np.geomspace(1, 100, 10)
    variances *= 0.4**2 * np.geomspace(0.05, 8, 10).mean() / variances.mean()
    assert within(noise.var(axis=0), variances, variances * np.sqrt(2 / len(noise)))


def test_standard_errors_are_what_they_say():
    draws = [standard_errors(seed=seed) for seed in range(20)]
    scaled = []
    for drawn in draws:
        variance = np.concatenate(drawn.variance)
        np.testing.assert_allclose(variance[:, 0], 2.5**2 / np.concatenate(drawn.counts))
        scaled.append(residuals(drawn) / np.sqrt(0.4**2 + variance))
        assert all(counts.sum() == 300 + len(counts) for counts in drawn.counts)
    scaled = np.concatenate(scaled)
    assert within(scaled.var(), 1, np.sqrt(2 / scaled.size))


def test_over_segmented_doubles_a_share():
    drawn = [over_segmented(0.25, seed=seed) for seed in range(20)]
    pieces = np.concatenate([np.unique(truth, return_counts=True)[1] for draw in drawn for truth in draw.truth])
    assert set(pieces) == {1, 2}
    assert within(np.mean(pieces == 2), 0.25, np.sqrt(0.25 * 0.75 / len(pieces)))
    noise = np.concatenate([residuals(draw) for draw in drawn])
    assert within(noise.var(), 0.4**2, 0.4**2 * np.sqrt(2 / noise.size))


@pytest.mark.parametrize(("kind", "scale"), [("gross", 2500.0), ("junk", 25.0)])
def test_junk_belongs_to_nothing(kind, scale):
    drawn = poisoned(kind)
    assert drawn.honest.tolist() == [True] * 12 + [False]
    junk = drawn.values[-1]
    assert junk.shape == (10, 10)
    assert within(junk.var(), scale**2, scale**2 * np.sqrt(2 / junk.size))
    assert not set(drawn.truth[-1]) & set(np.concatenate(drawn.truth[:-1]))


def test_shifted_site_is_shifted():
    drawn = poisoned("shift")
    assert drawn.honest.tolist() == [True] * 11 + [False]
    off = drawn.values[-1] - drawn.atoms[drawn.truth[-1]]
    assert within(off.mean(), 5 * 0.4, 0.4 / np.sqrt(off.size))


@pytest.mark.parametrize(("draw", "name"), [(low_dimensional, "J9 D9"), (poisoned, "mild")])
def test_unknown_names_are_refused(draw, name):
    with pytest.raises(ValueError, match="name one of these"):
        draw(name)


def test_kmeans_centres_are_near_their_truth():
    drawn = paper_figure_kmeans(1, 1.0, seed=1)
    distance = np.linalg.norm(drawn.values[0] - drawn.atoms[drawn.truth[0]], axis=1)
    assert np.median(distance) == pytest.approx(np.sqrt(50), rel=0.2)
    assert drawn.counts[0].sum() == simulate.FIGURE_POINTS


def test_more_sites_change_none():
    few, more = estimated_mixtures(1, 3), estimated_mixtures(2, 3)
    np.testing.assert_array_equal(few.values[0], more.values[0])


def test_majority_counts_points_first_and_probabilities_second():
    belongs = np.array([[0.6, 0.4, 0.0], [0.6, 0.4, 0.0], [0.1, 0.1, 0.8], [0.55, 0.0, 0.45], [1.0, 0.0, 0.0]])
    # Component 0: two points of 5, two of 9, surer of 9. Component 1: nobody's first choice, mostly of 5.
    assert _majority(belongs, np.array([5, 5, 2, 9, 9])).tolist() == [9, 5, 2]


def test_points_are_given_to_components_of_their_origin(named):
    drawn = named[2]
    for truth, assigned, origin in zip(drawn.truth, drawn.assigned or [], drawn.origin or [], strict=False):
        for component in np.unique(assigned):  # its truth is what most of its points are
            of_origin = np.bincount(origin[assigned == component], minlength=len(drawn.atoms))
            assert of_origin[truth[component]] >= 0.9 * of_origin.max()  # paths and probabilities differ a little
        assert np.mean(truth[assigned] == origin) > 0.8


def test_fresh_points_are_like_the_points_and_not_the_same():
    drawn = estimated_mixtures(2, 4)
    for points, fresh, origin in zip(drawn.points, drawn.fresh, drawn.origin, strict=True):
        assert not np.isin(fresh, points).any()
        for component in np.unique(origin):
            own, other = points[origin == component], fresh[origin == component]
            assert within(own.mean(axis=0), other.mean(axis=0), np.sqrt(2) * own.std(axis=0) / np.sqrt(len(own)))


def test_sticky_sequences_stay():
    moves = np.concatenate([np.diff(sticky(np.random.default_rng(seed), 4)) % 4 for seed in range(20)])
    assert within(np.mean(moves == 0), 0.95, np.sqrt(0.95 * 0.05 / len(moves)))
    jumps = moves[moves != 0]
    assert within(np.bincount(jumps)[1:] / len(jumps), 1 / 3, np.sqrt(2 / 9 / len(jumps)))


def test_missing_hmmlearn_names_the_extra(monkeypatch):
    real = builtins.__import__

    def without_hmmlearn(name, *args, **kwargs):
        if name.startswith("hmmlearn"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_hmmlearn)
    with pytest.raises(ImportError, match=r'pip install "modelweld\[hmm\]"'):
        estimated_hmms(1, 2)


@pytest.mark.hmm
def test_a_start_that_collapses_is_passed_over():
    drawn = estimated_hmms(2, seed=1)  # one start of the second site loses a state
    assert all(np.isfinite(values).all() for values in drawn.values)


@pytest.mark.hmm
def test_hmm_states_are_near_their_truth():
    drawn = estimated_hmms(1, 3)
    distance = np.linalg.norm(drawn.values[0] - drawn.atoms[drawn.truth[0]], axis=1)
    assert np.median(distance) < 4
