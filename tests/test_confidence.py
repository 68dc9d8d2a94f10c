"""Confidence of a match: marginals of assignments against enumeration, tables of a fusion."""

from copy import copy
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import modelweld
from modelweld import Gaussian, InputError, LocalModel
from modelweld.results.posterior.assignment_marginals import assignment_marginals, propagate
from shared import baselines


def enumerated(scores):
    """Marginals by adding up all assignments."""
    L, K = scores.shape
    choices = [c for c in product(range(K + 1), repeat=L) if all(c.count(k) <= 1 for k in c if k < K)]
    padded = np.hstack([scores, np.zeros((L, 1))])
    log_weight = np.array([padded[np.arange(L), list(c)].sum() for c in choices])
    weight = np.exp(log_weight - log_weight.max())
    table = np.zeros((L, K + 1))
    for c, w in zip(choices, weight / weight.sum(), strict=True):
        table[np.arange(L), list(c)] += w
    return table


def random_scores(rng, scale):
    L, K = rng.integers(1, 5, 2)
    return rng.normal(0, scale, (L, K)) + rng.integers(2) * scale


def by_messages(scores):
    """Belief propagation alone, on all pairs."""
    rows, columns = np.indices(scores.shape).reshape(2, -1)
    return propagate(rows, columns, scores.ravel()).reshape(scores.shape)


@pytest.mark.parametrize("scale", [0.3, 1.0, 3.0, 10.0, 300.0])
def test_marginals_are_those_of_all_assignments(scale):
    rng = np.random.default_rng(0)
    errors = [
        np.abs(assignment_marginals(s) - enumerated(s)).max() for s in (random_scores(rng, scale) for _ in range(80))
    ]
    assert max(errors) < 1e-6  # what was dropped as negligible


@pytest.mark.parametrize("seed", range(20))
def test_messages_are_exact_without_conflict_and_on_trees(seed):
    rng = np.random.default_rng(seed)
    own = np.full((4, 8), -np.inf)  # two columns for every row, nobody else's
    own[np.repeat(np.arange(4), 2), np.arange(8)] = rng.normal(0, 5, 8)
    e = np.exp(own)
    np.testing.assert_allclose(assignment_marginals(own)[:, :-1], e / (1 + e.sum(1, keepdims=True)), atol=1e-12)
    chain = np.full((3, 3), -np.inf)  # row 0 - column 0 - row 1 - column 1 - row 2 - column 2
    chain[[0, 1, 1, 2, 2], [0, 0, 1, 1, 2]] = rng.normal(0, 5, 5)
    np.testing.assert_allclose(assignment_marginals(chain), enumerated(chain), atol=1e-4)


def test_messages_agree_with_exact_sums_where_many_compete():
    scores = np.random.default_rng(0).normal(0, 2, (9, 14))
    np.testing.assert_allclose(by_messages(scores), assignment_marginals(scores)[:, :-1], atol=0.02)


@pytest.mark.parametrize("shape", [(1, 1), (30, 12), (12, 30), (40, 40), (3, 0), (0, 3)])
def test_marginals_are_probabilities(shape):
    table = assignment_marginals(np.random.default_rng(0).normal(0, 8, shape))
    assert table.shape == (shape[0], shape[1] + 1)
    assert (table >= 0).all()
    np.testing.assert_allclose(table.sum(1), 1)
    assert (table[:, :-1].sum(0) <= 1 + 0.01).all()  # each atom has at most one row, but for the approximation


def drawn(seed, noise=0.8, J=5):
    rng = np.random.default_rng(seed)
    atoms = rng.normal(0, 2, (6, 2))
    return [atoms[rng.permutation(6)[: rng.integers(1, 5)]] + rng.normal(0, noise, (1, 2)) for _ in range(J)]


def objective_with(board, group, labels):
    """The objective when a group's values are at these atoms (from K on: new ones)."""
    moved = board.labels.copy()
    moved[group] = labels
    board.restore((moved, *board.state()[1:]))
    return board.objective()


@pytest.mark.parametrize("seed", range(6))
def test_conditional_is_that_of_the_objective(seed):
    """All assignments of one site, weighed by exp(objective)."""
    fusion = modelweld.fuse([a[:3] for a in drawn(seed)], Gaussian(noise=1.0, spread=4.0, learning="nothing"))
    matching = fusion.matching
    atoms = len(matching.counts)
    for j, held in enumerate(fusion.labels):
        board = copy(fusion._fit.board())
        group = slice(board.offsets[j], board.offsets[j + 1])
        others = [k for k in range(atoms) if matching.counts[k] > (k in held)]
        choices = [c for c in product([*others, -1], repeat=len(held)) if all(c.count(k) <= 1 for k in c if k >= 0)]
        fresh = 100 + np.arange(len(held))
        log_weight = np.array([objective_with(board, group, np.where(np.array(c) < 0, fresh, c)) for c in choices])
        weight = np.exp(log_weight - log_weight.max())
        expected = np.zeros((len(held), atoms + 1))
        for c, w in zip(choices, weight / weight.sum(), strict=True):
            expected[np.arange(len(held)), list(c)] += w
        np.testing.assert_allclose(fusion.posterior.conditional(j), expected, atol=1e-5)
        at = [k if k in others else -1 for k in held]
        np.testing.assert_allclose(
            fusion.confidence(how="conditional")[j], expected[np.arange(len(held)), at], atol=1e-5
        )


def two_sets(rng, J=4):
    """Sites with two sets, standard errors and entries that were not seen."""
    A, B = rng.normal(0, 3, (5, 3)), rng.normal(0, 3, (5, 4))
    sites = []
    for j in range(J):
        first, second = rng.permutation(5)[:3], rng.permutation(4)[:2]
        weight = np.ones((3, 3))
        weight[0, 0] = 0
        sites.append(
            LocalModel(
                {
                    "W": A[first] + rng.normal(0, 0.2, (3, 3)),
                    "V": B[np.ix_(first, second)] + rng.normal(0, 0.2, (3, 2)),
                },
                {"W": ("h", None), "V": ("h", "g")},
                variance={"W": 0.01},
                weight={"W": weight},
                site=f"s{j}",
            )
        )
    return sites


@pytest.mark.parametrize("splits", [False, "auto"])
def test_several_sets_with_variance_and_weight(splits):
    fusion = modelweld.fuse(two_sets(np.random.default_rng(0)), search=modelweld.Search(splits=splits))
    for name, matching in fusion.matchings.items():
        board = copy(fusion._fit.board(name))
        assert board.objective() == pytest.approx(matching.objective, abs=1e-6)
        confidence = fusion.confidence(name)
        assert [len(c) for c in confidence] == [len(held) for held in matching.labels]
        assert all(((c >= 0) & (c <= 1)).all() for c in confidence)
        table = fusion.posterior.conditional("s1", name)
        np.testing.assert_array_equal(table, fusion.posterior.conditional(1, name))
        np.testing.assert_allclose(table.sum(1), 1)
    with pytest.raises(InputError, match="matched the sets"):
        fusion.confidence()
    with pytest.raises(InputError, match="no set 'x'"):
        fusion.confidence("x")
    with pytest.raises(InputError, match="no site"):
        fusion.posterior.conditional("nobody", "h")


def test_fragments_are_judged_one_at_a_time():
    """The conditional of one value is that of the objective, also where its site holds an atom in two fragments."""
    rng = np.random.default_rng(0)
    atoms = rng.normal(0, 2, (3, 2))
    given = [atoms[[0, 0, 1, 2]] + rng.normal(0, 0.6, (4, 2)) for _ in range(4)]
    family = Gaussian(noise=0.36, spread=4.0, learning="nothing")
    fusion = modelweld.fuse(given, family, modelweld.BetaBernoulli(), search=modelweld.Search(splits=False))
    labels, counts = np.array([0, 0, 1, 2, 0, 0, 1, 3, 0, 2, 1, 2, 4, 4, 1, 2]), np.array([3, 4, 3, 1, 1])
    fusion.matchings["atom"] = replace(fusion.matching, stacked_labels=labels, counts=counts, delta=0.1)
    board = copy(fusion._fit.board())
    K = len(counts)
    for j in (0, 1, 2, 3):
        table, stated = fusion.posterior.conditional(j), fusion.confidence(how="conditional")[j]
        for n, k in enumerate(fusion.labels[j]):
            row = int(board.offsets[j]) + n
            fusion_board = copy(fusion._fit.board())
            alone = np.count_nonzero(fusion_board.labels == k) == 1
            options = [atom for atom in range(K) if not (alone and atom == k)]
            objective = np.array([objective_with(copy(fusion._fit.board()), row, at) for at in [*options, 100]])
            expected = np.zeros(K + 1)
            expected[[*options, K]] = np.exp(objective - objective.max())
            np.testing.assert_allclose(table[n], expected / expected.sum(), atol=1e-5)
            assert stated[n] == pytest.approx(table[n, -1 if alone else k])


def test_the_compiled_board_s_answer_is_understood():
    sites = drawn(0)
    plain, compiled = (
        modelweld.fuse(sites, search=modelweld.Search(engine=engine)) for engine in ("numpy", "compiled")
    )
    for a, b in zip(*(fusion.confidence(how="conditional") for fusion in (plain, compiled)), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)


def test_presets_are_judged_by_the_exact_prior():
    fusion = modelweld.fuse(drawn(1), preset="authors")
    assert all(((c >= 0) & (c <= 1 + 1e-12)).all() for c in fusion.confidence())


def test_a_baseline_has_no_confidence():
    with pytest.raises(InputError, match=r"a baseline's.*no probabilities"):
        baselines.kmeans_matching(drawn(0), 4).confidence()


def test_sites_without_values_have_empty_answers():
    fusion = modelweld.fuse([np.zeros((0, 2)), *drawn(2)])
    assert fusion.confidence()[0].shape == (0,)
    assert fusion.posterior.conditional(0).shape == (0, len(fusion.counts) + 1)
