"""Clusterers that leave labels: groups are computed from the rows, and written as a mixture."""

from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn import cluster

from adapted import Adapted


@dataclass(frozen=True)
class Clusterer(Adapted):
    """Written as a mixture, so asked only what both know: the mean of all rows that are in a group."""

    name: str
    sized: str = ""
    settings: dict[str, Any] = field(default_factory=dict)
    how = "moments"
    refits = False
    scales: bool = False  # those by distances find other groups, or one, in other units

    def fit(self, X, size=3):
        return getattr(cluster, self.name)(**self.settings, **({self.sized: size} if self.sized else {})).fit(X)

    def told(self, X):
        return {"X": X}

    def shuffled(self, model, rng):
        other, order = deepcopy(model), rng.permutation(model.labels_.max() + 1)
        other.labels_ = np.where(model.labels_ < 0, -1, order[model.labels_])
        return other

    def answers(self, model, X):
        return model.weights_ @ model.means_ if hasattr(model, "weights_") else X[model.labels_ >= 0].mean(axis=0)

    def in_data_units(self, written, X, pipeline, jacobian):
        return self.answers(written, X), self.answers(pipeline.steps[-1][1], X)


ADAPTED = {
    case.name: case
    for case in (
        Clusterer("AgglomerativeClustering", "n_clusters", scales=True),
        Clusterer("SpectralClustering", "n_clusters", {"random_state": 0}),
        Clusterer("Birch", "n_clusters"),
        Clusterer("BisectingKMeans", "n_clusters", {"random_state": 0}),
        Clusterer("HDBSCAN", settings={"min_cluster_size": 8, "copy": True}),
        Clusterer("DBSCAN", settings={"eps": 1.5, "min_samples": 2}),
        Clusterer("OPTICS", settings={"min_samples": 8}),
        Clusterer("MeanShift"),
        Clusterer("AffinityPropagation", settings={"random_state": 0, "preference": -200}),
    )
}
