"""Networks of convolutions, residual blocks and normalisations, as graphs of layers whose channels are matched.

Arrays carry the number of their layer in the graph (`modelweld.kinds.layer_graph`): `W3 (h1, h0, place, place)` is what
a convolution gives on, receives, and its kernel, `W7 (class, h1, place)` a linear layer after space was flattened; `b3`
biases; of normalisations `W4` gains, `b4` shifts, `mean4` and `var4` running moments, which ride with their channels.
Optionally `counts (class)`, rows a site has seen of every class, and what its inputs look like
(`modelweld.kinds.drawn_inputs`).

Channels are matched one set after the other, by all weights that touch them and whose other side is matched already.
Fused weights are averages over the channels that are matched, as in `modelweld.kinds.network`: a channel receives on
average what its members receive, outputs are added by class counts. Running moments are those of all rows together.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from modelweld.core.values import Array, Index
from modelweld.errors import InputError
from modelweld.inputs.local_model import LocalModel
from modelweld.kinds.fused_parts import common_facts
from modelweld.kinds.kind import Facts
from modelweld.kinds.layer_graph import CONVOLUTIONS, NORMS, Graph, are_flat, has_weights, is_graph, name_sets, sources
from modelweld.kinds.network import join_labels, weigh_sites

if TYPE_CHECKING:
    from modelweld.results.fit_result import FitResult


def deep_network(
    graph: Graph,
    arrays: Mapping[str, ArrayLike],
    *,
    classes: Sequence[object] | None = None,
    counts: ArrayLike | None = None,
    inputs: Mapping[str, ArrayLike] | None = None,
    shape: Sequence[int] | None = None,
    site: str = "",
    facts: Facts | None = None,
) -> LocalModel:
    """A network as it leaves a site.

    Parameters
    ----------
    graph : list of mappings
        Its layers: see `modelweld.kinds.layer_graph`.
    arrays : mapping of str to array
        Weights, biases and running moments in PyTorch's shapes, by the number of their layer: `W1`, `b1`, `mean2`,
        `var2`.
    classes : sequence, optional
        Labels of the outputs, which are then logits; without, outputs are values.
    counts : array (outputs,) or float, optional
        Rows the site has seen of every class, or of all outputs.
    inputs : mapping of str to array, optional
        What its inputs look like: `modelweld.kinds.drawn_inputs.describe`.
    shape : sequence of int, optional
        Of one input, (channels, height, width).
    site : str, optional
        Name of the site.
    facts : mapping, optional
        What else is needed to write it again.

    Examples
    --------
    >>> from modelweld.kinds.layer_graph import layer
    >>> graph = [layer("Input"), layer("Conv2d", 0), layer("ReLU", 1), layer("Flatten", 2), layer("Linear", 3)]
    >>> model = deep_network(graph, {"W1": np.ones((4, 1, 3, 3)), "W4": np.ones((2, 16))}, classes=["no", "yes"])
    >>> model.axes["W4"], model.arrays["W4"].shape, model.sizes
    ((None, 'h0', None), (2, 4, 4), {'h0': 4})
    """
    graph = [dict(one) for one in graph]
    if not is_graph(graph):
        raise InputError("the graph is none: see modelweld.kinds.layer_graph for what its layers may be.")
    given = {name: np.asarray(values, dtype=np.float64) for name, values in arrays.items()}
    sets = name_sets(graph)
    widths = {sets[i]: len(given[f"W{i}"]) for i, one in enumerate(graph) if has_weights(one)}
    if not set(widths) - {"class", None}:
        raise InputError("a network without a hidden layer has no channels to match: fuse it as a linear model.")
    found = axes_of(graph, given)
    for name, values in given.items():
        if len(found[name]) == values.ndim + 1:  # space was flattened
            given[name] = values.reshape(*(widths[axis] for axis in found[name][:-1]), -1)
        elif len(found[name]) == values.ndim - 1:  # a depthwise kernel
            given[name] = values[:, 0]
    axes = {name: _named(axis, classes) for name, axis in found.items()}
    outputs, weight = widths["class"], dict[str, Array]()
    if counts is not None:
        given["counts"] = np.broadcast_to(np.asarray(counts, dtype=np.float64), (outputs,))
        axes["counts"] = _named(("class",), classes)
        for name in weights_to_outputs(graph):
            weight[name] = given["counts"]
    for name, sent in (inputs or {}).items():
        given[name], axes[name] = np.asarray(sent, dtype=np.float64), (None,) * np.ndim(sent)
    labels = {} if classes is None else {str(label): label for label in classes}
    return LocalModel(
        given,
        axes,
        weight=weight,
        auxiliary=[name for name in given if name.startswith(("mean", "var"))],
        site=site,
        coordinates={} if classes is None else {"class": list(labels)},
        partial=[] if classes is None else ["class"],
        kind="deep-network",
        facts={**(facts or {}), "graph": graph, "labels": labels, "shape": None if shape is None else list(shape)},
    )


def number_of(name: str) -> int:
    """Number of the layer that an array belongs to; -1 if to none."""
    found = re.fullmatch(r"(?:W|b|mean|var)(\d{1,4})", name)
    return int(found[1]) if found else -1


def axes_of(graph: Graph, arrays: Mapping[str, Array]) -> dict[str, tuple[str | None, ...]]:
    """The axes of all arrays of layers, by their graph; None: of a fixed order."""
    sets, flat, found = name_sets(graph), are_flat(graph), dict[str, tuple[str | None, ...]]()
    for i, one in enumerate(graph):
        own = sets[i]
        if not (has_weights(one) or one["layer"] in (*NORMS, *CONVOLUTIONS)):
            continue
        before = sources(one)[0]
        places: tuple[None, ...] = (None,) if flat[before] and sets[before] is not None else ()
        lead: tuple[str | None, ...] = (own, sets[before]) if has_weights(one) else (own,)
        if one["layer"] in CONVOLUTIONS:
            places = (None,) * int(str(one["layer"])[-2])
        for name in (f"W{i}", f"b{i}", f"mean{i}", f"var{i}"):
            if name not in arrays:
                continue
            if one["layer"] == "LayerNorm":
                places = (None,) * (arrays[name].ndim - 1)
            bias = name[0] == "b" and one["layer"] not in NORMS
            found[name] = (own,) if bias else (*lead, *places)
    return found


def _named(axes: Sequence[str | None], classes: Sequence[object] | None) -> tuple[str | None, ...]:
    """The axes, with outputs that have no names as plain ones."""
    return tuple(None if axis == "class" and classes is None else axis for axis in axes)


def weights_to_outputs(graph: Graph) -> list[str]:
    """Names of the arrays of weights whose layer gives outputs."""
    sets = name_sets(graph)
    return [f"W{i}" for i, one in enumerate(graph) if has_weights(one) and sets[i] == "class"]


Width = float | Mapping[str, int] | None


def shares(models: Sequence[LocalModel]) -> Array:
    """How much every site has to say about every output, (J, outputs)."""
    name = weights_to_outputs(models[0].facts["graph"])[0]
    return weigh_sites(models, name, axis=0)


def average(fusion: FitResult, width: Width = None) -> LocalModel:
    """The fused network by averages over matched channels.

    Parameters
    ----------
    fusion : FitResult
        Of deep networks.
    width : float or mapping of str to int, optional
        Most channels of each set, by its name, or of all sets as a multiple of the widest site's. Those are kept
        whose members' weights are largest together. Default: all that were found.
    """
    models, pi = fusion.models, shares(fusion.models)
    graph: Graph = models[0].facts["graph"]
    places = {name: _kept(fusion, name, width) for name in fusion.matchings}
    sizes = {name: max(int(part.max(initial=-1)) for part in kept) + 1 for name, kept in places.items()}
    rows = np.array([np.sum(m.arrays.get("counts", 1.0)) for m in models])
    fused: dict[str, Array] = {}
    for name, axes in models[0].axes.items():
        if number_of(name) < 0:
            continue
        shape = [sizes.get(axis or "", n) for axis, n in zip(axes, np.shape(models[0].arrays[name]), strict=True)]
        own = axes[0]
        outputs = own is None and name_sets(graph)[number_of(name)] == "class"
        by_rows = name in models[0].auxiliary
        total, square, weight = np.zeros(shape), np.zeros(shape), np.zeros(shape[0])
        for j, model in enumerate(models):
            at = [np.arange(n) if axis is None else places[axis][j] for axis, n in zip(axes, shape, strict=True)]
            here = np.ix_(*(np.flatnonzero(index >= 0) for index in at))
            there = np.ix_(*(index[index >= 0] for index in at))
            said = pi[j] if outputs else np.full(len(at[0]), rows[j] if by_rows else 1.0)
            values = np.asarray(model.arrays[name])[here]
            by = said[at[0] >= 0].reshape(-1, *[1] * (values.ndim - 1))
            np.add.at(total, there, by * values)
            if name.startswith("var"):
                np.add.at(square, there, by * np.asarray(model.arrays[f"mean{number_of(name)}"])[here] ** 2)
            np.add.at(weight, there[0].ravel(), by.ravel())
        divisor = 1.0 if outputs else np.maximum(weight, np.finfo(float).tiny).reshape(-1, *[1] * (total.ndim - 1))
        fused[name] = (total + square) / divisor
        if name.startswith("var"):
            fused[name] = fused[name] - fused[f"mean{number_of(name)}"] ** 2
    labels = join_labels(models)
    classes = models[0].coordinates.get("class")
    first = models[0].arrays
    return deep_network(
        graph,
        {name: values.reshape(_plain(name, graph, values.shape)) for name, values in fused.items()},
        classes=None if classes is None else [labels[name] for name in classes],
        counts=sum(np.asarray(m.arrays["counts"]) for m in models) if "counts" in first else None,
        shape=next((m.facts["shape"] for m in models if m.facts.get("shape")), None),
        facts=common_facts(models),
    )


def _plain(name: str, graph: Graph, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that PyTorch has for an array: channels and places are one axis again, depthwise kernels have two."""
    i = number_of(name)
    one = graph[i]
    if one.get("depthwise") and name[0] == "W":
        return (shape[0], 1, *shape[1:])
    if one["layer"] in CONVOLUTIONS or (one["layer"] == "LayerNorm" and not are_flat(graph)[i]):
        return shape
    kept = shape[:1] if has_weights(one) else ()
    return (*kept, -1) if len(shape) > len(kept) else shape


def _kept(fusion: FitResult, set_name: str, width: Width) -> list[Index]:
    """Where every channel of every site goes, -1 for those that are left out."""
    labels = fusion.matchings[set_name].labels
    atoms = len(fusion.matchings[set_name].counts)
    if width is None:
        return list(labels)
    widest = max(len(part) for part in labels)
    most = width.get(set_name, atoms) if isinstance(width, Mapping) else max(1, round(float(width) * widest))
    size = np.zeros(atoms)
    for model, part in zip(fusion.models, labels, strict=True):
        for name, axes in model.axes.items():
            if axes[0] == set_name and name[0] == "W":
                values = np.asarray(model.arrays[name]).reshape(len(part), -1)
                np.add.at(size, part, np.sqrt((values**2).sum(axis=1)))
    order = np.argsort(-size, kind="stable")[:most]
    place = np.full(atoms, -1)
    place[np.sort(order)] = np.arange(len(order))
    return [place[part] for part in labels]


def plain_arrays(model: LocalModel) -> dict[str, Array]:
    """The arrays of layers, in PyTorch's shapes."""
    graph: Graph = model.facts["graph"]
    found = {name: np.asarray(values) for name, values in model.arrays.items() if number_of(name) >= 0}
    return {name: values.reshape(_plain(name, graph, values.shape)) for name, values in found.items()}
