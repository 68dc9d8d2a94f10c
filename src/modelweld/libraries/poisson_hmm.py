"""hmmlearn's PoissonHMM."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from modelweld.inputs.local_model import LocalModel
from modelweld.kinds.hmm import hmm
from modelweld.libraries.gaussian_hmm import set_chain
from modelweld.libraries.hmm_counts import Chain, ChainFacts, chain_counts, told_of_chain

if TYPE_CHECKING:
    from hmmlearn.hmm import PoissonHMM


@told_of_chain
def read(model: PoissonHMM, told: ChainFacts) -> LocalModel:
    """States' rates, and how often the chain starts, moves and stays.

    Parameters
    ----------
    model : fitted PoissonHMM
        The model.
    told : lengths, X, features
        As `modelweld.libraries.hmm_counts.told_of_chain` spells them out.
    """
    moves, starts, counts, counted, _ = chain_counts(Chain.of(model), told)
    rates = {"rates": np.asarray(model.lambdas_, dtype=np.float64)}
    return hmm(moves, starts, counts, rates, counted=counted, features=told.features)


def write(local: LocalModel, like: str) -> PoissonHMM:
    """A PoissonHMM."""
    from hmmlearn.hmm import PoissonHMM

    rates = np.array(local.arrays["rates"])
    model = PoissonHMM(len(rates))
    set_chain(model, local)
    model.lambdas_, model.n_features = rates, rates.shape[1]
    return model
