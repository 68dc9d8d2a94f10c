"""The sparse board: pairs that it does not score cannot beat a new atom, and labels are those of the reference."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import modelweld
from cases.directions import about, unit
from modelweld.core.algorithm1 import NEW, best_assignment
from modelweld.core.beta_bernoulli import BetaBernoulli
from modelweld.core.board import Board
from modelweld.families.directions import Directions
from modelweld.fit.engines import choice
from modelweld.fit.engines.sparse_board import Scored, SparseBoard, assign
from modelweld.fit.search.moves import merge
from modelweld.inputs.stacks import stack_arrays

FORMS = {
    "shared": Directions(own=False),
    "own": Directions(),
    "wide": Directions(diversity=1.0),
    "axial": Directions(axial=True),
    "axial, own": Directions(axial=True, own=True, diversity=0.7),
}


def dictionaries(seed, J=4, L=30, D=16, kappa=60.0, base=0.0):
    """Sites that share half of their directions, about a mean where `base` says so."""
    rng = np.random.default_rng(seed)
    mean = np.tile(unit(np.ones(D)), (L, 1))
    atoms = about(mean, base, rng) if base else unit(rng.normal(size=(L, D)))
    return [
        about(np.concatenate([atoms[rng.permutation(L)[: L // 2]], unit(rng.normal(size=(L // 2, D)))]), kappa, rng)
        for _ in range(J)
    ]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("base", [0.0, 20.0])
def test_pairs_that_are_not_scored_are_below_zero(form, base):
    stack = stack_arrays(dictionaries(1, base=base))
    family = FORMS[form].starts(stack)[0]
    board = Board([stack], [family], BetaBernoulli())
    board.sweep(np.arange(3))
    there, group = np.flatnonzero(board.counts), board.values_of(3)
    dense = board.scores(group, there)
    sparse = SparseBoard([stack], [family], BetaBernoulli(), labels=board.labels)
    scored = sparse.scored(group, np.flatnonzero(sparse.counts))
    table = np.full(dense.shape, -np.inf)
    table[scored.rows, scored.columns] = scored.scores
    named = np.isfinite(table)
    assert (dense[~named] <= 1e-9).all()
    assert np.allclose(table[named], dense[named])
    assert named.sum() < (0.8 if base else 0.6) * named.size  # the bound knows the least mean of values, not each


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 12), st.integers(1, 12))
def test_assignment_by_components_is_the_assignment(seed, L, K):
    rng = np.random.default_rng(seed)
    table = np.where(rng.random((L, K)) < 0.3, rng.normal(1, 1, (L, K)), -1.0)
    rows, columns = np.nonzero(table > -1)
    found = assign(Scored(rows, columns, table[rows, columns], (L, K)))
    expected = best_assignment(table, np.zeros(L), L)
    used = found[found != NEW]
    assert len(set(used.tolist())) == len(used)

    def worth(choice):
        return sum(table[i, k] for i, k in enumerate(choice) if k != NEW)

    assert worth(found) == pytest.approx(worth(expected))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kappa", [60.0, 25.0])
def test_labels_are_those_of_the_reference(monkeypatch, form, kappa):
    monkeypatch.setattr(choice, "SPARSE_FROM", 0)
    sites = dictionaries(2, J=5, kappa=kappa)
    reference = modelweld.fuse(sites, FORMS[form], search=modelweld.Search("plain", engine="numpy"))
    sparse = modelweld.fuse(sites, FORMS[form], search="plain")
    assert (reference.matching.engine, sparse.matching.engine) == ("numpy", "sparse")
    assert np.array_equal(reference.matching.stacked_labels, sparse.matching.stacked_labels)
    assert sparse.objective == pytest.approx(reference.objective)


def test_sparse_merges_and_splits_never_lower_the_objective(monkeypatch):
    monkeypatch.setattr(choice, "SPARSE_FROM", 0)
    fusion = modelweld.fuse(dictionaries(3, J=6, kappa=20.0), Directions())
    assert fusion.matching.engine == "sparse"
    assert (np.diff(fusion.diagnosis.history) > -1e-6).all()


def test_atoms_that_were_torn_apart_are_joined_again():
    sites = dictionaries(4, J=6, kappa=200.0)
    stack = stack_arrays(sites)
    board = SparseBoard([stack], [Directions(own=False).starts(stack)[0]], BetaBernoulli())
    board.sweep(np.arange(6))
    board.learn()
    whole = len(board.counts)
    torn = board.labels + len(board.counts) * (board.group % 2)
    board.labels = torn
    board.recount()
    assert len(board.counts) > whole
    while merge(board):
        pass
    assert len(board.counts) == whole


def test_the_sparse_board_is_for_large_sets_of_even_weights():
    small, family, prior = stack_arrays(dictionaries(5)), Directions(), BetaBernoulli()
    assert not choice.is_sparse([small], [family], prior)
    large = stack_arrays([unit(np.random.default_rng(j).normal(size=(1000, 3))) for j in range(2)])
    assert choice.is_sparse([large], [family], prior)
    assert not choice.is_sparse([large], [modelweld.Gaussian()], prior)
    assert not choice.is_sparse([large], [family], BetaBernoulli(form="paper"))


def test_sites_are_added_to_a_sparse_fusion(monkeypatch):
    monkeypatch.setattr(choice, "SPARSE_FROM", 0)
    sites = dictionaries(6, J=6, kappa=200.0)
    fusion = modelweld.fuse(sites[:5], Directions()).add(sites[5])
    assert fusion.matching.engine == "sparse"
    assert np.array_equal(fusion.matching.stacked_labels, modelweld.fuse(sites, Directions()).matching.stacked_labels)
