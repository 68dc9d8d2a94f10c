"""Real tables whose rows are split over sites at random: case d."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
from draws import Array, Draw, Group, Index, with_effect
from estimated import Site, drawn, majority, mixture
from sklearn import datasets
from sklearn.decomposition import PCA

from modelweld.demo.hospitals import HOSPITALS, load_hospital

DIRECTIONS = 10
"""Principal components of digits."""

RESTARTS, RIDGE = 3, 0.05
"""Of local fits, in units of the columns' deviations: tables have columns with many equal values."""

MOST_GROUPS = 6
"""Groups of patients among which the BIC chooses on all rows."""

CHOLESTEROL = 2
"""Column of the hospitals' tables that Switzerland never measured."""


def standard(X: Array) -> Array:
    """Columns in units of their deviations."""
    return (X - X.mean(axis=0)) / X.std(axis=0)


def digits() -> tuple[Array, Index, str]:
    """Images in ten directions, in units of the first one's deviation over three."""
    X, y = datasets.load_digits(return_X_y=True)
    Z = PCA(DIRECTIONS, random_state=0).fit_transform(X)
    return 3 * Z / Z[:, 0].std(), y, "full"


def classes(load: Callable[..., tuple[Array, Index]]) -> tuple[Array, Index, str]:
    """A table of scikit-learn with its classes."""
    X, y = load(return_X_y=True)
    return standard(X), y, "diag"


def heart() -> tuple[Array, Index, str]:
    """Patients of four hospitals; no truth is known, so the groups that one mixture of all rows finds are it."""
    rows = np.concatenate([load_hospital(name)[0] for name in HOSPITALS])
    rows = np.delete(rows, CHOLESTEROL, axis=1)
    X = standard(rows[~np.isnan(rows).any(axis=1)])
    models = [mixture(X, n, "diag", 10, 0, RIDGE) for n in range(1, MOST_GROUPS + 1)]
    return X, min(models, key=lambda m: float(m.bic(X))).predict(X), "diag"


TABLES: dict[str, Callable[[], tuple[Array, Index, str]]] = {
    "digits": digits,
    "wine": partial(classes, datasets.load_wine),
    "breast cancer": partial(classes, datasets.load_breast_cancer),
    "heart": heart,
}


def split(name: str, sizes: Sequence[int], seed: int, offset: float = 0.0) -> Iterator[tuple[str, Draw]]:
    """Cells of one table: its rows dealt to J sites, each of which is given the number of groups.

    `offset` is by how many of the columns' deviations sites then differ.
    """
    X, y, shape = TABLES[name]()
    K = len(np.unique(y))
    for J in sizes:
        rng = np.random.default_rng([400, list(TABLES).index(name), seed, J])
        dealt = np.array_split(rng.permutation(len(X)), J)
        own = with_effect([X[rows] for rows in dealt], "offset", offset, X.std(axis=0), rng.spawn(1)[0])
        sites = []
        for rows, points in zip(dealt, own, strict=True):
            with warnings.catch_warnings(action="ignore"):
                model = mixture(points, K, shape, RESTARTS, int(rng.integers(2**31)), RIDGE)
            sites.append(Site(model, model.means_, majority(model.predict_proba(points), y[rows]), points))
        yield f"J={J}", drawn(sites)


def groups(sizes: Sequence[int] = (2, 3, 5)) -> Iterator[Group]:
    """Case d."""
    for name in TABLES:
        yield Group("real", name, partial(split, name, sizes))
