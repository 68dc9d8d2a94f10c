"""dynamax's Gaussian hidden Markov models: their parameters are a tuple of their own, `ParamsGaussianHMM`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from modelweld.core.values import Array
from modelweld.inputs.local_model import LocalModel
from modelweld.kinds.hmm import hmm, shares
from modelweld.libraries.hmm_counts import Chain, ChainFacts, chain_counts, told_of_chain

if TYPE_CHECKING:
    from dynamax.hidden_markov_model.models.gaussian_hmm import ParamsGaussianHMM


@told_of_chain
def read(model: ParamsGaussianHMM, told: ChainFacts) -> LocalModel:
    """States' means and covariances, and how often the chain starts, moves and stays.

    Parameters
    ----------
    model : ParamsGaussianHMM
        What `fit_em` of a GaussianHMM gives.
    told : lengths, X, features
        As `modelweld.libraries.hmm_counts.told_of_chain` spells them out.
    """
    means, covariances = (np.asarray(x, dtype=np.float64) for x in (model.emissions.means, model.emissions.covs))
    chain = Chain(
        shares(np.asarray(model.initial.probs, dtype=np.float64)),
        shares(np.asarray(model.transitions.transition_matrix, dtype=np.float64)),
        lambda frames: _log_densities(frames, means, covariances),
    )
    found = chain_counts(chain, told)
    moves, starts, counts, counted, _ = found
    emissions = {"means": means, "covariances": covariances}
    facts = found.correlation(told.X, means, covariances)
    return hmm(moves, starts, counts, emissions, counted=counted, features=told.features, facts=facts)


def _log_densities(frames: Array, means: Array, covariances: Array) -> Array:
    """Of every frame in every state."""
    from scipy.stats import multivariate_normal

    states = zip(means, covariances, strict=True)
    return np.column_stack([multivariate_normal(m, c, allow_singular=True).logpdf(frames) for m, c in states])


def write(local: LocalModel, like: str) -> ParamsGaussianHMM:
    """Parameters for ``GaussianHMM(K, D)``, in the precision jax is set to."""
    import jax.numpy as jnp
    from dynamax.hidden_markov_model.models import gaussian_hmm as dynamax

    spreads = np.asarray(local.arrays.get("covariances", local.arrays.get("variances")))
    if spreads.ndim == 2:
        spreads = spreads[:, None, :] * np.eye(spreads.shape[1])
    return dynamax.ParamsGaussianHMM(
        initial=dynamax.ParamsStandardHMMInitialState(probs=jnp.array(shares(np.asarray(local.arrays["starts"])))),
        transitions=dynamax.ParamsStandardHMMTransitions(
            transition_matrix=jnp.array(shares(np.asarray(local.arrays["moves"])))
        ),
        emissions=dynamax.ParamsGaussianHMMEmissions(
            means=jnp.array(np.asarray(local.arrays["means"])), covs=jnp.array(spreads)
        ),
    )
