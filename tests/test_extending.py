"""A family from outside the package is treated like ours: fused, saved, loaded, proposed, reported, sampled."""

import re
from dataclasses import dataclass, field, fields
from pathlib import Path

import numpy as np
import pytest

import modelweld
from modelweld.families import FAMILIES, Gaussian, register
from test_own_family import own_family

PAGE = Path(__file__).parents[1] / "docs" / "families.md"


@pytest.fixture
def family():
    """The example's family, entered for one test."""
    cls = register(own_family.BoutLengths)
    yield cls
    del FAMILIES[cls.__name__]


def sites():
    rng = np.random.default_rng(0)
    ends = rng.beta(2.0, 6.0, (5, 4))
    found = []
    for j in range(6):
        held = rng.permutation(5)[:3]
        bouts = rng.integers(40, 80, (3, 4))
        lengths = rng.negative_binomial(bouts, ends[held]) / bouts
        arrays, weight = {"lengths": lengths}, {"lengths": bouts}
        found.append(modelweld.LocalModel(arrays, {"lengths": ("behaviour", None)}, weight=weight, site=f"s{j}"))
    return found


def test_a_family_of_ones_own_comes_back_bit_for_bit(family, tmp_path):
    fusion = modelweld.fuse(sites(), family())
    fusion.save(tmp_path / "fusion.safetensors")
    back = modelweld.load(tmp_path / "fusion.safetensors")
    assert type(back.diagnosis.family) is family
    assert [getattr(back.diagnosis.family, f.name) for f in fields(family)] == [
        getattr(fusion.diagnosis.family, f.name) for f in fields(family)
    ]
    assert np.array_equal(back.matching.stacked_labels, fusion.matching.stacked_labels)
    assert np.array_equal(back.parameters.estimate("lengths"), fusion.parameters.estimate("lengths"))
    assert np.array_equal(back.confidence()[0], fusion.confidence()[0])


def test_who_has_not_registered_it_is_told_how(family, tmp_path):
    modelweld.fuse(sites(), family()).save(tmp_path / "fusion.safetensors")
    del FAMILIES[family.__name__]
    try:
        with pytest.raises(modelweld.InputError, match=r"'BoutLengths', which is not known here.*families\.register"):
            modelweld.load(tmp_path / "fusion.safetensors")
    finally:
        register(family)


def test_it_is_reported_diagnosed_and_sampled(family, tmp_path):
    fusion = modelweld.fuse(sites(), family())
    fusion.report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "BoutLengths" in page
    assert "going_on" in page
    assert [one.site for one in fusion.diagnosis.sites()] == [f"s{j}" for j in range(6)]
    assert fusion.posterior.sample(5, chains=2).labels.shape == (2, 5, 18)


def test_it_takes_new_sites(family):
    fusion = modelweld.fuse(sites()[:5], family())
    assert len(fusion.add(sites()[5]).sites) == 6


def test_it_is_proposed_where_it_fits_once_it_says_how_special_it_is(family, monkeypatch):
    negative = [np.array([[-0.5, 0.2]]), np.array([[0.3, 0.4]])]
    positive = [np.array([[1.5, 0.2]]), np.array([[0.3, 0.4]])]
    with pytest.raises(modelweld.InputError, match=r"array: (?!.*BoutLengths)"):
        modelweld.fuse(positive, modelweld.Proportions())
    monkeypatch.setattr(family, "specificity", 10)
    with pytest.raises(modelweld.InputError, match=r"array: BoutLengths\(\), .*Rates\(\), Gaussian\(\)"):
        modelweld.fuse(positive, modelweld.Proportions())
    with pytest.raises(modelweld.InputError, match=r"array: (?!.*BoutLengths)"):
        modelweld.fuse(negative, modelweld.Proportions())


class Somewhere(Gaussian):
    """Values that are places, as its parent says."""


class Nowhere(Gaussian):
    """The same values, but what they are is not said: nobody can tell which of them are out of place."""

    has_places = False


def test_values_are_screened_where_the_family_says_that_they_have_places():
    rng = np.random.default_rng(0)
    atoms = rng.normal(0, 5, (5, 3))
    values = [atoms + rng.normal(0, 0.2, atoms.shape) for _ in range(6)]
    values[2] = np.vstack([values[2], [1e4, 1e4, 1e4]])
    with pytest.warns(modelweld.OutlierWarning, match="robust deviations"):
        placed = modelweld.fuse(values, Somewhere())
    assert np.flatnonzero(~placed.matching.kept).tolist() == [15]
    anywhere = modelweld.fuse(values, Nowhere())
    assert anywhere.matching.kept is None
    assert np.isfinite(placed.diagnosis.sites()[0].shift).all()
    assert anywhere.diagnosis.sites()[0].shift.size == 0


def test_names_are_not_taken_twice():
    @dataclass(frozen=True, eq=False)
    class Gaussian2(Gaussian):
        pass

    Gaussian2.__name__ = "Gaussian"
    with pytest.raises(modelweld.InputError, match=r"there is a family Gaussian already.*another name"):
        register(Gaussian2)
    assert FAMILIES["Gaussian"] is Gaussian
    assert register(Gaussian) is Gaussian


@pytest.mark.parametrize("thing", [int, modelweld.BetaBernoulli, Gaussian(), "Gaussian"])
def test_only_families_are_registered(thing):
    with pytest.raises(modelweld.InputError, match="a family is a dataclass"):
        register(thing)


def test_what_is_proposed_can_be_made_without_arguments():
    @dataclass(frozen=True, eq=False)
    class Demanding(Gaussian):
        size: int = field(kw_only=True)

    with pytest.raises(modelweld.InputError, match=r"Demanding is to be proposed.*give 'size' a default"):
        register(Demanding)
    assert "Demanding" not in FAMILIES


def test_the_page_of_families_names_all():
    table = re.findall(r"^\|(.*)\|$", PAGE.read_text(), flags=re.MULTILINE)
    missing = [name for name in FAMILIES if not any(f"`{name}" in line for line in table)]
    assert not missing
