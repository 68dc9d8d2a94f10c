"""scikit-learn's KMeans, MiniBatchKMeans and GaussianNB: one centre per cluster or class.

K-means is a mixture whose components have one variance.

Groups of any clustering: rows with labels, and scikit-learn's clusterers that leave `labels_`.

What leaves is a mixture: of every group its mean, its covariance or variances, and how many rows it has.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from modelweld.core.values import Index
from modelweld.errors import InputError
from modelweld.inputs.local_model import LocalModel, check_values
from modelweld.inputs.plain_tables import table_of
from modelweld.kinds.class_table import class_table
from modelweld.kinds.mixture import mixture
from modelweld.kinds.mixture_components import diagonals, parameters
from modelweld.libraries.scaling import name_features


def read_kmeans(
    model: Any, *, counts: ArrayLike | None = None, X: ArrayLike | None = None, features: Sequence[str] | None = None
) -> LocalModel:
    """Centres, points behind each, and one variance from the inertia.

    Parameters
    ----------
    model : fitted KMeans or MiniBatchKMeans
        Its own labels give the counts.
    counts : array (K,), optional
        Points behind each centre, if the model was not fitted on all of them.
    X : array, optional
        The site's data, to count them here.
    features : sequence of str, optional
        Names of the features.
    """
    centres = np.asarray(model.cluster_centers_, dtype=np.float64)
    K, D = centres.shape
    labels = model.labels_ if X is None else model.predict(X)
    numbers = np.bincount(labels, minlength=K).astype(np.float64) if counts is None else np.asarray(counts, dtype=float)
    within = float(model.inertia_) / (max(len(labels) - K, 1) * D)
    return mixture(centres, np.full((K, D), within), numbers, counted=True, features=features)


def write_kmeans(local: LocalModel, like: str) -> Any:
    """A KMeans or MiniBatchKMeans with these centres."""
    import sklearn.cluster

    centres = np.ascontiguousarray(local.arrays["means"])
    model = getattr(sklearn.cluster, like)(len(centres), n_init=1)
    model.cluster_centers_ = centres
    model._n_threads = 1
    model.n_iter_ = 0
    _, spreads, counts = parameters(local)
    model.inertia_ = float((counts * diagonals(spreads).sum(axis=1)).sum())
    return name_features(model, local, centres.shape[1])


def read_bayes(model: Any, *, features: Sequence[str] | None = None) -> LocalModel:
    """Means, variances and numbers of rows of each class.

    Parameters
    ----------
    model : fitted GaussianNB
        It remembers its counts. Classes are aligned by their names.
    features : sequence of str, optional
        Names of the features.
    """
    labels = np.asarray(model.classes_).tolist()
    names = [str(label) for label in labels]
    means, variances, counts = (np.asarray(x, dtype=np.float64) for x in (model.theta_, model.var_, model.class_count_))
    facts = {"labels": dict(zip(names, labels, strict=True))}
    return class_table(means, variances, counts, names, features=features, facts=facts)


def write_bayes(local: LocalModel, like: str) -> Any:
    """A GaussianNB over all classes that any site knows."""
    from sklearn.naive_bayes import GaussianNB

    model = GaussianNB()
    model.theta_, model.var_, model.class_count_ = (
        np.array(local.arrays[name]) for name in ("means", "variances", "counts")
    )
    model.class_prior_ = model.class_count_ / model.class_count_.sum()
    model.classes_ = np.array([local.facts["labels"][name] for name in local.coordinates["class"]])
    model.epsilon_ = 0.0
    return name_features(model, local, model.theta_.shape[1])


ROWS_PER_FEATURE = 10
"""Rows per feature that the smallest group must have for covariances to leave: their eigenvalues are then right up to a
factor of about two (Marchenko and Pastur). With fewer rows, variances leave."""


def summarise_groups(X: Any, labels: Any, *, features: Sequence[str] | None = None) -> LocalModel:
    """A site's groups, computed from its rows: means, spreads, numbers of rows, and standard errors of the means.

    Parameters
    ----------
    X : array, sparse matrix or table (n, D)
        The site's rows. They do not travel.
    labels : array (n,)
        The group of each row: numbers, words, categories. Rows of negative numbers (noise, -1) and missing labels stay
        out. Names that are no numbers travel, and stand in tables of the fusion.
    features : sequence of str, optional
        Names of the features; default the columns of a table.

    Examples
    --------
    >>> local = summarise_groups([[0.0], [2.0], [7.0], [9.0], [99.0]], ["b", "b", "a", "a", None])
    >>> local.facts["labels"], local.arrays["means"].tolist(), local.arrays["counts"].tolist()
    (['a', 'b'], [[8.0], [1.0]], [2.0, 2.0])
    """
    table = table_of(X)
    if table is not None:
        named = any(isinstance(name, str) for name in table.columns)
        features = list(map(str, table.columns)) if named and features is None else features
    rows = X.tocsr() if hasattr(X, "tocsr") else check_values(X if table is None else table.to_numpy(), "X")
    names, index = number_labels(labels)
    if rows.ndim != 2 or len(index) != rows.shape[0]:
        raise InputError(f"labels are one per row of X: found {len(index)} labels, and X of shape {rows.shape}.")
    if len(names) < 2:
        found = f"all labelled rows are {names[0]!r}" if names else "no row has one: all are noise (-1) or missing"
        one = "read(GaussianMixture(1).fit(X), X=X)"
        raise InputError(f"labels tell groups apart, and {found}. Cluster the rows first; for one group, {one}.")
    D, counts = rows.shape[1], np.bincount(index[index >= 0], minlength=len(names))
    full = counts.min() >= ROWS_PER_FEATURE * D
    means, spreads = np.zeros((len(names), D)), np.zeros((len(names), D, D) if full else (len(names), D))
    for k in range(len(names)):
        own = rows[index == k]
        own = check_values(own.toarray() if hasattr(own, "toarray") else own, f"group {names[k]!r}")
        means[k] = own.mean(axis=0)
        off = own - means[k]
        spreads[k] = (off.T @ off if full else (off * off).sum(axis=0)) / max(len(own) - 1, 1)
    return mixture(means, spreads, counts, counted=True, features=features, facts={"labels": names})


def number_labels(labels: Any) -> tuple[list[str], Index]:
    """Names of groups, numbers in their order before words, and the group (n,) of each row; -1: it has none."""
    given = np.asarray(labels)
    if given.ndim != 1:
        raise InputError(f"labels are one per row: one axis; found shape {given.shape}.")
    spelt = [_spell(label) for label in given.tolist()]
    names = sorted(
        {name for name in spelt if name}, key=lambda name: (not name.isdigit(), len(name) * name.isdigit(), name)
    )
    place = {name: k for k, name in enumerate(names)}
    return names, np.array([place.get(name, -1) for name in spelt], dtype=np.intp)


def _spell(label: Any) -> str:
    """A label as text; nothing if it is noise or missing."""
    if label is None or label != label:
        return ""
    text = str(int(label)) if isinstance(label, float) and label.is_integer() else str(label).strip()
    return "" if text.startswith("-") and text[1:].isdigit() else text


def read_clusterer(model: Any, *, X: ArrayLike | None = None, features: Sequence[str] | None = None) -> LocalModel:
    """Groups that a clusterer found, computed from the rows to which it was fitted.

    Parameters
    ----------
    model : fitted clusterer
        With `labels_`; rows that it calls noise stay out.
    X : array
        The rows to which it was fitted. They do not travel.
    features : sequence of str, optional
        Names of the features.
    """
    labels, name = model.labels_, type(model).__name__
    if X is None:
        raise InputError(f"a {name} does not know where its groups lie: give the rows it was fitted to, X=X.")
    return summarise_groups(X, labels, features=features)
