"""hmmlearn's PoissonHMM."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from modelweld.inputs.local_model import LocalModel
from modelweld.kinds.hmm import hmm
from modelweld.libraries.gaussian_hmm import set_chain
from modelweld.libraries.hmm_counts import chain_counts


def read(
    model: Any,
    *,
    lengths: ArrayLike | None = None,
    X: ArrayLike | None = None,
    features: Sequence[str] | None = None,
) -> LocalModel:
    """States' rates, and how often the chain starts, moves and stays.

    Parameters
    ----------
    model : fitted PoissonHMM
        The model.
    lengths, X, features
        As for a GaussianHMM.
    """
    moves, starts, counts, counted = chain_counts(model, X, lengths)
    rates = {"rates": np.asarray(model.lambdas_, dtype=np.float64)}
    return hmm(moves, starts, counts, rates, counted=counted, features=features)


def write(local: LocalModel, like: str) -> Any:
    """A PoissonHMM."""
    from hmmlearn.hmm import PoissonHMM

    rates = np.array(local.arrays["rates"])
    model = PoissonHMM(len(rates))
    set_chain(model, local)
    model.lambdas_, model.n_features = rates, rates.shape[1]
    return model
