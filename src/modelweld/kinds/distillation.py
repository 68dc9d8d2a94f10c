"""One network taught to answer as the sites' networks do together, on inputs that are drawn, not data.

What is wanted is the class-weighted ensemble: logits of all sites, each by its share of the rows of a class. Averages
of matched weights are near it, and blur what only some sites know; teaching repairs that. The network moves from the
averages by Adam, on fresh inputs at every step (`modelweld.kinds.drawn_inputs`), towards the ensemble's probabilities.
Running moments of batch normalisation stay what they are: drawn inputs are no data.

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
from modelweld.kinds.drawn_inputs import draw, shape_of
from modelweld.kinds.network_channels import deep_network, plain_arrays, shares
from modelweld.kinds.network_modules import arrays_in, build
from modelweld.progress import track

if TYPE_CHECKING:
    import torch

STEPS = 300
"""Of Adam, by default."""

BATCH = 128
"""Inputs drawn at every step."""

RATE = 3e-3
"""Of learning, at the first step; it falls to zero by half a cosine."""

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
    rng, net = np.random.default_rng(seed), _as_floats(start)
    adam = torch.optim.Adam(net.parameters(), lr=rate)
    slower = torch.optim.lr_scheduler.CosineAnnealingLR(adam, steps)
    for _ in track(range(steps), "teaching", steps):
        X = ensemble.draw(batch, rng)
        adam.zero_grad()
        _distance(net(X), ensemble(X), values=ensemble.values).backward()
        adam.step()
        slower.step()
    return deep_network(
        start.facts["graph"],
        arrays_in(net, start.facts["graph"]),
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
    predicted = functional.log_softmax(given, dim=1)
    return functional.kl_div(predicted, functional.log_softmax(wanted, dim=1), log_target=True, reduction="batchmean")


def _as_floats(model: LocalModel) -> Any:
    return build(model).float()


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
        order = sorted(
            range(len(models)), key=lambda j: b"".join(x.tobytes() for x in plain_arrays(models[j]).values())
        )
        self.models = [models[j] for j in order]
        self.shares = torch.from_numpy(shares(self.models)).float()
        self.nets = [_as_floats(model) for model in self.models]
        self.values = "class" not in models[0].coordinates
        features = np.shape(next(iter(models[0].arrays.values())))
        self.shape = tuple(shape) if shape else shape_of(models, features[1] if len(features) == 2 else None)

    def __call__(self, X: torch.Tensor) -> torch.Tensor:
        """Logits (or values), each site's by its share."""
        import torch

        with torch.no_grad():
            found: torch.Tensor = torch.stack([p * net(X) for p, net in zip(self.shares, self.nets, strict=True)]).sum(
                0
            )
        return found

    def draw(self, n: int, rng: np.random.Generator) -> torch.Tensor:
        """Inputs as the sites describe theirs."""
        import torch

        return torch.from_numpy(draw(self.models, self.shape, n, rng)).float()


class Comparison(NamedTuple):
    """How a network answers beside the ensemble: shares of inputs.

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
        The sites' networks, ``fusion.models``.
    network : LocalModel
        The fused one, ``fusion.parameters("distil")``.
    X, y : arrays, optional
        Rows and their labels at the centre. Without, inputs are drawn, others than those it was taught on.
    seed : int
        Source of the draws.
    """
    import torch

    ensemble = Ensemble(models, None if X is None else np.shape(X)[1:])
    if ensemble.values:
        raise InputError("networks whose outputs are values name no class: compare their outputs themselves.")
    rng = np.random.default_rng([seed, CHECKED])
    rows = ensemble.draw(CHECKED, rng) if X is None else torch.from_numpy(np.asarray(X, dtype=np.float32))

    def named(outputs: torch.Tensor) -> Array:
        return np.asarray(outputs.argmax(dim=1).numpy())

    with torch.no_grad():
        own, wanted = named(_as_floats(network)(rows)), named(ensemble(rows))
        agreement = float(np.mean(own == wanted))
        if X is None or y is None:
            return Comparison(agreement)
        labels = np.array([network.facts["labels"][name] for name in network.coordinates["class"]])
        found = [own, wanted, *(named(net(rows)) for net in ensemble.nets)]
        accuracy, together, *local = [float(np.mean(labels[c] == np.asarray(y))) for c in found]
    return Comparison(agreement, accuracy, together, max(local))
