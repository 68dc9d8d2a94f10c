"""hmmlearn's GMMHMM: states that emit from mixtures, matched by their means; parts are merged to as many as before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from modelweld.inputs.local_model import LocalModel
from modelweld.kinds.hmm import hmm, shares
from modelweld.kinds.mixture_components import merged
from modelweld.libraries.gaussian_hmm import set_chain, spreads_of
from modelweld.libraries.hmm_counts import chain_counts


def read(
    model: Any,
    *,
    lengths: ArrayLike | None = None,
    X: ArrayLike | None = None,
    features: Sequence[str] | None = None,
) -> LocalModel:
    """States' parts, their common means and covariances, and how often the chain starts, moves and stays.

    Parameters
    ----------
    model : fitted GMMHMM
        All sites' must have the same number of parts per state.
    lengths, X, features
        As for a GaussianHMM.
    """
    moves, starts, counts, counted = chain_counts(model, X, lengths)
    means = np.asarray(model.means_, dtype=np.float64)
    K, M, D = means.shape
    name, spreads = spreads_of(model, means.shape)
    part_counts = counts[:, None] * np.asarray(model.weights_)
    state = np.repeat(np.arange(K), M)
    flat = (means.reshape(K * M, D), spreads.reshape(K * M, *spreads.shape[2:]), part_counts.ravel())
    common, common_spreads, _ = merged(*flat, state)
    emissions = {
        "means": common,
        name: common_spreads,
        "part_means": means,
        f"part_{name}": spreads,
        "part_counts": part_counts,
    }
    return hmm(moves, starts, counts, emissions, counted=counted, features=features)


def write(local: LocalModel, like: str) -> Any:
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
