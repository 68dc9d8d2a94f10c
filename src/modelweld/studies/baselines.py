"""Rivals of `fuse` with the same kind of answer: k-means of parameters or of all data, and the textbook.

The two k-means are told the number of atoms, which `fuse` must find, and the second sees data that a site
would not send. Neither keeps to one copy of an atom per site; the textbook does.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from modelweld.errors import InputError
from modelweld.families import Family, Gaussian
from modelweld.families.base import summed
from modelweld.fusion import Fusion
from modelweld.inputs.local_model import Array, checked_values
from modelweld.inputs.stack import Index, Key, offsets_of
from modelweld.matching.result import by_labels
from modelweld.priors.beta_bernoulli import AUTHORS_LARGEST_COUNT, AUTHORS_MOST_ATOMS, BetaBernoulli
from modelweld.studies.simulate_estimated import KMEANS_STARTS
from modelweld.studies.textbook import textbook as algorithm_1

__all__ = ["kmeans_matching", "pooled_kmeans", "textbook"]


def kmeans_matching(groups: Sequence[ArrayLike], L: int, *, seed: int = 0) -> Fusion:
    """K-means of all local parameters, told the number of atoms.

    A site may hold a cluster twice: k-means does not know whose parameter is whose.

    Parameters
    ----------
    groups : sequence of (L_j, D) arrays
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
    data : sequence of (n_j, D) arrays
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


def textbook(
    groups: Sequence[ArrayLike],
    *,
    alpha: float = 1.0,
    gamma0: float = 1.0,
    noise: ArrayLike = 1.0,
    spread: ArrayLike = 1.0,
    mean: ArrayLike = 0.0,
    sweeps: int = 10,
    cut: int | None = None,
    cap: int | None = None,
    seed: int = 0,
) -> Fusion:
    """Algorithm 1 as the paper prints it; see `modelweld.studies.textbook`.

    Parameters
    ----------
    groups : sequence of (L_j, D) arrays
        Local parameters of every site.
    alpha, gamma0, noise, spread, mean, sweeps, cut, cap, seed
        As for `modelweld.studies.textbook.textbook`.

    Returns
    -------
    Fusion
        The objective is that of `fuse`, so that the two can be compared. The algorithm has no stopping rule:
        `converged` only says that its sweeps are over.

    Examples
    --------
    >>> fusion = textbook([[[0.0], [9.0]], [[9.2], [0.2], [5.0]]])
    >>> fusion.K, fusion.counts
    (3, array([2, 2, 1]))
    """
    arrays, offsets = _checked(groups)
    result = algorithm_1(
        arrays,
        alpha=alpha,
        gamma0=gamma0,
        noise=noise,
        spread=spread,
        mean=mean,
        sweeps=sweeps,
        cut=cut,
        cap=cap,
        seed=seed,
    )
    as_authors = cut == AUTHORS_LARGEST_COUNT and cap == AUTHORS_MOST_ATOMS
    prior = BetaBernoulli(alpha, gamma0, "authors" if as_authors else "paper")
    family = Gaussian(result.mean, result.noise, result.spread, learning="moments")
    labels = np.concatenate(result.labels)
    sums = summed(family.rows(np.concatenate(arrays)), labels, len(result.counts))
    objective = prior.log_prob(result.counts, np.diff(offsets)) + float(family.log_evidence(sums).sum())
    return _fusion(
        groups,
        offsets,
        labels,
        result.atoms,
        "textbook",
        prior=prior,
        families={"values": family},
        objective=objective,
    )


def _kmeans(groups: Sequence[ArrayLike], L: int, seed: int, name: str) -> Fusion:
    """K-means of the rows of all sites."""
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    arrays, offsets = _checked(groups)
    if not 1 <= L <= offsets[-1]:
        raise InputError(f"k-means makes 1 to {offsets[-1]} clusters of {offsets[-1]} rows; found L = {L}.")
    with warnings.catch_warnings():
        # rows that coincide leave clusters empty: then there are fewer atoms, as the docstrings say
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = KMeans(L, n_init=KMEANS_STARTS, random_state=seed).fit(np.concatenate(arrays))
    used, labels = np.unique(model.labels_, return_inverse=True)
    return _fusion(groups, offsets, labels, model.cluster_centers_[used], name)


def _checked(groups: Sequence[ArrayLike]) -> tuple[list[Array], Index]:
    """The sites' arrays, and where they begin one below the other."""
    arrays = [checked_values(values, f"site {j}") for j, values in enumerate(groups)]
    width = next((a.shape[1] for a in arrays if a.ndim == 2), 0)
    for j, a in enumerate(arrays):
        if a.ndim != 2 or a.shape[1] != width:
            raise InputError(f"site {j}: must have shape (L, {width or 'D'}) like all others; found {a.shape}.")
    if not any(a.size for a in arrays):
        raise InputError("there is nothing to fuse: no site has a row.")
    return arrays, offsets_of([len(a) for a in arrays])


def _fusion(
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
    matching = by_labels(labels, offsets, "values", atoms, engine, prior=prior, families=families, objective=objective)
    return Fusion(groups, [str(j) for j in range(len(groups))], {"atom": matching})
