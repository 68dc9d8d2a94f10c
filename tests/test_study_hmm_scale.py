"""The study of many sites with hidden Markov models: how answers name frames, and a quick run of all of it."""

import numpy as np
import pytest

from modelweld.demo.simulate import Simulated
from studies import importing, quick_run


@pytest.fixture
def study(monkeypatch):
    yield from importing(monkeypatch, "hmm_scale")


@pytest.fixture
def drawn():
    """Two sites with two states each, of three; the second state of the first is that of the second's first."""
    paths = [np.array([0, 0, 1, 0]), np.array([1, 0, 0])]
    return Simulated(
        values=[np.array([[0.0], [5.0]]), np.array([[5.2], [9.0]])],
        truth=[np.array([0, 1]), np.array([1, 2])],
        atoms=np.array([[0.0], [5.0], [9.0]]),
        counts=[np.array([3.0, 1.0]), np.array([2.0, 1.0])],
        covariances=[np.ones((2, 1, 1))] * 2,
        points=[np.zeros((4, 1)), np.zeros((3, 1))],
        origin=[np.array([0, 0, 1, 0]), np.array([2, 1, 1])],
        assigned=paths,
    )


def test_states_set_aside_count_with_the_nearest(study, drawn):
    labels = [np.array([0, 1]), np.array([1, 2])]
    answer = study("contenders").by_matching(drawn, labels, atoms=np.array([[0.0], [5.0]]))
    assert answer.K == 2
    assert answer.states.tolist() == [0, 1, 1, 1]


def test_sites_count_along_their_paths(study, drawn):
    first, second = study("contenders").sites(drawn)
    assert first.arrays["moves"].tolist() == [[1, 1], [1, 0]]
    assert first.arrays["starts"].tolist() == [1, 0]
    assert second.arrays["moves"].tolist() == [[1, 0], [1, 0]]
    assert second.arrays["starts"].tolist() == [0, 1]
    np.testing.assert_allclose(first.variance["means"][0], 1 / 3)


@pytest.mark.studies
def test_quick_run(tmp_path):
    (result,) = quick_run("hmm_scale", tmp_path)["results"].values()
    methods = result["5"]["methods"]
    assert methods["true labels"]["hamming"] <= methods["ours"]["hamming"] < methods["no matching"]["hamming"]
    assert methods["true labels"]["K"] == result["5"]["true K"]
