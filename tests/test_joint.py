"""The compiled sampler of matching and hyperparameters: against enumeration, and Geweke's test of joint laws."""

import numpy as np
import pytest
from scipy.special import comb
from test_sampler import PROBLEMS, all_matchings, name, tiny_board

import modelweld
from modelweld import BetaBernoulli, Gaussian, Spectrum
from modelweld.inputs.stack import Stack, offsets_of
from modelweld.matching.board import Board
from modelweld.posterior import compiled_hyperparameters as hyper
from modelweld.posterior.compiled_state import JUNK, LOG_A, LOG_ATOMS, LOG_B, SHARE, TRUST, place
from modelweld.posterior.convergence import effective_size
from modelweld.posterior.joint import _Setting, sample_jointly
from modelweld.priors.pieces import Pieces


@pytest.mark.parametrize(
    ("problem", "copies"),
    [("two, one, two", None), ("three of two", None), ("four of one", None), ("two, one, two", Pieces(0.3))],
)
def test_chains_visit_matchings_as_often_as_they_are_probable(problem, copies):
    board = tiny_board(PROBLEMS[problem], seed=3, copies=copies)
    matchings, objective, probability = all_matchings(board)
    posterior = sample_jointly(board, draws=5000, chains=2, seed=0, fixed=True)
    names = [name(labels) for labels in posterior.labels.reshape(-1, len(board.labels))]
    frequency = np.array([names.count(m) for m in matchings]) / len(names)
    worth = min(posterior.effective_size.values())
    assert worth > 3000
    error = np.sqrt(probability * (1 - probability) / worth)
    assert (np.abs(frequency - probability) < 4.5 * error + 3 / len(names)).all()
    exact = dict(zip(matchings, objective, strict=True))
    constant = posterior.objective.ravel() - [exact[m] for m in names]
    if copies is None:  # pieces are not part of what is traced
        assert np.ptp(constant) < 1e-9
    else:
        assert len(set(names)) > 10


def board_of(values, sizes, variance, weight, shape):
    stack = Stack(values, offsets_of(sizes), variance=variance, weight=weight)
    width = 1 if shape == "scalar" else values.shape[1]
    family = Gaussian(mean=0.0, noise=np.full(width, 0.3), spread=np.full(width, 1.0), shape=shape)
    board = Board([stack], [family.scaled(np.zeros(values.shape[1]), np.ones(width))], Spectrum())
    return board
