"""Kinds of models: what the arrays of a LocalModel are, and how fused ones are made from a Fusion.

Libraries differ in how they keep a mixture; all of them have one. A *kind* is what they share: one file with one class,
a `Kind` that overrides what does not suit it, and one line in `KINDS`. A kind from outside the package is entered by
`register`. `hows` lists the ways in which each kind makes fused parameters, ``fusion.model(how=...)``:

>>> list(hows()["mixture"])
['density', 'moments', 'atoms']

An adapter (`modelweld.libraries`) turns a library's model into a LocalModel of its kind and back, and knows nothing of
fusion; a kind knows nothing of libraries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from modelweld.errors import DataWarning, Finding, InputError, announce
from modelweld.inputs.feature_names import check_measured
from modelweld.inputs.sets import local_models
from modelweld.kinds.kind import Kind as Kind

if TYPE_CHECKING:
    from modelweld.inputs.local_model import LocalModel

KINDS: dict[str, str | Kind] = {
    "": Kind(),
    "mixture": "mixture.Mixture",
    "network": "network.Network",
    "deep-network": "deep_network.DeepNetwork",
    "hmm": "hmm.HMM",
    "class-table": "class_table.ClassTable",
    "topics": "topics.Topics",
    "sparse-gp": "sparse_gp.SparseProcess",
    "components": "components.Components",
    "topic-vectors": "topics.TopicVectors",
}
"""Kind -> its class, in a file of this folder that is loaded when it is asked for. K-means is a mixture whose
covariances are one number."""


def register(kind: Kind) -> None:
    """Enter a kind from outside the package: models that say its name are fused, saved and reported by it.

    Examples
    --------
    >>> register(Kind())  # what is there already is replaced by its like alone
    """
    known = KINDS.get(kind.name)
    if known is not None and type(known) is not type(kind):
        raise InputError(f"there is a kind {kind.name!r} already. Give yours another name.")
    KINDS[kind.name] = kind


def kind_named(name: str) -> Kind | None:
    """The kind of that name; None if it is not known."""
    found = KINDS.get(name)
    if isinstance(found, str):
        module, _, cls = found.rpartition(".")
        loaded: Kind = getattr(import_module(f"modelweld.kinds.{module}"), cls)()
        KINDS[name] = found = loaded
    return found


def kind_of(models: Sequence[LocalModel]) -> Kind:
    """The kind of all these models.

    Raises
    ------
    InputError
        If their kinds differ, or theirs is not known.
    """
    names = {model.kind for model in models}
    if len(names) > 1:
        named = sorted(name or "no kind" for name in names)
        raise InputError(f"models of different kinds do not fuse: found {' and '.join(named)}.")
    (name,) = names
    kind = kind_named(name)
    if kind is None:
        known = sorted(filter(None, KINDS))
        raise InputError(f"there is no kind {name!r}: known are {known}. It may come from a newer version.")
    return kind


def name_doubts(kind: Kind, models: Sequence[LocalModel], arranged: Sequence[LocalModel]) -> list[Finding]:
    """What names leave open, and what is odd about data. Features that no site has measured are refused."""
    for coordinate in kind.may_lack(arranged):
        if coordinate in arranged[0].coordinates:
            check_measured(arranged, coordinate)
    said = [
        Finding(f": {doubt}", DataWarning, [model.site or str(j)])
        for j, model in enumerate(models)
        for doubt in model.facts.get("doubts", ())
    ]
    return [*said, *(kind.doubts(models, arranged) if len(models) > 1 else ())]


def hows() -> dict[str, Mapping[str, str]]:
    """For each kind, the ways to make fused parameters, and what they do."""
    return {name: kind.hows for name in KINDS if (kind := kind_named(name)) is not None and kind.hows}


def align_again(given: Sequence[object]) -> list[LocalModel]:
    """Models that were fused and new ones, arranged alike; with standard errors, if those that were fused have some."""
    models = local_models(given)
    kind = kind_of(models)
    alike = kind.arrange(models)
    announce(name_doubts(kind, models, alike))
    return kind.weigh(alike) if any(model.variance for model in models) else alike
