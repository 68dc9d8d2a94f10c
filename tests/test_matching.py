"""Algorithm 1: each step is the best of all assignments, everything raises one objective, and it stops."""

from itertools import permutations

import numpy as np
import pytest

from modelweld import BetaBernoulli, Gaussian
from modelweld.core.algorithm1 import NEW, alternate
from modelweld.core.board import Board
from modelweld.core.values import Stack, offsets_of
from modelweld.fit.search.dissolution import dissolve


def injective_assignments(L, K):
    """All ways to give L rows distinct columns of K, or NEW."""
    for columns in permutations([*range(K), *[NEW] * L], L):
        yield np.array(columns)


def small_board(rng, prior=None, sizes=None, noise=0.7, **family):
    sizes = rng.integers(0, 4, rng.integers(2, 5)) if sizes is None else np.asarray(sizes)
    D = int(rng.integers(1, 4))
    atoms = rng.normal(0, 2, (4, D))
    values = np.concatenate(
        [atoms[rng.permutation(4)[:L]] + rng.normal(0, noise, (L, D)) for L in sizes] + [np.zeros((0, D))]
    )
    hyper = {"mean": np.zeros(D), "noise": np.full(D, 0.5), "spread": np.full(D, 4.0)}
    return Board([Stack(values, offsets_of(sizes))], [Gaussian(**{**hyper, **family})], prior or BetaBernoulli())


@pytest.mark.parametrize("seed", range(150))
def test_every_step_is_the_best_of_all_assignments(seed):
    rng = np.random.default_rng(seed)
    board = small_board(rng, BetaBernoulli(rng.gamma(2.0), rng.gamma(2.0)))
    J = len(board.sizes)
    board.sweep(rng.permutation(J))
    j = int(rng.integers(J))
    group = slice(board.offsets[j], board.offsets[j + 1])
    L = int(group.stop - group.start)
    others = np.delete(board.labels, np.r_[group])
    names = np.unique(others)
    best = -np.inf
    for choice in set(map(tuple, injective_assignments(L, len(names)))):
        labels = board.labels.copy()
        fresh = iter(range(1000, 2000))
        labels[group] = [next(fresh) if c == NEW else names[c] for c in choice]
        best = max(best, objective_of(board, labels))
    board.step(j)
    assert board.objective() == pytest.approx(best, abs=1e-6)


def objective_of(board, labels):
    """The objective from scratch, by the definition."""
    family, stack = board.families[0], board.stacks[0]
    _, labels = np.unique(labels, return_inverse=True)
    rows = family.rows(stack.values, stack.variance, stack.weight)
    evidence = sum(float(family.log_evidence(rows[labels == k].sum(0))) for k in range(labels.max(initial=-1) + 1))
    return board.prior.log_prob(np.bincount(labels), board.sizes) + evidence


@pytest.mark.parametrize("seed", range(60))
def test_every_step_and_every_update_raises_the_objective(seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, 7, rng.integers(2, 8))
    board = small_board(rng, sizes=np.minimum(sizes, 4), noise=rng.gamma(2.0))
    J = len(board.sizes)
    board.sweep(rng.permutation(J))
    now = board.objective()
    for _ in range(20):
        changed = 0
        for j in rng.permutation(J):
            moved = board.step(int(j))
            after = board.objective()
            assert after == pytest.approx(objective_of(board, board.labels), abs=1e-6)
            assert after > now if moved else after == pytest.approx(now, abs=1e-9)
            changed += moved
            now = after
        if not changed:
            break
        board.recount()
        board.learn()
        after = board.objective()
        assert after >= now - 1e-9 * abs(now)
        now = after
    else:
        pytest.fail("no sweep without change among twenty")


def test_the_run_stops_exactly_at_a_sweep_without_change():
    rng = np.random.default_rng(3)
    board = small_board(rng, sizes=[4, 4, 3, 4, 2, 4])
    progress = alternate(board, 6, rng, 100)
    assert progress.converged
    assert progress.changes[-1] == 0
    assert all(progress.changes[:-1])
    labels = board.labels.copy()
    for _ in range(5):
        assert board.sweep(rng.permutation(6)) == 0
    assert np.array_equal(labels, board.labels)
    assert len(progress.history) == 2 * progress.sweeps - 1
    assert (np.diff(progress.history) >= -1e-9).all()


def test_the_paper_s_form_can_go_round_in_circles():
    """Erratum E2: J = 2, sizes (1, 3) and a match-minus-new score between -log 3 and 0."""
    found = {}
    for form in ("exact", "paper"):
        values = np.array([[0.0], [1.9], [40.0], [80.0]])
        family = Gaussian(mean=[0.0], noise=[1.0], spread=[1000.0], learning="nothing")
        prior = BetaBernoulli(form=form, gamma0=32.0)
        board = Board([Stack(values, offsets_of([1, 3]))], [family], prior)
        board.sweep(np.array([0, 1]))
        group = slice(1, 4)
        held = board.remember(group)
        board.take(group)
        score = board.scores(group, np.flatnonzero(board.counts))[0, 0]
        board.put_back(held)
        assert -np.log(3) < score < 0
        board.recount()
        found[form] = [board.sweep(np.array([0, 1])) for _ in range(6)]
    assert found["exact"][-1] == 0
    assert all(found["paper"])


@pytest.mark.parametrize("seed", range(10))
def test_dissolving_atoms_never_lowers_the_objective(seed):
    rng = np.random.default_rng(seed)
    board = small_board(rng, sizes=[4, 3, 4, 4, 2, 4, 3, 4], noise=1.5)
    plain = alternate(board, 8, rng, 100)
    more = dissolve(board, 8, rng, plain, 100, np.inf)
    assert more.history[: len(plain.history)] == plain.history
    assert (np.diff(more.history) >= -1e-9).all()
    assert board.objective() == pytest.approx(more.history[-1])
    assert board.objective() == pytest.approx(objective_of(board, board.labels))
