"""Groups of any clustering: rows with labels, and scikit-learn's clusterers that leave `labels_`.

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
from modelweld.kinds.mixture import mixture

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
        raise InputError(
            f"labels tell a site's groups apart, and {found}. Cluster the rows first; a site that has one group sends "
            "read(GaussianMixture(1).fit(X), X=X)."
        )
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
    labels = model.labels_
    if X is None:
        raise InputError(
            f"a {type(model).__name__} remembers labels, not where its groups lie: give the rows it was fitted to, X=X."
        )
    return summarise_groups(X, labels, features=features)
