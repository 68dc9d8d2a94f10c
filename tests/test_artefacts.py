"""Artefacts: scores follow their equations, true atoms are never excluded on clean sets, made ones are."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import betaln, logsumexp
from scipy.stats import multivariate_normal

from modelweld import Gaussian, LocalModel, fuse
from modelweld.core.algorithm1 import Run
from modelweld.core.board import Board
from modelweld.core.matching import Artefact
from modelweld.core.prior import Fragments
from modelweld.core.values import Stack, offsets_of
from modelweld.fit.priors.spectrum import Spectrum
from modelweld.fit.search.artefacts import _as_shadows, _between, _fragments_apart, artefacts, join_shadows
from modelweld.fit.search.split_rules import falls_together
from modelweld.fit.static_matcher import finish
from modelweld.results.diagnostics import notes
from modelweld.results.posterior.draws import number_of_atoms
from shared import simulate

D = 4


def board_of(values, labels, delta=0.1, family=Gaussian):
    """A board at given labels."""
    stack = Stack(np.concatenate(values), offsets_of([len(v) for v in values]))
    start = family(mean=np.zeros(D), noise=np.full(D, 0.2), spread=np.full(D, 16.0))
    board = Board([stack], [start], Spectrum(0.5, 1.0, 2.0), Fragments(delta))
    board.restore((np.concatenate(labels), *board.state()[1:]))
    return board


def drawn(seed, J=12, K=8):
    """Sites that hold 5 of 8 atoms; site 0 sends one of them in two fragments."""
    rng = np.random.default_rng(seed)
    atoms = rng.normal(0, 4, (K, D))
    held = [np.sort(rng.permutation(K)[:5]) for _ in range(J)]
    held[0] = np.append(held[0], held[0][0])
    return rng, atoms, [atoms[h] + rng.normal(0, 0.4, (len(h), D)) for h in held], held


@pytest.mark.parametrize("seed", range(20))
def test_true_atoms_are_not_artefacts(seed):
    _, _, values, labels = drawn(seed)
    assert artefacts(board_of(values, labels)) == []


def with_shadow(seed):
    """An atom, values and labels; eight is a shadow of the atom at five of its holders."""
    rng, atoms, values, labels = drawn(seed)
    atom = int(np.bincount(np.concatenate(labels)).argmax())
    offset = rng.standard_normal(D)
    offset *= 2.0 / np.linalg.norm(offset)
    for j in [j for j in range(12) if atom in labels[j]][:5]:
        values[j] = np.vstack([values[j], atoms[atom] + offset + rng.normal(0, 0.4, D)])
        labels[j] = np.append(labels[j], 8)
    return atom, values, labels


@pytest.mark.parametrize("seed", range(10))
def test_a_shadow_is_found_with_its_atom(seed):
    atom, values, labels = with_shadow(seed)
    assert [(a.atom, a.made_of) for a in artefacts(board_of(values, labels))] == [(8, (atom,))]


def test_nothing_is_looked_for_where_a_family_does_not_say_where_values_lie():
    class Nowhere(Gaussian):
        def locate(self, rows, sums):
            return None

    _, values, labels = with_shadow(0)
    assert artefacts(board_of(values, labels, family=Nowhere)) == []


@pytest.mark.parametrize("seed", range(10))
def test_blends_are_found_with_their_atoms(seed):
    rng, atoms, values, labels = drawn(seed, J=20)
    absent = [(j, np.setdiff1d(np.arange(8), labels[j])) for j in range(1, 20)]
    j, (p, q) = next((j, missing[:2]) for j, missing in absent)
    values[j] = np.vstack([values[j], (atoms[p] + atoms[q]) / 2 + rng.normal(0, 0.2, D)])
    labels[j] = np.append(labels[j], 8)
    assert [(a.atom, a.made_of) for a in artefacts(board_of(values, labels))] == [(8, (p, q))]


def test_none_without_fragments():
    _, atoms, values, labels = drawn(0)
    values[0], labels[0] = values[0][:-1], labels[0][:-1]
    values[3] = np.vstack([values[3], atoms[labels[3][0]] + 1.5])
    labels[3] = np.append(labels[3], 8)
    assert artefacts(board_of(values, labels)) == []


def estimated_fusion():
    """Mixtures estimated by 25 sites, with standard errors."""
    sites = simulate.estimated_mixtures(25, 8, seed=102)
    models = [
        LocalModel(
            {"means": v}, {"means": ("component", None)}, variance={"means": c.diagonal(axis1=1, axis2=2) / n[:, None]}
        )
        for v, c, n in zip(sites.values, sites.covariances, np.maximum(sites.counts, 1.0), strict=True)
    ]
    return fuse(models), sites


def test_artefacts_stand_last_are_not_counted_and_are_explained():
    fusion, sites = estimated_fusion()
    matching = fusion.matching
    assert matching.artefacts
    assert abs(fusion.K - sites.K) <= 1
    last = np.arange(len(matching.counts) - len(matching.artefacts), len(matching.counts))
    assert sorted(a.atom for a in matching.artefacts) == last.tolist()
    assert all(0.5 < a.probability <= 1 for a in matching.artefacts)
    assert not any(a.is_fragment for a in matching.artefacts)
    board = fusion._fit.board("component")
    assert board.objective() == pytest.approx(fusion.objective)
    assert number_of_atoms(board, matching, matching.stacked_labels) == (fusion.K, fusion.shared)
    said = " ".join(note.sentence for note in notes.excluded(fusion))
    assert "looks like a" in said


def test_shadows_join_their_atoms_through_each_other():
    _, _, values, labels = drawn(0)
    board = board_of(values, labels)
    found = [Artefact(3, (5,), 1.0), Artefact(6, (3, 4), 2.0), Artefact(5, (7,), 1.0)]  # 3 is a fragment of 5, 5 of 7
    joined, left = join_shadows(board, found)
    before, after = board.labels, joined.labels
    assert (after[np.isin(before, [3, 5, 7])] == 5).all()
    assert [after[before == k][0] for k in (0, 1, 2, 4, 6)] == [0, 1, 2, 3, 4]
    assert left == [Artefact(4, (3, 5), 2.0)]  # what was made of a fragment is made of its atom
    again = Board(board.stacks, board.families, board.prior, board.fragments, after)
    assert joined.objective() == pytest.approx(again.objective())


@pytest.mark.parametrize("seed", range(3))
def test_a_shadow_is_labelled_as_its_atom(seed):
    atom, values, labels = with_shadow(seed)
    board = board_of(values, labels)
    joined, left = join_shadows(board, artefacts(board))
    assert left == []
    stacked = np.concatenate(labels)
    np.testing.assert_array_equal(joined.labels, np.where(stacked == 8, atom, stacked))


def test_sentences():
    assert "fragment of atom 3" in Artefact(9, (3,), 1.0).sentence
    assert "mixture of atoms 1 and 2" in Artefact(9, (1, 2), 1.0).sentence


def test_fragments_are_not_joined_where_everything_would_fall_together(monkeypatch):
    """In a continuum every atom lies near the next, and the same sites hold both: a chain of them is no one atom."""
    _, _, values, labels = drawn(0)
    board = board_of(values, labels)
    found = [Artefact(k, (k + 1,), 1.0) for k in range(7)]
    joined, _ = join_shadows(board, found)
    assert len(joined.counts) == 1
    assert falls_together(joined)
    assert not falls_together(board)
    monkeypatch.setattr("modelweld.fit.search.artefacts.artefacts", lambda board: found)
    progress = Run([board.objective()], [], True)
    matching = finish(board, progress, ["x"], np.arange(len(board.labels)), board.stacks[0].offsets)
    assert len(matching.counts) == 8
    assert matching.objective == board.objective()


def located(board):
    """Where atoms and values lie."""
    return board.families[0].locate(board.rows[0], board.sums[0])


@pytest.mark.parametrize("seed", range(5))
def test_between_is_the_integral(seed):
    _, _, values, labels = drawn(seed)
    board = board_of(values, labels)
    density = _between([located(board)], 3, np.arange(4))
    place, u = board.estimates()[0], np.linspace(0, 1, 20001)[:, None]
    for p, q in zip(*np.triu_indices(4, 1), strict=True):
        line = u * place[p] + (1 - u) * place[q]
        log_pdf = multivariate_normal.logpdf(line - board.stacks[0].values[3], np.zeros(D), 0.2 * np.eye(D))
        if density[p, q] > -300:
            exact = logsumexp(log_pdf) - np.log(len(u))
            assert density[p, q] == pytest.approx(exact, rel=1e-3)
    assert np.isinf(density[np.tril_indices(4)]).all()


def test_shadows_score_by_the_equation():
    _, _, values, labels = drawn(0)
    board = board_of(values, labels)
    held = np.zeros((len(board.counts), len(board.sizes)), dtype=bool)
    held[board.labels, board.group] = True
    scores = _as_shadows(board, [located(board)], held)
    family, J = board.families[0], len(values)
    tau = _fragments_apart(board, located(board))
    for s, p in ((0, 1), (5, 2)):
        n, n_p = (held[s] & held[p]).sum(), held[p].sum()
        o = held[s].sum() - n
        uncertain = 16 / (1 + 80 * (board.labels == p).sum())
        near = replace(family, mean=family.estimate(board.sums[0][p]), spread=tau + uncertain)
        expected = np.log(0.1) + betaln(1 + n, 3 + n_p - n) - betaln(1, 3)
        expected += betaln(1 + o, 19 + J - n_p - o) - betaln(1, 19) + near.log_evidence(board.sums[0][s])
        assert scores[s, p] == pytest.approx(expected)


def test_fragments_apart_is_the_mean_square_difference():
    _, _, values, labels = drawn(1)
    board = board_of(values, labels)
    first, second = values[0][0], values[0][-1]
    expected = (np.square(first - second) + 2 * 4 * 0.2) / (1 + 2)
    np.testing.assert_allclose(_fragments_apart(board, located(board)), expected)
