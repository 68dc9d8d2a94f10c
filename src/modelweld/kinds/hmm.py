"""Hidden Markov models: states with Gaussian, mixed Gaussian, categorical or Poisson emissions.

Arrays: `moves (state, state)`, `starts (state)` and `counts (state)`: expected numbers of transitions, of sequences
that begin and of frames, the chain's sufficient statistics; they add. Emissions are one of

    means (state, feature), covariances (state, feature, feature) or variances (state, feature)
    the same of all parts of a state: part_means (state, ., feature), ..., part_counts (state, .)
    symbols (state, symbol): expected numbers of each symbol
    rates (state, feature)

States are matched by emissions: means with their standard errors, symbols, or rates with the frames behind them.
Where frames are correlated, or few sites send states that their fits merged, covariances decide besides
(`modelweld.kinds.hmm`).

Beside their means, Gaussian states say whether they may be fragments of one, and by what they are matched.

A fit with a given number of states cuts some of them in two; its site then holds an atom in fragments. A fit that
merges states by its own evidence leaves none, and to look for them only joins states that differ.

Frames of movements and sensors resemble their neighbours. Sites measure over how many, the fact `correlation_time`, or
find it in their fit, the fact `zeta`. Where it is long, so many frames count as one, states of different sites differ
by more than chance, and means alone join what differs: covariances decide besides. Nor can fragments be distinguished
from neighbours where a state is known by fewer independent frames than it has features.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from modelweld.core.values import Array, Index, Key
from modelweld.errors import Finding, InputError, NamesWarning
from modelweld.families import Counts, Family, Gaussian, Rates, Scatter
from modelweld.fit.screening.totals import Totals
from modelweld.inputs.local_model import LocalModel
from modelweld.kinds import mixture_components
from modelweld.kinds.fused_parts import Transitions, check_counted, common_facts, concatenate
from modelweld.kinds.kind import Facts, Kind, lay_out
from modelweld.kinds.layout import Layout, truth
from modelweld.kinds.mixture_completion import complete, measured, merge_components
from modelweld.kinds.mixture_reduction import reduce_to
from modelweld.results.fit_result import FitResult

HOWS = {"counts": "expected numbers are added through the matching, and probabilities are their shares"}
"""Ways to make fused parameters, the default first."""

UNNAMED = (
    "codes have no names, so code 3 of one site is taken for code 3 of the others. If sites coded by themselves, name "
    "the codes: read(model, features=[...])."
)
"""What is said of categories without names."""

EMISSIONS: dict[str, tuple[str, ...]] = {
    "means": ("state", "feature"),
    "covariances": ("state", "feature", "feature"),
    "variances": ("state", "feature"),
    "part_means": ("state", "", "feature"),
    "part_variances": ("state", "", "feature"),
    "part_covariances": ("state", "", "feature", "feature"),
    "part_counts": ("state", ""),
    "symbols": ("state", "symbol"),
    "rates": ("state", "feature"),
}
"""Axes of the arrays an emission may have; "" is a fixed coordinate without names."""

ARRAYS = {**EMISSIONS, "moves": ("state", "state"), "starts": ("state",), "counts": ("state",)}
"""Axes of all arrays."""


def hmm(
    moves: Array,
    starts: Array,
    counts: Array,
    emissions: Mapping[str, Array],
    *,
    counted: bool,
    features: Sequence[str] | None = None,
    symbols: Sequence[str] | None = None,
    facts: Facts | None = None,
) -> LocalModel:
    """A hidden Markov model as it leaves a site.

    Parameters
    ----------
    moves, starts, counts : arrays (K, K), (K,), (K,)
        Expected numbers of transitions, starts and frames.
    emissions : mapping of str to array
        By the names above.
    counted : bool
        Whether these are numbers; else they are shares, and say nothing of standard errors.
    features, symbols : sequences of str, optional
        Names of the features, or of the symbols.
    facts : mapping, optional
        What is needed to write it again.

    Examples
    --------
    >>> import numpy as np
    >>> emissions = {"means": np.array([[0.0], [5.0]]), "variances": np.ones((2, 1))}
    >>> local = hmm(np.full((2, 2), 25.0), np.ones(2), np.full(2, 50.0), emissions, counted=True, features=["speed"])
    >>> local.kind, sorted(local.arrays)
    ('hmm', ['counts', 'means', 'moves', 'starts', 'variances'])
    """
    arrays = {**emissions, "moves": moves, "starts": starts, "counts": counts}
    variance, weight = {}, {}
    if "means" in emissions and counted:
        spreads = emissions["covariances"] if "covariances" in emissions else emissions["variances"]
        variance["means"] = mixture_components.error_variances(spreads, counts)
    if "rates" in emissions and counted:
        weight["rates"] = counts
    return LocalModel(
        **lay_out(arrays, ARRAYS, ("means", "symbols", "rates"), "state", feature=features, symbol=symbols),
        variance=variance,
        weight=weight,
        partial=[] if symbols is None else ["symbol"],
        kind="hmm",
        facts={**(facts or {}), "counted": counted},
    )


class HMM(Kind):
    """Hidden Markov models."""

    name = "hmm"
    plural = "hidden Markov models"
    hows = HOWS
    counted = "frames"
    shown = ("means", "rates")

    def layout(self, model: LocalModel) -> Layout:
        """What a hidden Markov model must look like."""
        return Layout(
            sets=("state",),
            arrays=ARRAYS,
            needed=("means|symbols|rates", "covariances|variances|symbols|rates", "moves", "starts", "counts"),
            not_negative=tuple(name for name in ARRAYS if not name.endswith(("means", "covariances"))),
            spreads=("covariances", "part_covariances"),
            divisors=("variances", "part_variances"),
            facts={"counted": truth},
        )

    def harmonise(self, models: Sequence[LocalModel]) -> list[LocalModel]:
        """Covariances for all, if one has them; models whose emissions differ in kind are refused."""
        kinds = {name for m in models for name in ("means", "symbols", "rates") if name in m.arrays}
        if len(kinds) > 1:
            raise InputError(
                f"states with different emissions do not fuse: the sites have {' and '.join(sorted(kinds))}."
            )
        _check_codes(models)
        diagonal = all("covariances" not in m.arrays or "variances" in m.arrays for m in models)
        if diagonal and not are_correlated(models):
            return list(models)
        return [_with_covariances(m, beside=diagonal) if "variances" in m.arrays else m for m in models]

    def may_lack(self, models: Sequence[LocalModel]) -> tuple[str, ...]:
        """Features of Gaussian states, unless these have parts."""
        return ("feature",) if all("means" in m.arrays and "part_means" not in m.arrays for m in models) else ()

    def doubts(self, models: Sequence[LocalModel], arranged: Sequence[LocalModel]) -> list[Finding]:
        """Also codes without names."""
        unnamed = any(m.facts.get("named_symbols") is False for m in models)
        return super().doubts(models, arranged) + ([Finding(UNNAMED, NamesWarning)] if unnamed else [])

    def weigh(self, models: Sequence[LocalModel]) -> list[LocalModel]:
        """Standard errors for Gaussian states: nominal where no site has numbers, else by what frames are worth."""
        if are_merged(models) or are_correlated(models):
            return [weigh_states(m) for m in models]
        bare = not any(m.facts.get("counted") for m in models) and "means" in models[0].arrays
        return mixture_components.count_bare(models) if bare else list(models)

    def families(self, models: Sequence[LocalModel]) -> dict[Key, Family]:
        """Matched by emissions; means are distinguished as finely as the states' own widths allow."""
        arrays = models[0].arrays
        if "means" in arrays:
            few = len(models) < MANY and are_merged(models)
            correlated = are_correlated(models) or are_tempered(models)
            beside: dict[Key, Family] = {"covariances": Scatter()} if few or correlated else {}
            return {"means": Gaussian(width=mixture_components.mean_width(models)), **beside}
        return {"symbols": Counts()} if "symbols" in arrays else {"rates": Rates()}

    def holds_atoms_once(self, models: Sequence[LocalModel]) -> bool:
        """Whether states were merged where they are one, or are known too little to be distinguished from fragments."""
        return are_merged(models) or (are_correlated(models) and are_scarce(models))

    def fuse(self, fusion: FitResult, how: str, shrink: float = 0.0) -> LocalModel:
        """One state per atom; expected numbers are added.

        Parameters
        ----------
        fusion : FitResult
            Of hidden Markov models.
        how : {"counts"}
            The only way.
        shrink : float
            Share of the pooled covariance in each state's: states of few frames have covariances that are too narrow,
            and new sequences score better with some (0.3 on movement data).
        """
        models = fusion.models
        check_counted(
            models,
            "site {site} does not say how many frames it has, and others do: use read(model, lengths=...).",
        )
        first, labels = models[0], fusion.matching.stacked_labels
        counts = fusion.total("counts")
        emissions: dict[str, Array] = {}
        if "means" in first.arrays:
            spread = "variances" if "variances" in first.arrays else "covariances"
            means, spreads, own = (concatenate(models, name) for name in ("means", spread, "counts"))
            whole = complete((means, spreads, own), measured(models), labels)
            emissions["means"], spreads, _ = merge_components(*whole, labels)
            emissions[spread] = shrink_spreads(spreads, counts, shrink)
            if f"part_{spread}" in first.arrays:
                emissions.update(_fuse_parts(models, labels, spread, shrink))
        elif "symbols" in first.arrays:
            emissions["symbols"] = fusion.total("symbols")
        else:
            rates, own = concatenate(models, "rates"), concatenate(models, "counts")
            emissions["rates"] = merge_components(rates, np.zeros_like(rates), own, labels)[0]
        moves, starts = fusion.total("moves"), fusion.total("starts")
        names = {f"{axis}s": first.coordinates.get(axis) for axis in ("feature", "symbol")}
        counted, facts = bool(first.facts["counted"]), common_facts(models)
        return hmm(moves, starts, counts, emissions, counted=counted, facts=facts, **names)

    def move(self, model: LocalModel, arrays: Mapping[str, Array]) -> LocalModel:
        """Parts move with their state's mean."""
        follow_atoms = dict(arrays)
        if "part_means" in model.arrays and "means" in arrays:
            shift = arrays["means"] - np.asarray(model.arrays["means"])
            follow_atoms["part_means"] = np.asarray(model.arrays["part_means"]) + shift[:, None, :]
        return super().move(model, follow_atoms)

    def has_places(self, model: LocalModel) -> bool:
        """Means of Gaussian states lie in the space of features."""
        return "means" in model.arrays

    def totals(self, model: LocalModel) -> Totals | None:
        """By the moments of Gaussian states."""
        return mixture_components.total_points(model) if "means" in model.arrays else None

    def picture(self, fusion: FitResult) -> Transitions:
        """Numbers of transitions, starts and frames, added through the matching."""
        return Transitions(fusion.total("moves"), fusion.total("starts"), fusion.total("counts"))

    def words(self, fusion: FitResult, set_name: str) -> tuple[Array, Sequence[str]] | None:
        """Numbers of symbols per state, where states emit these."""
        if set_name != "state" or "symbols" not in fusion.models[0].arrays:
            return None
        numbers = fusion.total("symbols")
        return numbers, fusion.models[0].coordinates.get("symbol") or [f"symbol {i}" for i in range(numbers.shape[1])]


def _check_codes(models: Sequence[LocalModel]) -> None:
    """Refuse codes that cannot be the same: without names, in different numbers, or among others with names."""
    if "symbols" not in models[0].arrays or all(m.facts.get("named_symbols") is not False for m in models):
        return
    sizes = [np.shape(m.arrays["symbols"])[1] for m in models]
    named = [m.facts.get("named_symbols") is not False for m in models]
    odd = next((j for j in range(len(models)) if sizes[j] != sizes[0] or named[j] != named[0]), None)
    if odd is not None:
        what = "names its codes" if named[odd] else f"has {sizes[odd]} codes without names"
        other = "names them" if named[0] else f"has {sizes[0]} without names"
        both = f"site {models[odd].site or odd} {what} and site {models[0].site or 0} {other}"
        raise InputError(f"{both}. Name the codes in their order at all sites: read(model, features=[...]).")


def _with_covariances(model: LocalModel, *, beside: bool) -> LocalModel:
    """Variances as covariances, in place of them, or `beside` those of states: to match by."""
    emissions = {name: np.asarray(values) for name, values in model.arrays.items() if name in EMISSIONS}
    for name in ["variances"] if beside else [name for name in emissions if name.endswith("variances")]:
        spreads = emissions[name] if beside else emissions.pop(name)
        emissions[name.replace("variances", "covariances")] = spreads[..., None, :] * np.eye(spreads.shape[-1])
    weight = {**(model.weight if beside else {}), **mixture_components.weight_pairs(model.weight)}
    return _again(model, emissions).with_(variance=model.variance, weight=weight)


def _again(model: LocalModel, emissions: Mapping[str, Array]) -> LocalModel:
    """The same chain with other emissions."""
    moves, starts, counts = (np.asarray(model.arrays[name]) for name in ("moves", "starts", "counts"))
    names = {f"{axis}s": model.coordinates.get(axis) for axis in ("feature", "symbol")}
    counted = bool(model.facts["counted"])
    return hmm(moves, starts, counts, emissions, counted=counted, facts=model.facts, **names).with_(site=model.site)


def shrink_spreads(spreads: Array, counts: Array, share: float) -> Array:
    """Covariances (or variances) with a share of their average, weighted by counts, mixed in."""
    if not 0 <= share <= 1:
        raise InputError(f"shrink is a share between 0 and 1; found {share}.")
    pooled = np.tensordot(counts / max(float(counts.sum()), 1e-300), spreads, axes=1)
    return np.asarray((1 - share) * spreads + share * pooled)


def _fuse_parts(models: Sequence[LocalModel], labels: Index, spread: str, shrink: float) -> dict[str, Array]:
    """The parts of all states of an atom, merged down to as many as the sites' states have."""
    means, spreads, counts = (concatenate(models, f"part_{name}") for name in ("means", spread, "counts"))
    M = means.shape[1]
    found = []
    for k in range(int(labels.max()) + 1):
        own = labels == k
        m, s, n = (x[own].reshape(-1, *x.shape[2:]) for x in (means, spreads, counts))
        found.append(merge_components(m, s, n, reduce_to(m, s, n, M)))
    means, spreads, counts = (np.stack(x) for x in zip(*found, strict=True))
    flat = shrink_spreads(spreads.reshape(-1, *spreads.shape[2:]), counts.ravel(), shrink)
    return {"part_means": means, f"part_{spread}": flat.reshape(spreads.shape), "part_counts": counts}


def full_covariances(model: LocalModel) -> Array:
    """Covariances (K, D, D) of Gaussian states, also of those that have variances."""
    if "covariances" in model.arrays:
        return np.asarray(model.arrays["covariances"])
    variances = np.asarray(model.arrays["variances"])
    return np.asarray(variances[:, :, None] * np.eye(variances.shape[1]))


def shares(counts: Array) -> Array:
    """Rows of numbers as probabilities; rows without any are uniform."""
    total = counts.sum(axis=-1, keepdims=True)
    return np.where(total > 0, counts / np.where(total > 0, total, 1.0), 1.0 / counts.shape[-1])


CORRELATED = 2.0
"""Frames that are worth one, from which on they are taken for correlated. Fits to independent frames find 1.0 to 1.7,
to sensors 2.3 to 3.3, to movements 4 to 40. Simulated frames that are correlated as much (2.1 to 2.8) lose .02 of ARI
at ten sites by being taken for such, sensors .1 by not being."""

MANY = 4
"""Sites from which on means alone tell merged states apart: of fewer, covariances are matched beside them."""

MOST_FEATURES = 50
"""Up to which diagonal covariances are matched as whole ones, whose determinants take the cube of it."""


def are_merged(models: Sequence[LocalModel]) -> bool:
    """Whether fits merged states that are one, as `StickyHDPHMM` does, and say how well means are known."""
    return all("zeta" in m.facts and "covariances" in m.arrays and _knows_means(m) for m in models)


def are_correlated(models: Sequence[LocalModel]) -> bool:
    """Whether frames are, as all sites measured and most found."""
    if _are_wide(models) or not all(_knows_means(m) and _time(m) is not None for m in models):
        return False
    return bool(np.median([_time(m) or 1.0 for m in models]) >= CORRELATED)


def are_tempered(models: Sequence[LocalModel]) -> bool:
    """Whether fits that merged states found frames to be correlated: most count a frame for less than half of one."""
    if _are_wide(models) or not are_merged(models):
        return False
    powers = [fact if isinstance(fact := m.facts["zeta"], (int, float)) and 0 < fact <= 1 else 1.0 for m in models]
    return bool(np.median(powers) <= 1 / CORRELATED)


def are_scarce(models: Sequence[LocalModel]) -> bool:
    """Whether typical states are known by fewer independent frames than they have features.

    Fits of movements have 4 to 7 for 12 features and lose by fragments; simulated ones of 400 frames that are
    correlated as much, 8 for 6 features, need them.
    """
    worth = np.concatenate([_worth(m) for m in models])
    return bool(np.median(worth) < np.shape(models[0].arrays["means"])[1])


def weigh_states(model: LocalModel) -> LocalModel:
    """The model with what its frames are worth beside means and covariances; nothing beside those without volume."""
    covariances = np.asarray(model.arrays["covariances"])
    widths = np.linalg.eigvalsh(covariances)
    regular = widths[:, 0] > np.finfo(float).eps * covariances.shape[1] * np.abs(widths[:, -1])
    worth = _worth(model)
    variance, weight = dict(model.variance), {**model.weight, "covariances": np.where(regular, worth, 0.0)}
    if _time(model) is not None:
        variance["means"] = mixture_components.error_variances(mixture_components.parameters(model)[1], worth)
    return model.with_(variance=variance, weight=weight)


def _are_wide(models: Sequence[LocalModel]) -> bool:
    """Whether there are too many features to match whole covariances."""
    return "means" in models[0].arrays and np.shape(models[0].arrays["means"])[1] > MOST_FEATURES


def _worth(model: LocalModel) -> Array:
    """Independent frames (K,) of every state, as far as the site measured it; each is a start or an arrival."""
    frames = np.asarray(model.arrays["starts"]) + np.asarray(model.arrays["moves"]).sum(axis=0)
    return np.asarray(frames / (_time(model) or 1.0))


def _time(model: LocalModel) -> float | None:
    """Frames that are worth one, if the site says so."""
    said = model.facts.get("correlation_time")
    return float(said) if isinstance(said, (int, float)) and said >= 1 else None


def _knows_means(model: LocalModel) -> bool:
    """Whether it is said how well means are known, and no noise was added, to which covariances would not fit."""
    return "means" in model.arrays and "means" in model.variance and not model.facts.get("noisy")
