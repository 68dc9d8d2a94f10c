"""Feed-forward networks of any depth; with one hidden layer, probabilistic federated neural matching (PFNM).

Arrays: `W0 (feature, h0)`, `b0 (h0)`, `W1 (h0, h1)`, `b1 (h1)`, ..., `Wd (h_last, class)`, `bd (class)`; optionally
`counts (class)`, the rows a site has seen of every class, and `inputs (2, feature)`, the means and standard deviations
of its features. Hidden sets are matched one after the other, each by its incoming weights in the global order of the
set before, its biases and, the last one, its outgoing weights, whose precision is `counts`: a site knows nothing of a
class it has not seen. The others are auxiliary. Outputs are logits of classes, or values (`class` is then no name).

A fused network whose later layers are fitted to the sites' own networks, on inputs that are drawn, not data.

Averaging outgoing weights gives every atom the same say, however many sites hold it. The sites' networks themselves say
what is wanted: the output should be the sum of theirs, weighted by class counts, and a unit of a second hidden layer
should receive what its members receive on average. Both are least-squares problems on the fused layer before.

Members of an atom count by what they have to say: the size of their outgoing weights, times the site's share of each
class. (If units V_m f(a_m x) are to be replaced by one, V f(a x), an error in a_m costs |V_m| times as much.)

Polishing (`how="polish"`) then moves all layers on, until they give what the sites' networks give on the drawn inputs.
A refit keeps the fused first layer; where sites have few units or saw few classes, it is too small to carry what all of
them compute, and least squares on top of it cannot help; moving it can.

What a network gives: its layers, what passes through them, and a fused network by averages alone (`how="mean"`).

In the fused one a unit receives on average what its members receive, and gives on what they give on together. Weights
are plain averages of the members', not the atoms' estimates: those are drawn towards zero, the mean of all weights,
which is good for recognising a unit and bad for computing with it. Nor may a unit that few sites have pass on as much
as if all had it: an output is the sum of the sites', each by its share of the class, and a site without the unit adds
nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy
from numpy.typing import ArrayLike

from modelweld.core.values import Array, Index, Key
from modelweld.errors import InputError, warn_user
from modelweld.families import Family, Gaussian
from modelweld.inputs.local_model import LocalModel, name_axes
from modelweld.kinds.fused_parts import common_facts, keep_arrays
from modelweld.kinds.kind import Facts, Kind
from modelweld.kinds.layout import Layout, mapping

if TYPE_CHECKING:
    from modelweld.results.fit_result import FitResult


HOWS = {
    "refit": "first layers averaged, all later ones fitted to the sites' own networks on drawn inputs: the default",
    "polish": "a refit, and then the first layer moves too",
    "mean": "incoming weights averaged over the sites that hold a unit, outgoing ones added by class counts",
    "union": "all units of all sites: exactly the sum of their networks, weighted by class counts",
}
"""Ways to make fused parameters, the default first."""

NO_COUNTS = (
    "not all sites say how many rows of each class their networks saw, so all have the same weight in every class. "
    "Where they saw different classes, the fused network may be worse than the best site's. Use read(net, y=y), of "
    "which only numbers of labels leave the site, or class_counts=...; for a regression, read(net, n=rows)."
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
    if activation not in ACTIVATIONS:
        raise InputError(f"activation is one of {list(ACTIVATIONS)}; found {activation!r}.")
    if last < 1:
        raise InputError("a network without a hidden layer has no units to match: fuse it as a linear model.")
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
    labels = {str(label): label for label in (() if classes is None else classes)}
    named = {"feature": features, "class": None if classes is None else list(labels)}
    return LocalModel(
        arrays,
        axes,
        weight=weight,
        site=site,
        coordinates={name: list(entries) for name, entries in named.items() if entries is not None},
        partial=[] if classes is None else ["class"],
        kind="network",
        facts={**(facts or {}), "activation": activation, "labels": labels},
    )


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
                found = f"found {model.facts['activation']!r}, and {first.facts['activation']!r} at the first site"
                raise InputError(f"site {model.site or j}: all networks must have the same activation; {found}.")
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
            if any(axes) and name not in models[0].auxiliary:
                values = np.concatenate([np.ravel(m.arrays[name]) for m in models])
                weight = np.concatenate([np.ravel(m.weight.get(name, np.ones_like(m.arrays[name]))) for m in models])
                seen = weight > 0
                total = float(np.var(values[seen])) if seen.any() else 0.0
                # of noise / weight, on average
                noise = START_NOISE * total * seen.sum() / (1 / weight[seen]).sum() if total > 0 else None
                spread = (1 - START_NOISE) * total if total > 0 else None
                result[name] = Gaussian(noise=noise, spread=spread, shape="scalar")
        return result

    def fuse(self, fusion: FitResult, how: str, **options: Any) -> LocalModel:
        """The fused network; options are those of `refit`: draws, ridge, seed, steps."""
        models = fusion.models
        pi = shares(models)
        if "counts" not in models[0].arrays:
            warn_user(NO_COUNTS)
        if how in ("union", "mean"):
            return like_sites(models, *(union(models, pi) if how == "union" else means(fusion, pi)))
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
    return weigh_sites(models, f"W{len(layers(models[0])[0]) - 1}", axis=1)


def weigh_sites(models: Sequence[LocalModel], name: str, axis: int) -> Array:
    """The same, of outputs that stand along an axis of the weights `name`."""
    has = np.array([_knows(m, name, axis) for m in models])
    counts = np.array([m.arrays.get("counts", h) for m, h in zip(models, has, strict=True)])
    counts = np.where(counts.sum(0) > 0, counts, has)
    counts = np.where(counts.sum(0) > 0, counts, 1.0)
    return np.asarray(counts / counts.sum(0))


def _knows(model: LocalModel, name: str, axis: int) -> Array:
    """Which outputs a site has weights for: one or zero."""
    weight = np.asarray(model.weight.get(name, np.ones(np.shape(model.arrays[name]))))
    return np.asarray(np.sign(np.moveaxis(weight, axis, 0).reshape(weight.shape[axis], -1).max(axis=1)))


def join_labels(models: Sequence[LocalModel]) -> dict[str, object]:
    """Classes of all sites by name, refused if one name means two."""
    labels: dict[str, object] = {}
    for j, model in enumerate(models):
        for name, label in model.facts["labels"].items():
            if labels.setdefault(name, label) != label:
                where = f"site {model.site or j}"
                raise InputError(f"{where}: its class {label!r} is {labels[name]!r} elsewhere; rename one.")
    return labels


def like_sites(models: Sequence[LocalModel], W: Sequence[Array], b: Sequence[Array]) -> LocalModel:
    """A network with these layers and all that the sites share, their classes and counts together."""
    first, labels = models[0], join_labels(models)
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


DEVIATION = 0.5
"""Standard deviation, about zero, of the inputs a refit draws where nothing is known of the features. It suits features
between zero and one, and scaled ones; for others sites send `inputs`."""

DRAWS = 4000
"""Inputs drawn: some tens for every unit of a layer of about a hundred."""

RIDGE = 1e-3
"""Penalty on squared weights, as a share of the mean variance of what a unit gives on. Between 1e-5 and 1e-2 accuracies
on digits and MNIST were the same within .002."""


STEPS = 100
"""Steps of L-BFGS. Each costs about two passes forward and back over the drawn inputs; with a hundred, squared errors
on digits fell to a fifth of a refit's where inputs are drawn about zero, and to between .05 and .9 of it where sites
say how theirs lie."""


def refit(
    fusion: FitResult, pi: Array, *, draws: int = DRAWS, ridge: float = RIDGE, seed: int = 0, steps: int = 0
) -> tuple[list[Array], list[Array]]:
    """The layers of the fused network.

    Parameters
    ----------
    fusion : Fusion
        Of networks.
    pi : array (J, outputs)
        Share of every site in every output.
    draws, ridge, seed : int, float, int
        How many inputs, how strong a penalty, and the source of the draws.
    steps : int
        Then all layers, the first too, move so many steps towards the same outputs.
    """
    # in an order that depends on content alone: polishing would make much of sums that differ by rounding
    order = sorted(range(len(fusion.models)), key=lambda j: np.asarray(fusion.models[j].arrays["W0"]).tobytes())
    models, pi = [fusion.models[j] for j in order], pi[order]
    X = draw_inputs(models, draws, seed)
    local = [pre_activations(model, X) for model in models]
    fused = []
    for i, matching in enumerate(fusion.matchings.values()):
        labels = [matching.labels[j] for j in order]
        said = [voices(model, p, i) for model, p in zip(models, pi, strict=True)]
        # the first layer's weights and biases; later, what units receive
        parts = [site[i] for site in local] if i else [np.vstack([m.arrays["W0"], m.arrays["b0"]]) for m in models]
        fused.append(average(parts, labels, said, len(matching.counts)))
    first, *targets = fused
    targets.append(np.sum([p * site[-1] for p, site in zip(pi, local, strict=True)], axis=0))
    activation = models[0].facts["activation"]
    W, b = [first[:-1]], [first[-1]]
    now = X @ W[0] + b[0]
    for target in targets:
        before = activate(now, activation)
        weights, bias = regress(before, target, ridge)
        W.append(weights)
        b.append(bias)
        now = before @ weights + bias
    return polish(W, b, activation, X, targets[-1], steps) if steps else (W, b)


def voices(model: LocalModel, share: Array, i: int) -> Array:
    """What each unit of hidden layer i has to say: the size of its outgoing weights, to outputs by share."""
    W = layers(model)[0]
    out = W[i + 1] * (share if i + 2 == len(W) else 1.0)
    size = np.sqrt((out * out).sum(axis=1))
    return np.asarray(np.maximum(size, np.finfo(float).eps * max(1.0, float(size.max()))))


def average(parts: Sequence[Array], labels: Sequence[Index], voices: Sequence[Array], K: int) -> Array:
    """Columns of all sites averaged by label, each by its voice: (rows, K).

    Examples
    --------
    >>> average([np.array([[1.0, 5.0]]), np.array([[4.0]])], [np.array([0, 1]), np.array([0])], [np.ones(2), [2.0]], 2)
    array([[3., 5.]])
    """
    total, weight = np.zeros((K, len(parts[0]))), np.zeros(K)
    for part, label, voice in zip(parts, labels, voices, strict=True):
        np.add.at(total, label, (part * voice).T)
        np.add.at(weight, label, voice)
    return np.asarray((total / weight[:, None]).T)


def draw_inputs(models: Sequence[LocalModel], draws: int, seed: int) -> Array:
    """Inputs (draws, features): with the means and deviations of all sites if they sent them, else about zero."""
    D = len(layers(models[0])[0][0])
    Z = np.random.default_rng(seed).standard_normal((draws, D))
    if "inputs" not in models[0].arrays:
        return DEVIATION * Z
    means, deviations = np.moveaxis(np.array([m.arrays["inputs"] for m in models]), 1, 0)
    return np.asarray(means.mean(axis=0) + Z * np.sqrt((deviations**2).mean(axis=0) + means.var(axis=0)))


def regress(X: Array, Y: Array, ridge: float) -> tuple[Array, Array]:
    """Weights and bias of the ridge regression of Y on X.

    Examples
    --------
    >>> X = np.array([[0.0], [1.0], [2.0]])
    >>> weights, bias = regress(X, 3 * X + 1, 1e-12)
    >>> weights.round(6).tolist(), bias.round(6).tolist()
    ([[3.0]], [1.0])
    """
    x, y = X.mean(axis=0), Y.mean(axis=0)
    A = (X - x).T @ (X - x)
    A[np.diag_indices_from(A)] += max(ridge * np.trace(A) / len(A), np.finfo(float).tiny)
    weights = np.linalg.solve(A, (X - x).T @ (Y - y))
    return weights, y - x @ weights


def polish(
    W: Sequence[Array], b: Sequence[Array], activation: str, X: Array, target: Array, steps: int
) -> tuple[list[Array], list[Array]]:
    """The network nearest in mean squared output to `target` (rows, outputs) at X, from the one given.

    Examples
    --------
    >>> X = np.linspace(-1, 1, 20)[:, None]
    >>> W, b = polish([np.ones((1, 1))] * 2, [np.zeros(1)] * 2, "tanh", X, 2 * np.tanh(X - 0.5), 100)
    >>> np.round([*W, b[0][None]], 3).ravel().tolist()
    [1.0, 2.0, -0.5]
    """
    shapes = [np.shape(part) for part in (*W, *b)]
    ends = np.cumsum([np.prod(shape, dtype=int) for shape in shapes])
    scale = len(X) * max(float(target.var(axis=0).sum()), np.finfo(float).tiny)

    def parts(flat: Array) -> tuple[list[Array], list[Array]]:
        fragments = [x.reshape(s) for x, s in zip(np.split(flat, ends[:-1]), shapes, strict=True)]
        return fragments[: len(W)], fragments[len(W) :]

    def loss(flat: Array) -> tuple[float, Array]:
        weights, biases = parts(flat)
        given = [X]
        for w, bias in zip(weights[:-1], biases[:-1], strict=True):
            given.append(activate(given[-1] @ w + bias, activation))
        off = (given[-1] @ weights[-1] + biases[-1] - target) / scale
        value = float((off * off).sum()) * scale
        slopes = []
        for w, before in zip(weights[::-1], given[::-1], strict=True):
            slopes.append((before.T @ off, off.sum(axis=0)))
            off = (off @ w.T) * _slope(before, activation)
        by_weight, by_bias = zip(*slopes[::-1], strict=True)
        return value, 2 * np.concatenate([np.ravel(x) for x in (*by_weight, *by_bias)])

    start = np.concatenate([np.ravel(part) for part in (*W, *b)])
    return parts(scipy.optimize.minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": steps}).x)


def _slope(given: Array, activation: str) -> Array:
    """Derivative of an activation, from what it gives."""
    if activation == "relu":
        return (given > 0).astype(np.float64)
    if activation == "identity":
        return np.ones_like(given)
    return np.asarray(1 - given * given if activation == "tanh" else given * (1 - given))


ACTIVATIONS = ("relu", "tanh", "logistic", "identity")
"""Of hidden layers: all that adapters read, and that a refit can follow."""


def layers(model: LocalModel) -> tuple[list[Array], list[Array]]:
    """Weights and biases, first to last."""
    depth = sum(name[0] == "W" for name in model.arrays)
    W, b = ([np.asarray(model.arrays[f"{letter}{i}"]) for i in range(depth)] for letter in "Wb")
    return W, b


def activate(values: Array, activation: str) -> Array:
    """What a hidden layer gives on."""
    if activation == "relu":
        return np.maximum(values, 0.0)
    if activation == "tanh":
        return np.tanh(values)
    return values if activation == "identity" else np.asarray(0.5 + 0.5 * np.tanh(values / 2))


def pre_activations(model: LocalModel, X: Array) -> list[Array]:
    """What every layer receives before its activation, (rows, units) each; the last are the outputs."""
    result: list[Array] = []
    for W, b in zip(*layers(model), strict=True):
        before = activate(result[-1], model.facts["activation"]) if result else X
        result.append(before @ W + b)
    return result


def outputs(model: LocalModel, X: Array) -> Array:
    """Logits (or values) of a network: (rows, outputs).

    Examples
    --------
    >>> from modelweld.kinds.network import network
    >>> model = network([np.eye(2), np.ones((2, 1))], [np.zeros(2), [0.5]], activation="relu")
    >>> outputs(model, np.array([[1.0, -3.0]]))
    array([[1.5]])
    """
    return pre_activations(model, X)[-1]


def means(fusion: FitResult, pi: Array) -> tuple[list[Array], list[Array]]:
    """The layers of the fused network; `pi` (J, outputs) are the sites' shares of every output.

    With M_l units of all sites behind atom l, u and v units of site j,

        W_i[k, l] = sum_j sum_{u in k, v in l} W_j[u, v] / M_l    (of the first layer, u and k are features)
        W_last[k, c] = sum_j sum_{u in k} pi_jc W_j[u, c]

    and biases likewise. Where units that are matched are copies, this is the ensemble: the sites' networks, weighted.

    Examples
    --------
    >>> from modelweld import fuse
    >>> from modelweld.kinds.network import network, shares
    >>> sites = [network([[[3.0, a]], [[1.0], [2.0]]], [[0.0, a], [0.0]], activation="relu") for a in (-9.0, 9.0)]
    >>> W, b = means(fuse(sites)._fit, shares(sites))
    >>> sorted(zip(W[0][0].tolist(), W[1][:, 0].tolist(), strict=True))
    [(-9.0, 1.0), (3.0, 1.0), (9.0, 1.0)]
    """
    networks, hidden = [layers(model) for model in fusion.models], fusion.matchings.values()
    inputs, outputs = len(networks[0][0][0]), pi.shape[1]
    sizes = [inputs, *(len(m.counts) for m in hidden), outputs]
    places = [[np.arange(inputs)] * len(pi), *(m.labels for m in hidden), [np.arange(outputs)] * len(pi)]
    shares = [*(np.tile(1 / np.bincount(m.stacked_labels), (len(pi), 1)) for m in hidden), pi]
    fused = []
    for i, share in enumerate(shares):
        weights, bias = np.zeros((sizes[i], sizes[i + 1])), np.zeros(sizes[i + 1])
        for said, (W, b), before, after in zip(share, networks, places[i], places[i + 1], strict=True):
            np.add.at(weights, np.ix_(before, after), said[after] * W[i])
            np.add.at(bias, after, said[after] * b[i])
        fused.append((weights, bias))
    return [weights for weights, _ in fused], [bias for _, bias in fused]
