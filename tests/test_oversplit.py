"""Plain values in fragments: a site that splits its atoms does not decide K for the others; neighbours stay apart."""

import warnings
from contextlib import nullcontext

import numpy as np
import pytest

import simulated_sets as simulate
from modelweld import Gaussian, LocalModel, Search, fuse
from modelweld.core.beta_bernoulli import BetaBernoulli
from modelweld.core.board import Board
from modelweld.demo.metrics import adjusted_rand
from modelweld.errors import OversplitWarning
from modelweld.fit.search import split_rules as rules
from modelweld.fit.search import starts as search
from modelweld.fit.search.split_rules import join_fragments, name_oversplit
from modelweld.inputs.stacks import stack_arrays
from modelweld.kinds.network import network
from modelweld.results.fit_result import matching_by_labels


def sites_with(fragments, J=9, K=8, D=4, seed=0):
    """J honest sites that hold most of K atoms ten deviations wide, and one that sends all in so many fragments."""
    rng = np.random.default_rng(seed)
    atoms = rng.normal(0, 10, (K, D))
    held = [np.arange(K), *(np.flatnonzero(rng.random(K) < 0.7) for _ in range(J - 1))]
    honest = [atoms[h] + rng.normal(0, 1, (len(h), D)) for h in held]
    split = np.repeat(np.arange(K), fragments)
    return honest, atoms[split] + rng.normal(0, 1, (len(split), D)), np.concatenate(held), split


@pytest.mark.parametrize("fragments", [2, 3, 8, 20])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_others_are_matched_as_without_it(fragments, seed):
    honest, splitter, truth, split = sites_with(fragments, seed=seed)
    alone = fuse(honest)
    with pytest.warns(OversplitWarning, match=f"site '9' sent about {fragments} fragments"):
        fusion = fuse([*honest, splitter])
    assert fusion.K == alone.K == 8
    assert adjusted_rand(np.concatenate(fusion.labels[:-1]), np.concatenate(alone.labels)) == 1
    assert adjusted_rand(np.concatenate(fusion.labels), np.append(truth, split)) == 1


@pytest.mark.parametrize("splitters", [2, 4])
def test_a_minority_that_splits_is_named_and_changes_nothing_for_the_others(splitters):
    honest, _, truth, _ = sites_with(1)
    atoms = sites_with(1)[1]
    bad = [np.repeat(atoms, 6, axis=0) + np.random.default_rng(seed).normal(0, 1, (48, 4)) for seed in range(splitters)]
    with pytest.warns(OversplitWarning) as caught:
        fusion = fuse([*honest, *bad])
    assert {f"'{9 + j}'" for j in range(splitters)} == {str(w.message).split()[1] for w in caught}
    assert fusion.K in (8, 9)  # sites that split alike may have an atom of their own
    assert adjusted_rand(np.concatenate(fusion.labels[:9]), truth) == 1


def test_it_is_named_by_its_name_wherever_it_stands():
    honest, splitter, _, _ = sites_with(4)
    named = [
        LocalModel({"values": values}, {"values": ("atom", None)}, site=name)
        for name, values in [("mill", splitter), *((f"s{j}", v) for j, v in enumerate(honest))]
    ]
    with pytest.warns(OversplitWarning, match="'mill'"):
        fusion = fuse(named)
    with pytest.warns(OversplitWarning, match="'mill'"):
        other = fuse(named[::-1])
    assert other.objective == pytest.approx(fusion.objective, rel=1e-9)
    assert other.K == fusion.K == 8


def test_sites_that_all_split_a_little_are_put_right_and_none_is_named():
    drawn = simulate.over_segmented(seed=3)
    fusion = fuse(drawn.values)
    assert adjusted_rand(fusion.matching.stacked_labels, drawn.stacked_truth) == 1
    assert (
        adjusted_rand(fuse(drawn.values, search=Search(splits=False)).matching.stacked_labels, drawn.stacked_truth)
        < 0.9
    )
    assert fusion.objective > fuse(drawn.values, search=Search(splits=False)).objective + 100


@pytest.mark.parametrize("name", ["low_J8_D2", "low_J10_D5", "meta_model", "correlated_D10"])
def test_where_nothing_is_split_nothing_changes(name):
    """Atoms of the first two overlap."""
    values = simulate.SETS[name](seed=5).values
    now, whole = fuse(values), fuse(values, search=Search(splits=False))
    assert np.array_equal(now.matching.stacked_labels, whole.matching.stacked_labels)
    assert now.diagnosis.history == whole.diagnosis.history
    assert now.atoms.tobytes() == whole.atoms.tobytes()


@pytest.mark.parametrize("options", [{"search": "plain"}, {"preset": "paper"}, {"search": Search(splits=False)}])
def test_who_asks_for_less_gets_less(options):
    honest, splitter, _, _ = sites_with(3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fusion = fuse([*honest, splitter], **options, screens=["duplicates"])
    assert all(len(set(labels.tolist())) == len(labels) for labels in fusion.labels)


def test_units_of_a_network_are_fragments_only_if_asked():
    """Units that are alike may do different things: a kind says what its parameters are, its values alone do not."""
    honest, splitter, _, _ = sites_with(3)
    sites = [
        network([units.T, 5 * np.ones((len(units), 1))], [np.ones(len(units)), [0.0]], activation="relu")
        for units in (*honest, splitter)
    ]
    assert all(len(set(labels.tolist())) == len(labels) for labels in fuse(sites).labels)
    with pytest.warns(OversplitWarning):
        assert len(set(fuse(sites, search=Search(splits=True)).labels[-1].tolist())) == 8


@pytest.mark.parametrize(("apart", "joined"), [(1.0, True), (3.0, False)])
def test_ten_nats_are_asked_for(apart, joined):
    """Eight sites hold six atoms, one of them sends two values of one atom, so many deviations apart."""
    rng = np.random.default_rng(1)
    atoms = 40.0 * np.arange(6)[:, None] * np.ones(3)
    sites = [atoms + rng.normal(0, 1, atoms.shape) for _ in range(8)]
    sites[0] = np.vstack([sites[0], sites[0][2] + apart / np.sqrt(3)])
    fusion = fuse(sites)
    assert (fusion.labels[0][2] == fusion.labels[0][-1]) == joined


@pytest.mark.parametrize("J", [3, 5, 20])
def test_every_site_may_send_each_atom_twice(J):
    rng = np.random.default_rng(J)
    atoms = rng.normal(0, 10, (12, 5))
    held = [np.tile(np.flatnonzero(rng.random(12) < 0.6), 2) for _ in range(J)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fusion = fuse([atoms[h] + rng.normal(0, 1, (len(h), 5)) for h in held])
    assert adjusted_rand(fusion.matching.stacked_labels, np.concatenate(held)) == 1


def test_rows_of_heaps_are_heaps():
    """Five rows of each of four heaps at every site: as many values of an atom as a site likes."""
    rng = np.random.default_rng(0)
    atoms = rng.normal(0, 10, (6, 3))
    held = [np.repeat(rng.permutation(6)[:4], 5) for _ in range(7)]
    fusion = fuse([atoms[h] + rng.normal(0, 1, (len(h), 3)) for h in held])
    assert adjusted_rand(fusion.matching.stacked_labels, np.concatenate(held)) > 0.95


@pytest.mark.parametrize("D", [2, 20])
@pytest.mark.parametrize("J", [2, 3])
def test_few_values_that_are_whole_stay_whole(D, J):
    """There is little to learn the noise from."""
    for seed in range(5):
        rng = np.random.default_rng([seed, D, J])
        atoms = rng.normal(0, 3, (6, D))
        sites = [atoms[np.sort(rng.permutation(6)[:4])] + rng.normal(0, 1, (4, D)) for _ in range(J)]
        assert all(len(set(labels.tolist())) == 4 for labels in fuse(sites).labels)


def test_two_that_coincide_are_no_wonder():
    """They would bring the noise down to nothing, were they allowed to say what it is."""
    sites = [np.array([[-2.0, -2.0]]), np.array([[-2.0, -1.0], [-1.0, -1.0], [-1.0, -1.0]])]
    assert len(set(fuse(sites).labels[1].tolist())) == 3


@pytest.mark.parametrize(
    ("atoms", "twice", "named"),
    [
        pytest.param(6, 4, True, id="1.7-each"),
        pytest.param(12, 4, False, id="1.3-each"),
        pytest.param(3, 3, False, id="few"),
    ],
)
def test_a_site_is_named_from_one_and_a_half_fragments_on_if_they_are_four(atoms, twice, named):
    """The first of two sites has some of its atoms in two fragments."""
    first = np.append(np.arange(atoms), np.arange(twice))
    labels = np.append(first, np.arange(12))
    matching = matching_by_labels(labels, np.array([0, len(first), len(labels)]), "values", np.zeros((12, 1)), "numpy")
    said = name_oversplit(matching, ["north", "south"])
    assert [one[:27] for one in said] == (["site 'north' sent about 1.7"] if named else [])


def many_sites_with(honest, splitters, fragments, D=8, seed=0):
    """Sites that hold most of twelve atoms eight deviations wide, and others that send all in so many fragments;
    truth."""
    rng = np.random.default_rng(seed)
    atoms = rng.normal(0, 8, (12, D))
    held = [np.flatnonzero(rng.random(12) < 0.6) for _ in range(honest)]
    held += [np.repeat(np.arange(12), fragments)] * splitters
    return [atoms[h] + rng.normal(0, 1, (len(h), D)) for h in held], np.concatenate(held)


@pytest.mark.parametrize(
    ("honest", "splitters", "fragments", "D"),
    [
        pytest.param(30, 20, 8, 8, id="2000-values"),
        pytest.param(30, 22, 2, 8, id="many-sites"),
        pytest.param(10, 8, 8, 40, id="compiled"),
    ],
)
def test_fragments_are_found_among_however_many_values(honest, splitters, fragments, D):
    sites, truth = many_sites_with(honest, splitters, fragments, D)
    with pytest.warns(OversplitWarning) as caught:
        fusion = fuse(sites)
    assert {str(w.message).split("'")[1] for w in caught} == {str(honest + j) for j in range(splitters)}
    assert adjusted_rand(fusion.matching.stacked_labels, truth) == 1


@pytest.mark.parametrize(("spare", "found"), [(0, True), (-1, False)])
def test_a_compiled_job_is_looked_at_as_far_as_a_board_holds_it(monkeypatch, spare, found):
    sites, _ = many_sites_with(10, 8, 8, 40)
    monkeypatch.setattr(search, "LARGEST_IN_FRAGMENTS", sum(site.size for site in sites) + spare)
    with pytest.warns(OversplitWarning) if found else nullcontext():
        assert (fuse(sites).K == 12) is found


def finished(sites, labels, spread=64.0):
    """A board at a matching without fragments, its noise known to be one."""
    D = sites[0].shape[1]
    family = Gaussian(mean=np.zeros(D), noise=np.ones(D), spread=np.full(D, spread))
    return Board([stack_arrays(sites)], [family], BetaBernoulli(), labels=labels)


@pytest.mark.parametrize(("shares", "joined"), [((0.5, 0.05), 1), ((0.05,), 0)])
def test_atoms_that_many_sites_hold_side_by_side_are_joined_at_a_half(monkeypatch, shares, joined):
    """Of 400 sites 180 send three atoms in two fragments: too many to be fragments, were these few."""
    monkeypatch.setattr(rules, "SHARES", shares)
    rng = np.random.default_rng(0)
    own = [np.arange(3) if j < 220 else np.repeat(np.arange(3), 2) for j in range(400)]
    sites = [30 * np.eye(3)[k] + rng.normal(0, 1, (len(k), 3)) for k in own]
    labels = np.concatenate([k if len(k) == 3 else [0, 3, 1, 4, 2, 5] for k in own])
    found = join_fragments(finished(sites, labels))
    assert len(found) == joined
    assert all(adjusted_rand(one, np.concatenate(own)) == 1 for one in found)


def test_neighbours_are_joined_at_no_share():
    """Two atoms five deviations apart that fifty sites hold both of."""
    rng = np.random.default_rng(0)
    sites = [np.array([[0.0], [5.0]]) + rng.normal(0, 1, (2, 1)) for _ in range(50)]
    assert join_fragments(finished(sites, np.tile([0, 1], 50))) == []


@pytest.mark.parametrize(("shares", "better"), [((0.5, 0.05), True), ((0.5,), False)])
def test_few_fragments_among_neighbours_that_overlap_are_joined_at_a_twentieth(monkeypatch, shares, better):
    """Twenty sites send a tenth of twelve atoms four deviations wide in two fragments."""
    monkeypatch.setattr(rules, "SHARES", shares)
    rng = np.random.default_rng(8)
    atoms = rng.normal(0, 4, (12, 3))
    held = [np.flatnonzero(rng.random(12) < 0.7) for _ in range(20)]
    held = [np.repeat(h, 1 + (rng.random(len(h)) < 0.1)) for h in held]
    fusion = fuse([atoms[h] + rng.normal(0, 1, (len(h), 3)) for h in held])
    assert (adjusted_rand(fusion.matching.stacked_labels, np.concatenate(held)) > 0.9) is better
