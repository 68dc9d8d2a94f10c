"""A slim fusion: exact at fixed hyperparameters, and nothing that a site sent is in it."""

import pickle

import numpy as np
import pytest

from modelweld import (
    BetaBernoulli,
    Counts,
    Gaussian,
    InputError,
    LocalModel,
    NormalGamma,
    Search,
    Spectrum,
    fuse,
    load,
    simulate,
)
from modelweld.shards import fuse_shards, group_sites
from oracles import believing
from shared import baselines

DATA = simulate.sparse(15, 12, 6, 0.5, 6.0, 1, 1, seed=4)
FAMILIES = {
    "diagonal": Gaussian(),
    "scalar": Gaussian(shape="scalar"),
    "moments": Gaussian(learning="moments"),
    "fixed": Gaussian(mean=0.0, noise=0.25, spread=36.0, learning="nothing"),
    "uneven noise": NormalGamma(),
}


def in_order(atoms, *others):
    """Rows sorted, whatever the numbers of atoms."""
    order = np.lexsort(np.asarray(atoms).T)
    return [np.asarray(x)[order] for x in (atoms, *others)]


def same(one, other):
    """Equal atoms, counts, K and objective."""
    assert one.K == other.K
    assert one.objective == pytest.approx(other.objective)
    for a, b in zip(in_order(one.atoms, one.counts), in_order(other.atoms, other.counts), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
@pytest.mark.parametrize("prior", [BetaBernoulli(), Spectrum(), BetaBernoulli(form="paper")])
def test_adding_is_what_the_fusion_would_do(family, prior):
    fusion = fuse(DATA.values[:-2], family, prior)
    slim = fusion.slim()
    same(slim, fusion)
    for values in DATA.values[-2:]:
        fusion, slim = fusion.add(values, refit=False), slim.add(values, refit=False)
        same(slim, fusion)


def test_shards_are_sums_too(tmp_path):
    data = simulate.paper_figure(80, 1.0, seed=2)
    fused = fuse_shards(group_sites(data.values[:-1]))
    slim = fused.to_fusion().slim()
    for one in (fused, load(fused.save(tmp_path / "shards.safetensors"))):
        same(one.add(data.values[-1], refit=False), slim.add(data.values[-1], refit=False))
    models = [LocalModel({"v": v}, {"v": ("atom", None)}, variance={"v": 0.1}) for v in data.values]
    with pytest.raises(InputError, match="standard errors"):
        fuse_shards(group_sites(models)).add(models[0])


@pytest.mark.parametrize("seed", range(5))
def test_removing_what_was_added_gives_the_same_sums(seed):
    data = simulate.sparse(15, 9, 6, 0.5, 6.0, 1, 1, seed=seed)
    slim = fuse(data.values[:-2]).slim()
    more, receipts = slim, []
    for values in data.values[-2:]:
        receipts.append(more.place(values))
        more = more.add(values, refit=False)
        assert set(receipts[-1]) <= set(more.names)
    back = more
    for values, receipt in zip(data.values[-2:], receipts, strict=True):  # the first to come is the first to go
        back = back.remove(values, receipt, refit=False)
    for name in ("counts", "sizes", "names"):
        assert np.array_equal(getattr(back, name), getattr(slim, name))
    np.testing.assert_allclose(back.sums["values"], slim.sums["values"], rtol=1e-9, atol=1e-9)
    assert back.objective == pytest.approx(slim.objective)


def test_a_fused_site_leaves_with_its_labels():
    fusion = fuse(DATA.values)
    less = fusion.slim().remove(DATA.values[3], fusion.labels[3], refit=False)
    same(less, fusion.remove(3, refit=False))


def test_hyperparameters_are_learned_from_the_sums():
    fusion = fuse(DATA.values[:-1])
    fixed, learned = (fusion.slim().add(DATA.values[-1], refit=refit) for refit in (False, True))
    assert learned.objective > fixed.objective
    # where the matching is clear, sweeping on would change nothing; there are no values to vote on the noise again
    afresh = believing(fusion, fuse(DATA.values))
    same(learned, afresh)
    for name, value in afresh.hyperparameters.items():
        np.testing.assert_allclose(learned.hyperparameters[name], value, rtol=1e-3)


def test_nothing_that_a_site_sent_is_left():
    names = [f"hospital {j}" for j in range(12)]
    models = [
        LocalModel(
            {"means": v, "secret": np.arange(len(v)) + 1234.56789},
            {"means": ("atom", None), "secret": ("atom",)},
            auxiliary=["secret"],
            site=name,
            facts={"secret": "of the house"},
        )
        for name, v in zip(names, DATA.values, strict=True)
    ]
    fusion = fuse(models)
    for slim in (fusion.slim(), fuse(models[:-1]).slim().add(models[-1])):
        stored = pickle.dumps(slim)
        assert b"hospital" not in stored
        assert b"of the house" not in stored
        for model in models:
            assert all(number.tobytes() not in stored for array in model.arrays.values() for number in array.ravel())
        again = pickle.loads(stored)
        same(again, slim)
        assert np.array_equal(slim.sizes, np.sort(slim.sizes))  # not in the order of sites


def test_outliers_go_with_their_sites():
    values = [*DATA.values, 1e4 * np.random.default_rng(0).normal(size=DATA.values[0].shape)]
    with pytest.warns(UserWarning, match="excluded|outlier|far"):
        fusion = fuse(values)
    slim = fusion.slim()
    assert len(slim.names) == len(fusion.counts) - len(values[-1])
    assert len(slim.sizes) == len(DATA.values)
    assert slim.K == fusion.K
    assert slim.objective == pytest.approx(fusion.objective)
    assert np.abs(slim.atoms).max() < 1e3


def test_counts_with_names_in_another_order():
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(6, 0.3), 4)

    def site(words, name):
        counts = rng.poisson(400 * topics)
        order = ["abcdef".index(word) for word in words]
        return LocalModel(
            {"counts": counts[:, order]}, {"counts": ("topic", "word")}, coordinates={"word": list(words)}, site=name
        )

    models = [site("abcdef", f"s{j}") for j in range(4)] + [site("fedcba", "late")]
    family = Counts(between=np.inf)
    fusion = fuse(models[:-1], family)
    same(fusion.slim().add(models[-1], refit=False), fusion.add(models[-1], refit=False))
    with pytest.raises(InputError, match="not those of site"):
        fusion.slim().add(site("abcdef", "x").with_(coordinates={"word": list("abcdeg")}))


def test_several_arrays_and_weights():
    rng = np.random.default_rng(1)
    W, b = rng.normal(0, 3, (5, 4)), rng.normal(0, 3, 5)
    axes = {"W": (None, "unit"), "b": ("unit",)}

    def site(weight=True):
        held = rng.permutation(5)[:4]
        arrays = {"W": W.T[:, held] + rng.normal(0, 0.1, (4, 4)), "b": b[held] + rng.normal(0, 0.1, 4)}
        return LocalModel(arrays, axes, weight={"b": rng.uniform(1, 3, 4)} if weight else {})

    models = [site() for _ in range(6)]
    fusion = fuse(models[:-1])
    slim, more = fusion.slim().add(models[-1], refit=False), fusion.add(models[-1], refit=False)
    assert slim.objective == pytest.approx(more.objective)
    assert {name: v.shape for name, v in slim.values.items()} == {"W": (5, 4), "b": (5, 1)}
    with pytest.raises(InputError, match=r"ask for values"):
        slim.atoms  # noqa: B018
    with pytest.raises(InputError, match="sent one and this one does not"):
        slim.add(site(weight=False))


def test_fitted_models_are_read():
    sklearn = pytest.importorskip("sklearn.cluster")
    rng = np.random.default_rng(0)
    centres = np.array([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0]])
    sites = [
        sklearn.KMeans(3, n_init=1, random_state=0).fit(
            np.concatenate([c + rng.normal(0, 0.5, (30, 2)) for c in centres])
        )
        for _ in range(4)
    ]
    fusion = fuse(sites[:-1])
    assert fusion.add(sites[-1]).K == 3
    with pytest.raises(InputError, match="send a variance"):
        fusion.slim()


def test_an_empty_site_counts_as_a_site():
    slim = fuse(DATA.values).slim().add(np.zeros((0, 6)))
    assert len(slim.sizes) == 13
    assert slim.place([]).tolist() == []


@pytest.mark.parametrize("name", ["labels", "given", "model", "report"])
def test_what_takes_local_values_is_no_attribute(name):
    slim = fuse(DATA.values[:3]).slim()
    with pytest.raises(AttributeError, match=f"{name}.*neither values nor labels"):
        getattr(slim, name)


@pytest.mark.parametrize(
    ("sites", "options", "match"),
    [
        ([LocalModel({"v": v}, {"v": ("a", None)}, variance={"v": 0.1}) for v in DATA.values], {}, "send a variance"),
        (DATA.values, {"families": Gaussian(shape="full")}, "rows depend on learned"),
        (simulate.over_segmented(seed=0).values, {"search": Search(splits=True)}, "in fragments"),
        ([LocalModel({"w": np.eye(3), "b": np.ones((3, 1))}, {"w": ("b", "a"), "b": ("b", None)})], {}, "one set"),
    ],
)
def test_where_sums_do_not_tell_all_it_is_refused(sites, options, match):
    with pytest.raises(InputError, match=match):
        fuse(sites, **options).slim()


def test_a_baseline_has_no_model_to_go_on_with():
    with pytest.raises(InputError, match="no model"):
        baselines.kmeans_matching(DATA.values, 5).slim()


def test_what_cannot_be_removed():
    fusion = fuse(DATA.values)
    slim, values = fusion.slim(), DATA.values[0]
    with pytest.raises(InputError, match=f"{len(values)} different ones"):
        slim.remove(values, fusion.labels[0][:-1])
    with pytest.raises(InputError, match="no site with 1 values"):
        slim.remove(values[:1], fusion.labels[0][:1])
    lonely = slim.add([[500.0] * 6, [-500.0] * 6])
    alone = lonely.names[-2:]
    with pytest.raises(InputError, match="give the same values"):
        lonely.remove([[499.0] * 6, [-500.0] * 6], alone)
    one = fuse(DATA.values[:1]).slim()
    with pytest.raises(InputError, match="nothing would be left"):
        one.remove(DATA.values[0], one.names)
    with pytest.raises(InputError, match="like those before"):
        fuse([LocalModel({"v": v}, {"v": ("a", None)}) for v in DATA.values]).slim().add(values)
    with pytest.raises(InputError, match="fixed coordinates"):
        slim.add(np.zeros((2, 3)))
    with pytest.raises(InputError, match="is not there"):
        slim.add(LocalModel({"v": values}, {"v": ("atom", None)}))


def test_groups_of_single_sites_are_counted_and_those_of_several_told():
    fusion = fuse([*DATA.values, np.full((1, DATA.values[0].shape[1]), 50.0)], screens=[])
    slim = fusion.slim()
    assert (slim.K, slim.shared) == (fusion.K, fusion.shared)
    assert slim.shared == (slim.counts > 1).sum() < slim.K
