"""Adding and removing a site: exact at fixed hyperparameters, and no trace is left."""

import pickle

import numpy as np
import pytest

import modelweld
from modelweld import BetaBernoulli, InputError, LocalModel, fuse, simulate
from modelweld.demo.metrics import adjusted_rand
from shared import baselines

DATA = simulate.sparse(15, 12, 6, 0.5, 6.0, 1, 1, seed=4)


def test_removing_what_was_added_gives_the_same():
    base = fuse(DATA.values[:-1])
    more = base.add(DATA.values[-1], site="late", refit=False)
    assert more.sites[-1] == "late"
    assert len(more.labels) == 12
    back = more.remove("late", refit=False)
    assert np.array_equal(back.matching.stacked_labels, base.matching.stacked_labels)
    assert back.objective == pytest.approx(base.objective)
    assert np.allclose(back.atoms, base.atoms)


def test_a_site_is_placed_at_its_best_and_others_stay():
    base = fuse(DATA.values[:-1])
    more = base.add(DATA.values[-1], refit=False)
    assert more.diagnosis.family is base.diagnosis.family
    # same partition of the others, whatever the numbers of atoms
    assert adjusted_rand(np.concatenate(more.labels[:-1]), np.concatenate(base.labels)) == 1.0
    assert adjusted_rand(DATA.truth, more.labels) == 1.0


@pytest.mark.parametrize("site", range(0, 12, 3))
def test_after_a_refit_it_is_what_a_fit_gives(site):
    whole = fuse(DATA.values)
    less = whole.remove(site)
    afresh = fuse([v for j, v in enumerate(DATA.values) if j != site])
    assert adjusted_rand(np.concatenate(less.labels), np.concatenate(afresh.labels)) == 1.0
    assert less.objective == pytest.approx(afresh.objective, abs=0.1)
    again = less.add(DATA.values[site])
    assert again.objective == pytest.approx(whole.objective, abs=0.1)
    assert adjusted_rand(DATA.truth[site], again.labels[-1]) == 1.0


def test_no_trace_of_a_site_is_left():
    """Replace the site's numbers by others that are matched the same way: what is left is the same, bit for bit."""
    secret = 1234.56789
    results = []
    for nudge in (0.0, 1e-3):
        values = [v.copy() for v in DATA.values]
        values[5] = values[5] + nudge
        values[5][0] += secret
        results.append(fuse(values, screens=["duplicates"]).remove("5"))
    a, b = results
    assert a.sites == b.sites
    assert "5" not in a.sites
    assert np.array_equal(a.matching.stacked_labels, b.matching.stacked_labels)
    assert np.allclose(a.atoms, b.atoms, rtol=1e-6)
    assert a.objective == pytest.approx(b.objective)
    stored = pickle.dumps([a._fit.given, a.matchings])
    for row in DATA.values[5]:
        assert row.tobytes() not in stored
    assert np.abs(a.atoms).max() < 100


def test_compiled_fits_are_revised_by_compiled_sweeps():
    data = simulate.paper_figure(80, 1.0, seed=2)
    base = fuse(data.values[:-1])
    assert base.matching.engine == "compiled"
    placed = base.add(data.values[-1], refit=False)
    assert placed.matching.engine == "compiled"
    assert adjusted_rand(data.truth, placed.labels) == 1.0
    back = placed.remove("79", refit=False)
    assert back.objective == pytest.approx(base.objective)
    more = base.add(data.values[-1])
    assert more.objective == pytest.approx(fuse(data.values).objective)


def test_several_sets_and_standard_errors():
    rng = np.random.default_rng(0)
    axes = {"W": (None, "unit"), "V": ("unit", "out")}
    W, V = rng.normal(0, 3, (4, 6)), rng.normal(0, 3, (6, 3))

    def site(name):
        p, q = rng.permutation(6)[:5], rng.permutation(3)
        arrays = {"W": W[:, p], "V": V[np.ix_(p, q)]}
        noisy = {n: a + rng.normal(0, 0.1, a.shape) for n, a in arrays.items()}
        return LocalModel(noisy, axes, variance={"W": 0.01}, site=name)

    models = [site(f"s{i}") for i in range(7)]
    fusion = fuse(models[:-1]).add(models[-1])
    assert fusion.sites == [f"s{i}" for i in range(7)]
    assert (fusion.matchings["unit"].K, fusion.matchings["out"].K) == (6, 3)
    less = fusion.remove("s2")
    assert less.sites == ["s0", "s1", "s3", "s4", "s5", "s6"]
    assert less.matchings["out"].K == 3


def test_what_cannot_be_is_refused():
    fusion = fuse(DATA.values[:2])
    with pytest.raises(InputError, match="no site 'x'"):
        fusion.remove("x")
    with pytest.raises(InputError, match="site '1' already"):
        fusion.add(DATA.values[2], site="1")
    with pytest.raises(InputError, match="nothing would be left"):
        fusion.remove("0").remove("1")
    with pytest.raises(InputError, match="no model to revise"):
        baselines.kmeans_matching(DATA.values, 5).remove("0")
    with pytest.raises(InputError, match="columns"):
        fusion.add(np.zeros((2, 3)))


def _random_sites(seed, J=7):
    """Noisy parts of overlapping atoms: hard enough that the way to the optimum matters."""
    rng = np.random.default_rng(seed)
    atoms = rng.normal(0, 2, (8, 2))
    return [atoms[held] + rng.normal(0, 0.5, (len(held), 2)) for held in (rng.permutation(8)[:5] for _ in range(J))]


@pytest.mark.parametrize("seed", range(12))
def test_removing_anew_is_fusing_without(seed):
    sites = _random_sites(seed)
    options = {
        "seed": seed,
        "search": modelweld.Search(splits=seed % 2 == 0),
        "prior": BetaBernoulli() if seed % 3 else "auto",
    }
    gone = seed % 7
    left = fuse(sites, **options).remove(gone, from_scratch=True)
    alone = fuse(sites[:gone] + sites[gone + 1 :], **options)
    assert left.sites == [str(j) for j in range(7) if j != gone]
    assert left.objective == alone.objective
    assert left.diagnosis.settings == alone.diagnosis.settings
    assert np.array_equal(left.atoms, alone.atoms)
    assert all(np.array_equal(a, b) for a, b in zip(left.labels, alone.labels, strict=True))


def test_anew_knows_what_was_added_and_removed():
    sites = _random_sites(0)
    fusion = fuse(sites[:5]).add(sites[5], site="late").remove("1").remove("0", from_scratch=True)
    alone = fuse([*sites[2:5], sites[5]])
    assert fusion.sites == ["2", "3", "4", "late"]
    assert fusion.objective == alone.objective


def test_anew_is_refused_where_the_call_is_not_known(tmp_path):
    fusion = modelweld.load(fuse(_random_sites(1)).save(tmp_path / "f.safetensors"))
    with pytest.raises(InputError, match="Fuse the other sites again"):
        fusion.remove("1", from_scratch=True)


@pytest.mark.parametrize("seed", range(12))
def test_what_comes_and_goes_leaves_the_labels_of_before_or_a_better_objective(seed):
    sites = _random_sites(seed)
    before = fuse(sites[:6])
    after = before.add(sites[6], site="late").remove("late")
    same = all(np.array_equal(a, b) for a, b in zip(before.labels, after.labels, strict=True))
    assert after.sites == before.sites
    assert after.diagnosis.settings["revised"] == 2
    assert same if after.diagnosis.settings["restored"] else after.objective > before.objective
    assert "restored" not in after.remove("1").diagnosis.settings


def test_no_value_of_a_site_that_left_is_kept():
    sites = _random_sites(3)
    mark = sites[2].tobytes()
    fusion = fuse(sites).add(_random_sites(4)[0], site="late").remove("2")
    assert mark not in pickle.dumps(fusion)
    assert mark not in pickle.dumps(fusion._fit.recipe.given)
    assert fusion._fit.before is None


def test_removing_anew_reads_bare_models_as_they_were_sent():
    """Standard errors that the centre made up for all sites are not taken for those that a site sent."""
    mixture = pytest.importorskip("sklearn.mixture").GaussianMixture
    rng = np.random.default_rng(5)
    atoms = rng.normal(0, 6, (4, 3))
    models = [
        mixture(4, random_state=0).fit(np.concatenate([rng.normal(m, 1, (40, 3)) for m in atoms])) for _ in range(5)
    ]
    left, alone = fuse(models).remove("4", from_scratch=True), fuse(models[:4])
    assert left.objective == alone.objective
    assert np.array_equal(left.model().means_, alone.model().means_)
