"""hmmlearn's hidden Markov models: Gaussian, mixtures of Gaussians, Poisson, categorical and multinomial emissions.

Variational ones remember all counts in their posterior and are written as the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from modelweld.core.values import Array
from modelweld.errors import InputError
from modelweld.inputs.local_model import LocalModel
from modelweld.kinds.hmm import hmm, shares
from modelweld.kinds.mixture_components import merge_components
from modelweld.libraries.hmm_counts import Chain, ChainCounts, ChainFacts, chain_counts, told_of_chain

if TYPE_CHECKING:
    from hmmlearn.base import BaseHMM

EMITTED = {
    "GMMHMM": "part_means",
    "GaussianHMM": "means",
    "PoissonHMM": "rates",
    "CategoricalHMM": "symbols",
    "MultinomialHMM": "symbols",
}
"""Class -> the array of what its states emit."""


@told_of_chain
def read(model: Any, told: ChainFacts) -> LocalModel:
    """What states emit, and how often the chain starts, moves and stays.

    Parameters
    ----------
    model : fitted model of hmmlearn
        GMMHMMs, whose states are matched by their common means, must have as many parts per state at all sites. Of
        CategoricalHMMs and MultinomialHMMs expected numbers of symbols leave; sites need not know all symbols, if
        these have names.
    told : lengths, X, features
        As `modelweld.libraries.hmm_counts.told_of_chain` spells them out; `features` of the latter two are names of
        the symbols, by which sites are aligned: codes without names must be as many at all sites.
    """
    name = next(cls.__name__ for cls in type(model).__mro__ if cls.__module__.startswith("hmmlearn"))
    variational = name.startswith("Variational")
    remembered = _remembered(model) if variational and told.none else None
    chain = remembered or chain_counts(Chain.of(model), told)
    moves, starts, counts, counted, _ = chain
    if name.endswith(("CategoricalHMM", "MultinomialHMM")):
        trials = getattr(model, "n_trials", None)
        shared = shares(model.emissionprob_posterior_) if variational else np.asarray(model.emissionprob_)
        table = shared * counts[:, None] * float(np.max(trials or 1)) if remembered is None else _symbols(model)
        names = told.features if told.features is not None else [str(i) for i in range(table.shape[1])]
        facts = {
            **({} if trials is None else {"n_trials": int(np.max(trials))}),
            "named_symbols": told.features is not None,
        }
        return hmm(moves, starts, counts, {"symbols": table}, counted=counted, symbols=names, facts=facts)
    if name == "PoissonHMM":
        rates = np.asarray(model.lambdas_, dtype=np.float64)
        return hmm(moves, starts, counts, {"rates": rates}, counted=counted, features=told.features)
    means = np.asarray(model.means_, dtype=np.float64)
    kind, spreads = spreads_of(model, means.shape)
    emissions = {"means": means, kind: spreads}
    if name == "GMMHMM":
        K, M, D = means.shape
        parts = counts[:, None] * np.asarray(model.weights_)
        flat = (means.reshape(K * M, D), spreads.reshape(K * M, *spreads.shape[2:]), parts.ravel())
        common, within, _ = merge_components(*flat, np.repeat(np.arange(K), M))
        emissions = {"means": common, kind: within, "part_means": means, f"part_{kind}": spreads, "part_counts": parts}
    known = chain.correlation(told.X, emissions["means"], emissions[kind])
    return hmm(moves, starts, counts, emissions, counted=counted, features=told.features, facts=known)


def _remembered(model: Any) -> ChainCounts:
    """Expected numbers of a variational model: what its posterior has beyond its prior."""
    moves, starts = (
        np.maximum(posterior - prior, 0.0)
        for posterior, prior in (
            (model.transmat_posterior_, model.transmat_prior_),
            (model.startprob_posterior_, model.startprob_prior_),
        )
    )
    gaussian = hasattr(model, "beta_posterior_")
    counts = np.maximum(model.beta_posterior_ - model.beta_prior_, 0.0) if gaussian else _symbols(model).sum(axis=1)
    return ChainCounts(moves, starts, counts, True)


def _symbols(model: Any) -> Array:
    """Expected numbers of symbols of a variational model."""
    return np.asarray(np.maximum(model.emissionprob_posterior_ - model.emissionprob_prior_, 0.0))


def spreads_of(model: Any, shape: tuple[int, ...]) -> tuple[str, Array]:
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


def write(local: LocalModel, like: str) -> BaseHMM:
    """A model of the class called `like`, or of that which holds what states emit.

    Gaussian ones have diagonal covariances if all sites' do, else full ones. Categorical and multinomial ones know all
    symbols that any site knows, in the order of their names.
    """
    from hmmlearn import hmm as models

    if EMITTED[like] not in local.arrays:
        like = next(name for name, array in EMITTED.items() if array in local.arrays)
    cls, emitted = getattr(models, like), EMITTED[like]
    values = np.array(local.arrays[emitted])
    K, D = len(values), values.shape[-1]
    if emitted == "symbols":
        model = cls(K, **({"n_trials": local.facts.get("n_trials")} if like == "MultinomialHMM" else {}))
        names = local.coordinates["symbol"]
        if all(name.isdigit() for name in names):  # symbols are numbers: columns stand in their order
            values = values[:, np.argsort([int(name) for name in names])]
        model.emissionprob_ = shares(values)
    elif emitted == "rates":
        model = cls(K)
        model.lambdas_ = values
    else:
        part = emitted.removesuffix("means")
        kind = "diag" if f"{part}variances" in local.arrays else "full"
        model = cls(*values.shape[:-1], covariance_type=kind)
        model.means_ = values
        if part:
            model.weights_ = shares(np.asarray(local.arrays["part_counts"]))
        try:
            model.covars_ = np.array(local.arrays[f"{part}variances" if kind == "diag" else f"{part}covariances"])
        except ValueError as wrong:
            raise InputError(
                "a state has a covariance without volume, which hmmlearn does not take: few frames are behind it. Mix "
                "in some of the average: fusion.model(shrink=0.1)."
            ) from wrong
    model.n_features = D
    model.startprob_, model.transmat_ = (shares(np.asarray(local.arrays[name])) for name in ("starts", "moves"))
    return model
