"""Feed-forward networks of any depth; with one hidden layer, probabilistic federated neural matching (PFNM).

Arrays: `W0 (feature, h0)`, `b0 (h0)`, `W1 (h0, h1)`, `b1 (h1)`, ..., `Wd (h_last, class)`, `bd (class)`; optionally
`counts (class)`, the rows a site has seen of every class, and `inputs (2, feature)`, the means and standard deviations
of its features. Hidden sets are matched one after the other, each by its incoming weights in the global order of the
set before, its biases and, the last one, its outgoing weights, whose precision is `counts`: a site knows nothing of a
class it has not seen. The others ride. Outputs are logits of classes, or values (`class` is then no name).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy
from numpy.typing import ArrayLike

from modelweld.core.values import Array
from modelweld.errors import InputError, warn_user
from modelweld.families import Family, Gaussian
from modelweld.inputs.local_model import LocalModel
from modelweld.kinds.kind import Facts, Kind, Layout, common_facts, keep_arrays, mapping, name_axes
from modelweld.kinds.network_refit import ACTIVATIONS, DEVIATION, STEPS, layers, means, refit
from modelweld.kinds.network_refit import outputs as outputs

if TYPE_CHECKING:
    from modelweld.core.values import Key
    from modelweld.results.fit_result import FitResult

HOWS = {
    "refit": (
        "first layers averaged, all later ones fitted to the sites' own networks on drawn inputs "
        "(modelweld.kinds.network_refit): the default"
    ),
    "polish": "a refit, and then the first layer moves too (modelweld.kinds.network_refit)",
    "mean": (
        "no inputs are drawn: incoming weights averaged over the sites that hold a unit, outgoing ones added by class "
        "counts (modelweld.kinds.network_refit)"
    ),
    "union": "all units of all sites: exactly the sum of their networks, weighted by class counts",
}
"""Ways to make fused parameters, the default first."""

NO_COUNTS = (
    "not all sites say how many rows of each class their networks saw, so all have the same say in every class they "
    "have, also in one they hardly know: where sites saw different classes, the fused network then errs far more often "
    "and may be worse than the best site's. Send the labels, of which only their numbers leave the site: "
    "read(net, y=y), or class_counts=...; of a regression, read(net, n=rows)."
)
"""Said where networks are fused without `counts`."""

START_NOISE = 0.7
"""Share of the variance of weights that is noise to begin with; the likelihood moves it from there. Units of networks
that started from different random weights are copies of each other only loosely: on digits with different classes per
site, almost nothing is matched from a start at .3, and a third to a half of all units stays apart from .5. Networks
that started alike end near .2, exact copies at the floor."""


def network(
    weights: Sequence[ArrayLike],
    biases: Sequence[ArrayLike],
    *,
    activation: str,
    classes: Sequence[object] | None = None,
    counts: ArrayLike | None = None,
    inputs: ArrayLike | None = None,
    features: Sequence[str] | None = None,
    site: str = "",
    facts: Facts | None = None,
) -> LocalModel:
    """A network as it leaves a site.

    Parameters
    ----------
    weights, biases : sequences of arrays (n_in, n_out), (n_out,)
        The layers, first to last.
    activation : {"relu", "tanh", "logistic", "identity"}
        Of all hidden layers.
    classes : sequence, optional
        Labels of the outputs, which are then logits; without, outputs are values.
    counts : array (outputs,) or float, optional
        Rows the site has seen of every class, or of all outputs.
    inputs : array (2, features), optional
        Means and standard deviations of its features.
    features : sequence of str, optional
        Names of the features.
    site : str, optional
        Name of the site.
    facts : mapping, optional
        What else is needed to write it again.

    Examples
    --------
    >>> model = network([np.eye(2), np.ones((2, 1))], [np.zeros(2), [0.5]], activation="relu")
    >>> model.sizes
    {'h0': 2}
    """
    W, b = ([np.asarray(x, dtype=np.float64) for x in given] for given in (weights, biases))
    last = len(W) - 1
    _check(activation, last)
    feature, out = None if features is None else "feature", None if classes is None else "class"
    sets = [feature, *[f"h{i}" for i in range(last)], out]
    arrays: dict[str, ArrayLike] = {}
    axes: dict[str, tuple[str | None, ...]] = {}
    for i in range(len(W)):
        arrays[f"W{i}"], axes[f"W{i}"] = W[i], (sets[i], sets[i + 1])
        arrays[f"b{i}"], axes[f"b{i}"] = b[i], (sets[i + 1],)
    weight = {}
    if counts is not None:
        arrays["counts"], axes["counts"] = np.broadcast_to(np.asarray(counts, dtype=np.float64), b[-1].shape), (out,)
        weight[f"W{last}"] = np.broadcast_to(arrays["counts"], W[-1].shape)
    if inputs is not None:
        arrays["inputs"], axes["inputs"] = inputs, (None, feature)
    coordinates = {} if features is None else {"feature": list(features)}
    labels = {} if classes is None else {str(label): label for label in classes}
    return LocalModel(
        arrays,
        axes,
        weight=weight,
        site=site,
        coordinates=coordinates if classes is None else {**coordinates, "class": list(labels)},
        partial=[] if classes is None else ["class"],
        kind="network",
        facts={**(facts or {}), "activation": activation, "labels": labels},
    )


def _check(activation: str, hidden: int) -> None:
    if activation not in ACTIVATIONS:
        raise InputError(f"activation is one of {list(ACTIVATIONS)}; found {activation!r}.")
    if hidden < 1:
        raise InputError("a network without a hidden layer has no units to match: fuse it as a linear model.")


class Network(Kind):
    """Feed-forward networks."""

    name = "network"
    plural = "networks"
    hows = HOWS
    shown = ()
    stands_for_points = False
    has_outliers = False
    """A weight of an input that is always zero elsewhere is far from all others, and right."""
    marginal = False

    def layout(self, model: LocalModel) -> Layout:
        """What a network must look like: as many biases as weights, numbered without a gap, at least two of each."""
        numbered = [name for name in model.arrays if name[:1] in ("W", "b") and name[1:].isdecimal()]
        depth = max(2, sum(name[0] == "W" for name in numbered), sum(name[0] == "b" for name in numbered))
        names = ["feature", *(f"h{i}" for i in range(depth - 1)), "class"]
        arrays: dict[str, tuple[str, ...]] = {"counts": ("class",), "inputs": ("", "feature")}
        for i in range(depth):
            arrays |= {f"W{i}": (names[i], names[i + 1]), f"b{i}": (names[i + 1],)}
        return Layout(
            sets=tuple(names[1:-1]),
            arrays=arrays,
            needed=tuple(f"{letter}{i}" for i in range(depth) for letter in "Wb"),
            not_negative=("counts",),
            facts={"activation": lambda fact: fact in ACTIVATIONS, "labels": mapping},
        )

    def harmonise(self, models: Sequence[LocalModel]) -> list[LocalModel]:
        """The same networks, with `counts` and `inputs` only if all sites send them; refused if activations differ."""
        first = models[0]
        for j, model in enumerate(models):
            if model.facts["activation"] != first.facts["activation"]:
                raise InputError(
                    f"site {model.site or j}: all networks must have the same activation. It has "
                    f"{model.facts['activation']!r}, the first site {first.facts['activation']!r}."
                )
        kept = set.intersection(*(set(m.arrays) for m in models))
        extra = {name for m in models for name in ("counts", "inputs") if name in m.arrays and name not in kept}
        if not extra:
            return list(models)
        shorn = [keep_arrays(m, set(m.arrays) - extra) for m in models]
        return [m.with_(weight={}) for m in shorn] if "counts" in extra else shorn

    def families(self, models: Sequence[LocalModel]) -> dict[Key, Family]:
        """Weights and biases, with one noise and one spread per array, first read off the variance of its entries."""
        result: dict[Key, Family] = {}
        for name, axes in models[0].axes.items():
            if any(axes):
                values = np.concatenate([np.ravel(m.arrays[name]) for m in models])
                weight = np.concatenate(
                    [np.ravel(m.weight.get(name, np.ones(np.shape(m.arrays[name])))) for m in models]
                )
                seen = weight > 0
                total = float(np.var(values[seen])) if seen.any() else 0.0
                # of noise / weight, on average
                noise = START_NOISE * total * seen.sum() / (1 / weight[seen]).sum() if total > 0 else None
                spread = (1 - START_NOISE) * total if total > 0 else None
                result[name] = Gaussian(noise=noise, spread=spread, shape="scalar")
        return result

    def fuse(self, fusion: FitResult, how: str, **options: Any) -> LocalModel:
        """The fused network; options are those of `network_refit.refit`: draws, ridge, seed, steps."""
        models = fusion.models
        pi = shares(models)
        if "counts" not in models[0].arrays:
            warn_user(NO_COUNTS)
        if how == "union":
            return like_sites(models, *union(models, pi))
        if how == "mean":
            return like_sites(models, *means(fusion, pi))
        options = {"steps": STEPS if how == "polish" else 0, **options}
        return like_sites(models, *refit(fusion, pi, **options))

    def rescale(self, model: LocalModel, scale: Array, offset: Array) -> LocalModel:
        """The network of x = scale * y + offset, given that of y: the scaling goes into the first layer.

        A site that sent no `inputs` now does: its scaler tells where the features of a refit should be drawn.
        """
        W = np.asarray(model.arrays["W0"]) / scale[:, None]
        mean, deviation = np.asarray(model.arrays.get("inputs", np.array([[0.0], [DEVIATION]])))
        inputs = np.stack([mean * scale + offset, deviation * np.abs(scale)])
        return model.with_(
            arrays={**model.arrays, "W0": W, "b0": np.asarray(model.arrays["b0"]) - offset @ W, "inputs": inputs},
            axes={**name_axes(model), "inputs": (None, model.along["W0"][0])},
        )


def moments(X: Array) -> Array:
    """Means and standard deviations of features, (2, features): what a site may send of its inputs."""
    X = X.reshape(len(X), -1)
    return np.stack([X.mean(axis=0), X.std(axis=0)])


def shares(models: Sequence[LocalModel]) -> Array:
    """How much every site has to say about every output, (J, outputs): n_jc / n_c, or the same for all that have it."""
    has = np.array([_knows(m) for m in models])
    counts = np.array([m.arrays.get("counts", h) for m, h in zip(models, has, strict=True)])
    counts = np.where(counts.sum(0) > 0, counts, has)
    counts = np.where(counts.sum(0) > 0, counts, 1.0)
    return np.asarray(counts / counts.sum(0))


def _knows(model: LocalModel) -> Array:
    """Which outputs a site has weights for: one or zero."""
    W = layers(model)[0]
    weight = np.asarray(model.weight.get(f"W{len(W) - 1}", np.ones(W[-1].shape)))
    return np.asarray(np.sign(weight.max(axis=0)))


def like_sites(models: Sequence[LocalModel], W: Sequence[Array], b: Sequence[Array]) -> LocalModel:
    """A network with these layers and all that the sites share, their classes and counts together."""
    first = models[0]
    labels: dict[str, object] = {}
    for j, model in enumerate(models):
        for name, label in model.facts["labels"].items():
            if labels.setdefault(name, label) != label:
                raise InputError(
                    f"site {model.site or j}: its class {label!r} is {labels[name]!r} elsewhere; rename one."
                )
    classes = first.coordinates.get("class")
    return network(
        W,
        b,
        activation=first.facts["activation"],
        classes=None if classes is None else [labels[name] for name in classes],
        counts=sum(np.asarray(m.arrays["counts"]) for m in models) if "counts" in first.arrays else None,
        features=first.coordinates.get("feature"),
        facts=common_facts(models),
    )


def union(models: Sequence[LocalModel], pi: Array) -> tuple[list[Array], list[Array]]:
    """All units of all sites side by side, outgoing weights times the site's share of the class.

    Examples
    --------
    >>> sites = [network([[[a]], [[1.0]]], [[0.0], [0.0]], activation="relu") for a in (1.0, -1.0)]
    >>> W, b = union(sites, shares(sites))
    >>> [w.tolist() for w in W]
    [[[1.0, -1.0]], [[0.5], [0.5]]]
    """
    Ws, bs = zip(*map(layers, models), strict=True)
    first, *middle, last = zip(*Ws, strict=True)
    *hidden, out = zip(*bs, strict=True)
    W = [np.hstack(first), *(scipy.linalg.block_diag(*parts) for parts in middle)]
    W.append(np.vstack([p * w for p, w in zip(pi, last, strict=True)]))
    return W, [*(np.concatenate(parts) for parts in hidden), np.sum(pi * np.array(out), axis=0)]
