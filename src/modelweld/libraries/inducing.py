"""Inducing inputs for a Gaussian process that keeps its training data: near its rows, and none of them."""

from __future__ import annotations

import warnings

import numpy as np

from modelweld.core.values import Array
from modelweld.errors import InputError

MOST_POINTS = 50
"""Inducing inputs a site sends: as many as the paper's sites."""

FEWEST_ROWS = 3
"""Different training rows behind each inducing input: an average of three is no one's row."""

ASIDE = 0.3819660112501051
"""Share of the way to its farthest row that an average moves if it happens to be a row itself, as on a grid: the golden
section, so that it does not meet another row of the grid."""


def inducing_inputs(X: Array, y: Array, lengthscales: Array, points: int | None = None) -> Array:
    """Averages of neighbouring training rows, none of which is such a row.

    Rows are grouped by k-means in units of the lengthscales. This is no proof of privacy: averages of three rows tell
    something of the three.

    Parameters
    ----------
    X, y : arrays (N, D), (N,)
        Training rows and responses, which only decide the order in which rows are looked at.
    lengthscales : array (D,) or float
        Of the kernel.
    points : int, optional
        At most so many; default 50. Never more than a third of the different rows.

    Examples
    --------
    >>> X = np.arange(12.0)[:, None]
    >>> Z = inducing_inputs(X, np.sin(X[:, 0]), 1.0, points=4)
    >>> Z.shape, bool(np.isin(Z, X).any())
    ((4, 1), False)
    """
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    # the same order whatever that of rows or features
    X = X[np.lexsort((*X.T, y))]
    _, first = np.unique(X, axis=0, return_index=True)
    X = X[np.sort(first)]
    if len(X) < FEWEST_ROWS:
        raise InputError(
            f"the process has {len(X)} different training rows; at least {FEWEST_ROWS} are needed to make inducing "
            "inputs that are not among them. Give its parameters yourself: modelweld.kinds.sparse_gp.sparse_gp."
        )
    if points is not None and points < 1:
        raise InputError(f"points must be at least 1; found {points}.")
    M = max(1, min(MOST_POINTS if points is None else points, len(X) // FEWEST_ROWS))
    scaled = X / lengthscales
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        centres = KMeans(M, n_init=1, random_state=0).fit(scaled).cluster_centers_
    distances = np.square(scaled[:, None, :] - centres).sum(-1)
    nearest = distances.argmin(axis=1)
    found = []
    for k in range(M):
        own = np.flatnonzero(nearest == k)
        if len(own) < FEWEST_ROWS:
            own = np.sort(np.argsort(distances[:, k], kind="stable")[:FEWEST_ROWS])
        centre = X[own].mean(axis=0)
        if (centre == X).all(axis=1).any():
            far = X[own[np.square((X[own] - centre) / lengthscales).sum(-1).argmax()]]
            centre = centre + ASIDE * (far - centre)
        found.append(centre)
    inputs = np.unique(np.array(found), axis=0)
    return np.asarray(inputs[~(inputs[:, None, :] == X).all(-1).any(1)])
