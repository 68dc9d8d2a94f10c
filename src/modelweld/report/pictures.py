"""What a kind of model looks like: a mixture's ellipses, a Markov chain's transitions, a Gaussian process's points."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from modelweld.errors import InputError
from modelweld.fusion import Fusion
from modelweld.inputs.local_model import Array, LocalModel
from modelweld.inputs.stack import Index
from modelweld.kinds.hmm import shares
from modelweld.kinds.mixture import merged, stacked
from modelweld.report.contents import Numbers
from modelweld.report.rounding import short

MOST_STATES = 40
"""States of a transition graph that can be told apart on a page: the most visited ones."""

MOST_FEATURES, MOST_LOCAL = 6, 2_000
"""Features to choose from for a picture, those in which components differ most; local components or points drawn."""

DIGITS = 5
"""Significant digits of what is drawn."""

Picture: TypeAlias = dict[str, object]
"""What the page draws; `type` says how."""


def picture(fusion: Fusion, notes: list[str]) -> Picture | None:
    """What to draw for this kind of model; None if there is nothing particular."""
    draw = {"mixture": _mixture, "hmm": _hmm, "sparse-gp": _process}.get(fusion.models[0].kind)
    if draw is None:
        return None
    try:
        return draw(fusion, notes)
    except InputError as error:
        notes.append(f"The picture of the fused model is left out: {error}")
        return None


def _mixture(fusion: Fusion, notes: list[str]) -> Picture:
    parts, labels = stacked(fusion.models), fusion.matching.stacked_labels
    means, spreads, counts = merged(*parts, labels)
    own_means, own_spreads, own_counts = parts
    K = fusion.K
    chosen, names = _features(means[: max(K, 1)], fusion.models[0])
    local = _picked(labels, K, notes)
    return {
        "type": "ellipses",
        "features": names,
        "atoms": {"labels": list(range(K)), **_ellipses(means[:K], spreads[:K], counts[:K], chosen)},
        "members": {
            "labels": labels[local].tolist(),
            **_ellipses(own_means[local], own_spreads[local], own_counts[local], chosen),
        },
    }


def _ellipses(means: Array, spreads: Array, counts: Array, chosen: Index) -> Picture:
    if spreads.ndim == 2:
        covariances = spreads[:, chosen, None] * np.eye(len(chosen))
    else:
        covariances = spreads[:, chosen][:, :, chosen]
    return {"means": _drawn(means[:, chosen]), "covariances": _drawn(covariances), "counts": _drawn(counts)}


def _hmm(fusion: Fusion, notes: list[str]) -> Picture:
    K = fusion.K
    moves, visits = fusion.total("moves")[:K, :K], fusion.total("counts")[:K]
    states = np.sort(np.argsort(-visits, kind="stable")[:MOST_STATES])
    if len(states) < K:
        notes.append(f"Of {K:,} states the transitions of the {len(states)} most visited are drawn.")
    moves, starts = shares(moves)[np.ix_(states, states)], shares(fusion.total("starts")[:K])[states]
    return {
        "type": "transitions",
        "states": states.tolist(),
        "visits": _drawn(visits[states]),
        "moves": _drawn(moves),
        "starts": _drawn(starts),
    }


def _process(fusion: Fusion, notes: list[str]) -> Picture:
    K, labels = fusion.K, fusion.matching.stacked_labels
    inputs = np.concatenate([np.asarray(m.arrays["inputs"]) for m in fusion.models])
    values = np.concatenate([np.asarray(m.arrays["values"]) for m in fusion.models])
    atoms = fusion.array("inputs")
    chosen, names = _features(atoms[: max(K, 1)], fusion.models[0])
    local = _picked(labels, K, notes)
    return {
        "type": "points",
        "features": names,
        "atoms": {
            "labels": list(range(K)),
            "means": _drawn(atoms[:K, chosen]),
            "values": _drawn(fusion.array("values")[:K]),
        },
        "members": {
            "labels": labels[local].tolist(),
            "means": _drawn(inputs[np.ix_(local, chosen)]),
            "values": _drawn(values[local]),
        },
    }


def _features(means: Array, model: LocalModel) -> tuple[Index, list[str]]:
    """The features in which atoms differ most, relative to their size where that is larger, and their names."""
    names = model.coordinates.get("feature") or [f"feature {d}" for d in range(means.shape[1])]
    deviation = means.std(axis=0)
    scale = np.maximum(np.abs(means).mean(axis=0), np.finfo(float).tiny)
    chosen = np.arange(len(names))
    if len(names) > MOST_FEATURES:
        chosen = np.sort(np.argsort(-deviation / scale, kind="stable")[:MOST_FEATURES])
    return chosen, [str(names[d]) for d in chosen.tolist()]


def _picked(labels: Index, K: int, notes: list[str]) -> Index:
    """Local parameters to draw beside the fused ones: those that are not set aside, if there are not too many."""
    rows = np.flatnonzero(labels < K)
    if len(rows) <= MOST_LOCAL:
        return rows
    notes.append(f"Of {len(rows):,} local parameters {MOST_LOCAL:,} are drawn in the picture, evenly picked.")
    return rows[np.linspace(0, len(rows) - 1, MOST_LOCAL).astype(np.int64)]


def _drawn(x: Array) -> list[Numbers]:
    return short(x, DIGITS)
