"""One network taught to answer as the sites' networks do together, on inputs that are drawn, not data.

What is wanted is the class-weighted ensemble: probabilities of all sites, each by its share of the rows of a class (not
logits, of which one site that is too sure of itself may have the largest everywhere). Averages of matched weights are
near it, and blur what only some sites know; teaching repairs that. The network moves from the averages by Adam, on
fresh inputs all the time (`modelweld.kinds.drawn_inputs`), towards the ensemble's probabilities. Of what is drawn, most
looks like two or three classes and like none at all; so classes are as common as sites count them, and of each class
those inputs are likely that the ensemble takes for it (Bayes' rule). Running moments of
batch normalisation stay what they are: drawn inputs are no data. But those of a first layer say how bright inputs are
and how much they vary: what is drawn is scaled and shifted to fit them, where sites say nothing else of their inputs.

`compare` says how near it came.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from modelweld.core.values import Array
from modelweld.errors import InputError
from modelweld.inputs.local_model import LocalModel
from modelweld.kinds import kind_of
from modelweld.kinds.drawn_inputs import draw, shape_of
from modelweld.kinds.layer_graph import ENDS, Graph, has_weights
from modelweld.kinds.network_channels import deep_network, plain_arrays, shares
from modelweld.kinds.network_modules import arrays_in, build
from modelweld.progress import track

if TYPE_CHECKING:
    import torch

STEPS = 1000
"""Of Adam, by default: on digits (seeds 8011 to 8013) .01 to .03 better than 300."""

BATCH = 128
"""Inputs drawn at every step."""

POOL, REUSED = 16, 4
"""Batches that are drawn together, and how often each is learned from before others are drawn: the sites' networks then
answer once for four steps."""

RATE = 3e-3
"""Of learning, at the first step; it falls to zero by half a cosine."""

SHARPER = 3.0
"""Power to which the ensemble's probabilities are taken: sites that know different classes are each sure of one, and
their sum is nearly a tie, of which a network learns little. On digits (seeds 8012 to 8026) 2, 3 and 5 were alike, and
better than 1 by .01 in the mean."""

CANDIDATES = 4
"""Inputs drawn for each that is kept. Compared with none left out alone: .007 nearer to the ensemble (three cells of
MNIST, seed 8101), for twice the time."""

CHECKED = 2000
"""Inputs on which agreement is counted: a standard error of .01 or less."""


def distil(
    models: Sequence[LocalModel],
    start: LocalModel,
    *,
    steps: int = STEPS,
    batch: int = BATCH,
    rate: float = RATE,
    shape: Sequence[int] | None = None,
    seed: int = 0,
) -> LocalModel:
    """The network nearest to the ensemble of the sites' networks, from the one given.

    Parameters
    ----------
    models : sequence of LocalModel
        The sites' networks.
    start : LocalModel
        Where to begin; its widths stay.
    steps, batch, rate : int, int, float
        Steps of Adam, inputs drawn at each, and the rate at the first.
    shape : sequence of int, optional
        Of one input, where no site says it.
    seed : int
        Source of the draws.
    """
    import torch

    ensemble = Ensemble(models, shape)
    rng, net = np.random.default_rng(seed), logits_of(start)
    adam = torch.optim.Adam(net.parameters(), lr=rate)
    slower = torch.optim.lr_scheduler.CosineAnnealingLR(adam, steps)
    pool: list[tuple[torch.Tensor, torch.Tensor]] = []
    for step in track(range(steps), "teaching", steps):
        if step % (POOL * REUSED) == 0:
            fresh = ensemble.draw(batch * min(POOL, steps), rng)
            pool = [*zip(fresh.split(batch), ensemble(fresh).split(batch), strict=True)]
        X, wanted = pool[step % len(pool)]
        adam.zero_grad()
        _distance(net(X), wanted, values=ensemble.values).backward()
        adam.step()
        slower.step()
    return deep_network(
        start.facts["graph"],
        arrays_in(net),
        classes=list(start.facts["labels"].values()) or None,
        counts=start.arrays.get("counts"),
        shape=ensemble.shape,
        facts=start.facts,
    )


def _distance(given: torch.Tensor, wanted: torch.Tensor, *, values: bool) -> torch.Tensor:
    """Of probabilities by Kullback and Leibler's, of values by squares."""
    from torch.nn import functional

    if values:
        return functional.mse_loss(given, wanted)
    predicted, sharp = functional.log_softmax(given, dim=1), functional.log_softmax(SHARPER * wanted, dim=1)
    return functional.kl_div(predicted, sharp, log_target=True, reduction="batchmean")


def logits_of(model: LocalModel) -> Any:
    """The network in single precision, without a Softmax at its end."""
    graph: Graph = model.facts["graph"]
    ends = graph[-1]["layer"] in ENDS
    return build(model.with_(facts={**model.facts, "graph": graph[:-1]}) if ends else model).float()


class Ensemble:
    """The sites' networks together, weighted by class counts.

    Attributes
    ----------
    shape : tuple of int
        Of one input.
    values : bool
        Whether outputs are values, not logits of classes.
    """

    def __init__(self, models: Sequence[LocalModel], shape: Sequence[int] | None = None) -> None:
        import torch

        # in an order that depends on content alone: teaching would make much of sums that differ by rounding
        self.models = sorted(models, key=lambda m: b"".join(x.tobytes() for x in plain_arrays(m).values()))
        self.shares = torch.from_numpy(shares(self.models)).float()
        self.nets = [logits_of(model) for model in self.models]
        self.unknown = self.shares == 0
        self.values = "class" not in models[0].coordinates
        counts = [np.asarray(m.arrays["counts"]) for m in models if "counts" in m.arrays]
        self.classes = torch.from_numpy(np.sum(counts, axis=0)).float() if counts else torch.ones(self.shares.shape[1])
        features = np.shape(next(iter(models[0].arrays.values())))
        self.shape = tuple(shape) if shape else shape_of(models, features[1] if len(features) == 2 else None)
        self.scale, self.offset = 1.0, 0.0
        if normalises_first(models[0]) and "inputs" not in models[0].arrays:
            self.scale, self.offset = self._fit_inputs()

    def __call__(self, X: torch.Tensor) -> torch.Tensor:
        """Logarithms of the sites' probabilities, each by its share of the class; or values by their shares."""
        import torch

        with torch.no_grad():
            found = torch.stack([torch.cat([net(part) for part in X.split(BATCH)]) for net in self.nets])
        if self.values:
            return torch.einsum("jc,jnc->nc", self.shares, found)
        known = found.masked_fill(self.unknown[:, None], -torch.inf).softmax(dim=2)
        total = torch.einsum("jc,jnc->nc", self.shares, known)
        return total.clamp_min(torch.finfo(total.dtype).tiny).log()

    def draw(self, n: int, rng: np.random.Generator) -> torch.Tensor:
        """Inputs as the sites describe theirs, of all classes as often as sites count them."""
        if self.values:
            return self._draw(n, rng)
        X = self._draw(CANDIDATES * n, rng)
        of_class = (SHARPER * self(X)).softmax(dim=1)
        weight = (of_class * (self.classes / of_class.sum(dim=0))).sum(dim=1).double().numpy()
        return X[rng.choice(len(X), n, p=weight / weight.sum())]

    def _draw(self, n: int, rng: np.random.Generator) -> torch.Tensor:
        import torch

        return self.offset + self.scale * torch.from_numpy(draw(self.models, self.shape, n, rng)).float()

    def _fit_inputs(self) -> tuple[float, float]:
        """Scale and offset of inputs with which first layers receive what batch norm says they do, on average."""
        import torch

        X = self._draw(CHECKED // 4, np.random.default_rng(0))
        over = (0, *range(2, len(self.shape) + 1))
        scales, offsets = [], []
        with torch.no_grad():
            for net in self.nets:
                first, norm, *_ = net.children()
                none, given = first(torch.zeros_like(X[:1])), first(X)
                one = (first(torch.ones_like(X[:1])) - none).mean(dim=over)
                scale = (norm.running_var / given.var(dim=over)).clamp_min(1e-12).log().mean().div(2).exp()
                plain = (1 - scale) * none.mean(dim=over) + scale * given.mean(dim=over)
                scales.append(float(scale))
                offsets.append(float((one * (norm.running_mean - plain)).sum() / (one**2).sum()))
        return float(np.mean(scales)), float(np.mean(offsets))


def normalises_first(model: LocalModel) -> bool:
    """Whether the first layer is one with weights, and the second batch normalisation of what it gives."""
    first, second = (model.facts["graph"] + [{}, {}])[1:3]
    return has_weights(first) and str(second.get("layer")).startswith("BatchNorm") and second["of"] == [1]


class Comparison(NamedTuple):
    """How a network answers beside the ensemble: shares of inputs.

    >>> Comparison(0.97).agreement
    0.97

    Attributes
    ----------
    agreement : float
        On which both name the same class: of drawn inputs, or of rows if they are given.
    accuracy, ensemble, best_site : float or None
        Of rows with labels, which the network, the ensemble and the best of the sites name rightly.
    """

    agreement: float
    accuracy: float | None = None
    ensemble: float | None = None
    best_site: float | None = None


def compare(
    models: Sequence[LocalModel],
    network: LocalModel,
    X: ArrayLike | None = None,
    y: ArrayLike | None = None,
    *,
    seed: int = 1,
) -> Comparison:
    """How good a fused network is: from parameters alone by agreement, with labelled rows by accuracy.

    Parameters
    ----------
    models : sequence of LocalModel
        The sites' networks, as `modelweld.read` gives them.
    network : LocalModel
        The fused one, ``fusion.parameters("distil")``, or another.
    X, y : arrays, optional
        Rows and their labels at the centre. Without, inputs are drawn, others than those it was taught on.
    seed : int
        Source of the draws.

    Examples
    --------
    >>> import torch
    >>> from modelweld import read
    >>> nets = [torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.GELU(), torch.nn.Linear(5, 3)) for _ in range(2)]
    >>> sites = [read(net, class_counts=[30, 20, 10], shape=(4,)) for net in nets]
    >>> compare(sites[:1], sites[0])
    Comparison(agreement=1.0, accuracy=None, ensemble=None, best_site=None)
    """
    import torch

    models = kind_of(models).arrange(models)
    ensemble = Ensemble(models, None if X is None else np.shape(X)[1:])
    if ensemble.values:
        raise InputError("networks whose outputs are values name no class: compare their outputs themselves.")
    rng = np.random.default_rng([seed, CHECKED])
    rows = ensemble.draw(CHECKED, rng) if X is None else torch.from_numpy(np.asarray(X, dtype=np.float32))

    def named(outputs: torch.Tensor) -> Array:
        return np.asarray(outputs.argmax(dim=1).numpy())

    with torch.no_grad():
        own, wanted = named(logits_of(network)(rows)), named(ensemble(rows))
        agreement = float(np.mean(own == wanted))
        if X is None or y is None:
            return Comparison(agreement)
        labels = np.array([network.facts["labels"][name] for name in network.coordinates["class"]])
        found = [own, wanted, *(named(net(rows)) for net in ensemble.nets)]
        accuracy, together, *local = [float(np.mean(labels[c] == np.asarray(y))) for c in found]
    return Comparison(agreement, accuracy, together, max(local))
