"""Diagnostics after the fit: every number is a refit without the site, and bad sites are named."""

from copy import copy

import numpy as np
import pytest

import simulated_sets as simulate
from modelweld import Fusion, Gaussian, InputError, LocalModel, Search, fuse
from shared.baselines import kmeans_matching

worth_merging = Fusion.worth_merging


def diagnose(fusion, set_name=None):
    return fusion.diagnosis.sites(set_name)


def plain(seed=0):
    return fuse(simulate.sparse(8, 5, 3, 0.3, 2.0, 1.0, 1.0, seed=seed).values, seed=seed)


def rich(seed=0):
    """Two arrays of one set, with variance and weight, and named sites."""
    rng = np.random.default_rng(seed)
    atoms, marks = rng.normal(0, 3, (7, 3)), rng.normal(0, 3, (7, 2))
    models = []
    for j in range(5):
        held = rng.permutation(7)[: rng.integers(2, 7)]
        L = len(held)
        models.append(
            LocalModel(
                {"means": atoms[held] + rng.normal(0, 0.3, (L, 3)), "marks": marks[held] + rng.normal(0, 0.2, (L, 2))},
                {"means": ("component", None), "marks": ("component", None)},
                variance={"means": rng.gamma(2.0, 0.02, (L, 3))},
                weight={"marks": rng.integers(0, 3, (L, 2)).astype(float)},
                site=f"clinic {j}",
            )
        )
    return fuse(models, search=Search(splits=False), seed=seed)


def board_at(fusion, labels):
    board = copy(fusion._fit.board(next(iter(fusion.matchings))))
    board.restore((labels.copy(), *board.state()[1:]))
    return board


def in_fragments(seed=0):
    return fuse(simulate.over_segmented(0.4, seed=seed).values, search=Search(splits=True))


FITS = {"plain": plain, "rich": rich}


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("fit", [plain, rich, in_fragments])
def test_gains_are_differences_of_the_objective(fit, seed):
    fusion = fit(seed)
    labels = fusion.matching.stacked_labels
    verdict = worth_merging(fusion)
    fresh = 1000 + np.arange(len(labels))
    together = board_at(fusion, labels).objective()
    assert verdict.gain == pytest.approx(together - board_at(fusion, fresh).objective(), abs=1e-7)
    for j, site in enumerate(verdict.sites):
        own = slice(*fusion.matching.offsets[j : j + 2])
        apart = labels.copy()
        apart[own] = fresh[own]
        assert site.gain == pytest.approx(together - board_at(fusion, apart).objective(), abs=1e-7)
        assert site.shared == (fusion.counts[labels[own]] > 1).sum()
        assert repr(fusion.sites[j]) in site.sentence


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("fit", FITS)
def test_influence_is_the_move_in_a_refit_without_the_site(fit, seed):
    fusion = FITS[fit](seed)
    matching = fusion.matching
    for j, found in enumerate(diagnose(fusion)):
        labels = matching.stacked_labels.copy()
        labels[slice(*matching.offsets[j : j + 2])] = -1
        board = board_at(fusion, labels)
        left = np.unique(labels[labels >= 0])
        moves = []
        for (name, family), without, stack in zip(
            matching.families.items(), board.estimates(), board.stacks, strict=True
        ):
            inverse = np.ones(stack.values.shape)
            if stack.variance is not None:
                inverse = 1 + family.inflation * stack.variance / family.noise
            if stack.weight is not None:
                inverse = 1 / np.where(stack.weight > 0, stack.weight, np.nan)
            unit = np.sqrt(family.noise / np.nanmedian(1 / inverse, axis=0))
            moves.append((matching.values[name][left] - without) / unit)
        assert found.influence == pytest.approx(np.sqrt(np.square(np.hstack(moves)).mean()), rel=1e-6)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("fit", FITS)
def test_scores_are_predictive_densities_given_the_others(fit, seed):
    fusion = FITS[fit](seed)
    labels, offsets = fusion.matching.stacked_labels, fusion.matching.offsets
    board = copy(fusion._fit.board(next(iter(fusion.matchings))))
    for j, found in enumerate(diagnose(fusion)):
        total, unshared = 0.0, 0
        for row in range(offsets[j], offsets[j + 1]):
            others = np.flatnonzero((labels == labels[row]) & (board.group != j))
            unshared += len(others) == 0
            for family, rows in zip(board.families, board.rows, strict=True):
                rest = rows[others].sum(0)
                total += float(family.log_evidence(rest + rows[row]) - family.log_evidence(rest))
                total -= float(family.log_evidence(rows[row]))
        assert found.parameters == offsets[j + 1] - offsets[j]
        assert found.unshared == unshared
        assert found.score == pytest.approx(total / max(found.parameters, 1), abs=1e-7)


def test_shift_is_the_weighted_mean_offset_from_the_others_atoms():
    fusion = plain(2)
    noise, spread = (np.asarray(getattr(fusion.diagnosis.family, name)) for name in ("noise", "spread"))
    labels, offsets = fusion.matching.stacked_labels, fusion.matching.offsets
    board = fusion._fit.board("atom")
    values = board.stacks[0].values
    for j, found in enumerate(diagnose(fusion)):
        weighted, precision = np.zeros(3), np.zeros(3)
        for row in range(offsets[j], offsets[j + 1]):
            others = np.flatnonzero((labels == labels[row]) & (board.group != j))
            if len(others):
                v = noise + 1 / (1 / spread + len(others) / noise)
                weighted += (values[row] - fusion.diagnosis.family.estimate(board.rows[0][others].sum(0))) / v
                precision += 1 / v
        assert np.allclose(found.shift, weighted / precision / np.sqrt(noise))
        assert np.allclose(found.shift_z, weighted / np.sqrt(precision))


def test_standardised_shifts_of_honest_sites_are_standard_normal():
    z = [d.shift_z for seed in range(15) for d in diagnose(fuse(simulate.poisoned("gross", seed=seed).values[:-1]))]
    assert np.abs(np.mean(z)) < 0.1
    assert np.std(z) == pytest.approx(1.0, abs=0.1)


@pytest.mark.parametrize("name", ["meta_model", "low_J10_D5", "low_J10_D10", "diagonal_D10", "over_segmented"])
def test_clean_sets_raise_no_warning(name):
    for seed in range(4):
        assert not any(d.warning for d in diagnose(fuse(simulate.SETS[name](seed=seed).values)))


@pytest.mark.filterwarnings("ignore::modelweld.SiteEffectWarning")
@pytest.mark.parametrize("seed", range(6))
def test_a_small_shift_in_one_dimension_is_corrected_or_named(seed):
    values = [v.copy() for v in simulate.sparse(20, 12, 10, 0.4, 2.5, 5.0, 1.0, seed=seed).values]
    values[4][:, 7] -= 0.8
    fusion = fuse(values)
    found = diagnose(fusion)
    named = [d.site for d in found if d.warning]
    assert named == ([] if fusion.site_effects else ["4"])
    assert [(e.site, e.feature) for e in fusion.site_effects] == ([] if named else [("4", "dimension 7")])


@pytest.mark.parametrize("kind", ["gross", "background"])
@pytest.mark.parametrize("seed", range(4))
def test_a_site_of_background_is_named(kind, seed):
    names = [f"site of {n}" for n in range(13)]
    drawn = simulate.poisoned(kind, seed=seed)
    models = [LocalModel({"v": v}, {"v": ("atom", None)}, site=n) for v, n in zip(drawn.values, names, strict=True)]
    fusion = fuse(models, screens=["duplicates"])
    found = diagnose(fusion)[-1]
    assert found.unshared == found.parameters
    assert found.score == 0.0
    assert "'site of 12' holds 10 of its 10 atoms alone" in found.warning
    assert worth_merging(fusion).sites[-1].sentence == (
        "site 'site of 12' shares nothing with the others: fusing it changes nothing."
    )
    assert worth_merging(fusion).sites[-1].gain == pytest.approx(0.0, abs=1e-6)


def test_units_do_not_matter():
    drawn = simulate.sparse(8, 6, 3, 0.3, 2.0, 1.0, 1.0, seed=3).values
    a, b = (diagnose(fuse([scale * v for v in drawn])) for scale in (1.0, 1e6))
    for x, y in zip(a, b, strict=True):
        assert (x.unshared, x.parameters) == (y.unshared, y.parameters)
        for field in ("score", "surprise", "shift", "shift_z", "influence"):
            assert np.allclose(getattr(x, field), getattr(y, field), rtol=1e-4, atol=1e-4, equal_nan=True)


@pytest.mark.filterwarnings("ignore::modelweld.SiteEffectWarning")
def test_order_does_not_matter():
    drawn = simulate.poisoned("shift", seed=0).values
    rng = np.random.default_rng(0)
    order = rng.permutation(12)
    a, b = diagnose(fuse(drawn)), diagnose(fuse([drawn[j][rng.permutation(len(drawn[j]))] for j in order]))
    for position, j in enumerate(order):
        for field in ("score", "surprise", "shift", "shift_z", "influence"):
            assert np.allclose(getattr(a[j], field), getattr(b[position], field))
        assert bool(a[j].warning) == bool(b[position].warning)


def test_empty_sites_and_single_sites_have_diagnostics():
    fusion = fuse([np.zeros((0, 2)), np.ones((1, 2)), np.array([[1.0, 1.1], [5.0, 5.0]])])
    empty, *_ = diagnose(fusion)
    assert (empty.parameters, empty.unshared, empty.score, empty.warning) == (0, 0, 0.0, "")
    assert np.isnan(empty.shift).all()
    assert worth_merging(fusion).sites[0].sentence == "site '0' sent nothing: fusing it changes nothing."
    (alone,) = diagnose(fuse([np.random.default_rng(0).normal(size=(4, 2))]))
    assert (alone.unshared, alone.influence, alone.warning) == (4, 0.0, "")


def test_sets_are_asked_for_by_name():
    rng = np.random.default_rng(0)
    W, V = rng.normal(0, 3, (4, 5)), rng.normal(0, 3, (5, 6))
    models = [
        LocalModel(
            {"W": W + rng.normal(0, 0.1, W.shape), "V": V + rng.normal(0, 0.1, V.shape)},
            {"W": (None, "h0"), "V": ("h0", "h1")},
        )
        for _ in range(4)
    ]
    fusion = fuse(models)
    with pytest.raises(InputError, match="h0"):
        diagnose(fusion)
    with pytest.raises(InputError, match="no set 'h2'"):
        diagnose(fusion, "h2")
    assert [d.unshared for name in ("h0", "h1") for d in diagnose(fusion, name)] == [0] * 8
    whole = worth_merging(fusion)
    parts = [worth_merging(fusion, name) for name in ("h0", "h1")]
    assert whole.gain == pytest.approx(sum(part.gain for part in parts))
    assert whole.sites[2].gain == pytest.approx(sum(part.sites[2].gain for part in parts))
    assert "44 of 44 values are shared between sites: fusing" in whole.sentence


def test_sites_that_share_nothing_are_told_so():
    verdict = worth_merging(fuse([[[0.0, 0.0]], [[100.0, 3.0]]], Gaussian(noise=0.01, spread=1e4, learning="nothing")))
    assert verdict.sentence == "no two sites share anything: fusing changes nothing."
    assert verdict.gain == pytest.approx(0.0, abs=1e-9)


def test_a_bad_matching_is_not_worth_it():
    fusion = plain(0)
    fusion.matching.stacked_labels[:] = np.concatenate([np.arange(n) for n in np.diff(fusion.matching.offsets)])
    verdict = worth_merging(fusion)
    assert verdict.gain < 0
    assert "keeping the sites apart explains the values better" in verdict.sentence
    assert any("would fit better alone" in site.sentence for site in verdict.sites)


def test_a_baseline_without_a_family_cannot_be_diagnosed():
    with pytest.raises(InputError, match="baseline"):
        diagnose(kmeans_matching([np.eye(3), np.eye(3)], 3))


def test_more_false_alarms_find_more():
    values = [v.copy() for v in simulate.sparse(15, 5, 3, 0.4, 2.5, 5.0, 1.0, seed=1).values]
    values[2][:, 1] += 0.45
    fusion = fuse(values)
    warned = [[d.site for d in fusion.diagnosis.sites(rate=rate) if d.warning] for rate in (1e-9, 0.5)]
    assert warned == [[], ["2"]]
    with pytest.raises(InputError, match="between 0 and 1"):
        fusion.diagnosis.sites(rate=0.0)


@pytest.mark.filterwarnings("ignore::modelweld.SiteEffectWarning")
def test_three_sites_are_too_few_to_warn_of_any():
    rng = np.random.default_rng(0)
    atoms = rng.normal(0, 5, (9, 4))
    sites = [atoms + rng.normal(0, 0.2, atoms.shape) for _ in range(4)]
    sites[0] = sites[0] + 0.6
    found = diagnose(fuse(sites, site_effects=False))
    assert [bool(d.warning) for d in found] == [True, False, False, False]
    assert all(d.judged for d in found)
    few = diagnose(fuse(sites[:3], site_effects=False))
    assert not any(d.warning or d.judged for d in few)
    assert np.abs(few[0].shift).max() > 1


@pytest.mark.filterwarnings("ignore::modelweld.SiteEffectWarning")
def test_sites_that_all_have_shifts_of_their_own_are_honest():
    warned = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        atoms = rng.normal(0, 5, (12, 3))
        sites = [atoms + rng.normal(0, 0.3, atoms.shape) + rng.normal(0, 0.3, 3) for _ in range(20)]
        warned += [bool(d.warning) for d in diagnose(fuse(sites))]
    assert np.mean(warned) <= 0.05
