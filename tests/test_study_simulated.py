"""The study of the paper's simulated figures: its measures against plain versions, and a quick run of all of it."""

import numpy as np
import pytest

from modelweld import fuse
from modelweld.demo.simulate import Simulated, paper_figure
from studies import importing, quick_run


@pytest.fixture
def study(monkeypatch):
    yield from importing(monkeypatch, "simulated")


def test_supports_count_sites(study):
    measures = study("measures")
    truth = [np.array([4, 2]), np.array([4]), np.array([4])]
    drawn = Simulated([np.zeros((len(held), 1)) for held in truth], truth, np.zeros((9, 1)))
    assert measures.supports(drawn, np.array([2, 4])).tolist() == [1, 3]


def test_a_perfect_answer_measures_as_one(study):
    measures, contenders = study("measures"), study("contenders")
    drawn = paper_figure(6, 0.01, seed=1)
    present = contenders.occurring(drawn)
    found = measures.measured(drawn, fuse(drawn.values), present, 0.01)
    assert found["ari"] == 1.0
    assert found["K"] == len(present) == drawn.K
    assert found["hausdorff"] < 0.02 * np.sqrt(50)
    assert found["sigma"] < 0.1
    assert measures.best_possible(drawn, present, 0.01)["ari, popular"] == 1.0


def test_standard_errors_are_those_of_means(study):
    contenders = study("contenders")
    drawn = contenders.paper_figure_kmeans(2, 1.0, seed=0)
    site = contenders.with_standard_errors(drawn)[1]
    own = drawn.points[1][drawn.assigned[1] == 3]
    np.testing.assert_allclose(site.arrays["centres"][3], own.mean(axis=0))
    np.testing.assert_allclose(site.variance["centres"][3], own.var(axis=0) / len(own))


@pytest.mark.studies
def test_quick_run(tmp_path):
    record = quick_run("simulated", tmp_path)
    assert record["results"]["true/20/1/100"]["methods"]["ours"]["ari"] == 1.0
    assert record["results"]["true/100/10/100"]["methods"]["SPAHM, authors' form"]["K"] > 150
    assert len(record["figures"]) == 3
