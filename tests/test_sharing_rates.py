"""Rates of sharing: in how many sites each atom is, by draws and by confidences."""

from itertools import product

import numpy as np
import pytest

import modelweld
from modelweld.report.numbers import numbers_of
from modelweld.results.posterior.draws import Posterior
from modelweld.results.posterior.sharing_rates import chances, conditional_sharing, draw_sharing, held_by

OFFSETS = np.array([0, 2, 3, 5])
FITTED = np.array([0, 1, 0, 0, 1])


def sites():
    rng = np.random.default_rng(0)
    atoms = rng.normal(0, 10, (4, 3))
    return [atoms[held] + rng.normal(0, 0.1, (len(held), 3)) for held in ([0, 1], [1, 2, 3], [3, 0], [0, 1])]


def test_of_draws_that_are_the_matching_numbers_are_the_counts():
    posterior = Posterior(np.tile(FITTED + 7, (2, 5, 1)), np.full((2, 5), 2), np.zeros((2, 5)))
    found = draw_sharing(posterior, FITTED, OFFSETS, 0.9, "drawn")
    for numbers in (found.sites, found.expected, found.low, found.high):
        assert numbers.tolist() == [3, 2]


def test_of_draws_numbers_are_those_of_the_partners():
    # one draw has the second site's value elsewhere, another has no second atom
    draws = np.array([FITTED, FITTED, [0, 1, 1, 0, 2], [0, 0, 0, 1, 1]])[None]
    posterior = Posterior(draws, np.full((1, 4), 2), np.zeros((1, 4)))
    found = draw_sharing(posterior, FITTED, OFFSETS, 0.9, "drawn")
    assert found.expected.tolist() == [(3 + 3 + 2 + 2) / 4, (2 + 2 + 2 + 1) / 4]
    assert (found.low <= found.expected).all()
    assert (found.high >= found.expected).all()


def test_chances_are_those_of_all_outcomes():
    p = np.array([0.1, 0.5, 0.9])
    expected = np.zeros(4)
    for way in product([0, 1], repeat=3):
        expected[sum(way)] += np.prod([x if y else 1 - x for x, y in zip(p, way, strict=True)])
    assert np.allclose(chances(p), expected)


@pytest.mark.parametrize("level", [0.5, 0.9])
def test_intervals_of_confidences_hold_what_they_promise(level):
    rng = np.random.default_rng(1)
    stated = [rng.random(1) for _ in range(12)]
    found = conditional_sharing(stated, np.zeros(12, dtype=np.int64), np.arange(13), level)
    law = chances(np.concatenate(stated))
    assert law[found.low[0] : found.high[0] + 1].sum() >= level
    assert law[: found.low[0]].sum() < (1 - level) / 2
    assert law[found.high[0] + 1 :].sum() <= (1 - level) / 2 + 1e-9
    assert found.expected[0] == pytest.approx(np.concatenate(stated).sum())


@pytest.mark.parametrize("how", ["drawn", "conditional"])
def test_where_all_is_certain_everybody_says_the_same(how):
    fusion = modelweld.fuse(sites())
    found = fusion.posterior.sharing(how=how)
    assert found.how == how
    assert np.array_equal(found.sites, fusion.counts)
    assert np.array_equal(found.sites, held_by(fusion.matching.stacked_labels, fusion.matching.offsets))
    assert np.allclose(found.expected, fusion.counts, atol=0.1)
    assert np.array_equal(found.low, fusion.counts)
    assert found.meaning == fusion.confidence(how=how).meaning


def test_the_table_of_groups_says_it_with_confidences():
    fusion = modelweld.fuse(sites())
    assert fusion.table().shared is None
    table = fusion.table(confidence=True)
    assert len(table.shared.sites) == fusion.K
    assert "sites expected" in str(table)


def test_it_prints_and_shows_itself():
    found = modelweld.fuse(sites()).posterior.sharing(level=0.8, how="conditional")
    assert str(found).splitlines()[0].split()[:3] == ["atom", "sites", "expected"]
    assert "80% interval" in str(found)
    assert "<table" in found._repr_html_()
    with pytest.raises(modelweld.InputError, match="level"):
        modelweld.fuse(sites()).posterior.sharing(level=1.5)


@pytest.mark.parametrize("draws", [True, False])
def test_the_page_says_in_how_many_sites_groups_are(draws):
    rng = np.random.default_rng(3)
    values = [rng.normal(0, 3, (3, 2)) for _ in range(4)]
    values = [x + rng.normal(0, 1.0, x.shape) for x in values]
    fusion = modelweld.fuse(values)
    said = numbers_of(fusion, draws=draws)["sets"][0]["groups"]
    found = fusion.posterior.sharing(said["level"], how=None if draws else "conditional")
    assert np.allclose(said["held"], np.transpose([found.expected, found.low, found.high]), atol=0.01)


def test_what_confidence_said_is_not_asked_again():
    fusion = modelweld.fuse(sites())
    stated = fusion.confidence(how="conditional")
    again = fusion.posterior.sharing(stated=stated)
    assert again.how == "conditional"
    assert np.array_equal(again.expected, fusion.posterior.sharing(how="conditional").expected)
