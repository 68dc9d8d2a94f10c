"""Kinds of models: what the arrays of a LocalModel are, and how fused ones are made from a Fusion.

Libraries differ in how they keep a mixture; all of them have one. A *kind* is what they share: one file per kind with

    layout(model) -> Layout            arrays with axes and signs, and facts, by which files are checked
    families(models) -> dict           which arrays decide the matching, and how their values scatter
    HOWS                               ways to make fused parameters, the default first
    fused(fusion, how, **options) -> LocalModel    fused parameters, arranged like a site's
    rescaled(model, scale, offset) -> LocalModel   the model of x = scale * y + offset, given that of y (optional)
    harmonised(models) -> list         the same models with the same arrays, where kinds have variants (optional)
    HAS_OUTLIERS                       False if values far from all others are no mistakes (optional)

An adapter (`modelweld.libraries`) turns a library's model into a LocalModel of its kind and back, and knows nothing of
fusion; a kind knows nothing of libraries.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from modelweld.errors import InputError

if TYPE_CHECKING:
    from modelweld.inputs.local_model import LocalModel

KINDS = {
    "mixture": "mixture",
    "network": "network",
    "hmm": "hmm",
    "class-table": "class_table",
    "topics": "topics",
    "sparse-gp": "sparse_gp",
}
"""Kind -> file. K-means is a mixture whose covariances are one number."""


def kind_of(models: Sequence[LocalModel]) -> ModuleType | None:
    """What the kind of all these models knows; None if they have none.

    Raises
    ------
    InputError
        If their kinds differ.
    """
    kinds = {model.kind for model in models}
    if len(kinds) > 1:
        named = sorted(kind or "no kind" for kind in kinds)
        raise InputError(f"models of different kinds do not fuse: found {' and '.join(named)}.")
    (kind,) = kinds
    if not kind:
        return None
    if kind not in KINDS:
        raise InputError(f"there is no kind {kind!r}: known are {sorted(KINDS)}. It may come from a newer version.")
    return import_module(f"modelweld.kinds.{KINDS[kind]}")


def shared_facts(models: Sequence[LocalModel]) -> dict[str, Any]:
    """Facts that all sites state alike."""
    first, *others = models
    return {name: fact for name, fact in first.facts.items() if all(m.facts.get(name) == fact for m in others)}


def check_counted(models: Sequence[LocalModel], message: str) -> None:
    """Refuse sites of which some send numbers and others shares; `message` names the first of these as {site}."""
    if len({bool(model.facts.get("counted")) for model in models}) > 1:
        odd = next(model.site or str(j) for j, model in enumerate(models) if not model.facts.get("counted"))
        raise InputError(message.format(site=odd))


def fused(fusion: Any, how: str | None, **options: Any) -> LocalModel:
    """Fused parameters of a Fusion whose sites sent models of one kind."""
    kind = kind_of(fusion.models)
    if kind is None:
        raise InputError(
            "these sites sent arrays, not models: fusion.atoms and fusion.array(name) are what there is. To get a "
            "model, fuse fitted models, or LocalModels with a kind."
        )
    if how is None:
        how = kind.default_how(fusion) if hasattr(kind, "default_how") else kind.HOWS[0]
    if how not in kind.HOWS:
        raise InputError(f"how is one of {list(kind.HOWS)} for a {fusion.models[0].kind}; found {how!r}.")
    result: LocalModel = kind.fused(fusion, how, **options)
    return result
