"""hmmlearn's CategoricalHMM, MultinomialHMM and VariationalCategoricalHMM (written as a CategoricalHMM)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from modelweld.inputs.local_model import LocalModel
from modelweld.kinds.hmm import hmm, shares
from modelweld.libraries.gaussian_hmm import set_chain
from modelweld.libraries.hmm_counts import Chain, ChainCounts, ChainFacts, beyond_prior, chain_counts, told_of_chain

if TYPE_CHECKING:
    from hmmlearn.hmm import CategoricalHMM, MultinomialHMM
    from hmmlearn.vhmm import VariationalCategoricalHMM


@told_of_chain
def read(model: CategoricalHMM | MultinomialHMM | VariationalCategoricalHMM, told: ChainFacts) -> LocalModel:
    """Expected numbers of each symbol in each state, and how often the chain starts, moves and stays.

    Parameters
    ----------
    model : fitted CategoricalHMM, MultinomialHMM or VariationalCategoricalHMM
        Sites need not know all symbols, if these have names.
    told : lengths, X, features
        As `modelweld.libraries.hmm_counts.told_of_chain` spells them out; `features` are names of
        the symbols, by which sites are aligned: codes without names must be as many at all sites.
    """
    variational = type(model).__name__.startswith("Variational")
    if variational and told.none:
        table = np.maximum(model.emissionprob_posterior_ - model.emissionprob_prior_, 0.0)
        chain = ChainCounts(*beyond_prior(model), table.sum(axis=1), True)
    else:
        chain = chain_counts(Chain.of(model), told)
        trials = float(np.max(getattr(model, "n_trials", None) or 1))
        probabilities = shares(model.emissionprob_posterior_) if variational else np.asarray(model.emissionprob_)
        table = probabilities * chain.counts[:, None] * trials
    moves, starts, counts, counted, _ = chain
    symbols = told.features if told.features is not None else [str(i) for i in range(table.shape[1])]
    trials_fact = {"n_trials": int(np.max(model.n_trials))} if getattr(model, "n_trials", None) is not None else {}
    facts = {**trials_fact, "named_symbols": told.features is not None}
    return hmm(moves, starts, counts, {"symbols": table}, counted=counted, symbols=symbols, facts=facts)


def write(local: LocalModel, like: str) -> CategoricalHMM | MultinomialHMM:
    """A CategoricalHMM or MultinomialHMM over all symbols that any site knows, in the order of their names."""
    from hmmlearn import hmm as models

    table = np.asarray(local.arrays["symbols"])
    options = {"n_trials": local.facts.get("n_trials")} if like == "MultinomialHMM" else {}
    model = getattr(models, like)(len(table), **options)
    set_chain(model, local)
    names = local.coordinates["symbol"]
    if all(name.isdigit() for name in names):  # symbols are numbers: columns stand in their order
        table = table[:, np.argsort([int(name) for name in names])]
    model.emissionprob_ = shares(table)
    model.n_features = table.shape[1]
    return model
