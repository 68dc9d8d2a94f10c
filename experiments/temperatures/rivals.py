"""What the fused process is compared with: the paper's predictor, and a committee of the sites' own processes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from trainer import known

from data import Array
from modelweld import Fusion
from modelweld.kinds.gp_natural import Kernel, SparseGP, whiten

SMALLEST_SHARE = 1e-10
"""Of a prior variance that a member can leave; below, it is rounding."""


class Yesterday:
    """It will be as warm as yesterday."""

    def predict(self, X: Array) -> Array:
        """Yesterday's temperature, in units."""
        return X[:, -1]


class Committee:
    """The robust Bayesian committee machine (Deisenroth and Ng, 2015): what each process says, weighted and multiplied.

    1 / Var f = 1 / s + sum_j beta_j (1 / Var_j f - 1 / s_j), and precision times mean likewise; beta_j is the gain of
    information. Priors have mean zero; their variances s_j differ, s is their median.
    """

    def __init__(self, members: Sequence[SparseGP]) -> None:
        self.members = list(members)
        self.noise = float(np.mean([gp.noise for gp in members]))

    def predict(self, X: Array, return_std: bool = False) -> Array | tuple[Array, Array]:
        """Expected responses and deviations of new ones."""
        prior = np.array([gp.kernel.outputscale for gp in self.members])[:, None]
        mean, variance = np.moveaxis(np.array([gp.latent(X) for gp in self.members]), 1, 0)
        variance = np.clip(variance, SMALLEST_SHARE * prior, prior)
        beta = 0.5 * np.log(prior / variance)
        precision = 1 / np.median(prior) + (beta / variance - beta / prior).sum(axis=0)
        expected = (beta * mean / variance).sum(axis=0) / precision
        return (expected, np.sqrt(1 / precision + self.noise)) if return_std else expected


def passed_back(fusion: Fusion, sites: Sequence[SparseGP]) -> list[SparseGP]:
    """The paper's predictor, as far as it says: every site takes the fused points and their responses for its own.

    A fused response is known up to the scatter of matched ones divided by their number; kernel and noise are the
    site's.
    """
    inputs, values = fusion.parameters.estimate("inputs"), fusion.parameters.estimate("values")
    labels, counts = np.concatenate(fusion.labels), np.asarray(fusion.counts)
    responses = np.concatenate([gp.values for gp in sites])
    scatter = np.square(responses - values[labels]).sum() / (len(labels) - len(values))
    return [regressed(inputs, values, scatter / counts, gp.kernel, gp.noise) for gp in sites]


def regressed(inputs: Array, values: Array, variance: Array, kernel: Kernel, noise: float) -> SparseGP:
    """The process with this kernel that saw `values` at `inputs`, each with its own variance."""
    colour = whiten(kernel(inputs, inputs)).colour
    seen = colour.T / np.sqrt(variance)
    return SparseGP(inputs, *known(colour, seen, seen @ (values / np.sqrt(variance))), kernel, 0.0, noise)
