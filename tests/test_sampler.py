"""The sampler's draws are those of exp(objective): every move in detailed balance, whole chains against enumeration."""

import numpy as np
import pytest

import modelweld
from modelweld import BetaBernoulli, Gaussian, InputError
from modelweld.core.board import Board
from modelweld.core.prior import Fragments
from modelweld.core.values import Stack, offsets_of
from modelweld.results.posterior import sampler
from modelweld.results.posterior.draws import Posterior, effective_size, split_r_hat
from modelweld.results.posterior.sampler import Chain, sample

PROBLEMS = {"two and two": (2, 2), "two, one, two": (2, 1, 2), "three of two": (2, 2, 2), "four of one": (1, 1, 1, 1)}


def tiny_board(sizes, seed=0, splits=None):
    rng = np.random.default_rng(seed)
    N = sum(sizes)
    stack = Stack(rng.normal(0, 1.2, (N, 1)), offsets_of(sizes), weight=rng.choice([0.5, 1.0, 2.0], (N, 1)))
    family = Gaussian(mean=np.zeros(1), noise=np.full(1, 0.6), spread=np.full(1, 1.5))
    board = Board([stack], [family], BetaBernoulli(1.5, 2.0), splits)
    board.restore((np.arange(N), *board.state()[1:]))
    return board


def name(labels):
    """The matching apart from how its atoms are numbered."""
    order = {}
    return tuple(order.setdefault(k, len(order)) for k in labels.tolist())


def all_matchings(board):
    """Every matching of a small board with its probability."""
    partitions = [()]
    group = np.repeat(np.arange(len(board.sizes)), board.sizes)
    for n in range(len(group)):
        partitions = [
            (*p, k)
            for p in partitions
            for k in range(max(p, default=-1) + 2)
            if board.fragments or not any(p[i] == k and group[i] == group[n] for i in range(n))
        ]
    objective = []
    for p in partitions:
        board.restore((np.array(p), *board.state()[1:]))
        objective.append(board.objective())
    weight = np.exp(np.array(objective) - max(objective))
    return partitions, np.array(objective), weight / weight.sum()


def value_move(chain):
    chain.redraw_value(int(chain.rng.integers(len(chain.labels))), chain.fragments.delta if chain.fragments else 0.0)


def swap_move(chain):
    chain.swap(int(chain.rng.integers(len(chain.labels))))


def pair_move(chain):
    """Two atoms, or one, of values of different groups."""
    i, j = chain.rng.permutation(len(chain.labels))[:2]
    members = np.flatnonzero(np.isin(chain.labels, chain.labels[[i, j]]))
    if len(np.unique(chain.group[members])) == len(members):
        chain.split_or_merge(i, j, members)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("move", "splits"),
    [
        (value_move, None),
        (pair_move, None),
        (value_move, Fragments(0.3)),
        (pair_move, Fragments(0.3)),
        (swap_move, None),
    ],
)
def test_every_move_is_in_detailed_balance(move, splits):
    """From draws of the target, transitions there and back are equally frequent: a chi-square test of all pairs."""
    board = tiny_board((2, 1, 2), splits=splits)
    matchings, _, probability = all_matchings(board)
    number = {m: i for i, m in enumerate(matchings)}
    chain = Chain(board, np.random.default_rng(0))
    flow = np.zeros((len(matchings), len(matchings)))
    for start in np.random.default_rng(1).choice(len(matchings), 3000, p=probability):
        chain.place(np.array(matchings[start]))
        move(chain)
        flow[start, number[name(chain.labels)]] += 1
    there, back = flow[np.triu_indices(len(flow), 1)], flow.T[np.triu_indices(len(flow), 1)]
    seen = there + back >= 10
    freedom = np.count_nonzero(seen)
    assert freedom >= 5
    statistic = ((there - back)[seen] ** 2 / (there + back)[seen]).sum()
    assert statistic < freedom + 4 * np.sqrt(2 * freedom)


@pytest.mark.slow
@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize(
    ("problem", "splits"), [("two, one, two", None), ("three of two", None), ("two, one, two", Fragments(0.3))]
)
def test_chains_visit_matchings_as_often_as_they_are_probable(problem, splits, compiled, monkeypatch):
    if not compiled:
        monkeypatch.setattr(sampler, "compiled_evidence", lambda families, rows: None)
    board = tiny_board(PROBLEMS[problem], seed=3, splits=splits)
    matchings, objective, probability = all_matchings(board)
    posterior = sample(board, draws=300, chains=4, seed=0)
    names = [name(labels) for labels in posterior.labels.reshape(-1, len(board.labels))]
    frequency = np.array([names.count(m) for m in matchings]) / len(names)
    worth = min(posterior.effective_size.values())
    assert worth > 200
    error = np.sqrt(probability * (1 - probability) / worth)
    assert (np.abs(frequency - probability) < 4.5 * error + 3 / len(names)).all()
    assert 0.5 * np.abs(frequency - probability).sum() < 0.12
    exact = dict(zip(matchings, objective, strict=True))
    assert posterior.objective.ravel() == pytest.approx([exact[m] for m in names])
    together = sum(p * (np.array(m)[:, None] == np.array(m)) for m, p in zip(matchings, probability, strict=True))
    assert np.abs(posterior.co_assignment - together).max() < 4.5 * 0.5 / np.sqrt(worth)


def autoregression(rng, rho, chains=4, n=4000):
    x = np.empty((chains, n))
    x[:, 0] = rng.normal(size=chains)
    for t in range(1, n):
        x[:, t] = rho * x[:, t - 1] + np.sqrt(1 - rho**2) * rng.normal(size=chains)
    return x


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_effective_size_of_autoregressions(rho):
    """The first-order autoregression is worth n (1 - rho) / (1 + rho)."""
    draws = autoregression(np.random.default_rng(0), rho)
    assert effective_size(draws) == pytest.approx(draws.size * (1 - rho) / (1 + rho), rel=0.15)
    assert split_r_hat(draws) == pytest.approx(1.0, abs=0.02)


def test_r_hat_of_chains_that_disagree():
    """Means 0 and d, variance 1, two chains: between variance of the halves' means d^2 / 3."""
    draws = np.random.default_rng(0).normal(size=(2, 4000)) + np.array([[0.0], [3.0]])
    assert split_r_hat(draws) == pytest.approx(np.sqrt(1 + 3.0**2 / 3), rel=0.03)
    trend = np.random.default_rng(0).normal(size=(2, 1000)) + np.linspace(0, 4, 1000)
    assert split_r_hat(trend) > 1.3  # whole chains agree, halves do not
    assert effective_size(draws) < 20


def test_chains_that_disagree_are_said_to():
    chains = np.random.default_rng(0).normal(size=(2, 400))
    agreeing, apart = (
        Posterior(np.zeros((2, 400, 1), dtype=int), np.ones((2, 400), dtype=int), x)
        for x in (chains + apart * np.arange(2)[:, None] for apart in (0.7, 0.9))
    )
    assert agreeing.caution == ""
    assert apart.caution.startswith("the chains do not agree (R-hat 1.13, above 1.1): 800 draws are worth about ")


def test_chains_that_do_not_move():
    assert split_r_hat(np.ones((4, 10))) == 1.0
    assert np.isnan(effective_size(np.ones((4, 10))))
    assert split_r_hat(np.arange(4.0)[:, None] + np.zeros((4, 10))) == np.inf
    with pytest.raises(InputError, match="at least 4"):
        split_r_hat(np.zeros((2, 3)))


def sites(seed=0):
    rng = np.random.default_rng(seed)
    atoms = rng.normal(0, 3, (5, 2))
    return [atoms[rng.permutation(5)[:3]] + rng.normal(0, 0.5, (3, 2)) for _ in range(5)]


def test_posterior_speaks(monkeypatch):
    fusion = modelweld.fuse(sites())
    posterior = fusion.posterior.sample(draws=30, seed=1)
    N = len(fusion.matching.stacked_labels)
    assert posterior.labels.shape == (4, 30, N)
    assert sum(posterior.K_probabilities.values()) == pytest.approx(1)
    assert set(posterior.acceptance) == {"split", "merge", "value"}
    together = posterior.co_assignment
    assert (np.diag(together) == 1).all()
    assert (together[:3, :3] == np.eye(3)).all()  # values of one site are never together
    np.testing.assert_allclose(posterior.together([[0, 5], [4, 9]]), [together[0, 5], together[4, 9]])
    assert "4 chains of 30 draws" in repr(posterior)
    np.testing.assert_array_equal(fusion.posterior.sample(draws=30, seed=1).labels, posterior.labels)
    with pytest.raises(InputError, match="at least 1 chain of 4"):
        fusion.posterior.sample(draws=2)
    monkeypatch.setattr("modelweld.results.posterior.draws.LARGEST_TABLE", 3)
    with pytest.raises(InputError, match="together"):
        fusion.posterior.sample(draws=4).co_assignment  # noqa: B018


def test_one_value_and_none():
    assert modelweld.fuse([[[1.0]]]).posterior.sample(draws=4, chains=2).K_probabilities == {1: 1.0}
    fusion = modelweld.fuse([np.zeros((0, 1)), [[1.0]], [[1.1]]])
    assert fusion.posterior.sample(draws=4).labels.shape == (4, 4, 2)
