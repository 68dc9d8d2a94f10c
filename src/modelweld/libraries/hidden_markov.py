"""Hidden Markov models of hmmlearn and dynamax, with the sufficient statistics of their chains.

Fitted models forget how often a chain starts, moves and stays, which fusion needs. From the sequences, at the site,
these are posterior expectations; from their lengths alone, expectations under the model itself; from nothing, shares in
the long run.

hmmlearn's models have Gaussian, mixed Gaussian, Poisson, categorical or multinomial emissions. Variational ones keep
all counts in their posterior and are written as the others. The parameters of dynamax's Gaussian hidden Markov models
are a tuple of their own, `ParamsGaussianHMM`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import ArrayLike

from modelweld.core.values import Array, Index, offsets_of
from modelweld.errors import InputError
from modelweld.inputs.local_model import LocalModel
from modelweld.kinds.hmm import full_covariances, hmm, shares
from modelweld.kinds.mixture_completion import merge_components
from modelweld.kinds.mixture_components import diagonals


class ChainCounts(NamedTuple):
    """Expected transitions (K, K), starts (K,), frames (K,); whether they are numbers or only shares.

    `path` has every frame's most probable state, sequence by sequence, where the sequences were there to look at.
    """

    moves: Array
    starts: Array
    counts: Array
    counted: bool
    path: tuple[Index, ...] = ()

    def correlation(self, X: ArrayLike | None, means: Array, spreads: Array) -> dict[str, float]:
        """Frames that are worth one, as the fact `correlation_time`, given the states; nothing without sequences."""
        if X is None or not self.path:
            return {}
        deviations = np.sqrt(np.maximum(diagonals(spreads), np.finfo(float).tiny))
        path = np.concatenate(self.path)
        residual = (np.asarray(X, dtype=np.float64) - means[path]) / deviations[path]
        return {"correlation_time": correlation_time(residual, path, offsets_of([len(p) for p in self.path]))}


def chain_counts(
    start: Array, move: Array, log_density_of: Callable[[Array], Array], lengths: ArrayLike | None, X: ArrayLike | None
) -> ChainCounts:
    """Expected numbers of a chain with probabilities of starts (K,) and transitions (K, K).

    `log_density_of` gives log densities (T, K) of frames in all states.
    """
    if X is not None:
        frames = np.asarray(X)
        ends = [len(frames)] if lengths is None else np.asarray(lengths, dtype=np.int64)
        if sum(ends) != len(frames):
            raise InputError(f"lengths add up to {sum(ends)}, but X has {len(frames)} frames.")
        log_density = log_density_of(frames)
        found = [posteriors(start, move, log_density[a:b]) for a, b in pairwise(offsets_of(ends))]
        states = [posterior for _, posterior in found]
        return ChainCounts(
            moves=np.sum([moves for moves, _ in found], axis=0),
            starts=np.sum([posterior[0] for posterior in states], axis=0),
            counts=np.sum([posterior.sum(axis=0) for posterior in states], axis=0),
            counted=True,
            path=tuple(posterior.argmax(axis=1) for posterior in states),
        )
    if lengths is not None:
        numbers = np.asarray(lengths, dtype=np.int64)
        if numbers.ndim != 1 or (numbers < 1).any():
            raise InputError("lengths must be a list of positive numbers of frames, one per sequence.")
        here, leaving, counts = start.copy(), np.zeros_like(start), np.zeros_like(start)
        for t in range(int(numbers.max())):
            counts += here * (numbers > t).sum()
            leaving += here * (numbers > t + 1).sum()
            here = here @ move
        return ChainCounts(leaving[:, None] * move, start * len(numbers), counts, True)
    share = stationary(move)
    return ChainCounts(share[:, None] * move, start, share, False)


def posteriors(start: Array, move: Array, log_density: Array) -> tuple[Array, Array]:
    """Expected transitions, and probabilities (T, K) of states, given one sequence: scaled passes to and fro.

    Examples
    --------
    >>> moves, states = posteriors(np.array([0.5, 0.5]), np.full((2, 2), 0.5), np.log([[1, 0.0001]] * 3))
    >>> states.sum(axis=0).round(3), float(moves.sum().round(3))
    (array([3., 0.]), 2.0)
    """
    T, K = log_density.shape
    density = np.exp(log_density - log_density.max(axis=1, keepdims=True))
    forward, backward, scale = np.empty((T, K)), np.ones((T, K)), np.empty(T)
    before = start
    for t in range(T):
        here = before * density[t]
        scale[t] = here.sum()
        forward[t] = here / scale[t]
        before = forward[t] @ move
    for t in range(T - 2, -1, -1):
        backward[t] = move @ (density[t + 1] * backward[t + 1]) / scale[t + 1]
    posterior = forward * backward
    arriving = density[1:] * backward[1:] / scale[1:, None]
    return move * (forward[:-1].T @ arriving), posterior


def stationary(move: Array) -> Array:
    """Shares of time in the long run, from an even start: also where the chain falls apart."""
    share = np.full(len(move), 1.0 / len(move))
    lazy = 0.5 * (np.eye(len(move)) + move)  # no cycles
    for _ in range(60):
        share, lazy = share @ lazy, lazy @ lazy
    return np.asarray(share / share.sum())


LEAST_CORRELATION, LONGEST_LAG, FEWEST_PAIRS = 0.05, 200, 20
"""The sum ends with a correlation that may be noise, at so many frames apart, or where fewer pairs are left."""


def correlation_time(residual: Array, path: Index, offsets: Index) -> float:
    """The time tau of residuals (T, D) in units of their state's deviations, within runs of one state; at least 1.

    Examples
    --------
    >>> rng, one = np.random.default_rng(0), np.zeros(2000, dtype=int)
    >>> white = rng.normal(size=(2000, 3))
    >>> correlation_time(white, one, np.array([0, 2000]))
    1.0
    >>> slow = np.apply_along_axis(np.convolve, 0, white, np.ones(8), "same")
    >>> round(correlation_time(slow, one, np.array([0, 2000])))
    8
    """
    begins = np.zeros(len(residual), dtype=bool)
    begins[offsets[:-1]] = True
    begins[1:] |= path[1:] != path[:-1]
    run = np.cumsum(begins)
    variance = np.square(residual).mean(axis=0)
    D = residual.shape[1]
    total, open_ = np.ones(D), np.ones(D, dtype=bool)
    for lag in range(1, min(LONGEST_LAG, len(residual) - 1) + 1):
        same = run[lag:] == run[:-lag]
        if same.sum() < FEWEST_PAIRS or not open_.any():
            break
        rho = (residual[lag:][same] * residual[:-lag][same]).mean(axis=0) / np.maximum(variance, 1e-300)
        open_ &= rho >= LEAST_CORRELATION
        total += np.where(open_, 2 * rho, 0.0)
    return float(np.median(total))


EMITTED = {
    "GMMHMM": "part_means",
    "GaussianHMM": "means",
    "PoissonHMM": "rates",
    "CategoricalHMM": "symbols",
    "MultinomialHMM": "symbols",
}
"""Class -> the array of what its states emit."""


def read_hmmlearn(
    model: Any, *, lengths: ArrayLike | None = None, X: ArrayLike | None = None, features: Sequence[str] | None = None
) -> LocalModel:
    """What states emit, and how often the chain starts, moves and stays.

    Parameters
    ----------
    model : fitted model of hmmlearn
        GMMHMMs, whose states are matched by their common means, must have as many parts per state at all sites. Of
        CategoricalHMMs and MultinomialHMMs expected numbers of symbols leave; sites need not know all symbols, if
        these have names.
    lengths : sequence of int, optional
        Frames of each training sequence; without X, numbers are expected ones.
    X : array, optional
        The training sequences, one below the other, to count here.
    features : sequence of str, optional
        Names of the features; of categorical and multinomial models, of the symbols, by which sites are aligned: codes
        without names must be as many at all sites.
    """
    name = next(cls.__name__ for cls in type(model).__mro__ if cls.__module__.startswith("hmmlearn"))
    variational = name.startswith("Variational")
    remembered = _posterior_counts(model) if variational and X is None and lengths is None else None
    start, move = (np.asarray(x, dtype=np.float64) for x in (model.startprob_, model.transmat_))
    chain = remembered or chain_counts(start, move, model._compute_log_likelihood, lengths, X)
    moves, starts, counts, counted, _ = chain
    if name.endswith(("CategoricalHMM", "MultinomialHMM")):
        trials = getattr(model, "n_trials", None)
        shared = shares(model.emissionprob_posterior_) if variational else np.asarray(model.emissionprob_)
        table = shared * counts[:, None] * float(np.max(trials or 1)) if remembered is None else _symbols(model)
        names = features if features is not None else [str(i) for i in range(table.shape[1])]
        many = {} if trials is None else {"n_trials": int(np.max(trials))}
        facts = {**many, "named_symbols": features is not None}
        return hmm(moves, starts, counts, {"symbols": table}, counted=counted, symbols=names, facts=facts)
    if name == "PoissonHMM":
        rates = np.asarray(model.lambdas_, dtype=np.float64)
        return hmm(moves, starts, counts, {"rates": rates}, counted=counted, features=features)
    means = np.asarray(model.means_, dtype=np.float64)
    kind, spreads = spreads_of(model, means.shape)
    emissions = {"means": means, kind: spreads}
    if name == "GMMHMM":
        K, M, D = means.shape
        parts = counts[:, None] * np.asarray(model.weights_)
        flat = (means.reshape(K * M, D), spreads.reshape(K * M, *spreads.shape[2:]), parts.ravel())
        common, within, _ = merge_components(*flat, np.repeat(np.arange(K), M))
        emissions = {"means": common, kind: within, "part_means": means, f"part_{kind}": spreads, "part_counts": parts}
    known = chain.correlation(X, emissions["means"], emissions[kind])
    return hmm(moves, starts, counts, emissions, counted=counted, features=features, facts=known)


def _posterior_counts(model: Any) -> ChainCounts:
    """Expected numbers of a variational model: what its posterior has beyond its prior."""
    moves = np.maximum(model.transmat_posterior_ - model.transmat_prior_, 0.0)
    starts = np.maximum(model.startprob_posterior_ - model.startprob_prior_, 0.0)
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


def write_hmmlearn(local: LocalModel, like: str) -> Any:
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
            raise InputError("a state has a covariance without volume: use fusion.model(shrink=0.1).") from wrong
    model.n_features = D
    model.startprob_, model.transmat_ = (shares(np.asarray(local.arrays[name])) for name in ("starts", "moves"))
    return model


def read_dynamax(
    model: Any, *, lengths: ArrayLike | None = None, X: ArrayLike | None = None, features: Sequence[str] | None = None
) -> LocalModel:
    """States' means and covariances, and how often the chain starts, moves and stays.

    Parameters
    ----------
    model : ParamsGaussianHMM
        What `fit_em` of a GaussianHMM gives.
    lengths, X, features : optional
        As in `read_hmmlearn`.
    """
    means, covariances = (np.asarray(x, dtype=np.float64) for x in (model.emissions.means, model.emissions.covs))
    given = (model.initial.probs, model.transitions.transition_matrix)
    start, move = (shares(np.asarray(x, dtype=np.float64)) for x in given)

    def log_densities(frames: Array) -> Array:
        normal, states = scipy.stats.multivariate_normal, zip(means, covariances, strict=True)
        return np.column_stack([normal(m, c, allow_singular=True).logpdf(frames) for m, c in states])

    found = chain_counts(start, move, log_densities, lengths, X)
    moves, starts, counts, counted, _ = found
    emissions = {"means": means, "covariances": covariances}
    facts = found.correlation(X, means, covariances)
    return hmm(moves, starts, counts, emissions, counted=counted, features=features, facts=facts)


def write_dynamax(local: LocalModel, like: str) -> Any:
    """Parameters for ``GaussianHMM(K, D)``, in the precision jax is set to."""
    import jax.numpy as jnp
    from dynamax.hidden_markov_model.models import gaussian_hmm as dynamax

    return dynamax.ParamsGaussianHMM(
        initial=dynamax.ParamsStandardHMMInitialState(probs=jnp.array(shares(np.asarray(local.arrays["starts"])))),
        transitions=dynamax.ParamsStandardHMMTransitions(
            transition_matrix=jnp.array(shares(np.asarray(local.arrays["moves"])))
        ),
        emissions=dynamax.ParamsGaussianHMMEmissions(
            means=jnp.array(np.asarray(local.arrays["means"])), covs=jnp.array(full_covariances(local))
        ),
    )
