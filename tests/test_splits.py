"""Copies: one objective still decides, and fragments of one atom come together."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import scipy
from sklearn.cluster import KMeans

from modelweld import BetaBernoulli, Gaussian, Search, fuse, simulate
from modelweld.core.algorithm1 import NEW, Run, alternate
from modelweld.core.board import Board
from modelweld.core.prior import Fragments
from modelweld.core.values import Stack, offsets_of
from modelweld.families.rates import Rates
from modelweld.fit.priors.spectrum import Spectrum
from modelweld.fit.search.moves import Pairs, join_common_splits, log_common_contrast, merge, merge_and_split
from modelweld.fit.search.partings import partings, split
from modelweld.inputs.stacks import stack_arrays
from modelweld.results.posterior.conditional import pool_board


def doubled_board(seed, share=0.3, J=8, splits=None, prior=None, noise=0.3, width=0.0):
    """Sites that hold 4 of 6 atoms, each sent in two fragments with probability `share`; pooled if they have a width.

    Values then have standard errors and a pattern of what was seen, too.
    """
    rng = np.random.default_rng(seed)
    atoms = rng.normal(0, 4, (6, 3))
    values, truth = [], []
    for _ in range(J):
        held = rng.permutation(6)[:4]
        held = np.sort(np.concatenate([held, held[rng.random(4) < share]]))
        values.append(atoms[held] + rng.normal(0, noise, (len(held), 3)))
        truth.append(held)
    stack = Stack(np.concatenate(values), offsets_of([len(v) for v in values]))
    hyper = {"mean": np.zeros(3), "noise": np.full(3, 0.2), "spread": np.full(3, 16.0), "width": np.full(3, width)}
    if width:
        weight = np.ones(stack.values.shape)
        weight[: stack.offsets[2], 1] = 0.0  # two sites have not measured the second feature
        stack = replace(stack, variance=rng.uniform(0.01, 0.5, weight.shape), weight=weight)
    return Board([stack], [Gaussian(**hyper)], prior or BetaBernoulli(), splits), np.concatenate(truth)


def log_density_of_atom(board, here):
    """Of the values at an atom, from the definition: means of fragments about it, contrasts by their own variance."""
    family, stack, value = board.families[0], board.stacks[0], 0.0
    for d in range(3):
        y, variances = [], []
        for j in np.unique(board.group[here]):
            cell = here & (board.group == j) & (stack.weight[:, d] > 0)
            if cell.any():
                v, e = stack.values[cell, d], stack.variance[cell, d]
                y.append((v / e).sum() / (1 / e).sum())
                variances.append(family.noise[d] + 1 / (1 / e).sum())
                contrasts = scipy.linalg.null_space(np.ones((1, len(v)))).T @ v
                t = family._tau * family.width[d] + e.mean()
                value += scipy.stats.norm.logpdf(contrasts, 0, np.sqrt(t)).sum() - 0.5 * np.log(len(v))
        if y:
            cov = family.spread[d] + np.diag(variances)
            value += scipy.stats.multivariate_normal.logpdf(y, np.full(len(y), family.mean[d]), cov)
    return value


def objective_of(board):
    """From the definition."""
    family, stack = board.families[0], board.stacks[0]
    value = board.fragments.log_prob(board.fragments_held()) if board.fragments else 0.0
    counts = []
    rows = family.rows(stack.values, stack.variance, stack.weight)
    for k in np.unique(board.labels):
        here = board.labels == k
        counts.append(len(set(board.group[here])))
        if board.statistics is None:
            value += float(family.log_evidence(rows[here].sum(0)))
        else:
            value += log_density_of_atom(board, here)
    return value + board.prior.log_prob(np.array(counts), board.sizes) + family.log_prior()


@pytest.mark.parametrize("width", [0.0, 0.7])
@pytest.mark.parametrize("prior", [BetaBernoulli(), Spectrum()])
@pytest.mark.parametrize("seed", range(8))
def test_no_step_and_no_update_lowers_the_objective(seed, prior, width):
    board, _ = doubled_board(seed, splits=Fragments(), prior=prior, noise=1.0, width=width)
    rng = np.random.default_rng(seed)
    board.sweep(rng.permutation(8))
    now = board.objective()
    for _ in range(6):
        for j in rng.permutation(8):
            moved = board.step(int(j))
            after = board.objective()
            assert after == pytest.approx(objective_of(board), abs=1e-6)
            assert after > now if moved else after == pytest.approx(now, abs=1e-9)
            now = after
        board.recount()
        board.learn()
        after = board.objective()
        assert after >= now - 1e-9 * abs(now)
        now = after


def test_fragments_come_together():
    for seed in range(5):
        board, truth = doubled_board(seed, splits=Fragments())
        rng = np.random.default_rng(0)
        progress = merge_and_split(board, 8, rng, alternate(board, 8, rng, 100), 100)
        assert progress.converged
        assert (np.diff(progress.history) >= -1e-9).all()
        assert len(board.counts) == len(np.unique(truth))
        assert len(np.unique(np.stack([board.labels, truth]), axis=1).T) == len(board.counts)
        extra = len(truth) - len(board.fragments_held())
        assert board.fragments.delta == pytest.approx((extra + 0.5) / (len(truth) + 2.5))


def test_without_copies_a_group_holds_an_atom_once():
    board, _ = doubled_board(0)
    rng = np.random.default_rng(0)
    merge_and_split(board, 8, rng, alternate(board, 8, rng, 100), 100)
    assert (board.fragments_held() == 1).all()


def check_rises(board):
    """Rises of all pairs are what the objective gains when the two are joined; how many there are."""
    rises, now, labels = Pairs(board, board.fragments).rises, board.objective(), board.labels.copy()
    pairs = [(a, b) for a in range(len(board.counts)) for b in range(a) if np.isfinite(rises[a, b])]
    for a, b in pairs:
        board.labels = np.where(labels == a, b, labels)
        board.recount()
        assert board.objective() - now == pytest.approx(rises[a, b])
        board.labels = labels.copy()
        board.recount()
    return len(pairs)


@pytest.mark.parametrize("width", [0.0, 0.7])
@pytest.mark.parametrize("splits", [None, Fragments(0.1)])
def test_merge_rises_are_differences_of_objectives(splits, width):
    board, _ = doubled_board(1, splits=splits, noise=1.5, share=0.3 if splits else 0.0, width=width)
    board.sweep(np.arange(8))
    assert check_rises(board) > 3


@pytest.mark.parametrize("families", [(Gaussian, Rates), (Rates, Gaussian), (Gaussian, Gaussian)])
def test_merge_rises_of_arrays_of_two_families_are_sums_of_both(families):
    rng = np.random.default_rng(0)
    arrays = [rng.normal(0, 1, (6, 2, 40)) if family is Gaussian else rng.gamma(9, 1, (6, 2, 3)) for family in families]
    stacks = [stack_arrays(list(values)) for values in arrays]
    made = {
        Gaussian: Gaussian(mean=np.zeros(40), noise=np.ones(40), spread=np.full(40, 4.0)),
        Rates: Rates(mean=np.full(3, 9.0), concentration=np.ones(3), between=np.full(3, 5.0)),
    }
    board = Board(stacks, [made[family] for family in families], BetaBernoulli(), Fragments(0.1))
    board.labels = np.array([0, 0, 1, 1, 2, 3, 4, 5, 2, 3, 4, 5])
    board.recount()
    assert check_rises(board) == 15


@pytest.mark.parametrize("width", [0.0, 0.7])
@pytest.mark.parametrize("move", [merge, split])
@pytest.mark.parametrize("seed", range(5))
def test_moves_never_lower_the_objective(seed, move, width):
    board, _ = doubled_board(seed, splits=Fragments(), noise=1.5, width=width)
    board.sweep(np.arange(8))
    before = board.objective()
    done = move(board)
    assert board.objective() >= before - 1e-9
    assert (board.objective() > before + 1e-9) == (done > 0)


def test_an_atom_of_two_heaps_is_parted_between_them():
    rng = np.random.default_rng(0)
    heaps = np.repeat([0, 1], [7, 5])
    values = rng.normal(0, 0.1, (12, 2)) + 6.0 * heaps[:, None]
    family = Gaussian(mean=[3.0, 3.0], noise=[0.01, 0.01], spread=[9.0, 9.0])
    board = Board([stack_arrays(list(values[:, None]))], [family], BetaBernoulli(), labels=np.zeros(12, dtype=np.int64))
    alone, half = partings(board)
    assert alone.sum() == 1
    assert half.tolist() in ((heaps == 0).tolist(), (heaps == 1).tolist())
    for _ in range(5):
        split(board)
    assert not set(board.labels[heaps == 0]) & set(board.labels[heaps == 1])


def test_merging_mends_an_atom_in_two():
    board, _ = doubled_board(2, share=0.0)
    rng = np.random.default_rng(0)
    alternate(board, 8, rng, 100)
    best, K = board.objective(), len(board.counts)
    half = np.flatnonzero(board.labels == np.argmax(board.counts))[::2]
    board.labels[half] = K
    board.recount()
    assert merge(board) == 1
    assert board.objective() == pytest.approx(best)


def test_splitting_mends_two_atoms_in_one():
    board, truth = doubled_board(3, share=0.0, J=2)
    board.labels = truth.copy()
    board.labels[(truth == truth[0]) & (board.group == 0)] = 90
    other = next(t for t in truth[board.group == 1] if t != truth[0])
    board.labels[(truth == other) & (board.group == 1)] = 90
    board.recount()
    before = len(board.counts)
    assert split(board) >= 1
    assert len(board.counts) > before


def test_many_fragments_are_found():
    clear = simulate.over_segmented(seed=0)
    fusion = fuse(clear.values, search=Search(splits=True))
    assert fusion.matching.delta > 0.15
    assert fusion.K == clear.K
    board, truth = doubled_board(1, share=1.0)  # every site sends every atom twice
    stack = board.stacks[0]
    halves = [stack.values[a:b] for a, b in pairwise(stack.offsets)]
    assert len(np.unique(truth)) == fuse(halves, search=Search(splits=True)).K


@pytest.mark.parametrize("seed", range(4))
def test_pooled_fragments_are_one_value_where_nothing_else_is_asked(seed):
    """The board of means has the same atoms in the same places, and the objective of the other but for contrasts."""
    board, truth = doubled_board(seed, splits=Fragments(), width=0.7)
    board.restore((truth.copy(), *board.state()[1:]))
    board.learn()
    pooled, cell = pool_board(board)
    np.testing.assert_allclose(pooled.estimates()[0], board.estimates()[0])
    np.testing.assert_array_equal(pooled.labels[cell], board.labels)
    np.testing.assert_array_equal(pooled.group[cell], board.group)
    fresh = Board(pooled.stacks, pooled.families, pooled.prior, labels=pooled.labels)
    np.testing.assert_allclose(pooled.singletons, fresh.singletons)
    contrasts = board.pooling.log_evidence(board.sums[0]) - fresh.families[0].log_evidence(fresh.sums[0])
    if not set(pooled.group[pooled.labels == 0]) & set(pooled.group[pooled.labels == 1]):
        whole, means = (x.at(np.where(x.labels == 1, 0, x.labels)) for x in (board, fresh))
        joined = whole.pooling.log_evidence(whole.sums[0])[0] - means.families[0].log_evidence(means.sums[0])[0]
        assert joined == pytest.approx(contrasts[:2].sum())


@pytest.mark.parametrize("alike", [True, False])
def test_what_sites_split_alike_is_one_atom(alike):
    """Near pairs that the same sites hold are one atom in common fragments; those that sites hold in turn are two."""
    rng = np.random.default_rng(0)
    atoms = np.concatenate([rng.normal(0, 8, (6, 3)), np.zeros((2, 3))])
    atoms[6:] += [[0.3, 0.0, 0.0], [-0.3, 0.0, 0.0]]
    held = [np.arange(8) if alike else np.delete(np.arange(8), 6 + j % 2) for j in range(12)]
    values = [atoms[h] + rng.normal(0, 0.1, (len(h), 3)) for h in held]
    stack = stack_arrays(values)
    stack = replace(stack, variance=np.full(stack.values.shape, 0.01))
    family = Gaussian(mean=np.zeros(3), noise=np.full(3, 0.01), spread=np.full(3, 64.0), width=np.ones(3))
    board = Board([stack], [family], BetaBernoulli(), Fragments(0.2), np.concatenate(held))
    whole, progress, number = join_common_splits(board, Run([board.objective()], [0], True))
    assert number == len(progress.history) - 1 == int(alike)
    assert len(whole.counts) == 8 - alike
    assert (np.diff(progress.history) > 0).all()


def test_draws_keep_together_what_sites_split_alike():
    """Five wide groups that every site cuts into seven parts: draws have five, and matches are sure."""
    rng = np.random.default_rng(8000)
    centres, deviations, models = rng.normal(0, 5, (5, 3)), rng.uniform(0.5, 1.8, (5, 3)), []
    for j in range(8):
        own = rng.integers(5, size=400)
        models.append(
            KMeans(7, n_init=3, random_state=j).fit(centres[own] + deviations[own] * rng.normal(size=(400, 3)))
        )
    fusion = fuse(models)
    assert fusion.matching.common_splits > 0
    low, high = fusion.posterior.draws().K_interval()
    assert low == fusion.K <= high <= fusion.K + 2
    assert np.mean(np.concatenate(fusion.confidence())) > 0.9


@pytest.mark.parametrize("seed", range(3))
def test_odds_of_splitting_alike_are_those_of_the_definition(seed):
    board, _ = doubled_board(seed, share=1.0, splits=Fragments(), width=0.7)
    family = board.families[0]
    one, other = board.statistics[[0, 2, 4]], board.statistics[[1, 3, 5]]
    expected = 0.0
    for d in range(3):
        seen, S, e = (np.stack([x[:, i * 3 + d] for x in (one, other)]) for i in (0, 4, 6))
        here = seen.min(0) > 0
        x, error, v = (S[0] - S[1])[here], e.mean(0)[here], 2 * family.fragment_variance[d]
        common = v + np.diag(2 * (family.noise[d] + error))
        expected += scipy.stats.multivariate_normal.logpdf(x, np.zeros(len(x)), common) if len(x) else 0.0
        expected -= scipy.stats.norm.logpdf(x, 0, np.sqrt(v + 2 * error)).sum()
    assert log_common_contrast(one, other, np.array([0]), family) == pytest.approx(expected)


def test_the_variance_of_fragments_is_learned():
    """Fragments a component's width apart, sites much closer together: neither takes the other's variance."""
    rng = np.random.default_rng(0)
    atoms = rng.normal(0, 20, (6, 2))
    sites = [np.repeat(atoms + rng.normal(0, 0.1, (6, 2)), 2, axis=0) for _ in range(20)]
    apart = [np.repeat(rng.normal(0, 1.0, (6, 2)), 2, axis=0) * np.tile([[1.0], [-1.0]], (6, 1)) for _ in range(20)]
    stack = stack_arrays([a + b for a, b in zip(sites, apart, strict=True)])
    stack = replace(stack, variance=np.full(stack.values.shape, 1e-4))
    family = Gaussian(width=1.0).starts(stack)[0]
    board = Board([stack], [family], BetaBernoulli(), Fragments(), np.tile(np.repeat(np.arange(6), 2), 20))
    for _ in range(5):
        board.learn()
    found = board.families[0]
    assert found.tau == pytest.approx(2.0, rel=0.2)  # contrasts of two: (v1 - v2)^2 / 2
    assert (found.noise < 0.03).all()


@pytest.mark.parametrize("width", [0.0, 0.7])
@pytest.mark.parametrize("splits", [None, Fragments(0.1)])
@pytest.mark.parametrize("seed", range(4))
def test_rises_are_kept_up_to_date(seed, splits, width):
    """After every union the table is that of a board at the joined labels."""
    board, _ = doubled_board(seed, splits=splits, noise=0.8, share=0.3 if splits else 0.0, width=width)
    board.labels = np.arange(len(board.labels))
    board.recount()
    pairs = Pairs(board, board.fragments)
    for _ in range(10):
        if not pairs.join_best():
            break
        left, board.labels = np.unique(pairs.tally.labels, return_inverse=True)
        board.recount()
        fresh, kept = Pairs(board, board.fragments).rises, pairs.rises[np.ix_(left, left)]
        near = kept > -10  # beyond, what is hopeless is not scored again
        np.testing.assert_allclose(kept[near], fresh[near], atol=1e-8)
        assert (fresh[~near] < 0).all()
        assert pairs.highest.max() == pytest.approx(fresh.max(), abs=1e-8)


def test_an_agglomeration_does_not_depend_on_the_order_of_sites():
    sites = simulate.over_segmented(seed=1).values
    one, other = fuse(sites, search=Search(splits=True)), fuse(sites[::-1], search=Search(splits=True))
    assert one.objective == pytest.approx(other.objective)
    for a, b in zip(one.labels, other.labels[::-1], strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("seed", range(4))
def test_what_is_best_with_fragments_allowed_and_none_held_is_best_without(seed):
    """No sweep, union or split raises it: `find_matching` needs no second search."""
    board, _ = doubled_board(seed, share=0.0, splits=Fragments(), noise=(0.3, 0.6, 1.0, 0.5)[seed])
    rng = np.random.default_rng(seed)
    progress = merge_and_split(board, 8, rng, alternate(board, 8, rng, 50), 50)
    whole = board.without_fragments()
    assert progress.converged
    assert (board.fragments_held() == 1).all()
    assert whole.objective() == pytest.approx(board.objective() - board.fragments.log_prob(board.fragments_held()))
    assert whole.sweep(np.arange(8)) == 0
    assert merge(whole) + split(whole) == 0


@pytest.mark.parametrize("width", [0.0, 0.7])
@pytest.mark.parametrize("splits", [None, Fragments(0.1)])
@pytest.mark.parametrize("seed", range(6))
def test_worth_is_the_difference_of_objectives(seed, splits, width):
    board, _ = doubled_board(seed, splits=splits, share=0.3 if splits else 0.0, width=width)
    rng = np.random.default_rng(seed)
    board.sweep(rng.permutation(8))
    j = int(rng.integers(8))
    group = slice(board.offsets[j], board.offsets[j + 1])
    old = board.labels[group].copy()
    before = board.objective()
    board.take(group)
    fresh = np.full(len(old), NEW)
    difference = board.objective_gain(group, fresh) - board.objective_gain(group, old)
    board.put(group, board.open(fresh))
    board.recount()
    assert board.objective() - before == pytest.approx(difference)
