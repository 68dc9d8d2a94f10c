"""Layers of a network and what flows between them, in plain words and numbers that travel in a file.

A graph is a list of layers in an order in which they can be computed. Each is a mapping with the name of PyTorch's
module (`layer`), the places in the list of those that feed it (`of`), and the module's options. The first is the input
("Input"), the last the output; "Add" adds two. Numbers of channels are not said: the arrays have them, `W3` and `b3`
those of layer 3, and sites whose graphs are the same may have other widths.

>>> graph = [layer("Input"), layer("Linear", 0), layer("ReLU", 1), layer("Linear", 2)]
>>> name_sets(graph)
[None, 'h0', 'h0', 'class']

Channels that are added, or that a depthwise convolution or a normalisation passes on, are one set: whatever order they
are put into, all must follow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import cast

Layer = Mapping[str, object]
Graph = Sequence[Layer]

CONVOLUTIONS = {name: ("stride", "padding", "dilation", "depthwise") for name in ("Conv1d", "Conv2d")}

NORMS = {"BatchNorm1d": ("eps",), "BatchNorm2d": ("eps",), "LayerNorm": ("eps",)}

MAX_POOL = ("kernel_size", "stride", "padding", "dilation", "ceil_mode")
MEAN_POOL = ("kernel_size", "stride", "padding", "ceil_mode", "count_include_pad")
POOLS = {
    **{f"MaxPool{d}d": MAX_POOL for d in (1, 2)},
    **{f"AvgPool{d}d": MEAN_POOL for d in (1, 2)},
    **{f"Adaptive{what}Pool{d}d": ("output_size",) for d in (1, 2) for what in ("Max", "Avg")},
}

ACTIVATIONS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("ReLU", "Tanh", "Sigmoid", "ReLU6", "SELU", "SiLU", "Hardswish", "Mish"), ()),
    "LeakyReLU": ("negative_slope",),
    "ELU": ("alpha",),
    "GELU": ("approximate",),
    "Softplus": ("beta", "threshold"),
}

ENDS = {"Softmax": ("dim",), "LogSoftmax": ("dim",)}
"""After the last layer with weights alone: outputs are logits up to a constant either way."""

LAYERS: dict[str, tuple[str, ...]] = {
    "Input": (),
    "Add": (),
    "Flatten": (),
    "Linear": (),
    **CONVOLUTIONS,
    **NORMS,
    **POOLS,
    **ACTIVATIONS,
    **ENDS,
}
"""What a graph may hold, and the options of each, which are those of PyTorch's module of that name."""

LARGEST_OPTION, LARGEST_INPUT = 4096, 10**7
"""Of a file: sizes of kernels and pools, and numbers of one input, of which thousands are drawn."""

MOST_LAYERS = 2000
"""Of a graph in a file: what is longer was not made by a network that anybody trains here."""


def layer(name: str, *of: int, **options: object) -> dict[str, object]:
    """One layer of a graph."""
    return {"layer": name, "of": list(of), **options}


def sources(one: Layer) -> list[int]:
    """Places of the layers that feed this one."""
    found = one["of"]
    assert isinstance(found, list)
    return found


def is_graph(fact: object) -> bool:
    """Whether a fact, which may come from a file, is a graph: layers that are known, each fed by earlier ones.

    Examples
    --------
    >>> is_graph([layer("Input"), layer("Linear", 0)]), is_graph([layer("Input"), layer("system", 0)])
    (True, False)
    >>> is_graph([layer("Input"), layer("Linear", 0), layer("Linear", 0)])  # the second has no use
    False
    """
    if not isinstance(fact, list) or not 2 <= len(fact) <= MOST_LAYERS:
        return False
    fed: set[int] = set()
    for i, one in enumerate(fact):
        name, of = (one.get("layer"), one.get("of")) if isinstance(one, Mapping) else (None, None)
        if not isinstance(name, str) or name not in LAYERS or not isinstance(of, list):
            return False
        number = 0 if name == "Input" else 2 if name == "Add" else 1
        earlier = all(type(k) is int and 0 <= k < i for k in of)
        if not earlier or len(of) != number or (name == "Input") != (i == 0):
            return False
        if not all(key in ("layer", "of", *LAYERS[name]) and _is_option(value) for key, value in one.items()):
            return False
        fed.update(of)
    return fed == set(range(len(fact) - 1))


def _is_option(value: object) -> bool:
    """A word, number or truth value, or a short list of numbers, none of them huge."""
    if isinstance(value, list):
        return len(value) <= 2 and all(type(part) is int and abs(part) <= LARGEST_OPTION for part in value)
    if isinstance(value, (int, float)):
        return abs(value) <= LARGEST_OPTION
    return isinstance(value, str) or value is None


def is_shape(fact: object) -> bool:
    """Whether a fact is the shape of one input: channels and places, or features; or is not said.

    Examples
    --------
    >>> is_shape([1, 28, 28]), is_shape(None), is_shape([1, 0]), is_shape([10**9, 10**9])
    (True, True, False, False)
    """
    if fact is None:
        return True
    listed = isinstance(fact, list) and 1 <= len(fact) <= 3 and all(type(n) is int and n > 0 for n in fact)
    return listed and prod(cast("list[int]", fact)) <= LARGEST_INPUT


def has_weights(one: Layer) -> bool:
    """Whether a layer makes new channels by weights: linear ones and convolutions, not normalisations."""
    return one["layer"] == "Linear" or (one["layer"] in CONVOLUTIONS and not one.get("depthwise"))


def name_sets(graph: Graph) -> list[str | None]:
    """The set of channels that every layer gives on: None is the input's own, "class" the output's, others h0, h1, ...

    Examples
    --------
    >>> stem, block = layer("Conv2d", 0), [layer("Conv2d", 1), layer("ReLU", 2), layer("Conv2d", 3), layer("Add", 1, 4)]
    >>> name_sets([layer("Input"), stem, *block, layer("Flatten", 5), layer("Linear", 6)])
    [None, 'h0', 'h1', 'h1', 'h0', 'h0', 'h0', 'class']
    """
    root = list(range(len(graph)))

    def find(i: int) -> int:
        while root[i] != i:
            i = root[i]
        return i

    for i, one in enumerate(graph):
        if not has_weights(one):
            for k in sources(one):
                low, high = sorted((find(i), find(k)))
                root[high] = low
    names: dict[int, str | None] = {find(len(graph) - 1): "class", find(0): None}
    for i in range(len(graph)):
        names.setdefault(find(i), f"h{len(names) - 2 + (find(0) == find(len(graph) - 1))}")
    return [names[find(i)] for i in range(len(graph))]


def are_flat(graph: Graph) -> list[bool]:
    """Of every layer, whether space was flattened before it, so that an entry is a channel at a place."""
    flat: list[bool] = []
    for one in graph:
        before = any(flat[k] for k in sources(one))
        flat.append(one["layer"] == "Flatten" or (before and one["layer"] != "Linear"))
    return flat
