"""The model of a day: what sites near that time sent of atoms that live then, moved along with their atoms.

Places are those of the day. What rides along (counts, covariances, transitions) is of the sites nearest in time, as
many of them as it takes to have seen every atom that lives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from modelweld.errors import InputError
from modelweld.families import Family
from modelweld.families.fading import Moving
from modelweld.inputs.clock import number_of
from modelweld.inputs.local_model import Array, LocalModel
from modelweld.inputs.stack import offsets_of
from modelweld.kinds import kind_of
from modelweld.matching.result import Matching, by_count, ranks
from modelweld.time.answers import living_at
from modelweld.time.paths import places_of_values, smooth

if TYPE_CHECKING:
    from modelweld.fusion import Fusion
    from modelweld.time.timeline import Timeline


def at_time(fusion: Fusion, time: float) -> Fusion:
    """A fusion of sites without times, all of which speak of that one."""
    name, old = fusion.named_set()
    if len(fusion.matchings) > 1:
        raise InputError(f"at: the model of a day is made of one set; these sites have {list(fusion.matchings)}.")
    board, _ = fusion.timeline(name)
    living = living_at(board, time)
    if not living.any():
        raise InputError("at: no atom is likely to live at that time; fusion.lives() says when they do.")
    seen = np.array([number_of(moment) for moment in fusion.times or ()])
    near = nearest_sites(old, seen, time, living)
    [key] = old.families
    order = fusion.timeline_order(name)
    here, there = places_of_values(board, order), places_of_values(board, order, time)
    models = []
    for j in near:
        own = slice(old.offsets[j], old.offsets[j + 1])
        move = _Move(old.families[key], here[own], there[own])
        models.append(_of_day(fusion.models[j], key, name, move, living[old.stacked_labels[own]]))
    matching = _matching_of_day(old, board, near, living, time)
    return fusion.with_(given=models, sites=[fusion.sites[j] for j in near], matchings={name: matching})


def nearest_sites(matching: Matching, seen: Array, time: float, living: NDArray[np.bool_]) -> list[int]:
    """The sites nearest to a time, in their own order, up to where each atom that lives was seen once."""
    distance = np.abs(seen - time)
    held = matching.presence[:, living]
    reach = np.where(held, distance[:, None], np.inf).min(0).max()
    return np.flatnonzero((distance <= reach) & held.any(1)).tolist()


class _Move(NamedTuple):
    """How a site's values (L, D) move with their atoms."""

    family: Family
    here: Array
    there: Array


def _of_day(model: LocalModel, key: Any, set_name: str, move: _Move, stay: NDArray[np.bool_]) -> LocalModel:
    """A site's model with members that `stay`, their places moved."""
    if isinstance(key, str):
        position = model.axes[key].index(set_name)
        members = np.moveaxis(np.asarray(model.arrays[key]), position, 0)
        moved = move.family.follow(members.reshape(move.here.shape), move.here, move.there)
        model = kind_of([model]).moved(model, {key: np.moveaxis(moved.reshape(members.shape), 0, position)})

    def cut(values: ArrayLike, name: str) -> Array:
        x = np.asarray(values)
        for position, axis in enumerate(model.axes[name]):
            if axis == set_name:
                x = np.compress(stay, x, axis=position)
        return x

    return model.with_(
        arrays={name: cut(x, name) for name, x in model.arrays.items()},
        variance={name: cut(x, name) for name, x in model.variance.items()},
        weight={name: cut(x, name) for name, x in model.weight.items()},
        time=None,
    )


def _matching_of_day(
    old: Matching, board: Timeline, near: list[int], living: NDArray[np.bool_], time: float
) -> Matching:
    """Atoms that live, where they are then, numbered by how many of the near sites hold them."""
    atoms = np.flatnonzero(living)
    places = smooth(board, atoms, np.full(len(atoms), time)).mean
    counts = old.presence[near][:, atoms].sum(0)
    number = by_count(counts, places)
    rank = np.full(len(living), -1)
    rank[atoms] = ranks(number)
    labels = [rank[old.labels[j]][living[old.labels[j]]] for j in near]
    [(key, family)] = old.families.items()
    assert isinstance(family, Moving)
    return Matching(
        stacked_labels=np.concatenate(labels),
        offsets=offsets_of([len(own) for own in labels]),
        counts=counts[number],
        families={key: family.still()},
        values={key: places[number]},
        prior=old.prior,
        objective=old.objective,
        history=old.history,
        changes=old.changes,
        converged=old.converged,
        engine="numpy",
    )
