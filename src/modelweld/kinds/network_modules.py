"""PyTorch's modules, built from a graph of layers and its arrays: what a network in our words computes.

Nothing of a file is run: layers are chosen by name from a table, and their options are numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from modelweld.core.values import Array
from modelweld.inputs.local_model import LocalModel
from modelweld.kinds.layer_graph import CONVOLUTIONS, LAYERS, NORMS, Graph, Layer, sources
from modelweld.kinds.network_channels import plain_arrays

if TYPE_CHECKING:
    import torch

TENSORS = {"W": "weight", "b": "bias", "mean": "running_mean", "var": "running_var"}
"""What our arrays are called in a module."""

FLOATS = ("float16", "bfloat16", "float32", "float64")
"""Types of weights."""


def build(model: LocalModel) -> torch.nn.Module:
    """The network in evaluation mode: a Sequential if its layers are a chain, else a `torch.fx.GraphModule`."""
    from torch import nn

    graph: Graph = model.facts["graph"]
    arrays, dtype = plain_arrays(model), model.facts.get("dtype")
    modules = {i: make_module(one, i, arrays) for i, one in enumerate(graph) if one["layer"] not in ("Input", "Add")}
    if all(sources(one) == [i - 1] for i, one in enumerate(graph) if i) and len(modules) == len(graph) - 1:
        net: nn.Module = nn.Sequential(*modules.values())
    else:
        net = _join(graph, modules)
    return net.to(_dtype(dtype)).eval()


def _dtype(fact: object) -> torch.dtype:
    """A type of weights that may come from a file."""
    import torch

    found: torch.dtype = getattr(torch, fact if isinstance(fact, str) and fact in FLOATS else "float32")
    return found


def make_module(one: Layer, i: int, arrays: dict[str, Array]) -> torch.nn.Module:
    """One layer with its weights."""
    import torch

    name = cast(str, one["layer"])
    options: dict[str, Any] = {key: one[key] for key in LAYERS[name] if key in one and key != "depthwise"}
    options = {key: tuple(value) if isinstance(value, list) else value for key, value in options.items()}
    W = arrays.get(f"W{i}")
    if name in CONVOLUTIONS:
        assert W is not None
        groups = len(W) if one.get("depthwise") else 1
        options |= {"in_channels": W.shape[1] * groups, "out_channels": len(W), "kernel_size": W.shape[2:]}
        options |= {"groups": groups, "bias": f"b{i}" in arrays}
    elif name == "Linear":
        assert W is not None
        options |= {"in_features": W.shape[1], "out_features": len(W), "bias": f"b{i}" in arrays}
    elif name == "LayerNorm":
        options |= {"normalized_shape": one.get("shape") if W is None else W.shape, "bias": f"b{i}" in arrays}
    elif name in NORMS:
        options |= {"num_features": len(arrays[f"mean{i}"]), "affine": W is not None}
    module: torch.nn.Module = getattr(torch.nn, name)(**options)
    with torch.no_grad():
        for short, full in TENSORS.items():
            if f"{short}{i}" in arrays:
                getattr(module, full).copy_(torch.from_numpy(np.ascontiguousarray(arrays[f"{short}{i}"])))
    return module


def _join(graph: Graph, modules: dict[int, torch.nn.Module]) -> torch.nn.Module:
    """Modules that are not a chain, with the additions between them."""
    import operator

    import torch

    root, drawn = torch.nn.Module(), torch.fx.Graph()
    given: list[torch.fx.Node] = []
    for i, one in enumerate(graph):
        of = tuple(given[k] for k in sources(one))
        if i in modules:
            root.add_module(f"layer{i}", modules[i])
            given.append(drawn.call_module(f"layer{i}", of))
        else:
            given.append(drawn.call_function(operator.add, of) if of else drawn.placeholder("x"))
    drawn.output(given[-1])
    return torch.fx.GraphModule(root, drawn)


def arrays_in(net: torch.nn.Module) -> dict[str, Array]:
    """Arrays of a network that `build` has made; the modules of a chain begin after the input."""
    found: dict[str, Array] = {}
    for called, module in net.named_children():
        i = int(called) + 1 if called.isdecimal() else int(called.removeprefix("layer"))
        found |= arrays_of_module(module, i)
    return found


def arrays_of_module(module: torch.nn.Module, i: int) -> dict[str, Array]:
    """The arrays of one layer, by its number."""
    found = {f"{short}{i}": getattr(module, full, None) for short, full in TENSORS.items()}
    return {
        name: np.asarray(tensor.detach().cpu().double().numpy()) for name, tensor in found.items() if tensor is not None
    }
