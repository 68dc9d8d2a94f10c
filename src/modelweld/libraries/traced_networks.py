"""PyTorch networks of any form that `torch.fx` can trace: modules of one's own, convolutions, residual blocks.

What is done between layers may be written with modules, functions or methods (`F.relu(x)`, `x.flatten(1)`): all become
layers of a graph (`modelweld.kinds.layer_graph`). Dropout is left out, as in evaluation. A grouped convolution that is
not depthwise is read as the full one it is a part of, whose other weights are zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from modelweld.core.values import Array
from modelweld.errors import InputError
from modelweld.inputs.local_model import LocalModel
from modelweld.kinds.drawn_inputs import describe
from modelweld.kinds.layer_graph import ACTIVATIONS, CONVOLUTIONS, ENDS, LAYERS, NORMS, POOLS, Layer, layer
from modelweld.kinds.network_channels import deep_network
from modelweld.kinds.network_modules import arrays_of_module, build
from modelweld.libraries.networks import count_classes, fold_layers, read_layers, write_layers

if TYPE_CHECKING:
    import torch

NOTHING = ("Dropout", "Dropout1d", "Dropout2d", "AlphaDropout", "Identity", "contiguous", "dropout", "dropout2d")
"""Modules, functions and methods that change nothing in evaluation."""

FUNCTIONS = {
    "relu_": "ReLU",
    **{name.lower(): name for name in ACTIVATIONS},
    **{"leaky_relu": "LeakyReLU", "relu6": "ReLU6"},
    **{f"max_pool{d}d": f"MaxPool{d}d" for d in (1, 2)},
    **{f"avg_pool{d}d": f"AvgPool{d}d" for d in (1, 2)},
    **{f"adaptive_{what.lower()}_pool{d}d": f"Adaptive{what}Pool{d}d" for d in (1, 2) for what in ("Max", "Avg")},
    **{"softmax": "Softmax", "log_softmax": "LogSoftmax", "flatten": "Flatten", "add": "Add", "iadd": "Add"},
    **{"add_": "Add", "view": "Flatten", "reshape": "Flatten"},
}
"""Functions and methods, and the modules that do the same with the same arguments."""

OF_SIZES = ("size", "getattr", "getitem")
"""What asks a tensor for its shape, which is said again where it is used."""


def read_torch(
    model: torch.nn.Module,
    *,
    classes: Sequence[object] | None = None,
    y: ArrayLike | None = None,
    class_counts: ArrayLike | None = None,
    n: int | None = None,
    X: ArrayLike | None = None,
    shape: Sequence[int] | None = None,
    features: Sequence[str] | None = None,
) -> LocalModel:
    """A Sequential: one of linear layers with one kind of activation as such, others as `read_module` reads them.

    Parameters are those of `read_module`.
    """
    folded = fold_layers(model)
    facts: dict[str, Any] = {"classes": classes, "y": y, "class_counts": class_counts, "n": n, "X": X}
    if folded is None:
        return read_module(model, shape=shape, features=features, **facts)
    return read_layers(folded, _dtype(model), features=features, **facts)


write_torch = write_layers
"""What a Sequential of linear layers is written by."""


def read_module(
    model: torch.nn.Module,
    *,
    classes: Sequence[object] | None = None,
    y: ArrayLike | None = None,
    class_counts: ArrayLike | None = None,
    n: int | None = None,
    X: ArrayLike | None = None,
    shape: Sequence[int] | None = None,
    features: Sequence[str] | None = None,
) -> LocalModel:
    """The layers of a network with their weights; with class counts, how much they are worth for each class.

    Parameters
    ----------
    model : torch.nn.Module
        Whose forward takes one tensor and gives one.
    classes, y, class_counts, n
        As for a Sequential of linear layers: labels of the outputs, and rows seen of each.
    X : array (rows, channels, height, width), (rows, channels, length) or (rows, features), optional
        The site's data, of which means and standard deviations of all pixels or features are sent; of images also two
        quantiles of values. The mean of few images, or of one class, is itself an image.
    shape : sequence of int, optional
        Of one input, instead of `X`.
    features : sequence of str, optional
        Not kept: inputs have the order that they have.
    """
    trace = Trace(model)
    outputs = next(len(W) for name, W in reversed(trace.arrays.items()) if name[0] == "W" and name in trace.makers)
    classes, counts = count_classes(outputs, classes, y, class_counts)
    rows = None if X is None else np.asarray(X, dtype=np.float64)
    return deep_network(
        trace.graph,
        trace.arrays,
        classes=classes,
        counts=n if counts is None else counts,
        inputs=None if rows is None else describe(rows),
        shape=shape if rows is None else rows.shape[1:],
        facts={"class": "torch.Module", "dtype": _dtype(model)},
    )


def _dtype(model: torch.nn.Module) -> str:
    return str(next(model.parameters()).dtype).removeprefix("torch.")


class Trace:
    """The graph of a network, and the arrays of its layers.

    Attributes
    ----------
    graph : list of layers
    arrays : dict of str to array
    makers : set of str
        Arrays of weights of linear layers and convolutions.
    """

    def __init__(self, model: torch.nn.Module) -> None:
        import torch

        try:
            traced = torch.fx.symbolic_trace(model)
        except Exception as wrong:
            raise InputError(
                f"{type(model).__name__} cannot be traced: {str(wrong).splitlines()[0] if str(wrong) else wrong!r} Its "
                "forward must take one tensor and not branch on what is in it; see torch.fx."
            ) from None
        self.graph: list[Layer] = [layer("Input")]
        self.arrays: dict[str, Array] = {}
        self.makers: set[str] = set()
        self.spatial = [False]  # whether values have places beside channels
        self.place: dict[torch.fx.Node, int] = {}
        modules = dict(traced.named_modules())
        for node in traced.graph.nodes:
            if node.op == "placeholder":
                if self.place:
                    raise InputError(f"{type(model).__name__} takes several inputs: write a module that takes one.")
                self.place[node] = 0
            elif node.op == "output":
                self._end(node.args[0], type(model).__name__)
            else:
                self._add(node, modules)

    def _add(self, node: torch.fx.Node, modules: dict[str, torch.nn.Module]) -> None:
        """One step of the network: a module, a function or a method."""
        from torch import nn

        word = node.op if node.op == "get_attr" else str(node.target)
        if node.op == "call_module":
            module = modules[str(node.target)]
            self._take(node, module, f"layer {node.target!r}")
            return
        if node.op == "call_function":
            word = getattr(node.target, "__name__", str(node.target))
        if word in OF_SIZES:
            return
        of = [arg for arg in node.args if arg in self.place] if node.op != "get_attr" else []
        where, options = f"{word}(...)", {key: value for key, value in node.kwargs.items() if key != "inplace"}
        given = [arg for arg in node.args if arg not in of]
        if word in NOTHING:
            self.place[node] = self.place[of[0]]
        elif FUNCTIONS.get(word) == "Add" and len(of) == 2 and not options and len(node.args) == 2:
            self._append(node, layer("Add", *(self.place[one] for one in of)), spatial=self.spatial[self.place[of[0]]])
        elif word == "mean" and (pool := _mean_of_places(given, options)) and not self._has_places_unlike(pool):
            self._take(node, getattr(nn, pool)(1), where)
            if not options.get("keepdim"):
                self._append(node, layer("Flatten", self.place[node]), spatial=False)
        elif FUNCTIONS.get(word) == "Flatten" and _flattens(word, given, options):
            self._append(node, layer("Flatten", self.place[of[0]]), spatial=False)
        elif FUNCTIONS.get(word, "Add") not in ("Add", "Flatten") and len(of) == 1:
            named = LAYERS[FUNCTIONS[word]]
            if any(key not in named and key[0] != "_" and value not in (None, False) for key, value in options.items()):
                raise InputError(_refusal(f"{where} with {', '.join(options)}"))
            chosen = {key: value for key, value in options.items() if key in named}
            self._take(node, getattr(nn, FUNCTIONS[word])(*given, **chosen), where)
        else:
            raise InputError(_refusal(where))

    def _take(self, node: torch.fx.Node, module: Any, where: str) -> None:
        """A module, or a function as the module that does the same."""
        name, of = type(module).__name__, self.place[node.args[0]]
        spatial = self.spatial[of]
        if name in NOTHING:
            self.place[node] = of
            return
        if name == "Flatten" and (module.start_dim, module.end_dim) == (1, -1):
            self._append(node, layer("Flatten", of), spatial=False)
            return
        if name not in LAYERS or name in ("Input", "Add", "Flatten"):
            raise InputError(_refusal(f"{where}, {_article(name)}"))
        if name == "Linear" and spatial:
            raise InputError(f"{where}: a Linear layer after a convolution needs a Flatten, or a pool, before it.")
        if name in ENDS and module.dim not in (1, -1):
            raise InputError(f"{where}: a {name} over dim {module.dim} is not read: classes are dim 1.")
        one = layer(name, of, **{key: _plain(getattr(module, key)) for key in LAYERS[name] if key != "depthwise"})
        i = len(self.graph)
        arrays = arrays_of_module(module, i)
        if name in CONVOLUTIONS:
            one, arrays[f"W{i}"] = _ungroup(module, one, arrays[f"W{i}"], where)
        if name in NORMS and not ({f"mean{i}"} if name != "LayerNorm" else {f"W{i}"}) <= set(arrays):
            lacks = "weights" if name == "LayerNorm" else "running moments"
            raise InputError(f"{where}, a {name} without {lacks}, is not read: switch them on, or fold it in.")
        self.arrays |= arrays
        self._append(node, one, spatial=name in CONVOLUTIONS or name in POOLS or (spatial and name != "Linear"))
        if (name in CONVOLUTIONS and not one.get("depthwise")) or name == "Linear":
            self.makers.add(f"W{i}")

    def _has_places_unlike(self, pool: str) -> bool:
        """Whether convolutions are of another number of axes than this pool."""
        return any(one["layer"] in CONVOLUTIONS and str(one["layer"])[-2:] != pool[-2:] for one in self.graph)

    def _append(self, node: torch.fx.Node, one: Layer, *, spatial: bool) -> None:
        if self.graph[-1]["layer"] in ENDS:
            raise InputError(f"a {self.graph[-1]['layer']} before the end is not read: leave it out.")
        self.graph.append(one)
        self.spatial.append(spatial)
        self.place[node] = len(self.graph) - 1

    def _end(self, given: object, name: str) -> None:
        """Whether what is given on is the last layer, and has places no more."""
        if given not in self.place or self.place[given] != len(self.graph) - 1:
            raise InputError(f"{name} must give one tensor, the output of its last layer; no layer may lie idle.")
        if self.spatial[-1]:
            raise InputError(f"{name} gives an image: outputs must be one number per class. End it in a Flatten.")


def _ungroup(module: Any, one: dict[str, object], W: Array, where: str) -> tuple[dict[str, object], Array]:
    """A convolution without groups, unless it has one for every channel."""
    if module.padding_mode != "zeros":
        raise InputError(f"{where}: padding with {module.padding_mode!r} is not read, only with zeros.")
    groups = module.groups
    if groups == module.in_channels == module.out_channels and groups > 1:
        return {**one, "depthwise": True}, W
    full = np.zeros((len(W), module.in_channels, *W.shape[2:]))
    out, into = len(W) // groups, module.in_channels // groups
    for g in range(groups):
        full[g * out : (g + 1) * out, g * into : (g + 1) * into] = W[g * out : (g + 1) * out]
    return one, full


def _plain(value: Any) -> object:
    """An option as it travels: lists for tuples."""
    return list(value) if isinstance(value, (tuple, list)) else value


def _mean_of_places(given: Sequence[Any], options: dict[str, Any]) -> str:
    """The pool that does the same as a mean over all places of each channel; none if it is another mean."""
    dims = given[0] if given else options.get("dim", ())
    pool = {(2, 3): "AdaptiveAvgPool2d", (-2, -1): "AdaptiveAvgPool2d", (2,): "AdaptiveAvgPool1d"}
    found = pool.get((dims,) if isinstance(dims, int) else tuple(sorted(dims)), "")
    return found if options.keys() <= {"dim", "keepdim"} else ""


def _flattens(word: str, given: Sequence[Any], options: dict[str, Any]) -> bool:
    """Whether channels and places become one axis, and nothing else does: flatten(1), or view(n, -1)."""
    if word == "flatten":
        return (*given, *options.values()) in ((1,), (1, -1)) and options.keys() <= {"start_dim", "end_dim"}
    return len(given) == 2 and given[1] == -1 and not options


def _article(name: str) -> str:
    return f"{'an' if name[0] in 'AEIOU' else 'a'} {name}"


def _refusal(what: str) -> str:
    """What is said of a layer that is not known."""
    known = [name for name in LAYERS if name not in ("Input", "Add")]
    return (
        f"{what}, is not read. Layers that are: {', '.join(known)}, Dropout, and additions of two branches. Leave it "
        "out or replace it by one of these; a fixed step before the first layer belongs to the data."
    )


def write_module(local: LocalModel, like: str) -> torch.nn.Module:
    """The network in evaluation mode: a Sequential if its layers are a chain, else a `torch.fx.GraphModule`.

    Its outputs stand in the order of ``local.coordinates["class"]``.
    """
    return build(local)
