"""Objects are short in print and tables in notebooks; names of strangers are text there, never markup."""

from html.parser import HTMLParser

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

import modelweld
from modelweld import LocalModel
from modelweld.results.posterior.intervals import Intervals

EVIL = '<script>alert(1)</script>&"'
MOST_OF_A_REPR = 250


class Tags(HTMLParser):
    """Tags and text of a page."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.text = set(), []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        assert not attrs

    def handle_data(self, data):
        self.text.append(data)


@pytest.fixture(scope="module")
def shown():
    rng = np.random.default_rng(0)
    atoms = rng.normal(0, 9, (22, 12))
    names = [EVIL, *(f"f{d}" for d in range(11))]
    axes = {"values": (EVIL, "feature")}
    sites = [
        LocalModel(
            {"values": atoms + rng.normal(0, 0.1, atoms.shape)},
            axes,
            variance={"values": np.full(atoms.shape, 0.01)},
            coordinates={"feature": names},
            site=EVIL + str(j),
        )
        for j in range(3)
    ]
    fusion = modelweld.fuse(sites)
    drawn = fusion.posterior.sample(draws=4, chains=2, fixed=True)
    return {
        "LocalModel": sites[0],
        "Fusion": fusion,
        "MergeVerdict": fusion.worth_merging(draws=19),
        "Posterior": drawn,
    }


@pytest.mark.parametrize("name", ["LocalModel", "Fusion", "MergeVerdict", "Posterior"])
def test_objects_are_short_in_print_and_tables_in_notebooks(shown, name):
    one = shown[name]
    assert repr(one).startswith(f"<{name}")
    assert len(repr(one)) < MOST_OF_A_REPR
    page = Tags(one._repr_html_())
    assert page.tags - {"thead", "tbody", "p"} == {"table", "caption", "tr", "th", "td"}
    assert name in ("MergeVerdict", "Posterior") or any(EVIL in text for text in page.text)


def test_a_fusions_table_is_that_of_its_groups(shown):
    fusion = shown["Fusion"]
    heads, rows = fusion.table().cells()
    text = Tags(fusion._repr_html_()).text
    assert {*heads, *rows[0], *rows[-1], *fusion.table().notes()} <= set(text)
    assert len(rows) == 22


def test_a_fusion_of_classes_has_nothing_to_list():
    sites = [GaussianNB().fit(np.eye(4)[:, :2] + j, [0, 0, 1, 1]) for j in range(2)]
    assert "classes by name" in "".join(Tags(modelweld.fuse(sites)._repr_html_()).text)


def test_intervals_are_spelt():
    values = np.array([[1.0, 2.0]])
    found = Intervals(values, values - 1, values + 1, 0.8)
    assert repr(found) == "<Intervals: 1 values of 2 dimensions, intervals of probability 0.8>"
    assert "2.0 (1.0 to 3.0)" in Tags(found._repr_html_()).text


def test_several_sets_are_listed():
    rng = np.random.default_rng(1)
    one = LocalModel(
        {"W0": rng.normal(0, 1, (2, 3)), "W1": rng.normal(0, 1, (3, 2))}, {"W0": (None, "h0"), "W1": ("h0", "h1")}
    )
    fusion = modelweld.fuse([one, one.with_(site="b")], screens=["outliers"])
    assert {"h0", "h1"} <= set(Tags(fusion._repr_html_()).text)
