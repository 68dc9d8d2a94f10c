"""SPAHM as a scikit-learn estimator: local parameters stacked in X, the site of each row in `groups`."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from modelweld.core.family import log_predictive
from modelweld.core.prior import Prior
from modelweld.core.values import Array, Index, offsets_of
from modelweld.errors import NamesWarning, warn_user
from modelweld.families import Family, Gaussian
from modelweld.fuse import fuse
from modelweld.inputs.local_model import LocalModel
from modelweld.request import Search
from modelweld.results.posterior.conditional import log_density

LARGEST_SEED = np.iinfo(np.int32).max

NO_GROUPS = (
    "groups= was not given, so every row is taken for a site of its own. In searches and cross-validation scikit-learn "
    "forwards groups only with sklearn.set_config(enable_metadata_routing=True)."
)
"""What is said then: a search that splits by groups without handing them on looks as if it had."""


class SPAHM(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """Cluster local parameters of several sites, at most one of a site in each cluster (unless in fragments: `search`).

    For those who have parameters as one table; `modelweld.fuse` takes models and gives models.

    Parameters
    ----------
    family : Family, optional
        How rows scatter about their cluster's centre; default ``Gaussian()``.
    prior : Prior or "auto"
        How probable matchings are: see `modelweld.fuse`.
    search : {"auto", "plain", "thorough"} or Search
        How the best matching is searched for, and whether a site may hold a centre in several fragments.
    screens : "auto" or collection of {"duplicates", "outliers"}
        What is looked for before the fit.
    random_state : int, RandomState instance or None
        Draws the order of sites in each sweep.

    Notes
    -----
    scikit-learn hands `groups` on where metadata are routed, and they are asked for by default:
    ``sklearn.set_config(enable_metadata_routing=True)``, then ``GridSearchCV(SPAHM(), ..., cv=GroupKFold(5)).fit(X,
    groups=groups)`` holds out whole sites and `score` judges by them. There is no `sample_weight`: that would mean
    repeated rows, and sites that repeat each other are counted once. How well rows are known is said in `weight`.

    Attributes
    ----------
    cluster_centers_ : array (K, n_features)
        Global parameters, by decreasing number of sites that hold them.
    labels_ : int array (n_rows,)
        Cluster of each row; -1 for rows that were excluded.
    n_sites_ : int array (K,)
        How many sites hold each cluster.
    fusion_ : Fusion
        Everything else.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0, 0.1], [9.0, 9.1], [9.1, 8.9], [0.1, 0.0], [5.0, -5.0]])
    >>> SPAHM(random_state=0).fit(X, groups=["a", "a", "b", "c", "c"]).labels_
    array([0, 1, 1, 0, 2])
    """

    __metadata_request__fit: ClassVar = {"groups": True}
    __metadata_request__score: ClassVar = {"groups": True}

    def __init__(
        self,
        family: Family | None = None,
        *,
        prior: Prior | str = "auto",
        search: Search | str = "auto",
        screens: Any = "auto",
        random_state: Any = None,
    ) -> None:
        self.family = family
        self.prior = prior
        self.search = search
        self.screens = screens
        self.random_state = random_state

    def fit(
        self,
        X: ArrayLike,
        y: Any = None,
        groups: ArrayLike | None = None,
        weight: ArrayLike | None = None,
        times: ArrayLike | None = None,
    ) -> Self:
        """Find the clusters.

        Parameters
        ----------
        X : array (n_rows, n_features)
            Local parameters of all sites, one per row.
        y : ignored
            There for scikit-learn.
        groups : array (n_rows,), optional
            The site of each row; default: every row is a site of its own.
        weight : array (n_rows,), optional
            How much each row is worth: its noise is divided by it, and zero means not seen.
        times : array (n_rows,), optional
            When each row's site was trained, numbers or dates: see `modelweld.fuse`. Default for `groups`: one site per
            time.
        """
        values: Array = validate_data(self, X, dtype=np.float64)
        groups = times if groups is None else groups
        order, offsets = _by_site(groups, len(values))
        known = None if weight is None else _check_sample_weight(weight, values, ensure_non_negative=True)[order]
        seed = int(check_random_state(self.random_state).randint(LARGEST_SEED))
        self.fusion_ = fuse(
            _sites(values[order], offsets, known),
            families=self.family or Gaussian(),
            prior=self.prior,  # type: ignore[arg-type]
            times=None if times is None else _times_by_site(times, order, offsets),
            search=self.search,  # type: ignore[arg-type]
            screens=self.screens,
            seed=seed,
        )
        K = self.fusion_.K
        labels = np.empty(len(values), dtype=np.int64)
        labels[order] = self.fusion_.matching.stacked_labels
        self.labels_ = np.where(labels < K, labels, -1)
        self.cluster_centers_ = self.fusion_.atoms[:K]
        self.n_sites_ = self.fusion_.counts[:K]
        return self

    def predict(self, X: ArrayLike) -> Index:
        """The cluster under which each row is most probable, each row for itself; with times, the nearest centre."""
        check_is_fitted(self)
        values: Array = validate_data(self, X, dtype=np.float64, reset=False)
        matching = self.fusion_.matching
        if self.fusion_.timeline.times is not None:
            return np.asarray(self.transform(X).argmin(axis=1))
        (family,) = matching.families.values()
        (sums,) = self.fusion_._fit.board().sums
        return np.asarray(log_predictive(family, family.rows(values), sums[: matching.K]).argmax(axis=1))

    def transform(self, X: ArrayLike) -> Array:
        """Euclidean distance of each row to each centre: (n_rows, K)."""
        check_is_fitted(self)
        values: Array = validate_data(self, X, dtype=np.float64, reset=False)
        return np.asarray(euclidean_distances(values, self.cluster_centers_))

    def score(self, X: ArrayLike, y: Any = None, groups: ArrayLike | None = None) -> float:
        """Log predictive density of sites that were not fitted, per row (as that of scikit-learn's mixtures).

        Each site is judged by itself: which clusters it holds, how many others, and where its rows lie, given the
        matching and the hyperparameters of the fit; `modelweld.results.posterior.conditional` has the equation.

        Parameters
        ----------
        X : array (n_rows, n_features)
            Local parameters of held-out sites.
        y : ignored
            There for scikit-learn.
        groups : array (n_rows,), optional
            The site of each row; default: every row is a site of its own.
        """
        check_is_fitted(self)
        values: Array = validate_data(self, X, dtype=np.float64, reset=False)
        order, offsets = _by_site(groups, len(values))
        board = self.fusion_._fit.board()
        rows = board.families[0].rows(values[order])
        return sum(log_density(board, [rows[a:b]]) for a, b in pairwise(offsets.tolist())) / len(values)

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)


def _by_site(groups: ArrayLike | None, rows: int) -> tuple[Index, Index]:
    """Rows sorted by site, and where the sites begin."""
    if groups is None:
        if rows > 1:
            warn_user(NO_GROUPS, NamesWarning)
        return np.arange(rows), np.arange(rows + 1)
    names = np.asarray(groups)
    if names.shape != (rows,):
        raise ValueError(f"groups must name the site of each of the {rows} rows; found shape {names.shape}.")
    _, site = np.unique(names, return_inverse=True)
    return np.argsort(site, kind="stable"), offsets_of(np.bincount(site))


def _times_by_site(times: ArrayLike, order: Index, offsets: Index) -> list[Any]:
    """The time of each site, which is that of all its rows."""
    given = np.asarray(times)
    if given.shape != order.shape:
        raise ValueError(f"times must say when, for each of the {len(order)} rows; found shape {given.shape}.")
    found = [np.unique(given[order[a:b]]) for a, b in pairwise(offsets.tolist())]
    if any(len(own) != 1 for own in found):
        several = next(own for own in found if len(own) > 1)
        raise ValueError(f"times: all rows of a site have the same; one site has {several}.")
    return [own[0] if given.dtype.kind in "fiM" else str(own[0]) for own in found]


def _sites(X: Array, offsets: Index, weight: Array | None) -> list[Any]:
    """One array per site, or one LocalModel where rows have weights."""
    spans = [slice(a, b) for a, b in pairwise(offsets.tolist())]
    if weight is None:
        return [X[span] for span in spans]
    axes = {"values": ("atom", None)}
    return [LocalModel({"values": X[span]}, axes, weight={"values": weight[span]}) for span in spans]
