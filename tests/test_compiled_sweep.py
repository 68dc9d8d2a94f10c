"""Compiled evidences are the families' own, and compiled sweeps draw matchings as probable as enumeration says."""

from dataclasses import replace

import numpy as np
import pytest

from modelweld import (
    BetaBernoulli,
    Counts,
    Directions,
    Gaussian,
    Moments,
    NormalGamma,
    Proportions,
    Rates,
    Scatter,
)
from modelweld.core.board import Board
from modelweld.core.family import condition_on
from modelweld.core.prior import Fragments
from modelweld.core.values import Stack, offsets_of
from modelweld.families import FadingCounts, FadingDirections
from modelweld.families.capabilities import FAMILIES
from modelweld.families.factors import Factors
from modelweld.families.fading import Drift
from modelweld.results.posterior.compiled_evidences import COMPILED, compiled_evidence, evidence_of, log_evidences
from modelweld.results.posterior.compiled_sweep import Given, at_start, sweeps
from modelweld.results.posterior.draws import MERGE, SPLIT
from test_sampler import all_matchings, name

SIZES = (2, 1, 2)
RNG = np.random.default_rng(0)


def unit(x):
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def covariances(n, D=2):
    x = RNG.normal(size=(n, D, D + 5))
    return (x @ x.swapaxes(1, 2) / (D + 5)).reshape(n, -1)


N = 5
CASES = {
    "rates": (Rates(), RNG.poisson(5.0, (N, 3)).astype(float)),
    "scales": (Rates(kind="gamma"), RNG.gamma(3.0, 2.0, (N, 3))),
    "proportions": (Proportions(), RNG.beta(2.0, 2.0, (N, 3))),
    "proportions, one number": (Proportions(1.5, 2.0, 20.0), RNG.beta(2.0, 2.0, (N, 3))),
    "normal gamma, one number": (NormalGamma(0.5, 0.2, 2.0, 0.05), RNG.normal(size=(N, 2))),
    "scales, one number": (Rates(kind="gamma", mean=2.0, concentration=3.0, between=9.0), RNG.gamma(3.0, 2.0, (N, 3))),
    "normal gamma": (NormalGamma(), RNG.normal(size=(N, 2))),
    "gaussian": (Gaussian(), RNG.normal(size=(N, 2))),
    "gaussian, one noise": (Gaussian(shape="scalar"), RNG.normal(size=(N, 2))),
    "counts": (Counts(), RNG.poisson(4.0, (N, 4)) + 1.0),
    "probabilities": (Counts(), RNG.dirichlet(np.ones(4), N)),
    "directions": (Directions(), unit(RNG.normal(size=(N, 3)))),
    "directions, alike": (Directions(own=False), unit(RNG.normal(size=(N, 3)))),
    "many directions": (Directions(), unit(RNG.normal(size=(N, 60)))),
    "scatter": (Scatter(), covariances(N)),
    "moments": (Moments(), np.hstack([RNG.normal(size=(N, 2)), covariances(N)])),
}


def first(case, weight=None):
    """A family with hyperparameters, and a stack of its values."""
    family, values = CASES[case]
    weights = None if weight is None else np.tile(np.array(weight)[:, None], values.shape[1])
    stack = Stack(values, offsets_of(SIZES), weight=weights)
    return condition_on(family.starts(stack)[0], stack), stack


def test_all_families_of_the_library_are_compiled():
    # moving atoms are not matched on a board; values without signs have none until they are at an atom
    assert set(FAMILIES.values()) - set(COMPILED) == {Drift, FadingCounts, FadingDirections, Factors}


@pytest.mark.parametrize("weight", [None, (4.0, 5.0, 9.0, 4.0, 12.0), (4.0, 5.0, 0.0, 4.0, 12.0)])
@pytest.mark.parametrize("case", CASES)
def test_evidences_are_the_families_own(case, weight):
    check(*first(case, weight))


def test_integrals_over_concentrations_are_the_families_own():
    family, stack = first("directions")
    check(replace(family, concentration=20.0, diversity=0.7), stack)


def check(family, stack):
    rows = family.rows(stack.values, stack.variance, stack.weight)
    evidence, same = compiled_evidence([family], [rows])
    # lgamma of 1e8; normalisers of directions are read off a table
    rounding = max(1e-6, 2e-10 * family.concentration) if isinstance(family, Directions) else 1e-6
    for members in ([0], [2], [1, 3], [0, 2, 4], range(N)):
        expected = family.log_evidence(rows[list(members)].sum(0))
        log_evidences(evidence, same[list(members)].sum(0)[None], found := np.empty(1))
        assert found[0] == pytest.approx(float(expected), rel=1e-9, abs=rounding)
    assert evidence_of(family, rows) == pytest.approx(float(family.log_evidence(rows).sum()), rel=1e-9, abs=rounding)


def test_vocabularies_that_differ_are_left_to_numpy():
    family, stack = first("counts")
    unseen = np.ones_like(stack.values)
    unseen[0, 1] = 0.0
    rows = family.rows(stack.values, None, unseen)
    assert compiled_evidence([family], [rows]) is None
    assert evidence_of(family, rows) == pytest.approx(float(family.log_evidence(rows).sum()))


@pytest.mark.parametrize(
    ("cases", "fragments"),
    [
        (("scales",), None),
        (("directions",), None),
        (("counts",), None),
        (("scatter",), None),
        (("gaussian", "scales"), None),
        (("normal gamma",), Fragments(0.3)),
    ],
)
def test_matchings_are_visited_as_often_as_they_are_probable(cases, fragments):
    families, stacks = zip(*(first(case) for case in cases), strict=True)
    board = Board(list(stacks), list(families), BetaBernoulli(1.5, 2.0), fragments, labels=np.arange(N))
    matchings, _, probability = all_matchings(board)
    evidence, rows = compiled_evidence(board.families, board.rows)
    R = np.concatenate([[0.0], np.cumsum(board.increments)])
    others = [np.flatnonzero(board.group != g) for g in board.group]
    near = np.array([np.resize(own, N) for own in others])
    given = Given(evidence, rows, board.group, board.offsets, near, R, 0.0 if fragments is None else fragments.delta)
    state = at_start(given, np.arange(N), 7)
    tried, done = np.zeros((2, 3), dtype=np.int64)
    found = []
    for _ in range(6000):
        sweeps(given, state, 1, tried, done)
        found.append(name(state.labels))
    frequency = np.array([found.count(m) for m in matchings]) / len(found)
    assert np.abs(frequency - probability).max() < 0.03
    assert 0.5 * np.abs(frequency - probability).sum() < 0.06
    assert (done > 0).all()
    assert (done <= tried).all()
    assert tried[[SPLIT, MERGE]].sum() == 6000 * (N // 4)
