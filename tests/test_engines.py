"""The compiled sweep gives what the plain one gives, and its shortcuts are never wrong."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import modelweld
from modelweld import BetaBernoulli, Gaussian, Spectrum, simulate
from modelweld.core.algorithm1 import CLEAR, NEW, alternate, best_assignment, is_same_partition
from modelweld.core.board import Board
from modelweld.core.values import Stack, group_of_values, offsets_of
from modelweld.families import real_values
from modelweld.fit.engines import choice
from modelweld.fit.engines.compiled import CompiledBoard, pack
from modelweld.fit.engines.compiled.assignment import distinct_best, shortest_augmenting_paths, worthwhile_pairs
from modelweld.fit.engines.compiled.scores import features_of, rounding, weigh
from modelweld.fit.engines.compiled.settle import find_bounds
from modelweld.fit.engines.compiled.settle import settle_groups as is_settled
from modelweld.fit.search.dissolution import dissolve
from modelweld.fit.search.moves import Pairs, merge, merge_and_split
from modelweld.inputs.stacks import stack_arrays
from oracles import assignment_score

DRAWS = {
    "easy": lambda seed: simulate.sparse(20, 12, 8, 0.5, 7.0, 1, 1, seed=seed).values,
    "hard": lambda seed: simulate.sparse(30, 10, 6, 2.0, 3.0, 1, 1, seed=seed).values,
    "low": lambda seed: simulate.sparse(40, 8, 2, 0.3, 4.0, 0.5, 1, seed=seed).values,
    "one": lambda seed: simulate.sparse(15, 6, 1, 0.05, 4.0, 1, 1, seed=seed).values,
    "far": lambda seed: [1e6 + v for v in simulate.sparse(10, 6, 3, 0.5, 5.0, 1, 1, seed=seed).values],
    "tiny noise": lambda seed: simulate.sparse(20, 8, 5, 1e-3, 5.0, 1, 1, seed=seed).values,
}


@pytest.mark.parametrize("shape", ["diagonal", "scalar"])
@pytest.mark.parametrize("prior", [BetaBernoulli(), BetaBernoulli(0.5, 3.0), BetaBernoulli(form="authors"), Spectrum()])
@pytest.mark.parametrize("draw", DRAWS)
def test_same_answer_as_numpy(draw, prior, shape):
    for seed in range(3):
        sites = DRAWS[draw](seed)
        plain, compiled = (
            modelweld.fuse(
                sites, Gaussian(shape=shape), prior, search=modelweld.Search("plain", max_sweeps=60, engine=engine)
            )
            for engine in ("numpy", "compiled")
        )
        assert (plain.matching.engine, compiled.matching.engine) == ("numpy", "compiled")
        assert np.array_equal(plain.matching.stacked_labels, compiled.matching.stacked_labels)
        assert plain.matching.changes == compiled.matching.changes
        assert np.allclose(plain.diagnosis.history, compiled.diagnosis.history, rtol=1e-7, atol=1e-4)
        assert np.allclose(plain.atoms, compiled.atoms, rtol=1e-6)
        for name in ("mean", "noise", "spread"):
            a, b = plain.diagnosis.hyperparameters[name], compiled.diagnosis.hyperparameters[name]
            assert np.allclose(a, b, rtol=1e-5)


@pytest.mark.parametrize(("D", "noise"), [(2, 0.01), (6, 0.5)])
@pytest.mark.parametrize("shape", ["diagonal", "scalar"])
def test_same_answer_where_thousands_of_pairs_are_worth_a_look(D, noise, shape):
    # atoms overlap: values want the same ones, and groups longer than a block are assigned by pairs
    rng = np.random.default_rng(D)
    atoms = rng.normal(size=(450, D))
    held = [rng.permutation(450)[:300] for _ in range(3)]
    sites = [atoms[own] + noise * rng.normal(size=(300, D)) for own in held]
    plain, compiled = (
        modelweld.fuse(sites, Gaussian(shape=shape), search=modelweld.Search("plain", engine=e))
        for e in ("numpy", "compiled")
    )
    assert np.array_equal(plain.matching.stacked_labels, compiled.matching.stacked_labels)
    assert plain.objective == pytest.approx(compiled.objective)


def boards(sites, family, prior):
    stack, _ = pack(Stack(np.concatenate(sites), offsets_of([len(s) for s in sites])))
    started = family.starts(stack)[0]
    return CompiledBoard(stack, started, prior)


@pytest.mark.parametrize("draw", DRAWS)
def test_history_rises_and_the_objective_is_the_definition(draw):
    board = boards(DRAWS[draw](5), Gaussian(), BetaBernoulli())
    rng = np.random.default_rng(0)
    progress = alternate(board, len(board.stack.sizes), rng, 100)
    assert progress.converged
    assert (np.diff(progress.history) >= -1e-6).all()
    assert board.objective() == pytest.approx(reference(board).objective(), rel=1e-7, abs=1e-4)
    J = len(board.stack.sizes)
    more = progress
    for step in (merge_and_split, dissolve):
        more = step(board, J, rng, more, 100)
        assert board.objective() == pytest.approx(more.history[-1])
    assert (np.diff(more.history) >= -1e-6).all()
    assert board.objective() == pytest.approx(more.history[-1])
    assert board.objective() == pytest.approx(reference(board).objective(), rel=1e-7, abs=1e-4)


@pytest.mark.parametrize("draw", DRAWS)
@pytest.mark.parametrize("shape", ["diagonal", "scalar"])
def test_atoms_are_joined_as_by_the_reference(draw, shape):
    """From half of each atom's groups apart: what a union is worth, and where joining ends."""
    board = boards(DRAWS[draw](3), Gaussian(shape=shape), BetaBernoulli())
    alternate(board, len(board.stack.sizes), np.random.default_rng(0), 100)
    group = group_of_values(board.stack.offsets)
    board.labels = np.where(group % 2, board.labels, board.labels + board.used)
    board.recount()
    plain = reference(board)
    rises, those = Pairs(board, None).rises, Pairs(plain, None).rises
    assert np.array_equal(np.isfinite(rises), np.isfinite(those))
    assert np.allclose(rises[np.isfinite(rises)], those[np.isfinite(rises)], atol=1e-6)
    assert merge(board) == merge(plain) > 0
    assert is_same_partition(board.labels, plain.labels)
    assert board.objective() == pytest.approx(plain.objective(), rel=1e-9)


def reference(board):
    """The plain board in the same state."""
    stack = board.stack
    plain = Board([stack.take(stack.value_order, stack.offsets)], [board.family], board.prior)
    plain.restore((board.labels.copy(), [board.family], board.prior, None))
    return plain


@pytest.mark.parametrize("shape", ["diagonal", "scalar"])
@pytest.mark.parametrize("draw", DRAWS)
def test_rounding_is_bounded(draw, shape):
    """Differences of float32 scores from exact ones are within the bound, and the bound is not many times as wide."""
    board = boards(DRAWS[draw](3), Gaussian(shape=shape), BetaBernoulli())
    alternate(board, len(board.stack.sizes), np.random.default_rng(0), 3)
    board.learn()
    tables, atoms, used = board._tables(), board.atoms, board.used
    Y = board.stack.values - board.origin
    atoms.reach[:] = 0.0
    weigh(np.arange(used), atoms, tables)
    features, new, length = np.zeros((len(Y), atoms.weights.shape[1]), np.float32), *np.empty((2, len(Y)))
    longest, most_bent = features_of(Y, tables, features, new, length)
    products = features @ atoms.weights[:used].T
    bends = atoms.curvature[:used] * length[:, None].astype(np.float32)
    first, _, scores = worthwhile_pairs(Y, used, atoms, tables, new, -1e20)
    exactly = scores[: first[-1]].reshape(len(Y), used)
    off = np.abs(products + (atoms.constants[:used] + bends) - new[:, None] - exactly)
    bound = rounding(longest, most_bent, atoms) / 2  # it is that of a difference of two scores
    assert off.max() <= bound
    assert bound < 3000 * off.max()


@pytest.mark.parametrize("shape", ["diagonal", "scalar"])
@pytest.mark.parametrize("form", ["exact", "paper"])
def test_settled_groups_are_settled(shape, form):
    """Whenever the triangle inequality settles a group, the best of all assignments changes nothing."""
    settle_groups = 0
    for noise in (0.3, 0.8, 1.5, 2.5):
        for seed in range(4):
            sites = simulate.sparse(12, 8, 10, noise, 4.0, 1, 1, seed=seed).values
            board = boards(sites, Gaussian(shape=shape), BetaBernoulli(form=form))
            rng = np.random.default_rng(seed)
            for _ in range(3):
                board.sweep(rng.permutation(len(sites)))
                board.learn()
                tables = board._tables()
                bounds = find_bounds(board.atoms, board.used, tables, 10 * len(board.labels))
                if len(bounds.nearest) == 0:
                    continue
                for j in range(len(sites)):
                    a, L = board.stack.offsets[j], board.stack.sizes[j]
                    stack, own = board.stack, np.empty((3, L))
                    held = stack.values, stack.value_order, a, L, board.labels, board.atoms
                    if is_settled(*held, tables, bounds, *own):
                        settle_groups += 1
                        assert not reference(board).step(j)
    assert settle_groups > 20


def least_margin(board):
    """Nats by which values are where they are given all other groups, at least."""
    plain, least = reference(board), np.inf
    for j in np.flatnonzero(plain.sizes):
        group = plain.values_of(j)
        held = plain.labels[group].copy()
        kept = plain.remember(group)
        plain.take(group)
        atoms = np.flatnonzero(plain.counts)
        scores = np.hstack([plain.scores(group, atoms), np.zeros((len(held), 1))])
        first, second = np.sort(scores, axis=1)[:, [-1, -2]].T
        wanted = np.append(atoms, NEW)[scores.argmax(1)]
        assert np.array_equal(wanted, np.where(plain.counts[held] == 0, NEW, held))
        least = min(least, float((first - second).min()))
        plain.put_back(kept)
    return least


@pytest.mark.parametrize("shape", ["diagonal", "scalar"])
def test_a_sweep_says_by_how_much_values_are_where_they_are(shape):
    found = []
    for noise in (0.4, 1.0, 1.5, 2.0):
        sites = simulate.sparse(12, 10, 12, noise, 6.0, 1, 1, seed=3).values
        board = boards(sites, Gaussian(shape=shape), BetaBernoulli())
        progress = alternate(board, len(sites), np.random.default_rng(0), 100)
        assert progress.converged
        found.append(board.margin)
        if board.margin > 0:
            assert board.margin == pytest.approx(min(least_margin(board), CLEAR), abs=1e-3)
        board.release(np.arange(2))
        assert board.margin == 0
    assert found[0] == CLEAR
    assert 0 < min(found) < CLEAR


def along_paths(scores, surcharge, most_new, choice):
    """Along all pairs; where new atoms are free, along those that beat one."""
    L, K = scores.shape
    free = most_new >= L and not surcharge.any()
    rows, columns = np.nonzero(scores > (0 if free else -np.inf))
    first, extra = np.searchsorted(rows, np.arange(L + 1)), 0 if free else max(min(most_new, L), L - K)
    shortest_augmenting_paths(first, columns, scores[rows, columns], K, surcharge, extra, choice)
    return True


def each_its_best(scores, surcharge, most_new, choice):
    claimed = np.zeros(scores.shape[1], dtype=bool)
    apart = distinct_best(scores.max(1), scores.argmax(1), surcharge, most_new, choice, claimed)
    assert not claimed.any()
    return apart


@pytest.mark.parametrize("search", [along_paths, each_its_best])
@settings(max_examples=150, deadline=None)
@given(st.integers(1, 7), st.integers(0, 7), st.integers(0, 2**32 - 1), st.booleans())
def test_compiled_assignments_are_optimal(search, L, K, seed, charged):
    """Whether each can have its best is said."""
    ties = search is along_paths
    rng, K = np.random.default_rng(seed), K if search is along_paths else max(K, 1)
    # small integers make ties, which a search for paths may trip over
    scores = rng.integers(-3, 4, (L, K)).astype(float) if ties and seed % 2 else rng.normal(0, 2, (L, K))
    surcharge = np.log(np.arange(1, L + 1)) if charged else np.zeros(L)
    most_new = int(rng.integers(1, L + 1)) if search is along_paths and seed % 3 else L
    choice = np.empty(L, dtype=np.int64)
    if search(scores, surcharge, most_new, choice):
        taken = choice[choice != NEW]
        assert len(set(taken.tolist())) == len(taken)
        assert (choice == NEW).sum() <= max(most_new, L - K)
        best = best_assignment(scores, surcharge, most_new)
        assert assignment_score(scores, choice, surcharge) == pytest.approx(assignment_score(scores, best, surcharge))


def test_all_orders_in_memory_are_compiled_once():
    sites = [np.asfortranarray(np.random.default_rng(j).normal(0, 1, (5, 3))) for j in range(4)]
    assert stack_arrays(sites).values.flags.c_contiguous


def test_compiled_is_refused_where_it_cannot_serve():
    model = modelweld.LocalModel({"v": np.eye(2)}, {"v": ("atom", None)}, weight={"v": 2.0})
    with pytest.raises(modelweld.InputError, match="engine 'compiled'"):
        modelweld.fuse([model, model], screens=["outliers"], search=modelweld.Search(engine="compiled"))


@pytest.mark.parametrize("weighed", [False, True])
@pytest.mark.parametrize("decades", [1, 60], ids=["alike", "products beyond all numbers"])
def test_values_known_unequally_well_score_the_same_when_compiled(weighed, decades, monkeypatch):
    rng = np.random.default_rng(1)
    seen = (rng.random((7, 40)) > 0.2).astype(float) if weighed else np.ones((7, 40))
    w, y = seen * rng.uniform(1e-3, 1e3, (7, 40)), rng.normal(0, 1e4, (7, 40))
    atoms = rng.uniform(1e-60, 1e-50, 40), rng.normal(0, 1e4, (5, 40)), 10 ** rng.uniform(-decades, decades, (5, 40))
    said = []
    for threshold in (0, np.inf):
        monkeypatch.setattr(real_values, "COMPILED_PREDICTIVE_FROM", threshold)
        said.append(real_values.Gaussian.density(seen, w, w * y, *atoms))
    assert said[0] == pytest.approx(said[1], rel=1e-10)


@pytest.mark.parametrize("noise", [0.5, 1.5, 3.0])
@pytest.mark.parametrize("seed", [0, 1])
def test_one_site_more_changes_the_engine_and_not_the_answer(noise, seed, monkeypatch):
    """Either side of the size from which jobs are compiled: noise up to half the deviation of atoms."""
    sites = simulate.sparse(15, 14, 8, noise, 7.0, 1, 1, seed=seed).values
    found = []
    for limit in (1, 10**12):
        monkeypatch.setattr(choice, "COMPILED_FROM", limit)
        found.append(modelweld.fuse(sites))
    assert [fusion.matching.engine for fusion in found] == ["compiled", "numpy"]
    assert np.array_equal(found[0].matching.stacked_labels, found[1].matching.stacked_labels)
    assert found[0].objective == pytest.approx(found[1].objective, rel=1e-9)


@pytest.mark.parametrize("D", [1, 2])
@pytest.mark.parametrize("shape", ["scalar", "diagonal"])
def test_sweeps_read_no_memory_that_nobody_wrote(D, shape):
    """What stands in slots before they are used makes no difference, not even if it is no number."""
    rng = np.random.default_rng(0)
    atoms = 7 * rng.standard_normal((12, D))
    values = [atoms[rng.permutation(12)[:8]] + rng.standard_normal((8, D)) for _ in range(6)]
    stack, _ = pack(Stack(np.concatenate(values), offsets_of([8] * 6)))
    found = []
    for garbage in (0.0, np.nan):
        board = CompiledBoard(stack, Gaussian(shape=shape).starts(stack)[0], BetaBernoulli())
        for slots in (board.atoms.sums, board.atoms.weights, board.atoms.constants, board.atoms.curvature):
            slots[:] = garbage
        found.append([board.sweep(np.arange(6)), board.sweep(np.arange(6)), board.labels.tolist()])
    assert found[0] == found[1]
