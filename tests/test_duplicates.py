"""Sites that coincide are counted once: laws of `screening.duplicates`, of its stage and of fusions that change."""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import modelweld
from modelweld import Counts, DuplicateWarning, Family, Fusion, Gaussian, InputError, LocalModel, fuse
from modelweld.core.values import Stack
from modelweld.demo.metrics import adjusted_rand
from modelweld.fit.screening.duplicate_sites import find_duplicates
from modelweld.fit.screening.duplicates import number_values
from modelweld.inputs.stacks import stack_arrays
from modelweld.kinds.mixture import mixture
from modelweld.kinds.network import network, outputs

Sites = list[NDArray[np.float64]]


def honest(seed: int, J: int = 6, K: int = 8, D: int = 3) -> Sites:
    """Noisy parts of the same atoms."""
    rng = np.random.default_rng(seed)
    atoms = rng.normal(0, 10, (K, D))
    held = [rng.permutation(K)[: rng.integers(3, K)] for _ in range(J)]
    return [atoms[own] + rng.normal(0, 0.2, (len(own), D)) for own in held]


def quietly(models: list[object] | Sites, **options: object) -> Fusion:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DuplicateWarning)
        return fuse(models, **options)  # type: ignore[arg-type]


def found_in(stack: Stack, family: Family | None = None) -> list[list[int]]:
    return [sorted(group) for group in find_duplicates([stack], number_values([stack], [family or Gaussian()]))[0]]


def found_among(sites: Sites, family: Family | None = None) -> list[list[int]]:
    return found_in(stack_arrays(sites), family)


def duplicates_of(sites: Sites) -> dict[int, int]:
    return {j: first for first, *others in found_among(sites) for j in others}


@pytest.mark.parametrize("jitter", [0.0, 1e-9, 1e-7])
def test_rows_in_any_order_are_found_and_paired(jitter: float) -> None:
    sites = honest(1)
    rng = np.random.default_rng(0)
    order = rng.permutation(len(sites[2]))
    copy = sites[2][order] + jitter * rng.uniform(-1, 1, sites[2].shape)
    stack = stack_arrays([*sites, copy])
    groups, stand_in = find_duplicates([stack], number_values([stack], [Gaussian()]))
    assert [sorted(group) for group in groups] == [[2, 6]]
    assert np.abs(stack.values - stack.values[stand_in]).max() <= 2 * jitter


def test_noise_makes_no_duplicates() -> None:
    """Not even a ten-thousandth of the deviation, however far an outlier stretches what all values have."""
    sites = honest(2)
    off = sites[0] + 1e-4 * np.random.default_rng(0).normal(0, 10, sites[0].shape)
    assert duplicates_of([*sites, off, np.full((3, 3), 1e12) * [[1], [2], [3]]]) == {}


def test_sites_with_the_same_mean_are_no_duplicates() -> None:
    rng = np.random.default_rng(3)
    sites = [x - x.mean(0) for x in rng.normal(size=(300, 5, 4))]
    assert duplicates_of(sites) == {}
    assert duplicates_of([*sites, -sites[0]]) == {}


def test_one_row_and_few_codes_coincide_by_chance() -> None:
    rng = np.random.default_rng(4)
    assert duplicates_of([rng.normal(size=(1, 2))] * 5) == {}
    codes = [rng.integers(0, 2, (2, 1)).astype(float) for _ in range(30)]
    assert duplicates_of(codes) == {}
    long = [rng.integers(0, 2, (10, 20)).astype(float) for _ in range(30)]
    assert duplicates_of([*long, long[7][::-1]]) in ({30: 7}, {7: 30})


def test_what_was_not_seen_must_be_the_same() -> None:
    stack = stack_arrays([np.arange(6.0).reshape(3, 2), np.arange(6.0).reshape(3, 2)])
    weight = np.ones((6, 2))
    assert found_in(Stack(stack.values, stack.offsets, weight=weight))
    weight[0, 0] = 0
    assert not found_in(Stack(stack.values, stack.offsets, weight=weight))


def test_other_families_ask_for_the_very_same_values() -> None:
    rng = np.random.default_rng(6)
    rows = rng.gamma(1.0, 5.0, (3, 4, 6))
    sites = list(rows)
    assert found_among([*sites, rows[0][::-1]], Counts()) == [[0, 3]]
    assert not found_among([*sites, rows[0] * (1 + 1e-12)], Counts())


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("J", [2, 3, 6])
def test_a_copy_changes_nothing_for_the_others(seed: int, J: int) -> None:
    sites = honest(seed, J)
    without = quietly(sites)
    with pytest.warns(DuplicateWarning, match=f"'0' and '{J}' sent the same values"):
        fusion = fuse([*sites, sites[0][::-1]])
    assert fusion.K == without.K
    assert fusion.objective == without.objective
    assert fusion.diagnosis.hyperparameters.keys() == without.diagnosis.hyperparameters.keys()
    assert np.array_equal(fusion.labels[J], fusion.labels[0][::-1])
    same = _renamed(fusion.labels[:J], without.labels)
    assert np.allclose(fusion.atoms, without.atoms[same], rtol=0, atol=0)


def _renamed(labels: list[NDArray[np.int64]], others: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    """For each atom its number in another matching of the same values, which must be one to one."""
    pairs = np.unique(np.stack([np.concatenate(labels), np.concatenate(others)]), axis=1)
    assert pairs.shape[1] == len(np.unique(pairs[0])) == len(np.unique(pairs[1]))
    return pairs[1]


def test_duplicates_are_full_members() -> None:
    sites = honest(7)
    fusion = quietly([*sites, sites[3], sites[3]])
    assert np.array_equal(fusion.counts, fusion.matching.presence.sum(0))
    assert np.array_equal(np.sort(fusion.counts[: fusion.K])[::-1], fusion.counts[: fusion.K])
    assert len(fusion.matching.duplicates or {}) == 2


@pytest.mark.parametrize("jitter", [0.0, 1e-9])
def test_the_order_of_sites_does_not_matter(jitter: float) -> None:
    rng = np.random.default_rng(8)
    sites = honest(8)
    sites += [sites[0] + jitter * rng.normal(size=sites[0].shape), sites[4][::-1]]
    first = quietly(sites)
    for _ in range(4):
        order = rng.permutation(len(sites))
        other = quietly([sites[j] for j in order])
        assert other.objective == first.objective
        assert np.array_equal(other.atoms, first.atoms)
        assert np.array_equal(other.counts, first.counts)
        for place, j in enumerate(order):
            assert np.array_equal(other.labels[place], first.labels[j])


def test_values_sent_twice_are_still_those_of_one_site() -> None:
    """What only sites that repeat each other hold is held by one site."""
    sites = honest(9, J=20)
    own = np.random.default_rng(1).normal(0, 10, (40, 3))
    fusion, once = quietly([*sites, own, own[::-1]]), quietly([*sites, own])
    assert (fusion.K, fusion.shared) == (once.K, once.shared)
    alone = np.setdiff1d(fusion.labels[20], np.arange(fusion.shared))
    assert len(alone) > 0
    assert (fusion.counts[alone] == 2).all()


def test_outliers_sent_twice_are_set_aside_twice() -> None:
    sites = honest(10)
    far = 1e6 * np.random.default_rng(2).normal(size=(4, 3))
    with pytest.warns(modelweld.OutlierWarning):
        fusion = quietly([*sites, far, far])
    kept = fusion.matching.kept
    assert kept is not None
    assert (~kept).sum() == 8
    assert not kept[-8:].any()
    assert np.array_equal(fusion.atoms[fusion.labels[7]], far)
    assert np.array_equal(fusion.atoms[fusion.labels[6]], far)
    assert (fusion.counts[fusion.labels[6]] == 1).all()
    assert np.array_equal(fusion.counts, fusion.matching.presence.sum(0))


def test_where_all_coincide_the_answer_is_what_they_sent() -> None:
    site = honest(15)[0]
    with pytest.warns(DuplicateWarning, match="all sites sent the same"):
        fusion = fuse([site, site[::-1], site, np.zeros((0, 3))])
    assert np.allclose(fusion.atoms[fusion.labels[0]], site, rtol=0, atol=1e-4)
    assert (fusion.counts == 3).all()
    with pytest.warns(DuplicateWarning, match="counted once"):
        larger = fusion.add(honest(15)[1])
    assert len(larger.matching.duplicates or {}) == 2


def test_independent_sites_are_taken_at_their_word() -> None:
    sites = honest(11)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DuplicateWarning)
        fusion = fuse([*sites, sites[0]], screens=["outliers"])
        fuse([*sites, sites[0]], preset="paper")
        plain = fuse([*sites, sites[0]], search="plain")
    assert fusion.matching.duplicates is None
    assert plain.matching.duplicates is None
    assert fusion.diagnosis.settings["screens"] == ["outliers"]
    with pytest.raises(InputError, match="some of 'duplicates', 'outliers'"):
        fuse(sites, screens=["twice"])


@pytest.mark.parametrize("seed", range(5))
def test_adding_a_copy_counts_it_once(seed: int) -> None:
    sites = honest(seed)
    before = quietly(sites)
    with pytest.warns(DuplicateWarning, match="'2' and 'late'"):
        after = before.add(sites[2][::-1], site="late")
    assert after.K == before.K
    assert after.objective >= before.objective - 1e-6
    assert np.array_equal(after.labels[6], after.labels[2][::-1])


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("gone", [0, 6])
def test_removing_one_of_two_leaves_the_other_in_the_fit(seed: int, gone: int) -> None:
    sites = honest(seed)
    both = quietly([*sites, sites[0]])
    left = both.remove(gone)
    alone = quietly(sites[1:] + sites[:1] if gone == 0 else sites)
    assert left.matching.duplicates == {}
    assert left.K == alone.K
    assert left.objective == pytest.approx(alone.objective, abs=1e-6)
    assert all(np.array_equal(a, b) for a, b in zip(left.labels, alone.labels, strict=True))


def test_files_and_pages_know_them(tmp_path: Path) -> None:
    sites = honest(13)
    fusion = quietly([*sites, sites[0]])
    assert modelweld.load(fusion.save(tmp_path / "f.safetensors")).matching.duplicates == fusion.matching.duplicates
    page = fusion.report(tmp_path / "page.html").read_text(encoding="utf-8")
    assert "'0' and '6' sent the same values" in page


def test_slim_refuses_duplicates() -> None:
    sites = honest(14)
    fusion = quietly([*sites, sites[0]])
    with pytest.raises(InputError, match="Remove one first"):
        fusion.slim()
    assert fusion.remove(6).slim().K == fusion.K


@pytest.mark.parametrize("how", ["moments", "atoms", "density"])
def test_models_are_made_of_what_was_sent_once(how: str) -> None:
    rng = np.random.default_rng(16)
    models = [
        mixture(v, np.ones(v.shape), rng.integers(20, 90, len(v)), counted=True, site=name)
        for v, name in zip(honest(16), "abcdef", strict=True)
    ]
    alone, twice = quietly(models), quietly([models[2].with_(site="first"), *models])
    assert np.allclose(_by_mean(twice.parameters(how)), _by_mean(alone.parameters(how)))
    assert twice.density.reduce(3).parameters("moments").arrays["counts"].sum() == sum(
        m.arrays["counts"].sum() for m in models
    )
    assert twice._fit.drop_duplicates().sites == ["first", "a", "b", "d", "e", "f"]
    assert alone._fit.drop_duplicates() is alone._fit


def _by_mean(model: LocalModel) -> NDArray[np.float64]:
    table = np.hstack([model.arrays["means"], model.arrays["counts"][:, None]])
    return np.asarray(table[np.lexsort(table.T.round(6))])


def test_a_network_sent_twice_is_one_network() -> None:
    """In every set the earlier of two sites stands for both, whichever was fitted."""
    rng = np.random.default_rng(17)
    layers = [rng.normal(0, 5, shape) for shape in ((4, 6), (6, 5), (5, 3))]
    noisy = [[w + rng.normal(0, 0.1, w.shape) for w in layers] for _ in range(5)]
    nets = [
        network(weights, [np.zeros(6), np.zeros(5), np.zeros(3)], activation="relu", counts=9.0) for weights in noisy
    ]
    fusion, alone = quietly([*nets, nets[1]]), quietly(nets)
    assert [matching.duplicates for matching in fusion.matchings.values()] == [{5: 1}, {5: 1}]
    assert fusion._fit.drop_duplicates().sites == list("01234")
    X = rng.normal(size=(20, 4))
    assert np.allclose(outputs(fusion.parameters("mean"), X), outputs(alone.parameters("mean"), X))


@pytest.mark.parametrize(
    ("J", "jitter", "named"),
    [(J, jitter, True) for J in (3, 20) for jitter in (0.001, 0.01)]
    + [(J, 0.2, False) for J in (3, 20)]
    + [(3, 0.05, False), (20, 0.05, True), (20, 0.09, True)],
)
def test_a_near_copy_is_counted_once_and_named(jitter, named, J):
    """Within a fiftieth of what lies between sites, or an eighth where many others show that it has gone astray."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        atoms = rng.normal(0, 4, (10, 5))
        sites = [atoms[rng.permutation(10)[:7]] + rng.normal(0, 0.4, (7, 5)) for _ in range(J)]
        copy = rng.permutation(sites[0]) + rng.normal(0, 0.4 * jitter, (7, 5))
        with pytest.warns(DuplicateWarning, match=f"'0' and '{J}' sent the same") if named else nullcontext():
            fusion = fuse([*sites, copy])
        assert fusion.matching.duplicates == ({J: 0} if named else {})
        if named:
            honest = fuse(sites)
            assert fusion.K == honest.K
            assert adjusted_rand(fusion.labels[:-1], honest.labels) == 1


@pytest.mark.parametrize("jitter", [0.0, 0.03, 0.1])
@pytest.mark.parametrize("shift", [0.0, 1.0, 3.0])
@pytest.mark.parametrize("bad", [2, 9])
@pytest.mark.filterwarnings("ignore::modelweld.SiteEffectWarning")  # what is shifted is corrected
def test_a_minority_of_noisy_copies_counts_once(jitter, shift, bad):
    """They neither bring the noise down to theirs nor drag atoms along: the others are matched as with one of them."""
    rng = np.random.default_rng(int(100 * jitter) + bad)
    atoms = rng.normal(0, 4, (12, 8))
    held = [atoms[rng.random(12) < 0.6] for _ in range(20 - bad)]
    sites = [places + rng.normal(0, 0.5, places.shape) for places in held]
    one = atoms + shift * 0.5 + rng.normal(0, 0.5, atoms.shape)
    fusion = quietly([*sites, *(one + rng.normal(0, 0.5 * jitter, one.shape) for _ in range(bad))])
    assert len(fusion.matching.duplicates or {}) == bad - 1
    alone = quietly([*sites, one])
    assert adjusted_rand(np.concatenate(fusion.labels[: 20 - bad]), np.concatenate(alone.labels[: 20 - bad])) == 1


def test_sites_that_know_their_values_well_are_no_copies():
    """Three of twenty sites lie within a twentieth of the others' deviation of every atom: so does the others' mean."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        atoms = rng.normal(0, 4, (10, 5))
        noise = [0.4] * 17 + [0.02] * 3
        assert fuse([atoms + rng.normal(0, x, atoms.shape) for x in noise]).matching.duplicates == {}


@pytest.mark.filterwarnings("ignore::modelweld.SiteEffectWarning")
def test_sites_that_all_agree_well_are_no_copies():
    rng = np.random.default_rng(0)
    atoms = rng.normal(0, 4, (6, 3))
    for noise in (1e-4, 1e-2, 1.0):
        sites = [atoms + rng.normal(0, noise, atoms.shape) for _ in range(6)]
        assert fuse(sites).matching.duplicates == {}
        assert fuse([*sites[:2], *(site + 50.0 for site in sites[2:4])]).matching.duplicates == {}


def test_a_copy_is_no_evidence_of_its_own() -> None:
    """Confidences, draws, diagnoses and verdicts of the others are as without it; the copy has those of its first."""
    sites = honest(4, 5)
    without, fusion = quietly(sites), quietly([*sites, sites[0][::-1]])
    order = list(range(5))
    for how in ("drawn", "conditional"):
        alone, stated = without.confidence(how=how), fusion.confidence(how=how)
        for j in order:
            np.testing.assert_array_equal(stated[j], alone[j])
        np.testing.assert_array_equal(stated[5], stated[0][::-1])
    np.testing.assert_array_equal(fusion.posterior.draws().K, without.posterior.draws().K)
    together, n = fusion.posterior.draws().co_assignment, len(sites[0])
    assert (np.diag(together[:n, -n:][:, ::-1]) == 1).all()
    np.testing.assert_array_equal(fusion.posterior.atom_intervals().exists, without.posterior.atom_intervals().exists)
    np.testing.assert_array_equal(fusion.posterior.conditional(5), fusion.posterior.conditional(0)[::-1])
    told, expected = fusion.diagnosis.sites(), without.diagnosis.sites()
    assert [(d.unshared, d.score, d.influence) for d in told[:5]] == [
        (d.unshared, d.score, d.influence) for d in expected
    ]
    assert (told[5].site, told[5].score) == ("5", told[0].score)
    verdict, before = fusion.worth_merging(), without.worth_merging()
    assert verdict.gain == before.gain
    assert verdict.sites[:5] == before.sites
    assert "repeats site '0'" in verdict.sites[5].sentence
    assert verdict.sites[5].worth == verdict.sites[0].worth
