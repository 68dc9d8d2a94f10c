"""Microstates of pycrostates: samples of a recording about maps that come and go with either polarity."""

from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from adapted import ROWS, Adapted

CHANNELS = ("Fp1", "Fp2", "C3", "C4", "O1", "O2", "Cz", "Pz")
MAPS = np.linalg.qr(np.random.default_rng(0).normal(size=(8, 4)))[0].T
"""Four maps of these channels."""


def recording(X):
    """Samples (rows, channels) as pycrostates takes them."""
    from pycrostates.io import ChData, ChInfo

    return ChData(X.T, ChInfo(ch_names=list(CHANNELS), ch_types=["eeg"] * len(CHANNELS)))


@dataclass(frozen=True)
class Microstates(Adapted):
    name: str
    settings: dict[str, Any] = field(default_factory=dict)
    marker = "microstates"
    features = len(CHANNELS)
    scales = False
    refits = False

    def data(self, rng, rows=ROWS):
        """One map at a time, at any strength, with noise."""
        strength = rng.choice([-1.0, 1.0], (rows, 1)) * rng.uniform(1.0, 2.0, (rows, 1))
        X = strength * MAPS[rng.choice(4, rows)] + 0.02 * rng.normal(size=(rows, 8))
        return X - X.mean(axis=1, keepdims=True)

    def fit(self, X, size=3):
        from pycrostates import cluster

        model = getattr(cluster, self.name)(size, **self.settings)
        model.fit(recording(X), verbose="ERROR")
        return model

    def shuffled(self, model, rng):
        """In another order, and turned round."""
        other, order = deepcopy(model), rng.permutation(model.n_clusters)
        other._cluster_centers_ = model.cluster_centers_[order] * rng.choice([-1.0, 1.0], (len(order), 1))
        other._labels_ = np.argsort(order)[model.labels_]
        return other

    def answers(self, model, X):
        """Every sample's map, at the strength with which it is there."""
        from mne import create_info
        from mne.io import RawArray

        raw = RawArray(X.T, create_info(model.info["ch_names"], 100.0, "eeg"), verbose="ERROR")
        labels = model.predict(raw, reject_edges=False, verbose="ERROR").labels
        own = model.cluster_centers_[labels]
        own = own / np.linalg.norm(own, axis=1, keepdims=True)
        return (X * own).sum(axis=1, keepdims=True) * own


ADAPTED = {
    "ModKMeans": Microstates("ModKMeans", {"n_init": 5, "random_state": 0}),
    "AAHCluster": Microstates("AAHCluster"),
}
