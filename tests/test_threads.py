"""Questions make small matrix products: on one thread, whatever the machine has, and others as before."""

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import modelweld
from modelweld.families import Gaussian

SITES = [np.random.default_rng(j).normal(np.array([[0.0, 0.0], [9.0, 9.0], [0.0, 9.0]]), 0.2) for j in range(5)]


def blas():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def two():
    """As on a machine with two processors, whatever this one has."""
    with threadpool_limits(limits=2, user_api="blas"):
        yield


QUESTIONS = {
    "confidence": lambda fusion, folder: fusion.confidence(how="conditional"),
    "conditional": lambda fusion, folder: fusion.posterior.conditional(0),
    "sample": lambda fusion, folder: fusion.posterior.sample(draws=5, chains=1, fixed=True),
    "diagnose": lambda fusion, folder: fusion.diagnosis.sites(),
    "worth_merging": lambda fusion, folder: fusion.worth_merging(draws=19),
    "report": lambda fusion, folder: fusion.report(folder / "page.html", draws=False),
    "add": lambda fusion, folder: fusion.add(SITES[0] + 0.1, site="more"),
    "remove": lambda fusion, folder: fusion.remove("0"),
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_questions_are_answered_on_one_thread(question, tmp_path, monkeypatch):
    fusion, seen = modelweld.fuse(SITES), set()
    evidence = Gaussian.log_evidence

    def watched(self, rows):
        seen.update(blas())
        return evidence(self, rows)

    monkeypatch.setattr(Gaussian, "log_evidence", watched)
    QUESTIONS[question](fusion, tmp_path)
    assert seen == {1}
    assert blas() == {2}
