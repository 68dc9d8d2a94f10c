import numpy as np
import pytest

import modelweld
from modelweld.demo.metrics import adjusted_rand
from modelweld.demo.simulate import sparse
from shared.baselines import kmeans_matching, pooled_kmeans
from textbook import textbook

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


def test_kmeans_may_give_a_site_one_cluster_twice_and_counts_it_once():
    fusion = kmeans_matching([[[0.0], [0.1]], [[9.0]], np.empty((0, 1))], 2)
    assert [labels.tolist() for labels in fusion.labels] == [[0, 0], [1], []]
    np.testing.assert_array_equal(fusion.counts, [1, 1])
    np.testing.assert_allclose(fusion.atoms, [[0.05], [9.0]])
    assert np.isnan(fusion.objective)
    assert fusion.diagnosis.history == ()


def test_textbook_agrees_with_fuse_on_an_easy_draw():
    rival, ours = textbook(CLEAR.values), modelweld.fuse(CLEAR.values, preset="paper")
    np.testing.assert_array_equal(rival.matching.stacked_labels, ours.matching.stacked_labels)
    np.testing.assert_array_equal(rival.counts, ours.counts)
    np.testing.assert_allclose(rival.atoms, ours.atoms, rtol=1e-9)
    assert rival.objective == pytest.approx(ours.objective, rel=1e-9)
    for name, learned in ours.diagnosis.hyperparameters.items():
        np.testing.assert_allclose(rival.diagnosis.hyperparameters[name], learned, rtol=1e-6)
