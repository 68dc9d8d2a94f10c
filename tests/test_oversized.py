"""A site that was excluded for its number costs no answer anything: questions are asked without it."""

import numpy as np
import pytest

import modelweld
from modelweld import Counts, Directions, Fusion, Gaussian
from modelweld.results.posterior import metropolis

pytestmark = pytest.mark.filterwarnings("ignore::modelweld.errors.ModelweldWarning")


def drawn(family, rng):
    """Eight honest sites of up to six values, and an oversized site of 300 of background."""
    atoms = rng.normal(0, 4, (6, 5))
    sites = [(atoms + rng.normal(0, 0.2, atoms.shape))[rng.permutation(6)[:4]] for _ in range(8)]
    oversized = rng.normal(0, 4, (300, 5))
    if isinstance(family, Directions):
        return [x / np.linalg.norm(x, axis=1, keepdims=True) for x in sites], oversized / np.linalg.norm(
            oversized, axis=1, keepdims=True
        )
    if isinstance(family, Counts):
        return [rng.poisson(np.exp(np.clip(x, -3, 3)) * 20) + 1.0 for x in sites], rng.poisson(9, oversized.shape) + 1.0
    return sites, oversized


@pytest.mark.parametrize(
    "family", [Gaussian(), Directions(own=False), Counts()], ids=lambda family: type(family).__name__
)
@pytest.mark.parametrize("how", ["conditional", "drawn"])
def test_answers_are_those_without_the_oversized(family, how, monkeypatch):
    monkeypatch.setattr(metropolis, "DRAWS", 12)
    sites, oversized = drawn(family, np.random.default_rng(0))
    fusion = modelweld.fuse([*sites[:3], oversized, *sites[3:]], family)
    few = Fusion(fusion._fit.drop_oversized())
    assert few.sites == [site for site in fusion.sites if site != "3"]
    stated, without = fusion.confidence(how=how), few.confidence(how=how)
    assert (stated[3] == 1).all()
    del stated[3]
    assert all(np.array_equal(a, b) for a, b in zip(stated, without, strict=True))
    if how == "drawn" and isinstance(family, Gaussian):
        posterior, inner = fusion.posterior.draws(), few.posterior.draws()
        assert np.array_equal(posterior.K, inner.K)
        found, alone = fusion.posterior.atom_intervals(), few.posterior.atom_intervals()
        assert np.array_equal(found.low[: fusion.K], alone.low[: fusion.K])
        assert found.exists.shape == fusion.counts.shape
        assert (fusion.posterior.new_site().probability[-300:] == 0).all()


def test_splits_of_a_oversized_go_with_it():
    sites, oversized = drawn(Gaussian(), np.random.default_rng(1))
    fusion = modelweld.fuse([*sites, oversized, oversized[::-1]])
    assert fusion._fit.drop_oversized().sites == fusion.sites[:8]
    assert [len(site) for site in fusion.confidence()] == [*(4,) * 8, 300, 300]


def test_whoever_was_fitted_is_asked():
    sites, oversized = drawn(Gaussian(), np.random.default_rng(2))
    assert (fit := modelweld.fuse(sites)._fit).drop_oversized() is fit
    assert (fit := modelweld.fuse([*sites, oversized], screens=["duplicates"])._fit).drop_oversized() is fit
