"""dynamax's Gaussian hidden Markov model."""

import warnings
from dataclasses import dataclass

import jax.numpy as jnp
import jax.random as jr
import numpy as np

from adapted import Adapted

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from dynamax.hidden_markov_model import GaussianHMM


@dataclass(frozen=True)
class Parameters(Adapted):
    """Asked: the log likelihood of sequences; in float32, so less exactly."""

    marker = "dynamax"
    itself = exactly = 1e-4
    scales = False  # parameters are no scikit-learn step

    def fit(self, X, size=3):
        model = GaussianHMM(size, X.shape[1])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            params, props = model.initialize(jr.PRNGKey(0), method="kmeans", emissions=jnp.array(X[None]))
            params, _ = model.fit_em(params, props, jnp.array(X[None]), num_iters=10, verbose=False)
        return params

    def told(self, X):
        return {"lengths": [len(X)]}

    def shuffled(self, model, rng):
        order = rng.permutation(len(model.initial.probs))
        return model._replace(
            initial=model.initial._replace(probs=model.initial.probs[order]),
            transitions=model.transitions._replace(
                transition_matrix=model.transitions.transition_matrix[order][:, order]
            ),
            emissions=model.emissions._replace(means=model.emissions.means[order], covs=model.emissions.covs[order]),
        )

    def answers(self, model, X):
        chain = GaussianHMM(*model.emissions.means.shape)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            scores = [chain.marginal_log_prob(model, jnp.array(x)) for x in (X, X[:40])]
        return np.array(scores)


ADAPTED = {"GaussianHMM": Parameters()}
