"""The guard after matching: what a site's own values contradict is taken back, and nothing else is done."""

import warnings
from functools import partial

import numpy as np
import pytest

import modelweld
from modelweld import Gaussian
from modelweld.errors import ModelweldWarning
from modelweld.inputs.stack import Stack, offsets_of
from modelweld.kinds.hmm import hmm
from modelweld.match import refit
from modelweld.screening.own_neighbours import strangers
from modelweld.screening.pipeline import SetValues
from modelweld.screening.own_neighbours import own_variance, part_strangers


def drawn(seed, J=4, L=5, D=3):
    """Places of sites in no order, and labels in which a site holds every atom at most once."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(J * L, D)) * [1.0, 20.0, 0.1]
    labels = np.concatenate([rng.permutation(L + 2)[:L] for _ in range(J)])
    dense = np.unique(labels, return_inverse=True)[1]
    return Stack(values, offsets_of([L] * J)), dense


def pairs(labels):
    return labels[:, None] == labels


def line(*sites):
    """Sites with values on a line."""
    return Stack(np.concatenate(sites)[:, None], offsets_of([len(site) for site in sites]))


def test_a_match_farther_than_own_neighbours_is_taken_back():
    near, far = [0.0, 3.0, 10.0], [1.0, 30.0, 40.0]
    labels = np.array([0, 1, 2, 0, 1, 3])
    parted = np.array([0, 1, 2, 0, 4, 3])
    assert np.array_equal(pairs(part_strangers(labels, line(near, far))), pairs(parted))


def test_the_worst_member_goes_first_and_the_others_stay():
    labels = np.array([0, 1, 0, 1, 0, 2])
    found = part_strangers(labels, line([0.0, 2.0], [0.2, 2.2], [9.0, 11.0]))
    assert found.tolist() == [0, 1, 0, 1, 3, 2]


@pytest.mark.parametrize("seed", range(5))
def test_it_takes_back_and_makes_no_match(seed):
    places, labels = drawn(seed)
    found = part_strangers(labels, places)
    assert not (pairs(found) & ~pairs(labels)).any()
    assert (pairs(found) != pairs(labels)).any()
    assert np.array_equal(part_strangers(found, places), found)


def test_units_and_origins_mean_nothing():
    places, labels = drawn(7)
    moved = Stack(places.values * [3.0, 0.01, 50.0] + [1.0, -7.0, 90.0], places.offsets)
    assert np.array_equal(pairs(part_strangers(labels, places)), pairs(part_strangers(labels, moved)))


def test_a_site_that_is_off_does_not_widen_the_units():
    places, _ = drawn(8)
    shifted = places.values.copy()
    shifted[:5] += 1000.0
    other = Stack(shifted, places.offsets)
    assert np.allclose(own_variance(places), own_variance(other))


def test_a_single_value_of_a_site_contradicts_nothing():
    assert part_strangers(np.array([0, 0]), line([0.0], [100.0])).tolist() == [0, 0]


# in a fusion


def chain(means, **facts):
    """A hidden Markov model with these means, whose fit merged states that are one."""
    K, D = np.shape(means)
    moves = np.full((K, K), 1.0) + 40.0 * np.eye(K)
    emissions = {"means": np.asarray(means, dtype=float), "covariances": np.stack([np.eye(D)] * K)}
    return hmm(moves, np.zeros(K), moves.sum(0), emissions, counted=True, facts={"zeta": 1.0, **facts})


def crowded(seed=0, J=2):
    """Sites whose states lie close together and have nothing in common with those of others."""
    rng = np.random.default_rng(seed)
    return [chain(rng.normal(0, 0.3, (4, 3)) + 4.0 * rng.normal(size=3)).with_(site=f"site {j}") for j in range(J)]


def pull(sites):
    """Families that match whatever they are given."""
    return {"means": Gaussian(noise=np.full(3, 1e3), spread=np.full(3, 1e6), learning="nothing")}


def take_strangers_back(matching, stacks, sites, rng):
    values = SetValues(stacks, list(matching.families.values()), list(matching.families), sites, None, np.arange(len(matching.stacked_labels)))
    return strangers(values, lambda _: matching, partial(refit, rng=rng))


def test_a_fusion_says_what_was_taken_back_from_whom_and_what_to_do():
    sites = crowded()
    joined = modelweld.fuse(sites, pull(sites), copies=False)
    assert joined.K == 4
    stacks = [Stack(np.concatenate([m.arrays["means"] for m in sites]), offsets_of([4, 4]))]
    with pytest.warns(ModelweldWarning, match=r"'site 0' 4.*Of 8 that were shared, 0 still are.*hardly pays.*units"):
        matching = take_strangers_back(joined.matching, stacks, ["site 0", "site 1"], np.random.default_rng(0))
    assert len(matching.counts) == 8
    assert matching.history[-1] == matching.objective < joined.objective
    assert "farther from their match" in matching.reasons[-1]


def test_a_few_matches_are_taken_back_without_a_warning():
    places = line([0.0, 9.0, 30.0, 35.0], [0.1, 9.2, 30.1, 80.0, 82.0])
    wide = Gaussian(noise=np.array([1e3]), spread=np.array([1e6]), learning="nothing")
    joined = modelweld.fuse([places.values[:4], places.values[4:]], wide)
    assert joined.K == 5
    with warnings.catch_warnings():
        warnings.simplefilter("error", ModelweldWarning)
        matching = take_strangers_back(joined.matching, [places], ["a", "b"], np.random.default_rng(0))
    assert len(matching.counts) == 6


def test_families_that_are_asked_for_are_not_guarded():
    sites = crowded()
    with warnings.catch_warnings():
        warnings.simplefilter("error", ModelweldWarning)
        asked = modelweld.fuse(sites, pull(sites), copies=False)
    assert asked.K == 4
    assert asked.matching.reasons == ()


def test_sites_that_differ_more_than_their_states_share_none():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelweldWarning)
        fusion = modelweld.fuse(crowded())
    assert fusion.K == 8


def test_a_later_site_is_guarded_like_the_first_ones():
    rng = np.random.default_rng(3)
    truth = 9.0 * rng.normal(size=(4, 3))
    sites = [chain(truth + rng.normal(0, 0.3, truth.shape)).with_(site=name) for name in "abc"]
    stranger = chain(rng.normal(0, 0.3, (4, 3)) + 40.0).with_(site="d")
    fusion = modelweld.fuse(sites)
    assert fusion.K == 4
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        larger = fusion.add(stranger)
        assert (larger.matching.presence.sum(0)[larger.labels[-1]] == 1).all()
        back = larger.remove("d")
    assert [labels.tolist() for labels in back.labels] == [labels.tolist() for labels in fusion.labels]
