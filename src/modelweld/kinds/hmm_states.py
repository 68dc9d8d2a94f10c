"""What Gaussian hidden states tell beside their means: whether they may be pieces of one, and by what they are matched.

A fit that is told the number of states cuts some of them in two; its site then holds an atom in pieces. A fit that
merges states by its own evidence leaves none, and to look for them only joins states that differ.

Frames of movements and sensors resemble their neighbours. Sites measure over how many, the fact `correlation_time`, or
find it in their fit, the fact `zeta`. Where it is long, so many frames count as one, states of different sites differ
by more than chance, and means alone join what differs: covariances decide besides. Nor can pieces be told from
neighbours where a state is known by fewer independent frames than it has features.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from modelweld.inputs.local_model import Array, LocalModel
from modelweld.kinds.mixture_components import parameters, squared_errors

CORRELATED = 2.0
"""Frames that are worth one, from which on they are taken for correlated. Fits to independent frames find 1.0 to 1.7,
to sensors 2.3 to 3.3, to movements 4 to 40. Simulated frames that are correlated as much (2.1 to 2.8) lose .02 of ARI
at ten sites by being taken for such, sensors .1 by not being."""

MOST_FEATURES = 50
"""Up to which diagonal covariances are matched as whole ones, whose determinants take the cube of it."""


def frames_of(model: LocalModel) -> Array:
    """Frames (K,) of every state, as they are and not as they count: each is a start or an arrival."""
    return np.asarray(np.asarray(model.arrays["starts"]) + np.asarray(model.arrays["moves"]).sum(axis=0))


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
    return bool(np.median([_power(m) for m in models]) <= 1 / CORRELATED)


def are_scarce(models: Sequence[LocalModel]) -> bool:
    """Whether typical states are known by fewer independent frames than they have features.

    Fits of movements have 4 to 7 for 12 features and lose by pieces; simulated ones of 400 frames that are correlated
    as much, 8 for 6 features, need them.
    """
    worth = np.concatenate([_worth(m) for m in models])
    return bool(np.median(worth) < np.shape(models[0].arrays["means"])[1])


def weigh_states(model: LocalModel) -> LocalModel:
    """The model with what its frames are worth beside means and covariances; nothing beside those without volume."""
    covariances = np.asarray(model.arrays["covariances"])
    widths = np.linalg.eigvalsh(covariances)
    regular = widths[:, 0] > np.finfo(float).eps * covariances.shape[1] * np.abs(widths[:, -1])
    worth = _worth(model)
    variance = model.variance if _time(model) is None else {"means": squared_errors(parameters(model)[1], worth)}
    weight = {**model.weight, "covariances": np.where(regular, worth, 0.0)}
    return model.with_(variance={**model.variance, **variance}, weight=weight)


def _are_wide(models: Sequence[LocalModel]) -> bool:
    """Whether there are too many features to match whole covariances."""
    return "means" in models[0].arrays and np.shape(models[0].arrays["means"])[1] > MOST_FEATURES


def _power(model: LocalModel) -> float:
    """What a frame counts, as the fit found it."""
    said = model.facts.get("zeta")
    return float(said) if isinstance(said, (int, float)) and 0 < said <= 1 else 1.0


def _worth(model: LocalModel) -> Array:
    """Independent frames of every state, as far as the site measured it."""
    return frames_of(model) / (_time(model) or 1.0)


def _time(model: LocalModel) -> float | None:
    """Frames that are worth one, if the site says so."""
    said = model.facts.get("correlation_time")
    return float(said) if isinstance(said, (int, float)) and said >= 1 else None


def _knows_means(model: LocalModel) -> bool:
    """Whether it is said how well means are known, and no noise was added, to which covariances would not fit."""
    return "means" in model.arrays and "means" in model.variance and not model.facts.get("noisy")
