"""Factors: real vectors whose signs mean nothing are matched whatever their signs, and come back oriented."""

import numpy as np
import pytest

import modelweld
from modelweld import Factors, Gaussian, InputError, LocalModel


def drawn(seed, J=6, K=8, D=7, noise=0.2):
    """Loadings of sites that hold most of K, with random signs, and which each of them is."""
    rng = np.random.default_rng(seed)
    atoms = rng.normal(0, rng.uniform(0.5, 3.0, D), (K, D))
    truth = [rng.permutation(K)[:6] for _ in range(J)]
    sites = [atoms[own] + noise * rng.normal(size=(6, D)) for own in truth]
    return atoms, truth, [site * rng.choice([-1.0, 1.0], (6, 1)) for site in sites]


@pytest.mark.parametrize("shape", ["diagonal", "scalar"])
def test_signs_do_not_matter(shape):
    _, truth, sites = drawn(0)
    rng = np.random.default_rng(1)
    fusion = modelweld.fuse(sites, Factors(shape=shape))
    turned = [site * rng.choice([-1.0, 1.0], (len(site), 1)) for site in sites]
    again = modelweld.fuse(turned, Factors(shape=shape))
    assert np.array_equal(fusion.matching.stacked_labels, again.matching.stacked_labels)
    assert np.array_equal(fusion.atoms, again.atoms)
    assert modelweld.metrics.adjusted_rand(truth, fusion.labels) == 1.0
    aside = modelweld.fuse(sites, Gaussian(shape=shape))
    assert modelweld.metrics.adjusted_rand(truth, aside.labels) < 0.9


def test_atoms_and_values_come_back_oriented():
    atoms, truth, sites = drawn(2)
    fusion = modelweld.fuse(sites, Factors())
    largest = np.take_along_axis(fusion.atoms, np.abs(fusion.atoms).argmax(1)[:, None], 1)
    assert (largest > 0).all()
    for j, site in enumerate(sites):
        aligned, own = fusion.parameters.signs[j][:, None] * site, fusion.atoms[fusion.labels[j]]
        assert np.abs(aligned - own).max() < 1.0
        facing = np.sign((own * atoms[truth[j]]).sum(1, keepdims=True))
        assert np.abs(own - facing * atoms[truth[j]]).max() < 0.6


def test_what_was_not_seen_has_no_say_in_signs():
    _, _, sites = drawn(3)
    weight = [np.ones_like(site) for site in sites]
    for own in weight:
        own[:, 0] = 0.0
    spoilt = [np.where(w > 0, site, 1e3) for site, w in zip(sites, weight, strict=True)]
    models = [
        [LocalModel({"x": v}, {"x": ("factor", None)}, weight={"x": w}) for v, w in zip(values, weight, strict=True)]
        for values in (sites, spoilt)
    ]
    one, other = (modelweld.fuse(these, {"x": Factors()}) for these in models)
    assert np.array_equal(one.matching.stacked_labels, other.matching.stacked_labels)
    assert all(np.array_equal(a, b) for a, b in zip(one.parameters.signs, other.parameters.signs, strict=True))


def test_the_order_of_sites_does_not_matter_and_files_keep_all(tmp_path):
    _, _, sites = drawn(4)
    fusion, turned = modelweld.fuse(sites, Factors()), modelweld.fuse(sites[::-1], Factors())
    assert fusion.objective == turned.objective
    again = modelweld.load(fusion.save(tmp_path / "fusion.safetensors"))
    assert isinstance(again.diagnosis.family, Factors)
    assert np.array_equal(again.atoms, fusion.atoms)
    assert fusion.confidence(how="conditional")[0].min() > 0.9
    grown = modelweld.fuse(sites[:-1], Factors()).add(sites[-1])
    assert np.array_equal(grown.matching.stacked_labels, fusion.matching.stacked_labels)


def test_what_makes_no_sense_is_refused():
    _, _, [site, *_] = drawn(5)
    models = [LocalModel({"x": site}, {"x": ("factor", None)}, variance={"x": np.ones_like(site)})] * 2
    with pytest.raises(InputError, match="without a variance"):
        modelweld.fuse(models, {"x": Factors()})
