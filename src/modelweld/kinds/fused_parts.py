"""Fused parameters, and what kinds make them of: arrays of all sites, facts they share, pictures for reports."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from modelweld.core.values import Array
from modelweld.errors import InputError, suggest
from modelweld.inputs.feature_names import choose_names
from modelweld.inputs.local_model import LocalModel, name_axes
from modelweld.kinds import kind_of
from modelweld.results.fit_result import FitResult

if TYPE_CHECKING:
    from modelweld.kinds.mixture_components import Components


def fuse_parameters(
    fit: FitResult,
    how: str | None,
    features: Sequence[str] | None = None,
    site: int | str | None = None,
    **options: Any,
) -> LocalModel:
    """Fused parameters of sites that sent models of one kind; what was sent twice counts once.

    With `features`, of these features alone, in this order; with `site`, on the scale of its own values.
    """
    effects, j = fit.effects, None if site is None else fit.site_number(site)
    fit = fit.drop_duplicates()
    kind = kind_of(fit.models)
    how = kind.default_how(fit) if how is None else how
    if kind.hows and how not in kind.hows:
        near = suggest(how, kind.hows)
        raise InputError(f"how is one of {list(kind.hows)} for a {kind.name}; found {how!r}.{near}")
    found = kind.fuse(fit, how, **options)
    if j is not None and effects is not None:
        scale = np.exp(effects.log_scale[j])
        found = kind.rescale(found, scale, scale * effects.offset[j])
    return found if features is None else choose_names(found, "feature", features, all_of_them=not kind.marginal)


@dataclass(frozen=True, eq=False)
class Ellipses:
    """Components of a density: one per atom, and all sites' own, one site below the other."""

    atoms: Components
    members: Components


@dataclass(frozen=True, eq=False)
class Transitions:
    """Of a chain, one state per atom: expected numbers of transitions (K, K), of starts (K,) and of frames (K,)."""

    moves: Array
    starts: Array
    visits: Array


@dataclass(frozen=True, eq=False)
class Points:
    """Places (n, D) and values (n,) of a function there: one per atom, and all sites' own."""

    atoms: tuple[Array, Array]
    members: tuple[Array, Array]


Picture: TypeAlias = Ellipses | Transitions | Points
"""What a fused model looks like, as plain arrays: a report draws it, whatever kind it is of."""


def common_facts(models: Sequence[LocalModel]) -> dict[str, Any]:
    """Facts that all sites state alike."""
    first, *others = models
    return {name: fact for name, fact in first.facts.items() if all(m.facts.get(name) == fact for m in others)}


def keep_arrays(model: LocalModel, names: Collection[str]) -> LocalModel:
    """The model with these of its arrays alone."""
    axes = {name: along for name, along in name_axes(model).items() if name in names}
    used = {axis for along in axes.values() for axis in along}
    return model.with_(
        arrays={name: model.arrays[name] for name in axes},
        axes=axes,
        variance={name: values for name, values in model.variance.items() if name in names},
        weight={name: values for name, values in model.weight.items() if name in names},
        auxiliary=[name for name in model.auxiliary if name in names],
        coordinates={name: entries for name, entries in model.coordinates.items() if name in used},
        partial=[name for name in model.partial if name in used],
    )


def concatenate(models: Sequence[LocalModel], name: str) -> Array:
    """One array of all sites, one site below the other."""
    return np.concatenate([np.asarray(model.arrays[name]) for model in models])


def check_counted(models: Sequence[LocalModel], message: str) -> None:
    """Refuse sites of which some send numbers and others shares; `message` names the first of these as {site}."""
    if len({bool(model.facts.get("counted")) for model in models}) > 1:
        odd = next(model.site or str(j) for j, model in enumerate(models) if not model.facts.get("counted"))
        raise InputError(message.format(site=odd))
