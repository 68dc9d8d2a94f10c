"""Fusing shards: the merge is exact, polishing only rises, and little travels."""

from itertools import combinations, permutations
from pathlib import Path

import numpy as np
import pytest

import modelweld
from modelweld import BetaBernoulli, Gaussian, LocalModel, simulate
from modelweld.core.board import Board
from modelweld.core.family import sum_by_atom
from modelweld.demo.metrics import adjusted_rand
from modelweld.errors import InputError, SmallShardWarning
from modelweld.files import save
from modelweld.fit.engines import choice
from modelweld.inputs.sets import stack_of
from modelweld.inputs.stacks import stack_arrays
from modelweld.shards.centre import Centre
from modelweld.shards.default_call import fuse_shards, group_sites, polish
from modelweld.shards.engine import Here
from modelweld.shards.shard import Summary, is_compiled, load, propose, restate, summarise


def sites_of(sd, seed=0, *, J=96, L=12, D=20):
    return [np.asarray(v) for v in simulate.sparse(L, J, D, sd, np.sqrt(50), 1, 1, seed=seed).values]


def with_errors(seed=0, J=64, L=8, D=5):
    """Sites whose values bring standard errors and of which some entries were not seen."""
    rng = np.random.default_rng(seed)
    atoms = rng.normal(0, 8, (L, D))
    sites = []
    for j in range(J):
        held = rng.permutation(L)[: rng.integers(2, L)]
        variance = rng.uniform(0.01, 1.0, (len(held), D))
        values = atoms[held] + rng.normal(size=variance.shape) * np.sqrt(0.05 + variance)
        weight = (rng.random(values.shape) > 0.1).astype(float)
        sites.append(
            LocalModel(
                {"v": values}, {"v": ("atom", None)}, variance={"v": variance}, weight={"v": weight}, site=f"s{j}"
            )
        )
    return sites


def flat_board(fusion):
    """The reference board of all sites at the labels and hyperparameters of a fusion."""
    [matching] = fusion.matchings.values()
    [(name, family)] = matching.families.items()
    plain = not isinstance(fusion._fit.given[0], LocalModel)
    stack = stack_arrays(fusion._fit.given) if plain else stack_of(fusion._fit.given, name, "atom", {})
    board = Board([stack], [family], matching.prior)
    board.restore((matching.stacked_labels.copy(), [family], matching.prior, None))
    return board


@pytest.mark.parametrize("prior", ["auto", BetaBernoulli(2.0, 3.0), BetaBernoulli(learning=True)])
@pytest.mark.parametrize("shape", ["diagonal", "scalar"])
def test_the_objective_from_sums_is_that_of_the_values_and_never_falls(prior, shape):
    fused = fuse_shards(group_sites(sites_of(10.0, 7, J=64, L=8)), Gaussian(shape=shape), prior)
    values = [value for _, value in fused.trace]
    assert (np.diff(values) > -1e-6).all()
    assert sum(fused.changed) > 0  # noise is loud enough for polishing to have work
    assert flat_board(fused.to_fusion()).objective() == pytest.approx(fused.objective, abs=1e-6)


def test_a_run_that_has_converged_leaves_flat_sweeps_nothing_to_do():
    fused = fuse_shards(group_sites(sites_of(8.0, 8, J=64, L=8)))
    assert fused.converged
    assert sum(fused.changed) > 0
    board = flat_board(fused.to_fusion())
    assert board.sweep(np.arange(len(fused.sizes))) == 0


def test_one_shard_is_flat_fusion():
    sites = sites_of(8.0, 16, J=40, L=10)
    fused, flat = fuse_shards([sites]), modelweld.fuse(sites)
    assert fused.converged
    assert [x.tolist() for x in fused.labels(0)] == [x.tolist() for x in flat.labels]
    assert fused.objective == pytest.approx(flat.objective, abs=1e-6)


@pytest.mark.parametrize("seed", range(6))
def test_merging_two_shards_is_the_best_of_all_merges(seed):
    """Brute force over all ways to join atoms of one shard with atoms of the other, by the flat objective."""
    rng = np.random.default_rng(seed)
    family = Gaussian(mean=0.0, noise=1.0, spread=3.0, learning="nothing")
    sizes = [rng.integers(1, 4, 3) for _ in range(2)]  # sites per atom, for two shards of three atoms
    sites, numbers, summaries = [], [], []
    for s, counts in enumerate(sizes):
        held = [[k for k in range(3) if j < counts[k]] for j in range(3)]
        values = [rng.normal(0, 1.5, (len(h), 2)) for h in held]
        sites += [v for v, h in zip(values, held, strict=True) if h]
        numbers += [np.array(h) + 3 * s for h in held if h]
        rows = sum_by_atom(family.rows(np.concatenate(values)), np.concatenate(held).astype(np.int64), 3)
        summaries.append(Summary(np.arange(3), counts, rows, int(counts.sum()), 0.0))
    stack, prior, labels = stack_arrays(sites), BetaBernoulli(), np.concatenate(numbers)

    def flat(joined):
        board = Board([stack], [family], prior)
        renamed = np.arange(6)
        for a, b in joined:
            renamed[3 + b] = a
        board.restore((renamed[labels], [family], prior, None))
        return board.objective()

    merges = [
        list(zip(a, b, strict=True))
        for n in range(4)
        for a in combinations(range(3), n)
        for b in permutations(range(3), n)
    ]
    centre = Centre(summaries, np.arange(2), family, prior, stack.sizes)
    assert centre.objective() == pytest.approx(flat([]), abs=1e-9)
    centre.release()
    while centre.sweep(np.arange(2)):
        pass
    assert centre.objective() == pytest.approx(max(map(flat, merges)), abs=1e-9)


def book_of(sites, sd=4.0):
    """A merged centre of shards with fixed hyperparameters, and the engine that holds them."""
    one = np.ones(sites[0].shape[1])
    family = Gaussian(mean=0 * one, noise=sd**2 * one, spread=50 * one, origin=0 * one, learning="nothing")
    engine = Here(group_sites(sites))
    rng = np.random.default_rng(0)
    numbers = [rng.integers(0, 10**6, len(x.stack.values)) for x in engine.held]  # all apart
    both = [summarise(x, 0 * n, n, family) for x, n in zip(engine.held, numbers, strict=True)]
    engine.labels = [labels for labels, _ in both]
    sizes = np.concatenate([x.stack.sizes for x in engine.held])
    return Centre([s for _, s in both], np.arange(engine.shards), family, BetaBernoulli(), sizes), engine


def test_polishing_from_a_bad_matching_only_rises_though_shards_disagree():
    centre, engine = book_of(sites_of(4.0, 9, J=64, L=5, D=4))
    value, rounds = centre.objective(), []
    for t in range(3):
        asked, _ = polish(engine, centre, (0, t))
        rounds.append(asked)
        assert centre.objective() > value
        value = centre.objective()
        for s in range(engine.shards):  # what the centre believes of a shard is what the shard holds
            np.testing.assert_allclose(centre.own[s].rows, restate(engine.held[s], engine.labels[s], centre.family))
    assert max(rounds) > 1


def test_a_proposal_that_would_lower_the_objective_is_refused_and_leaves_no_trace():
    centre, engine = book_of(sites_of(4.0, 10, J=64, L=5, D=4))
    while polish(engine, centre, (0, 0))[1]:
        pass
    held, labels = engine.held[0], engine.labels[0]
    worse = centre.places[0][labels].copy()
    worse[0] = len(centre.counts)  # a value that was settled leaves its atom
    counts, rows, place = centre.counts.copy(), centre.sums[0].copy(), centre.places[0].copy()
    assert not centre.accept(0, summarise(held, labels, worse, centre.family)[1], len(centre.counts))
    assert np.array_equal(counts, centre.counts)
    assert np.array_equal(rows, centre.sums[0])
    assert np.array_equal(place, centre.places[0])


def test_compiled_and_plain_sweeps_agree(monkeypatch):
    shards = group_sites(sites_of(5.0, 12))
    results = []
    for bound in (0, np.inf):
        monkeypatch.setattr(choice, "COMPILED_FROM", bound)
        assert is_compiled(load(shards[0]).stack, Gaussian()) == (bound == 0)
        results.append(fuse_shards(shards, search="plain"))
    compiled, plain = results
    assert compiled.objective == pytest.approx(plain.objective, rel=1e-9)
    assert adjusted_rand(compiled.to_fusion().labels, plain.to_fusion().labels) == 1
    # and one sweep from the same bad matching, atom by atom
    centre, engine = book_of(sites_of(5.0, 13, J=64))
    common = centre.places[0], centre.atoms, (0,)
    answers = []
    for bound in (0, np.inf):
        monkeypatch.setattr(choice, "COMPILED_FROM", bound)
        answers.append(propose(engine.held[0], engine.labels[0], *common)[0])
    assert adjusted_rand([answers[0]], [answers[1]]) == 1


class Listening(Here):
    """Remembers what travelled."""

    def __init__(self, sources):
        super().__init__(sources)
        self.messages = []

    def _count(self, down, up):
        self.messages += [*down, *up]
        return super()._count(down, up)


def test_only_sums_travel():
    from modelweld.shards.default_call import run

    sites = sites_of(1.0, 15, J=256, L=6, D=4)
    engine = Listening(group_sites(sites, 128))
    fused = run(engine)
    fewest = min(len(x.stack.values) for x in engine.held)

    def arrays(x):
        if isinstance(x, np.ndarray):
            yield x
        elif isinstance(x, (list, tuple)):
            for part in x:
                yield from arrays(part)
        elif hasattr(x, "__dict__"):
            yield from arrays(list(vars(x).values()))

    seen = [a for message in engine.messages for a in arrays(message)]
    assert max(a.size for a in seen if a.dtype == float) <= 2 * 5 * 4 * len(fused.counts)  # atoms in two halves
    assert max(len(a) for a in seen) < fewest / 2  # the longest is the sizes of sites
    assert fused.moved.up + fused.moved.down < sum(v.nbytes for v in sites)


def test_labels_come_shard_by_shard_in_the_order_given(tmp_path: Path):
    sites = with_errors(5)
    shards = group_sites(sites)
    fused = fuse_shards(shards)
    fusion = fused.to_fusion()
    assert fusion.sites == [m.site for shard in shards for m in shard]
    labels = [x.tolist() for s in range(len(shards)) for x in fused.labels(s)]
    assert labels == [x.tolist() for x in fusion.labels]
    for site in sites:  # from files, and from a function that brings them, the same
        save(site, tmp_path / f"{site.site}.safetensors")
    files = [[tmp_path / f"{site.site}.safetensors" for site in shard] for shard in shards]
    assert fuse_shards([lambda: files[0], files[1]]).trace == fused.trace


def test_what_is_refused_says_what_to_do():
    sites = sites_of(1.0, J=64, L=5, D=3)
    shards = group_sites(sites)
    with pytest.raises(InputError, match="'diagonal' or 'scalar'"):
        fuse_shards(shards, Gaussian(shape="full"))
    with pytest.raises(InputError, match="exact form"):
        fuse_shards(shards, prior=BetaBernoulli(form="paper"))
    with pytest.raises(InputError, match="shard 1: all shards must send the same array"):
        fuse_shards([shards[0], [v[:, :2] for v in shards[1]]])
    with pytest.raises(InputError, match="at least one shard"):
        fuse_shards([])
    with pytest.raises(InputError, match="holds no site"):
        fuse_shards([[]])
    with pytest.raises(InputError, match="not negative"):
        fuse_shards(shards, sweeps=-1)
    two = [LocalModel({"a": v, "b": v}, {"a": ("atom", None), "b": ("atom", None)}) for v in sites]
    with pytest.raises(InputError, match="one array of one set"):
        fuse_shards([two])
    with pytest.warns(SmallShardWarning, match="fewer than 32 sites"):
        fuse_shards([sites[:40], sites[40:]])
