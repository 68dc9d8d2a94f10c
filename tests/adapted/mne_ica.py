"""Independent components of mne: scalp maps of either polarity, which scikit-learn's FastICA holds when fused."""

from copy import deepcopy
from dataclasses import dataclass

import numpy as np

from adapted import ROWS, Adapted

CHANNELS = ("Fp1", "Fp2", "C3", "C4", "O1", "O2", "Cz", "Pz")
MAPS = np.linalg.qr(np.random.default_rng(0).normal(size=(8, 3)))[0].T
"""Three maps of these channels."""


@dataclass(frozen=True)
class Maps(Adapted):
    marker = "mne"
    features = len(CHANNELS)
    scales = False
    refits = False

    def data(self, rng, rows=ROWS):
        """Three sources, and noise."""
        return rng.laplace(size=(rows, 3)) @ MAPS + 0.02 * rng.normal(size=(rows, 8))

    def fit(self, X, size=3):
        import mne

        raw = mne.io.RawArray(1e-6 * X.T, mne.create_info(list(CHANNELS), 100.0, "eeg"), verbose="ERROR")
        return mne.preprocessing.ICA(size, random_state=0, max_iter=1000, verbose="ERROR").fit(raw, verbose="ERROR")

    def shuffled(self, model, rng):
        """In another order, and turned round."""
        other, order = deepcopy(model), rng.permutation(model.n_components_)
        turn = rng.choice([-1.0, 1.0], len(order))
        other.mixing_matrix_ = model.mixing_matrix_[:, order] * turn
        return other

    def answers(self, model, X):
        """What maps explain of the rows, one map at a time: neither order nor sign matters."""
        maps = (model.get_components() if hasattr(model, "get_components") else model.mixing_).T
        maps = maps / np.linalg.norm(maps, axis=1, keepdims=True)
        return np.sort(np.abs(X @ maps.T), axis=1)


ADAPTED = {"ICA": Maps()}
