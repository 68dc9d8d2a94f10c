"""A minority carries atoms no farther than a median of their members lets it, whatever weights it claims."""

import warnings

import numpy as np
import pytest

import modelweld
from modelweld import Gaussian, LocalModel
from modelweld.kinds.mixture import mixture

SITES, BAD, ATOMS, D, NOISE = 20, 8, 10, 6, 0.5


def drawn(seed, attack):
    rng = np.random.default_rng([8300, seed])
    atoms = rng.normal(0, 4, (ATOMS, D))
    held = [np.flatnonzero(rng.random(ATOMS) < (0.7 if j < SITES - BAD else 1.1)) for j in range(SITES)]
    values = [rng.normal(atoms[own], NOISE) for own in held]
    direction = rng.choice([-1.0, 1.0], D)
    for v in values[SITES - BAD :]:
        if attack == "extremes":
            v[rng.random(v.shape) < 0.1] += rng.choice([-5.0, 5.0])
        elif attack == "weights":
            v += 1.5 * NOISE * direction
    return atoms, held, values


def sent(how, values, attack):
    claims = [9.0 if attack == "weights" and j >= SITES - BAD else 1.0 for j in range(SITES)]
    if how == "arrays":
        return values, None
    if how == "mixtures":
        return [mixture(v, np.ones_like(v), np.full(len(v), 100.0), counted=True) for v in values], None
    weight = [{"v": np.full(v.shape, c)} if attack == "weights" else {} for v, c in zip(values, claims, strict=True)]
    family = Gaussian(shape=how)
    return [LocalModel({"v": v}, {"v": ("atom", None)}, weight=w) for v, w in zip(values, weight, strict=True)], family


def error(places, labels, atoms, held):
    """Root mean square distance of atoms from where most honest values of theirs are matched."""
    truth, found = np.concatenate(held), np.concatenate(labels)
    honest = np.arange(len(truth)) < sum(map(len, held[: SITES - BAD]))
    at = [np.bincount(found[honest & (truth == k)]).argmax() for k in range(len(atoms))]
    return np.sqrt(np.mean((places[at] - atoms) ** 2))


def of_medians(values, atoms, held):
    stacked, truth = np.concatenate(values), np.concatenate(held)
    return np.sqrt(np.mean([(np.median(stacked[truth == k], axis=0) - atoms[k]) ** 2 for k in range(len(atoms))]))


@pytest.mark.parametrize(
    ("how", "attack"),
    [(how, "extremes") for how in ("arrays", "mixtures", "diagonal", "scalar")]
    + [(how, "weights") for how in ("diagonal", "scalar")],
)
def test_atoms_lie_no_farther_off_than_medians(how, attack):
    atoms, held, values = drawn(0, attack)
    given, family = sent(how, values, attack)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fusion = modelweld.fuse(given, family)
    atoms_at = next(iter(fusion.matching.values.values()))
    assert error(atoms_at, fusion.labels, atoms, held) < 1.2 * of_medians(values, atoms, held)
    assert attack != "weights" or any("too far from their atoms" in reason for reason in fusion.matching.reasons)


@pytest.mark.parametrize("engine", ["auto", "numpy", "compiled"])
def test_arrays_are_weighed_like_models_by_any_engine(engine):
    _, _, values = drawn(0, "extremes")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        arrays, models = (
            modelweld.fuse(sent(how, values, "extremes")[0], search=modelweld.Search(engine=engine))
            for how in ("arrays", "diagonal")
        )
    assert arrays.matching.reasons == models.matching.reasons
    assert arrays.objective == pytest.approx(models.objective, rel=1e-9)
    assert np.concatenate(arrays.labels).tolist() == np.concatenate(models.labels).tolist()


@pytest.mark.parametrize("how", ["arrays", "mixtures", "diagonal", "full"])
def test_nothing_is_said_of_honest_sites_nor_done(how):
    _, _, values = drawn(1, "none")
    given, family = sent(how, values, "none")
    with warnings.catch_warnings():
        warnings.simplefilter("error", modelweld.ModelweldWarning)
        fusion = modelweld.fuse(given, family)
    assert not fusion.matching.reasons
    assert all(not model.weight for model in fusion._fit.models)


def test_weights_that_values_bear_out_are_kept():
    rng = np.random.default_rng(8310)
    atoms, claims = rng.normal(0, 4, (ATOMS, D)), np.repeat([1.0, 9.0, 50.0], [8, 6, 2])
    values = [rng.normal(atoms, NOISE / np.sqrt(w)) for w in claims]
    weight = [{"v": np.full((ATOMS, D), w)} for w in claims]
    sites = [LocalModel({"v": v}, {"v": ("atom", None)}, weight=w) for v, w in zip(values, weight, strict=True)]
    fusion = modelweld.fuse(sites)
    assert [model.weight["v"].max() for model in fusion._fit.models] == claims.tolist()
