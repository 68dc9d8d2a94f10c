"""hmmlearn's GaussianHMM (all covariance types) and VariationalGaussianHMM (written as a GaussianHMM)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from modelweld.errors import InputError
from modelweld.inputs.local_model import Array, LocalModel
from modelweld.kinds.hmm import hmm, shares
from modelweld.libraries.hmm_counts import Chain, ChainCounts, ChainFacts, beyond_prior, chain_counts, told_of_chain

if TYPE_CHECKING:
    from hmmlearn.base import BaseHMM
    from hmmlearn.hmm import GMMHMM, GaussianHMM
    from hmmlearn.vhmm import VariationalGaussianHMM


@told_of_chain
def read(model: GaussianHMM | VariationalGaussianHMM, told: ChainFacts) -> LocalModel:
    """States' means and covariances, and how often the chain starts, moves and stays.

    Parameters
    ----------
    model : fitted GaussianHMM or VariationalGaussianHMM
        The latter remembers all counts in its posterior.
    told : lengths, X, features
        As `modelweld.libraries.hmm_counts.told_of_chain` spells them out.
    """
    if type(model).__name__ == "VariationalGaussianHMM" and told.none:
        counts = np.maximum(model.beta_posterior_ - model.beta_prior_, 0.0)
        chain = ChainCounts(*beyond_prior(model), counts, True)
    else:
        chain = chain_counts(Chain.of(model), told)
    means = np.asarray(model.means_, dtype=np.float64)
    name, spreads = spreads_of(model, means.shape)
    emissions = {"means": means, name: spreads}
    moves, starts, counts, counted, _ = chain
    facts = chain.correlation(told.X, means, spreads)
    return hmm(moves, starts, counts, emissions, counted=counted, features=told.features, facts=facts)


def spreads_of(model: GaussianHMM | GMMHMM, shape: tuple[int, ...]) -> tuple[str, Array]:
    """Covariances (..., D, D) or variances (..., D) of any of hmmlearn's types.

    They are read as they are stored: what hmmlearn hands out has another shape for some types.
    """
    stored = np.asarray(getattr(model, "_covars_", None) if hasattr(model, "_covars_") else model.covars_, dtype=float)
    *states, D = shape
    kind = model.covariance_type
    if kind == "full":
        return "covariances", stored
    if kind == "tied":
        tied = stored if stored.ndim == 2 else np.expand_dims(stored, tuple(range(1, len(states))))
        return "covariances", np.broadcast_to(tied, (*states, D, D)).copy()
    wide = stored if kind == "diag" else stored.reshape(*states, -1)[..., :1]
    return "variances", np.broadcast_to(wide, (*states, D)).copy()


def write(local: LocalModel, like: str) -> GaussianHMM:
    """A GaussianHMM, with diagonal covariances if all sites' are."""
    from hmmlearn.hmm import GaussianHMM

    diagonal = "variances" in local.arrays
    means = np.asarray(local.arrays["means"])
    model = GaussianHMM(len(means), covariance_type="diag" if diagonal else "full")
    set_chain(model, local)
    model.means_ = means.copy()
    try:
        model.covars_ = np.array(local.arrays["variances" if diagonal else "covariances"])
    except ValueError as wrong:
        raise InputError(
            "a state has a covariance without volume, which hmmlearn does not take: few frames are behind it. Mix in "
            "some of the average: fusion.model(shrink=0.1)."
        ) from wrong
    model.n_features = means.shape[1]
    return model


def set_chain(model: BaseHMM, local: LocalModel) -> None:
    """Start and transition probabilities of expected numbers."""
    model.startprob_ = shares(np.asarray(local.arrays["starts"]))
    model.transmat_ = shares(np.asarray(local.arrays["moves"]))
