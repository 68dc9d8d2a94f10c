"""What the fused process is compared with: the paper's predictor, and committees of the sites' own processes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from trainer import posterior

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


class Experts:
    """Products of experts: what each site's process says, weighted by beta(x) and multiplied.

    1 / Var f = (1 - rest) / s + sum_j beta_j (1 / Var_j f - rest / s_j), and likewise precision times mean, with

    - ``"poe"``, the generalised product of experts (Cao and Fleet, 2014): beta is the gain of information, summing to
      one, and the members' priors are not taken out (rest = 0, no prior of its own);
    - ``"bcm"``, the Bayesian committee machine (Tresp, 2000): beta = 1, priors taken out (rest = 1) and one put in;
    - ``"rbcm"``, the robust one (Deisenroth and Ng, 2015): the same, with beta the gain of information.

    The members' priors have mean zero; their variances s_j differ, s is their median.
    """

    def __init__(self, members: Sequence[SparseGP], rule: Literal["poe", "bcm", "rbcm"]) -> None:
        self.members, self.rule = list(members), rule
        self.noise = float(np.mean([gp.noise for gp in members]))

    def predict(self, X: Array, return_std: bool = False) -> Array | tuple[Array, Array]:
        """Expected responses and deviations of new ones."""
        prior = np.array([gp.kernel.outputscale for gp in self.members])[:, None]
        mean, variance = np.moveaxis(np.array([gp.latent(X) for gp in self.members]), 1, 0)
        variance = np.clip(variance, SMALLEST_SHARE * prior, prior)
        beta = np.ones_like(variance) if self.rule == "bcm" else 0.5 * np.log(prior / variance)
        if self.rule == "poe":
            beta = beta + np.finfo(float).tiny  # nobody knows anything: all alike
            beta /= beta.sum(axis=0)
        precision, linear = (beta / variance).sum(axis=0), (beta * mean / variance).sum(axis=0)
        if self.rule != "poe":
            precision += 1 / np.median(prior) - (beta / prior).sum(axis=0)
        expected = linear / precision
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
    basis = whiten(kernel(inputs, inputs))
    seen = basis.colour.T / np.sqrt(variance)
    precision, vectors = np.linalg.eigh(np.eye(len(seen)) + seen @ seen.T)
    root = basis.colour @ (vectors / np.sqrt(precision))
    linear = vectors.T @ (seen @ (values / np.sqrt(variance)))
    return SparseGP(inputs, root @ (linear / np.sqrt(precision)), root @ root.T, kernel, 0.0, noise)


def inputs_passed_back(inputs: Array, sites: Sequence[SparseGP], rows: Sequence[tuple[Array, Array]]) -> list[SparseGP]:
    """Every site takes the fused inputs for its own and learns the responses from its own rows again."""
    return [posterior(X, y, inputs, gp.kernel, gp.noise) for gp, (X, y) in zip(sites, rows, strict=True)]
