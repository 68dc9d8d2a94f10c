"""hmmlearn's models: Gaussian of all covariance types, mixed, categorical, multinomial, Poisson, variational."""

import warnings
from copy import deepcopy
from dataclasses import dataclass

import numpy as np
from hmmlearn import hmm, vhmm

from adapted import Adapted


@dataclass(frozen=True)
class Chain(Adapted):
    """Asked: the log likelihood of sequences."""

    cls: str
    parameters: tuple
    options: tuple = ()
    marker = "hmm"

    def fit(self, X, size=3):
        model = getattr(hmm, self.cls, None) or getattr(vhmm, self.cls)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return model(size, n_iter=15, random_state=0, **dict(self.options)).fit(X)

    def told(self, X):
        return {"lengths": [len(X)]}

    def shuffled(self, model, rng):
        other, order = deepcopy(model), rng.permutation(model.n_components)
        other.startprob_ = model.startprob_[order]
        other.transmat_ = model.transmat_[order][:, order]
        for name in self.parameters:
            values = getattr(model, name)
            if not (name == "_covars_" and model.covariance_type == "tied"):
                setattr(other, name, values[order])
        return other

    def answers(self, model, X):
        return np.array([model.score(X), model.score(X[:40])])

    def in_data_units(self, written, X, pipeline, jacobian):
        scaler, model = (step for _, step in pipeline.steps)
        return self.answers(written, X), self.answers(model, scaler.transform(X)) + jacobian * np.array([len(X), 40])


class Symbols(Chain):
    named = ""
    scales = False

    def told(self, X):
        """Codes have names: by number alone they are taken for the same with a warning."""
        codes = X.shape[1] if X.shape[1] > 1 else int(X.max()) + 1
        return {**super().told(X), "features": [f"code {i}" for i in range(codes)]}

    def data(self, rng, rows=137):
        state = np.repeat(rng.integers(0, 3, rows // 8 + 1), 8)[:rows]
        table = np.array([[0.8, 0.1, 0.05, 0.05], [0.1, 0.1, 0.7, 0.1], [0.05, 0.6, 0.05, 0.3]])
        return np.array([[rng.choice(4, p=table[s])] for s in state])


class Trials(Symbols):
    def data(self, rng, rows=137):
        state = np.repeat(rng.integers(0, 3, rows // 8 + 1), 8)[:rows]
        table = np.array([[0.8, 0.1, 0.05, 0.05], [0.1, 0.1, 0.7, 0.1], [0.05, 0.6, 0.05, 0.3]])
        return np.array([rng.multinomial(5, table[s]) for s in state])


class Events(Chain):
    scales = False
    refits = False

    def data(self, rng, rows=137):
        state = np.repeat(rng.integers(0, 3, rows // 8 + 1), 8)[:rows]
        return rng.poisson(np.array([[1.0, 9.0, 4.0], [12.0, 1.0, 3.0], [5.0, 5.0, 20.0]])[state])


class Posterior(Chain):
    """Written as a plain model, so asked what both know: the average of its means by time spent."""

    def answers(self, model, X):
        share = np.linalg.matrix_power(model.transmat_, 1000)[0]
        return share @ model.means_

    def in_data_units(self, written, X, pipeline, jacobian):
        scaler, model = (step for _, step in pipeline.steps)
        return self.answers(written, X), scaler.inverse_transform(self.answers(model, X)[None])[0]


class SymbolPosterior(Symbols):
    itself = None  # the posterior of a copy has the prior twice

    def answers(self, model, X):
        table = getattr(model, "emissionprob_posterior_", None)
        table = model.emissionprob_ if table is None else table / table.sum(axis=1, keepdims=True)
        return np.sort(table @ np.arange(table.shape[1]))


GAUSSIAN = ("means_", "_covars_")

BOUND = {"full": (("covars_prior", np.eye(3)), ("covars_weight", 8.0))}
"""Scatter that every covariance has before it sees data: else a state that shrinks onto few rows has one that is
singular but for rounding, and whether that is positive definite depends on the processor."""

MIXED = {
    "full": (("covars_prior", np.eye(3)), ("covars_weight", 0.0)),  # scale and degrees of an inverse Wishart
    "diag": (("covars_prior", 0.0), ("covars_weight", 0.5)),  # shape and scale of an inverse gamma
}
"""The same for mixtures, where hmmlearn's default is maximum likelihood."""

ADAPTED = {
    **{
        f"GaussianHMM {kind}": Chain("GaussianHMM", GAUSSIAN, (("covariance_type", kind), *BOUND.get(kind, ())))
        for kind in ("full", "tied", "diag", "spherical")
    },
    **{
        f"GMMHMM {kind}": Chain(
            "GMMHMM", ("weights_", "means_", "covars_"), (("n_mix", 2), ("covariance_type", kind), *prior)
        )
        for kind, prior in MIXED.items()
    },
    "CategoricalHMM": Symbols("CategoricalHMM", ("emissionprob_",)),
    "MultinomialHMM": Trials("MultinomialHMM", ("emissionprob_",), (("n_trials", 5),)),
    "PoissonHMM": Events("PoissonHMM", ("lambdas_",)),
    "VariationalGaussianHMM": Posterior(
        "VariationalGaussianHMM", ("means_posterior_", "_covars_", "beta_posterior_"), (("covariance_type", "full"),)
    ),
    "VariationalCategoricalHMM": SymbolPosterior("VariationalCategoricalHMM", ("emissionprob_posterior_",)),
}
