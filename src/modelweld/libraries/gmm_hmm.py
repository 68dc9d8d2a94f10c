"""hmmlearn's GMMHMM: states that emit from mixtures, matched by their means; parts are merged to as many as before."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from modelweld.inputs.local_model import LocalModel
from modelweld.kinds.hmm import hmm, shares
from modelweld.kinds.mixture_components import merge_components
from modelweld.libraries.gaussian_hmm import set_chain, spreads_of
from modelweld.libraries.hmm_counts import Chain, ChainFacts, chain_counts, told_of_chain

if TYPE_CHECKING:
    from hmmlearn.hmm import GMMHMM


@told_of_chain
def read(model: GMMHMM, told: ChainFacts) -> LocalModel:
    """States' parts, their common means and covariances, and how often the chain starts, moves and stays.

    Parameters
    ----------
    model : fitted GMMHMM
        All sites' must have the same number of parts per state.
    told : lengths, X, features
        As `modelweld.libraries.hmm_counts.told_of_chain` spells them out.
    """
    chain = chain_counts(Chain.of(model), told)
    moves, starts, counts, counted, _ = chain
    means = np.asarray(model.means_, dtype=np.float64)
    K, M, D = means.shape
    name, spreads = spreads_of(model, means.shape)
    part_counts = counts[:, None] * np.asarray(model.weights_)
    state = np.repeat(np.arange(K), M)
    flat = (means.reshape(K * M, D), spreads.reshape(K * M, *spreads.shape[2:]), part_counts.ravel())
    common, common_spreads, _ = merge_components(*flat, state)
    emissions = {
        "means": common,
        name: common_spreads,
        "part_means": means,
        f"part_{name}": spreads,
        "part_counts": part_counts,
    }
    facts = chain.correlation(told.X, common, common_spreads)
    return hmm(moves, starts, counts, emissions, counted=counted, features=told.features, facts=facts)


def write(local: LocalModel, like: str) -> GMMHMM:
    """A GMMHMM with full or diagonal covariances."""
    from hmmlearn.hmm import GMMHMM

    diagonal = "part_variances" in local.arrays
    means = np.asarray(local.arrays["part_means"])
    K, M, D = means.shape
    model = GMMHMM(K, M, covariance_type="diag" if diagonal else "full")
    set_chain(model, local)
    model.weights_ = shares(np.asarray(local.arrays["part_counts"]))
    model.means_ = means.copy()
    model.covars_ = np.array(local.arrays["part_variances" if diagonal else "part_covariances"])
    model.n_features = D
    return model
