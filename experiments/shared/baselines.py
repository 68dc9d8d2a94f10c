"""Rivals of `fuse` with the same kind of answer: k-means of parameters or of all data.

The two k-means are told the number of atoms, which `fuse` must find, and the second sees data that a site would not
send. Neither keeps to one copy of an atom per site; the textbook (`textbook.py`) does.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from modelweld.core.beta_bernoulli import BetaBernoulli
from modelweld.core.values import Array, Index, Key, offsets_of
from modelweld.errors import InputError
from modelweld.families import Family
from modelweld.fusion import Fusion
from modelweld.inputs.local_model import check_values
from modelweld.results.fit_result import FitResult, matching_by_labels

KMEANS_STARTS = 10
"""The default of scikit-learn when the paper was written."""


def kmeans_matching(groups: Sequence[ArrayLike], L: int, *, seed: int = 0) -> Fusion:
    """K-means of all local parameters, told the number of atoms.

    A site may hold a cluster twice: k-means does not know whose parameter is whose.

    Parameters
    ----------
    groups : sequence of arrays (L_j, D)
        Local parameters of every site.
    L : int
        Number of clusters. There are fewer atoms if fewer values differ.
    seed : int
        Decides the ten starts.

    Returns
    -------
    Fusion
        Atoms are cluster centres; there is no objective (NaN).

    Examples
    --------
    >>> fusion = kmeans_matching([[[0.0], [9.0]], [[9.2], [0.2], [5.0]]], 3)
    >>> fusion.atoms.round(1).ravel(), fusion.counts
    (array([0.1, 9.1, 5. ]), array([2, 2, 1]))
    """
    return _kmeans(groups, L, seed, "k-means of parameters")


def pooled_kmeans(data: Sequence[ArrayLike], L: int, *, seed: int = 0) -> Fusion:
    """K-means of the data of all sites in one place, told the number of atoms: what fusion does without.

    Parameters
    ----------
    data : sequence of arrays (n_j, D)
        Data points of every site.
    L : int
        Number of clusters. There are fewer atoms if fewer points differ.
    seed : int
        Decides the ten starts.

    Returns
    -------
    Fusion
        Atoms are cluster centres, labels are those of the points; there is no objective (NaN).

    Examples
    --------
    >>> fusion = pooled_kmeans([[[0.0], [0.1], [0.2]], [[9.0], [0.1]]], 2)
    >>> fusion.atoms.round(1).ravel(), fusion.counts, [labels.tolist() for labels in fusion.labels]
    (array([0.1, 9. ]), array([2, 1]), [[0, 0, 0], [1, 0]])
    """
    return _kmeans(data, L, seed, "k-means of data")


def _kmeans(groups: Sequence[ArrayLike], L: int, seed: int, name: str) -> Fusion:
    """K-means of the rows of all sites."""
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    arrays, offsets = check_groups(groups)
    if not 1 <= L <= offsets[-1]:
        raise InputError(f"k-means makes 1 to {offsets[-1]} clusters of {offsets[-1]} rows; found L = {L}.")
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        # rows that coincide leave clusters empty: then there are fewer atoms, as the docstrings say
        model = KMeans(L, n_init=KMEANS_STARTS, random_state=seed).fit(np.concatenate(arrays))
    used, labels = np.unique(model.labels_, return_inverse=True)
    return fusion_of(groups, offsets, labels, model.cluster_centers_[used], name)


def check_groups(groups: Sequence[ArrayLike]) -> tuple[list[Array], Index]:
    """The sites' arrays, and where they begin one below the other."""
    arrays = [check_values(values, f"site {j}") for j, values in enumerate(groups)]
    width = next((a.shape[1] for a in arrays if a.ndim == 2), 0)
    for j, a in enumerate(arrays):
        if a.ndim != 2 or a.shape[1] != width:
            raise InputError(f"site {j}: must have shape (L, {width or 'D'}) like all others; found {a.shape}.")
    if not any(a.size for a in arrays):
        raise InputError("there is nothing to fuse: no site has a row.")
    return arrays, offsets_of([len(a) for a in arrays])


def fusion_of(
    groups: Sequence[ArrayLike],
    offsets: Index,
    labels: Index,
    atoms: Array,
    engine: str,
    *,
    prior: BetaBernoulli | None = None,
    families: Mapping[Key, Family] | None = None,
    objective: float = float("nan"),
) -> Fusion:
    """A Fusion of these labels."""
    matching = matching_by_labels(
        labels, offsets, "values", atoms, engine, prior=prior, families=families, objective=objective
    )
    return Fusion(FitResult(groups, [str(j) for j in range(len(groups))], {"atom": matching}))
