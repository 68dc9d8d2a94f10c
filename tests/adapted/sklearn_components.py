"""Decompositions of scikit-learn: factors, independent components, dictionaries, principal axes, loadings."""

from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np
from sklearn.decomposition import (
    NMF,
    PCA,
    DictionaryLearning,
    FactorAnalysis,
    FastICA,
    IncrementalPCA,
    MiniBatchDictionaryLearning,
    MiniBatchNMF,
    MiniBatchSparsePCA,
    SparsePCA,
    TruncatedSVD,
)
from sklearn.exceptions import ConvergenceWarning

from adapted import ROWS, Adapted

PLANTED = np.array(
    [
        [5.0, 4.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0],
        [0.0, 0.0, 3.0, 3.0, 0.0, 1.0, 0.0, 0.0],
        [0.0, 0.0, 0.0, 0.0, 2.0, 2.0, 0.0, 0.5],
        [0.0, 0.5, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0],
    ]
)
"""Four parts of eight features, each weaker than the one before."""


@contextmanager
def unhurried():
    """A fit that could go on is a fit."""
    with catch_warnings():
        simplefilter("ignore", ConvergenceWarning)
        yield


@dataclass(frozen=True)
class Decomposition(Adapted):
    cls: type
    settings: dict[str, Any] = field(default_factory=dict)
    itself: float = 1e-6
    refits: bool = True
    features = 8
    scales = False

    def data(self, rng, rows=ROWS):
        """Sums of parts that are there now and then, none of them negative."""
        active = rng.random((rows, len(PLANTED))) < 0.4
        return np.abs(active * rng.exponential(1.0, active.shape) @ PLANTED + 0.05 * rng.normal(size=(rows, 8)))

    def fit(self, X, size=3):
        with unhurried():
            return self.cls(n_components=size, **self.settings).fit(X)

    def told(self, X):
        return {"n": len(X)}

    def shuffled(self, model, rng):
        """In another order, and turned round where signs mean nothing."""
        other = deepcopy(model)
        K = len(model.components_)
        order, sign = rng.permutation(K), 1.0 if self.cls in (NMF, MiniBatchNMF) else rng.choice([-1.0, 1.0], (K, 1))
        for name in ("components_", "explained_variance_", "singular_values_"):
            if hasattr(model, name):
                setattr(other, name, getattr(model, name)[order] * (sign if name == "components_" else 1.0))
        if hasattr(model, "mixing_"):
            other.mixing_ = np.linalg.pinv(other.components_)
        return other

    def answers(self, model, X):
        """Rows, rebuilt from their codes."""
        with unhurried():
            codes = model.transform(X)
        if hasattr(model, "inverse_transform"):
            return model.inverse_transform(codes)
        return codes @ model.components_ + getattr(model, "mean_", 0.0)  # older ones have none


CODES = {"transform_algorithm": "lasso_lars", "transform_alpha": 0.1, "random_state": 0}

ADAPTED = {
    "NMF": Decomposition(NMF, {"init": "nndsvda", "tol": 1e-8, "max_iter": 1000}, itself=1e-4),
    "MiniBatchNMF": Decomposition(
        MiniBatchNMF,
        {"init": "nndsvda", "random_state": 0, "max_iter": 20, "transform_max_iter": 1000, "tol": 1e-9},
        1e-4,
        False,
    ),
    "FastICA": Decomposition(FastICA, {"random_state": 0, "max_iter": 1000, "tol": 1e-6}, 1e-6, False),
    "DictionaryLearning": Decomposition(DictionaryLearning, {"alpha": 0.1, "max_iter": 20, **CODES}, 1e-6, False),
    "MiniBatchDictionaryLearning": Decomposition(
        MiniBatchDictionaryLearning, {"alpha": 0.1, "max_iter": 20, "batch_size": 20, **CODES}, 1e-6, False
    ),
    "FactorAnalysis": Decomposition(
        FactorAnalysis, {"rotation": "varimax", "svd_method": "lapack", "tol": 1e-6, "max_iter": 300}
    ),
    "SparsePCA": Decomposition(SparsePCA, {"alpha": 0.1, "random_state": 0, "max_iter": 50}, 1e-6, False),
    "MiniBatchSparsePCA": Decomposition(
        MiniBatchSparsePCA, {"alpha": 0.1, "random_state": 0, "max_iter": 50}, 1e-6, False
    ),
    "PCA": Decomposition(PCA),
    "IncrementalPCA": Decomposition(IncrementalPCA),
    "TruncatedSVD": Decomposition(TruncatedSVD, {"algorithm": "arpack", "random_state": 0}),
}
