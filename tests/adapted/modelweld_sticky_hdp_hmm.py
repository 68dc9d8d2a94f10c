"""modelweld's own StickyHDPHMM."""

import warnings
from dataclasses import dataclass, replace

import numpy as np

from adapted import ROWS, Adapted
from modelweld.hmm import StickyHDPHMM


@dataclass(frozen=True)
class Chain(Adapted):
    """Asked: log likelihoods, and the bound's own posterior of states, whatever their order."""

    zeta: float
    itself = None  # four copies are more evidence than one, against the same prior

    def data(self, rng, rows=ROWS):
        centres = np.array([[0.0, 0.0, 0.0], [6.0, 0.0, 3.0], [0.0, 7.0, -3.0]])
        state = np.repeat(rng.permutation(np.arange(12) % 3), 12)[:rows]
        return centres[state] + rng.normal(size=(rows, 3))

    def fit(self, X, size=3):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # all states are in use: here the limit is the truth
            return StickyHDPHMM(size, zeta=self.zeta, window=6, random_state=0).fit(X)

    def shuffled(self, model, rng):
        order, told = rng.permutation(model.n_states_), model.statistics_
        mixed = replace(
            told,
            counts=told.counts[order],
            means=told.means[order],
            covariances=told.covariances[order],
            moves=told.moves[np.ix_(order, order)],
            starts=told.starts[order],
        )
        return StickyHDPHMM.from_statistics(mixed, zeta=self.zeta)

    def answers(self, model, X):
        return np.array([model.score(X), model.score(X[:40]), np.square(model.predict_proba(X)).sum()])

    def in_data_units(self, written, X, pipeline, jacobian):
        scaler, model = (step for _, step in pipeline.steps)
        return self.answers(written, X), self.answers(model, scaler.transform(X)) + jacobian * np.array([len(X), 40, 0])


ADAPTED = {f"StickyHDPHMM zeta {zeta}": Chain(zeta) for zeta in (1.0, 0.4)}
