"""The table of groups: what people read is what sites sent, every point counted once, under the labels' numbers."""

import sys

import numpy as np
import pytest
from sklearn.cluster import KMeans

import modelweld
from modelweld.kinds.class_table import class_table
from modelweld.kinds.mixture import mixture
from test_report import FUSIONS

ONES = np.ones((2, 2))
HELD = ([0, 1], [1, 2], [0, 1, 2])
UNITS = {"units": {"age": "years", "dose": "mg"}}


def site(means, counts, name="", **more):
    return mixture(means, ONES, counts, counted=True, features=["age", "dose"], site=name, facts=UNITS, **more)


@pytest.fixture(scope="module")
def sites():
    return [
        site([[40.0, 1.0], [70.0, 9.0]], [30.5, 10.5], "north"),
        site([[71.0, 9.5], [41.0, 1.5]], [90.0, 10.0], "south"),
        site([[40.5, 1.2], [10.0, 30.0]], [25.0, 75.0], "west"),
    ]


@pytest.fixture(scope="module")
def fusion(sites):
    return modelweld.fuse(sites)


def test_means_are_those_of_all_points_of_a_group():
    rng = np.random.default_rng(0)
    centres = np.array([[0.0, 0.0], [30.0, 0.0], [0.0, 30.0]])
    data = [np.concatenate([rng.normal(centres[k], 1, (rng.integers(20, 90), 2)) for k in held])
            for held in HELD]  # fmt: skip
    fits = [KMeans(len(held), n_init=3, random_state=0).fit(X) for held, X in zip(HELD, data, strict=True)]
    fusion = modelweld.fuse([modelweld.read(fit, X=X) for fit, X in zip(fits, data, strict=True)])
    table = fusion.table()
    group = np.concatenate([labels[fit.labels_] for labels, fit in zip(fusion.labels, fits, strict=True)])
    points = np.concatenate(data)
    for k in range(fusion.K):
        np.testing.assert_allclose(table.means[k], points[group == k].mean(0), rtol=1e-6)
        assert table.points[k] == (group == k).sum()
    np.testing.assert_allclose(table.means, fusion.model("moments").cluster_centers_, rtol=1e-6)


def test_every_point_is_in_one_row_and_one_column(fusion, sites):
    table = fusion.table()
    assert np.nansum(table.counts) + table.aside == sum(np.sum(s.arrays["counts"]) for s in sites)
    assert table.points.sum() == 241
    np.testing.assert_array_equal(np.nansum(table.counts, axis=1), table.points)
    for j, labels in enumerate(fusion.labels):
        for k, n in zip(labels, sites[j].arrays["counts"], strict=True):
            assert abs(table.counts[k, j] - n) <= 0.5
    assert np.isnan(table.counts).sum() == table.counts.size - sum(map(len, fusion.labels))


def test_rows_name_sites_features_and_units(fusion):
    text = str(fusion.table())
    for word in ("group", "points", "north", "south", "west", "age (years)", "dose (mg)"):
        assert word in text
    lines = text.splitlines()[2:5]
    assert [line.split()[0] for line in lines] == ["0", "1", "2"]


def test_a_fused_value_is_shown_where_it_differs_by_more_than_the_standard_error(fusion):
    from dataclasses import replace

    table = fusion.table()
    own = replace(table, fused=table.means + 0.9 * table.errors)
    assert "fused" not in str(own)
    other = replace(table, fused=table.means + 1.1 * table.errors)
    assert str(other).count("(fused ") == table.means.size


def test_standard_errors_fall_with_sites_and_grow_with_what_they_state():
    few, many = (modelweld.fuse([site([[40.0 + 0.1 * j, 1.0], [70.0, 9.0]], [50, 50]) for j in range(J)]).table()
                 for J in (4, 16))  # fmt: skip
    assert (many.errors < few.errors).all()


def test_a_repeated_site_counts_once(sites):
    with pytest.warns(modelweld.DuplicateWarning):
        twice = modelweld.fuse([*sites, sites[0].with_(site="copy")]).table()
    once = modelweld.fuse(sites).table()
    np.testing.assert_allclose(twice.points, once.points)
    np.testing.assert_allclose(twice.means, once.means)
    assert twice.counts.shape[1] == 4


def test_shares_are_not_added():
    bare = [mixture([[0.0, 0.0], [9.0, 9.0]], ONES, [0.25, 0.75], counted=False, site=s) for s in ("a", "b")]
    table = modelweld.fuse(bare, screens=["outliers"]).table()
    assert table.are_shares
    assert "a %" in str(table)
    assert "points" not in str(table)


def test_numbers_that_a_site_did_not_say_are_not_shown(sites):
    bare = mixture([[40.3, 1.1], [70.4, 9.2]], ONES, [0.5, 0.5], counted=False, features=["age", "dose"], site="bare")
    table = modelweld.fuse([*sites, bare]).table()
    assert np.isnan(table.counts[:, 3]).all()
    assert table.points.sum() + table.aside == 241


@pytest.mark.parametrize("name", FUSIONS)
def test_every_kind_has_a_table_of_its_groups(name):
    fusion = FUSIONS[name]()
    for set_name, matching in fusion.matchings.items():
        table = fusion.table(set_name)
        assert len(table) == matching.K
        np.testing.assert_array_equal(table.held_by, matching.counts[: matching.K])
        assert "<script" not in table._repr_html_()
        assert str(table).splitlines()[0].split()[0] == table.word


def test_topics_have_words_and_states_frames():
    topics = FUSIONS["topics"]().table()
    assert (topics.word, topics.counted, len(topics.words)) == ("topic", "words", len(topics))
    assert FUSIONS["hmm"]().table().counted == "frames"


def test_classes_have_no_table():
    table = class_table(np.zeros((2, 2)), np.ones((2, 2)), np.array([9.0, 9.0]), ["a", "b"], facts={"labels": {}})
    with pytest.raises(modelweld.InputError, match="nothing was matched"):
        modelweld.fuse([table, table]).table()


def test_pandas_is_asked_for_by_name(fusion, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        fusion.table().to_pandas()


@pytest.mark.dask
def test_a_data_frame_has_everything(fusion):
    table = fusion.table()
    frame = table.to_pandas()
    np.testing.assert_array_equal(frame["age (years)"], table.means[:, 0])
    np.testing.assert_array_equal(frame["points at south"], table.counts[:, 1])
    assert frame.index.name == "group"
