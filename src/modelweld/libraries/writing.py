"""Fitted models of other libraries, written from fused parameters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from modelweld.errors import InputError
from modelweld.inputs.local_model import LocalModel
from modelweld.libraries.known_classes import Adapter, adapters, function_of


def write(local: LocalModel, like: type | str | None = None, **options: object) -> Any:
    """A fitted model of a library from parameters.

    Parameters
    ----------
    local : LocalModel
        Fused parameters (`Fusion.fused`), or a site's own.
    like : class or str, optional
        Which class to write; default the one it was read from, or the nearest that can hold it, or the first of its
        kind whose library is installed.
    **options
        For the adapter.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.cluster import KMeans
    >>> from modelweld.libraries import read
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> model = KMeans(3, n_init=1, random_state=0).fit(X)
    >>> bool((write(read(model)).predict(X) == model.predict(X)).all())
    True
    """
    name = like if isinstance(like, str) else getattr(like, "__name__", "")
    adapter = adapter_named(name or str(local.facts.get("class", "")) or _usual(local))
    if adapter.kind != local.kind:
        raise InputError(f"a {local.kind} cannot be written as {adapter.name}, which is a {adapter.kind}.")
    if not adapter.writes:
        near = [a for a in adapters() if a.kind == adapter.kind and a.writes]
        adapter = next((a for a in near if a.module == adapter.module), near[0])
    return function_of(adapter, "write")(local, adapter.name.split(".")[-1], **options)


def _usual(local: LocalModel) -> str:
    """The class to write for parameters that were not read from a model."""
    known = [a.name for a in adapters() if a.kind == local.kind and a.writes and a.installed]
    if not known:
        raise InputError(
            f"no installed library holds a {local.kind or 'model without a kind'}: modelweld.adapters() lists what "
            "there is; the parameters themselves are fusion.parameters().arrays."
        )
    return known[0]


def adapter_named(name: str) -> Adapter:
    """The line of the table for a class name, with or without its library."""
    found = [a for a in adapters() if name in (a.name, a.name.split(".")[-1])]
    if len(found) != 1:
        raise InputError(f"like is one of {', '.join(a.name for a in adapters() if a.writes)}; found {name!r}.")
    return found[0]


def like_most(models: Sequence[LocalModel]) -> str:
    """The class most sites sent, of those that can hold the fused model; the first of the table among equals."""
    order = {adapter.name: i for i, adapter in enumerate(adapters())}
    number = Counter(str(model.facts.get("class", "")) for model in models)
    holding = [name for name in number if name in order]
    if not holding:
        return ""
    return min(holding, key=lambda name: (-number[name], order[name]))
