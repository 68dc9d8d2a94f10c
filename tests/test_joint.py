"""The compiled sampler of matching and hyperparameters: against enumeration, and Geweke's test of joint laws."""

import numpy as np
import pytest
from scipy.special import comb
from scipy.stats import truncnorm

from modelweld import Gaussian, Spectrum
from modelweld.inputs.stack import Stack, offsets_of
from modelweld.matching.board import Board
from modelweld.posterior import compiled_beliefs as hyper
from modelweld.posterior.compiled_hyperparameters import move_prior, move_values
from modelweld.posterior.compiled_state import JUNK, LOG_A, LOG_ATOMS, LOG_B, SHARE, TRUST, place
from modelweld.posterior.convergence import effective_size
from modelweld.posterior.joint import _Setting, sample_jointly
from modelweld.priors.pieces import Pieces
from test_sampler import PROBLEMS, all_matchings, name, tiny_board


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


CASES = {
    "plain": (False, False, "diagonal"),
    "with errors and weights": (True, True, "diagonal"),
    "one noise": (True, False, "scalar"),
}


@pytest.mark.parametrize("case", CASES)
def test_geweke_of_the_moves_of_values(case):
    """Draws of (hyperparameters, values) by alternating moves with fresh values have the prior's law.

    Labels stay. `log noise` and the others are compared with what is believed of them, first and second moments.
    """
    errors, weights, shape = CASES[case]
    rng = np.random.default_rng(0)
    labels, sizes, D = np.array([0, 1, 0, 2, 0, 1, 3, 0]), [2, 2, 2, 2], 2
    N, H = len(labels), 1 if shape == "scalar" else D
    variance = rng.uniform(0.02, 0.4, (N, D)) if errors else None
    weight = rng.choice([0.5, 1.0, 2.0], (N, D)) if weights else None
    setting = _Setting(board_of(np.zeros((N, D)), sizes, variance, weight, shape).at(labels), np.arange(N), False)
    setting.beliefs = setting.beliefs._replace(total=np.ones(H), floor=np.zeros(H))
    state, _ = setting.start(0, 0)
    state.rest[TRUST] = 1.0
    steps, at_p, at_s = setting.steps(), np.empty(N), np.empty(N)
    steps.noise[:], steps.spread[:], steps.others[:] = 0.0, 0.0, [1.0, -0.5]
    found, values = [], setting.values
    for _ in range(40_000):
        scatter = state.noise * values.inverse + state.rest[TRUST] * values.variance
        atoms = state.mean + np.sqrt(state.spread) * rng.standard_normal((4, D))
        values.y[:] = atoms[labels] + np.sqrt(scatter) * rng.standard_normal((N, D))
        place(values, state, labels)
        move_values(values, state, setting.beliefs, steps, 0.0, at_p, at_s)
        log = np.log([*state.noise, *state.spread, state.rest[TRUST]])
        found.append([*log, *state.mean, state.rest[SHARE]])
    noise = (hyper.SHARE_MEAN, np.hypot(hyper.SHARE_DEVIATION, hyper.NOISE_DEVIATION))
    trust = (0.0, hyper.TRUST_SCALE * np.sqrt(3.0)) if errors else (0.0, 0.0)
    expected = [noise] * H + [(0.0, hyper.SPREAD_DEVIATION)] * H + [trust] + [(0.0, 1.0)] * D
    expected.append((hyper.SHARE_MEAN, hyper.SHARE_DEVIATION))
    compare(np.array(found), np.array(expected), heavy=2 * H)


def compare(found, expected, heavy=None):
    """Means and variances within their Monte Carlo errors; of column `heavy`, which has no fourth moment, quartiles."""
    for c, (mean, deviation) in enumerate(expected):
        if deviation == 0:
            assert (found[:, c] == mean).all()
            continue
        standard = (found[:, c] - mean) / deviation
        if c == heavy:  # half of Student's t with 3 degrees of freedom is within .765 scales
            squares, expected_square = (np.abs(standard * np.sqrt(3.0)) < 0.7649).astype(float), 0.5
        else:
            squares, expected_square = standard**2, 1.0
        for x, value in ((standard, 0.0), (squares, expected_square)):
            worth = effective_size(x[None])
            assert worth > 200
            assert abs(x.mean() - value) < 4 * x.std() / np.sqrt(worth)


def truncated(law, limits):
    """Mean and deviation of a normal law between limits."""
    mean, deviation = law
    low, high = (np.array(limits) - mean) / deviation
    return mean + deviation * truncnorm(low, high).mean(), deviation * truncnorm(low, high).std()


@pytest.mark.parametrize("junk", [0.0, 0.4])
def test_geweke_of_the_moves_of_the_prior(junk):
    """Supports drawn from the spectrum, its parameters from their moves: the parameters have their prior's law."""
    rng = np.random.default_rng(1)
    J = 5
    board = board_of(np.zeros((J, 1)), [1] * J, None, None, "diagonal").at(np.arange(J))
    setting = _Setting(board, np.arange(J), False)
    beliefs = setting.beliefs._replace(log_size=-1.0, junk_mean=0.3)
    state, _ = setting.start(0, 0)
    room = 400_000
    state = state._replace(counts=np.zeros(room, np.int64), slots=np.arange(room))
    state.rest[JUNK], m = junk, np.arange(1, J + 1)
    rest, R, found = state.rest.copy(), state.R.copy(), []
    for _ in range(40_000):
        hyper.fill_rates(state.rest, state.R)
        supports = np.repeat(m, rng.poisson(comb(J, m) * np.exp(state.R[1 : J + 1])))
        state.held[0] = len(supports)
        state.counts[: len(supports)] = supports
        move_prior(state, beliefs, rest, R)
        found.append([*state.rest[[LOG_A, LOG_B, LOG_ATOMS]], state.rest[JUNK]])
    log_atoms = (-1.0, hyper.ATOMS_DEVIATION)
    found = np.array(found)
    a, b = truncated(hyper.BELIEVED_A, hyper.BOUNDS[0]), truncated(hyper.BELIEVED_B, hyper.BOUNDS[1])
    compare(found, np.array([a, b, log_atoms, (0.3, 0.3) if junk else (0.0, 0.0)]))
