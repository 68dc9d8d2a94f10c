import numpy as np
import pytest

import modelweld
from modelweld.demo.metrics import adjusted_rand
from modelweld.demo.simulate import sparse
from shared.baselines import kmeans_matching, pooled_kmeans
from shared.textbook import textbook

CLEAR = sparse(12, 8, 6, 0.1, 10.0, 1.0, 1.0, seed=1)


def points_of(drawn, number=20, sd=0.1):
    """Data of every site: points about its local parameters, and the true atom of each point."""
    rng = np.random.default_rng(5)
    points = [np.repeat(values, number, axis=0) for values in drawn.values]
    return [p + rng.normal(0, sd, p.shape) for p in points], [np.repeat(t, number) for t in drawn.truth]


RIVALS = {
    "k-means of parameters": lambda seed=0: kmeans_matching(CLEAR.values, CLEAR.K, seed=seed),
    "k-means of data": lambda seed=0: pooled_kmeans(points_of(CLEAR)[0], CLEAR.K, seed=seed),
    "textbook": lambda seed=0: textbook(CLEAR.values, seed=seed),
}


@pytest.mark.parametrize("name", RIVALS)
def test_recovers_atoms_that_lie_far_apart(name):
    fusion = RIVALS[name]()
    truth = points_of(CLEAR)[1] if name == "k-means of data" else CLEAR.truth
    assert adjusted_rand(truth, fusion.labels) == 1.0
    assert fusion.K == CLEAR.K
    assert fusion.matching.engine == name
    nearest = np.abs(fusion.atoms[:, None] - CLEAR.atoms).max(axis=2).min(axis=1)
    assert nearest.max() < 0.5


@pytest.mark.parametrize("name", RIVALS)
def test_same_seed_same_answer(name):
    first, second = RIVALS[name](3), RIVALS[name](3)
    np.testing.assert_array_equal(first.atoms, second.atoms)
    np.testing.assert_array_equal(first.matching.stacked_labels, second.matching.stacked_labels)


@pytest.mark.parametrize("name", RIVALS)
def test_counts_are_numbers_of_distinct_sites_in_decreasing_order(name):
    fusion = RIVALS[name]()
    sites = [sum(k in labels for labels in fusion.labels) for k in range(fusion.K)]
    np.testing.assert_array_equal(fusion.counts, sites)
    assert (np.diff(fusion.counts) <= 0).all()
    np.testing.assert_array_equal(fusion.matching.presence.sum(axis=0), fusion.counts)


def test_kmeans_may_give_a_site_one_cluster_twice_and_counts_it_once():
    fusion = kmeans_matching([[[0.0], [0.1]], [[9.0]], np.empty((0, 1))], 2)
    assert [labels.tolist() for labels in fusion.labels] == [[0, 0], [1], []]
    np.testing.assert_array_equal(fusion.counts, [1, 1])
    np.testing.assert_allclose(fusion.atoms, [[0.05], [9.0]])
    assert np.isnan(fusion.objective)
    assert fusion.history == ()


def test_kmeans_of_coinciding_rows_has_fewer_atoms():
    fusion = kmeans_matching([[[1.0], [1.0]], [[4.0]]], 3)
    assert fusion.K == 2


def test_textbook_agrees_with_fuse_on_an_easy_draw():
    rival, ours = textbook(CLEAR.values), modelweld.fuse(CLEAR.values, preset="paper")
    np.testing.assert_array_equal(rival.matching.stacked_labels, ours.matching.stacked_labels)
    np.testing.assert_array_equal(rival.counts, ours.counts)
    np.testing.assert_allclose(rival.atoms, ours.atoms, rtol=1e-9)
    assert rival.objective == pytest.approx(ours.objective, rel=1e-9)
    for name, learned in ours.hyperparameters.items():
        np.testing.assert_allclose(rival.hyperparameters[name], learned, rtol=1e-6)


def test_textbook_says_which_form_of_the_prior_it_ran():
    assert textbook(CLEAR.values).matching.prior.form == "paper"
    assert textbook(CLEAR.values, cut=10, cap=700).matching.prior.form == "authors"


@pytest.mark.parametrize("rival", [lambda g: kmeans_matching(g, 1), lambda g: pooled_kmeans(g, 1), textbook])
@pytest.mark.parametrize(
    "groups", [[], [np.empty((0, 2))], [np.zeros(3)], [np.zeros((1, 2)), np.zeros((1, 3))], [[[np.nan]]]]
)
def test_refuses_what_cannot_be_fused(rival, groups):
    with pytest.raises(modelweld.InputError):
        rival(groups)


@pytest.mark.parametrize("L", [0, 3])
def test_kmeans_refuses_more_clusters_than_rows(L):
    with pytest.raises(modelweld.InputError, match="1 to 2 clusters"):
        kmeans_matching([[[0.0]], [[1.0]]], L)
