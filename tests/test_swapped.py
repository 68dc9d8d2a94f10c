"""A site whose columns are in another order than the others' is named; sites that merely differ are not."""

import warnings

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.mixture import GaussianMixture

import modelweld
from modelweld import NamesWarning
from modelweld.fit.screening.swapped_columns import find_swapped
from modelweld.fit.screening.totals import Totals

ALIKE = [(20.0, 8.0), (17.0, 7.0), (22.0, 8.5), (19.0, 9.0)]

X = load_wine().data[:, [0, 3, 4, 9]]


def said(order, J=4, fit=lambda rows: GaussianMixture(3, covariance_type="diag", random_state=0).fit(rows)):
    """What is said of J parts of the wine table, the last of which has its columns in this order."""
    parts = np.array_split(X[np.random.default_rng(0).permutation(len(X))], J)
    models = [fit(part[:, order] if j == J - 1 else part) for j, part in enumerate(parts)]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        reasons = modelweld.fuse(models).matching.reasons
    found = [str(w.message) for w in caught if w.category in (NamesWarning, modelweld.SiteEffectWarning)]
    assert set(found) <= set(reasons)
    return found


@pytest.mark.parametrize("fit", [lambda rows: GaussianMixture(2, random_state=0).fit(rows), lambda rows: rows[:12]])
@pytest.mark.parametrize("J", [4, 6])
def test_two_columns_that_are_exchanged_are_named(J, fit):
    (only,) = said([2, 1, 0, 3], J, fit)
    assert only.startswith(f"site '{J - 1}': its columns for dimension 0, dimension 2 seem to be mixed up")
    assert "features=[...]" in only


def test_so_is_any_order():
    (only,) = said([3, 2, 1, 0])
    assert "dimension 0, dimension 1, dimension 2, dimension 3" in only


@pytest.mark.parametrize("J", [3, 8])
def test_columns_in_order_are_left_in_peace(J):
    assert said([0, 1, 2, 3], J) == []


def columns(mean, deviation):
    return [Totals(m, s, 1e9, 1e9) for m, s in zip(mean, deviation, strict=True)]


def two_features(*sites):
    """Sites of two features, the second twice as large and as wide as the first."""
    m, s = np.array(sites).T
    return np.column_stack([m, 2 * m]), np.column_stack([s, 2 * s])


@pytest.mark.parametrize(("apart", "found"), [(1.5, False), (4.0, True)])
def test_columns_must_be_unlike_each_other(apart, found):
    mean, deviation = two_features(*ALIKE)
    mean[:, 1], deviation[:, 1] = apart * mean[:, 0], deviation[:, 0]
    mean[3] = mean[3, ::-1].copy()
    assert bool(find_swapped(columns(mean, deviation))) is found


@pytest.mark.parametrize("J", [2, 3])
def test_of_few_sites_nobody_knows_which(J):
    mean, deviation = two_features(*ALIKE[:J])
    mean[:, 1] += 1_000
    mean[1] = mean[1, ::-1].copy()
    assert find_swapped(columns(mean, deviation)) == []


@pytest.mark.parametrize("table", [load_iris, load_wine, load_breast_cancer, load_digits])
@pytest.mark.parametrize("split", ["class", "random"])
def test_standardised_tables_are_left_in_peace(table, split):
    rows, classes = table(return_X_y=True)
    rows = rows[:, rows.std(0) > 0][:, :12]
    rows = (rows - rows.mean(0)) / rows.std(0)
    own = classes if split == "class" else np.random.default_rng(1).integers(5, size=len(rows))
    models = [KMeans(3, n_init=2, random_state=0).fit(rows[own == k]) for k in np.unique(own)]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        modelweld.fuse(models)
    assert not [w for w in caught if "mixed up" in str(w.message)]
