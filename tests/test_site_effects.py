"""Offsets and scales of sites: estimated by an objective that never falls, corrected, and said in words."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits, load_wine
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture

import modelweld
from modelweld import SiteEffectWarning, fuse
from modelweld.core.beta_bernoulli import BetaBernoulli
from modelweld.core.match import Plan
from modelweld.fit.effects.corrections import SiteEffects
from modelweld.fit.effects.effect_starts import totals_of
from modelweld.fit.effects.equations import Design
from modelweld.fit.effects.first_look import find_site_effects
from modelweld.fit.effects.search import Problem
from modelweld.fit.effects.words import SiteEffect, describe_effects
from modelweld.fit.screening.totals import Totals, find_units
from modelweld.fit.screening.unit_table import UNITS
from modelweld.inputs.stacks import stack_arrays
from modelweld.shards import fuse_shards

WINE = load_wine()


def draw(seed=0, J=6, D=4, L=7, noise=0.1):
    """Sites that hold seven of ten atoms, and the atom of each value."""
    rng = np.random.default_rng(seed)
    atoms = rng.normal(3.0, 1.0, (10, D))
    held = [rng.permutation(10)[:L] for _ in range(J)]
    return [atoms[k] + rng.normal(0, noise, (L, D)) for k in held], np.concatenate(held)


def offset_all(sites, rng):
    return [site + rng.normal(0, 1, site.shape[1]) for site in sites]


def offset_one(sites, rng):
    return [site + 2.0 * (j == 2) for j, site in enumerate(sites)]


def scale_all(sites, rng):
    return [site * np.exp(rng.normal(0, 0.3, site.shape[1])) for site in sites]


def change_unit(sites, rng):
    return [
        site * np.where(np.arange(site.shape[1]) == 1, 25.4 if j == 2 else 1.0, 1.0) for j, site in enumerate(sites)
    ]


def standardise(sites, rng):
    return [(site - site.mean(0)) / site.std(0) for site in sites]


def two_batches(sites, rng):
    return [site + (j % 2) * np.array([1.5, -1.0, 0.7, 1.2]) for j, site in enumerate(sites)]


WAYS = [offset_all, offset_one, scale_all, change_unit, standardise, two_batches]


@pytest.mark.filterwarnings("ignore::modelweld.ModelweldWarning")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", range(3))
def test_sites_that_differ_are_matched_as_if_they_did_not(way, seed):
    sites, truth = draw(seed, J=8)
    odd = fuse(way(sites, np.random.default_rng(seed)))
    assert odd.site_effects or way is standardise
    score = adjusted_rand_score(truth, np.concatenate(odd.labels))
    assert score > (0.75 if way is standardise else 0.9), score


@pytest.mark.filterwarnings("ignore::modelweld.ModelweldWarning")
@pytest.mark.parametrize("seed", [4, 5])
def test_offsets_are_looked_for_where_values_lie_far_from_their_atoms(seed):
    """Small offsets, half of the values shared: matched as they are, most values have a partner, and the wrong one."""
    rng = np.random.default_rng(seed)
    shared, sites = rng.normal(0, 1, (4, 5)), []
    for _ in range(3):
        atoms = np.vstack([shared, rng.normal(0, 1, (4, 5))])
        sites.append(atoms + rng.normal(0, 0.1, (8, 5)) + rng.normal(0, 0.5, 5))
    truth = np.concatenate([[*range(4), *range(4 + 4 * j, 8 + 4 * j)] for j in range(3)])
    assert adjusted_rand_score(truth, np.concatenate(fuse(sites).labels)) > 0.9


@pytest.mark.parametrize("seed", range(20))
def test_clean_sites_are_left_as_they_are(seed):
    J, D = 2 + seed % 7, 2 + seed % 5
    with warnings.catch_warnings():
        warnings.simplefilter("error", SiteEffectWarning)
        assert fuse(draw(seed, J, D, noise=0.2)[0]).site_effects == []


def problem_of(sites):
    stack = stack_arrays(sites)
    return Problem(stack, modelweld.Gaussian(), Plan("auto"), BetaBernoulli(), totals_of(stack))


@pytest.mark.parametrize("scaled", [False, True])
def test_equations_are_the_derivatives_of_the_objective(scaled):
    """b - A e is the slope, and A the curvature, of the log density in each effect; scales nearly so."""
    sites, truth = draw(1, J=4)
    problem, rng = problem_of(sites), np.random.default_rng(0)
    at = SiteEffects(rng.normal(0, 0.05, (4, 4)), np.zeros((4, 4)))
    board = problem.board(at, truth)
    design = Design(board, at, problem.deviation**2, problem.allowed)

    def density(effects):
        moved = replace(problem, asked=problem.asked).board(effects, truth)
        moved.restore(moved.state()._replace(families=board.families, prior=board.prior))
        return moved.objective() - sum(7 * effects.log_scale.ravel())

    which, step = int(scaled), 1e-4
    for j, d in [(0, 0), (2, 3), (3, 1)]:
        value = []
        for by in (-step, 0.0, step):
            effects = SiteEffects(at.offset.copy(), at.log_scale.copy())
            effects[which][j, d] += by
            value.append(density(effects))
        i = j + 4 * which
        slope = design.b[d, i] - design.A[d, i] @ at.coefficients[d]
        assert (value[2] - value[0]) / (2 * step) == pytest.approx(slope, rel=1e-3, abs=1e-2)
        if not scaled:
            assert -(value[2] - 2 * value[1] + value[0]) / step**2 == pytest.approx(design.A[d, i, i], rel=1e-2)
        assert design.A[d, i, i] == pytest.approx(design.curvature[d, i])


@pytest.mark.parametrize("way", WAYS)
def test_no_step_lowers_the_objective(way, monkeypatch):
    judged, solve = [], Problem.solve

    def watch(self, labels, start, scaled):
        before = self.judge(start, labels)[0].value
        found = solve(self, labels, start, scaled)
        judged.append(found.value - before)
        return found

    monkeypatch.setattr(Problem, "solve", watch)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fuse(way(draw(0)[0], np.random.default_rng(0)), site_effects=True)
    assert len(judged) > 2
    assert min(judged) >= 0


@pytest.mark.filterwarnings("ignore::modelweld.ModelweldWarning")
def test_the_order_of_sites_does_not_matter():
    sites = offset_all(draw(3)[0], np.random.default_rng(3))
    order = [4, 0, 5, 2, 1, 3]
    here, there = fuse(sites), fuse([sites[j] for j in order])
    assert np.array_equal(here.matching.effects.offset[order], there.matching.effects.offset)
    assert [here.labels[j].tolist() for j in order] == [labels.tolist() for labels in there.labels]


def test_what_was_found_is_said_and_may_be_refused():
    sites = offset_one(draw(4)[0], None)
    with pytest.warns(SiteEffectWarning, match=r"site '2': dimension 0 lies .* above the others") as caught:
        fusion = fuse(sites)
    assert str(caught[0].message) in fusion.matching.reasons
    assert {effect.site for effect in fusion.site_effects} == {"2"}
    assert [effect.offset for effect in fusion.site_effects] == pytest.approx([2.0] * 4, abs=0.2)
    with warnings.catch_warnings():
        warnings.simplefilter("error", SiteEffectWarning)
        assert fuse(sites, site_effects=False).matching.effects is None
        assert fuse(sites, search="plain").matching.effects is None
        assert fuse(sites, preset="paper").matching.effects is None
    with pytest.raises(modelweld.InputError, match="site_effects is True, False or 'auto'"):
        fuse(sites, site_effects="yes")


@pytest.mark.parametrize(("factor", "small", "large"), UNITS)
def test_known_units_are_named_both_ways(factor, small, large):
    assert f"{small} for {large}" in SiteEffect("a", "'x'", factor, 0.0).unit
    assert f"{large} for {small}" in SiteEffect("a", "'x'", 1 / factor, 0.0).unit
    assert SiteEffect("a", "'x'", 1.8, 32.0).unit == "degrees Fahrenheit for Celsius"
    assert SiteEffect("a", "'x'", 1 / 1.8, -32 / 1.8).unit == "degrees Celsius for Fahrenheit"
    assert SiteEffect("a", "'x'", 4.0, 0.0).unit == ""


def test_many_sites_are_described_together():
    effects = SiteEffects(np.ones((9, 2)), np.zeros((9, 2)))
    (said,) = describe_effects(effects, [f"s{j}" for j in range(9)], ["'age'", "'mass'"])
    assert said.startswith("9 of 9 sites differ by offsets or scales; at one of them 'age' lies 1 above the others")


@pytest.mark.parametrize(("number", "J"), [(1, 2), (2, 3), (2, 4), (3, 5), (2, 6), (3, 6), (3, 9)])
def test_no_site_is_named_where_more_than_a_third_would_be(number, J):
    effects = SiteEffects((np.arange(J) < number)[:, None] * np.ones((J, 2)), np.zeros((J, 2)))
    said = describe_effects(effects, [f"s{j}" for j in range(J)], ["'age'", "'mass'"])
    assert ("site 's0'" in said[0]) == (number < J / 3 + 1)


@pytest.mark.parametrize(("factor", "J"), [(1000.0, 3), (1000.0, 6), (1 / 12, 3), (1 / 12, 6), (7.0, 6)])
def test_a_column_in_another_unit_is_found_in_mixtures(factor, J):
    parts = np.array_split(np.random.default_rng(0).permutation(len(WINE.data)), J)
    sites = {}
    for j, rows in enumerate(parts):
        mixture = GaussianMixture(3, covariance_type="diag", random_state=0).fit(WINE.data[rows] / WINE.data.std(0))
        scale = WINE.data.std(0) * np.where(np.arange(13) == 4, factor if j == 1 else 1.0, 1.0)
        mixture.means_, mixture.covariances_ = mixture.means_ * scale, mixture.covariances_ * scale**2
        sites[f"clinic {j}"] = modelweld.read(mixture, features=WINE.feature_names)
    with pytest.warns(SiteEffectWarning, match="site 'clinic 1': feature 'magnesium' is about"):
        fusion = fuse(sites)
    (effect,) = fusion.site_effects
    assert effect.scale == pytest.approx(factor, rel=0.15)
    common, own = fusion.model("moments"), fusion.model("moments", site="clinic 1")
    assert np.allclose(own.means_[:, 4], common.means_[:, 4] * effect.scale + effect.offset)
    assert np.allclose(own.means_[:, 3], common.means_[:, 3])
    assert np.allclose(own.covariances_[:, 4], common.covariances_[:, 4] * effect.scale**2)


def test_units_are_told_by_mean_and_deviation_together():
    mean, deviation = np.array([[20.0], [17.0], [22.0], [19.0]]), np.array([[8.0], [7.0], [8.5], [9.0]])

    def unit(m, s):
        means, deviations = np.vstack([mean, [[m]]]), np.vstack([deviation, [[s]]])
        found = find_units([Totals(*x, 1e3, 1e3) for x in zip(means, deviations, strict=True)])
        return None if found is None else (found.log_scale[-1, 0], found.offset[-1, 0])

    assert unit(140.0, 56.0) == (pytest.approx(np.log(7.0)), 0.0)
    assert unit(20.0 * 1.8 + 32, 8.0 * 1.8) == (pytest.approx(np.log(1.8)), pytest.approx(32 / 1.8))
    assert unit(20.0, 8.0) is None
    assert unit(26.0, 9.0) is None
    assert unit(140.0, 8.0) is None


@pytest.mark.filterwarnings("ignore::modelweld.ModelweldWarning")
def test_effects_are_kept_in_files_and_follow_sites(tmp_path):
    fusion = fuse(offset_one(draw(5)[0], None))
    again = modelweld.load(fusion.save(tmp_path / "fusion.safetensors"))
    assert again.site_effects == fusion.site_effects
    assert again.remove("0").site_effects == [e for e in fusion.site_effects if e.site != "0"]
    assert again.remove("2").site_effects == []


def test_a_site_that_is_added_is_corrected():
    *old, new = draw(8, J=7)[0]
    fusion = fuse(old)
    with pytest.warns(SiteEffectWarning, match="site 'late'|sites 'late'"):
        larger = fusion.add(new + 3.0, site="late")
    assert {effect.site for effect in larger.site_effects} >= {"late"}
    assert fusion.K == larger.K


def test_shards_exclude_what_they_cannot_correct():
    sites = offset_one(draw(7)[0], None)
    with pytest.warns(SiteEffectWarning, match="site '2'.* excluded"):
        fused = fuse_shards([sites]).to_fusion()
    assert (fused.labels[2] >= fused.K).all()


@pytest.mark.filterwarnings("ignore::modelweld.ModelweldWarning")
def test_aligned_sites_share_something_only_if_they_do():
    rng = np.random.default_rng(0)
    yes = [fuse(offset_all(draw(s, J=5)[0], rng)).worth_merging().worth for s in range(5)]
    apart = [[rng.normal(0, 1, (7, 4)) + rng.normal(0, 1, 4) for _ in range(5)] for _ in range(10)]
    no = [fuse(sites, site_effects=True).worth_merging().worth for sites in apart]
    assert yes == [True] * 5
    assert no.count(True) <= 2


def test_too_few_or_too_many_are_not_looked_at():
    for sites in ([[[1.0, 2.0]], [[1.0, 2.1]]], [np.full((3, 2), -2.0)] * 2, draw(0, J=300, L=3)[0]):
        stack = stack_arrays(sites)
        matching = fuse(sites).matching
        assert find_site_effects(stack, matching, Plan("auto"), lambda units: modelweld.Gaussian()) is None


def test_features_that_are_mostly_zero_say_nothing_of_sites():
    """Clusters of digits: corner pixels are zero but for a digit or two, and constant at some sites."""
    X, y = load_digits(return_X_y=True)
    own = np.random.default_rng(0).integers(4, size=len(X))
    held = [[0, 1, 2, 3], [3, 4, 5, 6], [6, 7, 8, 9], [0, 4, 8, 9]]
    rows = [X[(own == j) & np.isin(y, held[j])] for j in range(4)]
    models = [modelweld.read(KMeans(4, n_init=2, random_state=0).fit(part), X=part) for part in rows]
    assert fuse(models).site_effects == []
