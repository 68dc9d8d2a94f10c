"""What the page draws of a fused model: a mixture's ellipses, a chain's transitions, a Gaussian process's points."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

import modelweld
from modelweld.core.values import Array, Index
from modelweld.errors import InputError
from modelweld.kinds import kind_named
from modelweld.kinds.fused_parts import Ellipses, Points, Transitions
from modelweld.kinds.hmm import shares
from modelweld.kinds.mixture_components import Components, diagonals
from modelweld.report.groups import are_numbers, find_small, rank_features
from modelweld.report.text import DRAWN, NAMED, add_units, are_few, short

MOST_FEATURES = 6
"""Features to choose from for a picture, those in which components differ most."""

Picture: TypeAlias = dict[str, object]
"""What the page draws; `type` says how."""


def draw_picture(fusion: modelweld.Fusion, notes: list[str], allow_small: bool) -> Picture | None:
    """What to draw for this kind of model; None if there is nothing particular."""
    kind = kind_named(fusion._fit.models[0].kind)
    try:
        match None if kind is None else kind.picture(fusion._fit):
            case Ellipses() as found:
                return _ellipses(found, fusion, notes, allow_small)
            case Transitions() as found:
                return _transitions(found, fusion, notes, allow_small)
            case Points() as found:
                return _points(found, fusion, notes)
    except InputError as error:
        notes.append(f"The picture of the fused model is left out: {error}")
    return None


def _ellipses(found: Ellipses, fusion: modelweld.Fusion, notes: list[str], allow_small: bool) -> Picture:
    K, labels = fusion.K, fusion.matching.stacked_labels
    small = find_small(fusion, next(iter(fusion.matchings)), allow_small)
    shown = np.flatnonzero(~small.atoms[:K])
    means, spreads, counts = (part[: max(K, 1)] for part in found.atoms)
    within = np.average(diagonals(spreads), axis=0, weights=counts if counts.sum() > 0 else None)
    chosen, names = _features(means, within, fusion)
    local = _pick(np.where(small.rows, K, labels), K, notes)
    return {
        "type": "ellipses",
        "features": names,
        "atoms": {"labels": shown.tolist(), **_component_ellipses(found.atoms, shown, chosen)},
        "members": {"labels": labels[local].tolist(), **_component_ellipses(found.members, local, chosen)},
    }


def _component_ellipses(components: Components, which: Index, chosen: Index) -> Picture:
    means, spreads, counts = (part[which] for part in components)
    if spreads.ndim == 2:
        covariances = spreads[:, chosen, None] * np.eye(len(chosen))
    else:
        covariances = spreads[:, chosen][:, :, chosen]
    return {"means": short(means[:, chosen]), "covariances": short(covariances), "counts": short(counts)}


def _transitions(found: Transitions, fusion: modelweld.Fusion, notes: list[str], allow_small: bool) -> Picture:
    K, visits = fusion.K, found.visits
    small = find_small(fusion, next(iter(fusion.matchings)), allow_small).atoms[:K]
    order = np.argsort(np.where(small, np.inf, -visits[:K]), kind="stable")
    states = np.sort(order[: min(NAMED, K - int(small.sum()))])
    if len(states) < K:
        notes.append(f"Of {K:,} states the transitions of the {len(states)} most visited are drawn.")

    def shown(numbers: Array) -> Array:
        """As probabilities; none of numbers that are too small."""
        few = are_few(numbers) & (are_numbers(fusion) and not allow_small)
        return np.where(few, np.nan, shares(np.where(few, 0.0, numbers)))

    moves, starts = shown(found.moves[:K, :K])[np.ix_(states, states)], shown(found.starts[:K])[states]
    return {
        "type": "transitions",
        "states": states.tolist(),
        "visits": short(visits[states]),
        "moves": short(moves),
        "starts": short(starts),
    }


def _points(found: Points, fusion: modelweld.Fusion, notes: list[str]) -> Picture:
    K, labels = fusion.K, fusion.matching.stacked_labels
    (atoms, at_atoms), (inputs, values) = found.atoms, found.members
    chosen, names = _features(atoms[: max(K, 1)], np.zeros(atoms.shape[1]), fusion)  # as they stand
    local = _pick(labels, K, notes)
    return {
        "type": "points",
        "features": names,
        "atoms": {"labels": list(range(K)), "means": short(atoms[:K, chosen]), "values": short(at_atoms[:K])},
        "members": {
            "labels": labels[local].tolist(),
            "means": short(inputs[np.ix_(local, chosen)]),
            "values": short(values[local]),
        },
    }


def _features(means: Array, within: Array, fusion: modelweld.Fusion) -> tuple[Index, list[str]]:
    """The features in which atoms differ most compared with their widths, those first, and their names with units."""
    names = fusion._fit.models[0].coordinates.get("feature") or [f"feature {d}" for d in range(means.shape[1])]
    chosen = rank_features(means, within)[:MOST_FEATURES]
    return chosen, add_units(fusion, [names[d] for d in chosen.tolist()])


def _pick(labels: Index, K: int, notes: list[str]) -> Index:
    """Local parameters to draw with the fused ones: those that are not excluded, if there are not too many."""
    rows = np.flatnonzero(labels < K)
    if len(rows) <= DRAWN:
        return rows
    notes.append(f"Of {len(rows):,} local parameters {DRAWN:,} are drawn in the picture, evenly picked.")
    return rows[np.linspace(0, len(rows) - 1, DRAWN).astype(np.int64)]
