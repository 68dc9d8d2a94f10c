"""The kind of networks of convolutions, residual blocks and normalisations: what their files hold, how they are fused.

What their arrays are is said in `modelweld.kinds.network_channels`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from modelweld.errors import InputError, warn_user
from modelweld.inputs.local_model import LocalModel
from modelweld.kinds.distillation import distil
from modelweld.kinds.fused_parts import keep_arrays
from modelweld.kinds.kind import Kind
from modelweld.kinds.layer_graph import CONVOLUTIONS, Graph, is_graph, is_shape, name_sets
from modelweld.kinds.layout import Layout, mapping
from modelweld.kinds.network import NO_COUNTS, Network
from modelweld.kinds.network_channels import Width, average, axes_of

if TYPE_CHECKING:
    from modelweld.results.fit_result import FitResult

HOWS = {
    "distil": "averages, taught to answer as the sites' networks do together, on inputs that are drawn: the default",
    "mean": "weights averaged over the sites that hold a channel, outputs added by class counts",
}

OPTIONAL = ("counts", "inputs", "bounds")
"""Arrays that count only if all sites send them."""


class DeepNetwork(Network):
    """Networks of convolutions, residual blocks and normalisations."""

    name = "deep-network"
    plural = "deep networks"
    hows = HOWS

    def layout(self, model: LocalModel) -> Layout:
        """What its graph says its arrays are."""
        graph = model.facts.get("graph")
        facts = {"graph": is_graph, "labels": mapping, "shape": is_shape}
        if not is_graph(graph):
            return Layout(sets=tuple(model.sizes), arrays={}, needed=(), facts=facts)
        graph = cast(Graph, graph)
        axes = axes_of(graph, {name: np.asarray(values) for name, values in model.arrays.items()})
        needed = [f"W{i}" for i, one in enumerate(graph) if one["layer"] in (*CONVOLUTIONS, "Linear")]
        for i, one in enumerate(graph):
            if str(one["layer"]).startswith("BatchNorm"):
                needed += [f"mean{i}", f"var{i}"]
        known = {name: tuple(axis or "" for axis in found) for name, found in axes.items()}
        return Layout(
            sets=tuple(dict.fromkeys(s for s in name_sets(graph) if s not in (None, "class"))),
            arrays={**known, "counts": ("class",), "inputs": ("", ""), "bounds": ("",)},
            needed=tuple(needed),
            not_negative=("counts", *(name for name in known if name.startswith("var"))),
            facts=facts,
        )

    def harmonise(self, models: Sequence[LocalModel]) -> list[LocalModel]:
        """The same networks, with what is optional only if all sites send it; refused if graphs differ."""
        wanted: Graph = models[0].facts["graph"]
        for j, model in enumerate(models):
            graph: Graph = model.facts["graph"]
            for i, (own, first) in enumerate(zip_longest(graph, wanted)):
                if own != first:
                    raise InputError(
                        f"site {model.site or j}: all networks must have the same layers, of whatever widths. Its "
                        f"layer {i} is {_say(own)}, the first site's {_say(first)}."
                    )
        kept = set.intersection(*(set(m.arrays) for m in models))
        extra = {name for m in models for name in OPTIONAL if name in m.arrays and name not in kept}
        shorn = [keep_arrays(m, set(m.arrays) - extra) for m in models] if extra else list(models)
        return [m.with_(weight={}) for m in shorn] if "counts" in extra else shorn

    def fuse(self, fusion: FitResult, how: str, *, width: Width = None, **options: Any) -> LocalModel:
        """The fused network; `width` bounds its channels, other options are those of `distil`."""
        if "counts" not in fusion.models[0].arrays:
            warn_user(NO_COUNTS)
        start = average(fusion, width)
        if how == "mean":
            return start
        return distil(fusion.models, start, **options)

    rescale = Kind.rescale
    """A scaler before a network of images is not undone."""


def _say(one: Mapping[str, object] | None) -> str:
    if one is None:
        return "not there"
    options = ", ".join(f"{key}={value}" for key, value in one.items() if key not in ("layer", "of"))
    return f"{one['layer']}({options})"
