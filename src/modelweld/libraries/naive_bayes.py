"""scikit-learn's GaussianNB: one mean and variance per class and feature."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from modelweld.inputs.local_model import LocalModel
from modelweld.kinds.class_table import class_table
from modelweld.libraries.scaling import name_features

if TYPE_CHECKING:
    from sklearn.naive_bayes import GaussianNB


def read(model: GaussianNB, *, features: Sequence[str] | None = None) -> LocalModel:
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


def write(local: LocalModel, like: str) -> Any:
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
