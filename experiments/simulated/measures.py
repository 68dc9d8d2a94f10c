"""How far an answer is from the truth: distances of atoms, labels, number of atoms, hyperparameters."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from modelweld import Fusion, Gaussian
from modelweld.demo.metrics import adjusted_rand, hausdorff
from modelweld.demo.simulate import FIGURE_MEAN, FIGURE_SPREAD_SD, Simulated

DIGITS = 5
"""Significant digits that are kept."""


def measured(drawn: Simulated, fusion: Fusion, present: np.ndarray, noise: float) -> dict[str, Any]:
    """What the study reports of one answer; `present` are the true atoms that some site holds.

    Values that are set aside count with their nearest atom, and their own atoms do not count. The labels of pooled data
    are those of points, not of local atoms: then there is no ARI.
    """
    atoms, true = fusion.atoms[: fusion.K], drawn.atoms[present]
    result: dict[str, Any] = {"hausdorff": rounded(hausdorff(atoms, true)), "K": fusion.K}
    labels = np.concatenate(fusion.labels)
    if len(labels) == len(drawn.stacked_truth):
        result["ari"] = rounded(adjusted_rand(drawn.stacked_truth, counted(labels, drawn, atoms)))
    for family in fusion.matching.families.values():
        if isinstance(family, Gaussian):
            result |= hyperparameter_errors(family, noise)
    return result


def counted(labels: np.ndarray, drawn: Simulated, atoms: np.ndarray) -> np.ndarray:
    """Labels with every value that is set aside at the nearest atom that counts."""
    aside = labels >= len(atoms)
    if not aside.any():
        return labels
    labels = labels.copy()
    labels[aside] = cdist(np.concatenate(drawn.values)[aside], atoms).argmin(axis=1)
    return labels


def supports(drawn: Simulated, present: np.ndarray) -> np.ndarray:
    """How many sites hold each of these true atoms."""
    held = drawn.truth if drawn.origin is None else drawn.origin
    return np.sum([np.isin(present, of_site) for of_site in held], axis=0)


def hyperparameter_errors(family: Gaussian, noise: float) -> dict[str, float]:
    """Error of mu0, sigma and sigma0, each one number for all dimensions, relative to the truth."""
    estimates = {
        "mu0": (np.mean(np.asarray(family.mean)), FIGURE_MEAN),
        "sigma": (np.sqrt(np.mean(np.asarray(family.noise))), noise),
        "sigma0": (np.sqrt(np.mean(np.asarray(family.spread))), FIGURE_SPREAD_SD),
    }
    return {name: rounded(abs(found - true) / true) for name, (found, true) in estimates.items()}


def best_possible(drawn: Simulated, present: np.ndarray, noise: float) -> dict[str, float]:
    """What is left to do for whoever is told the true atoms: give each value its atom, no atom twice at a site.

    "ari" is that of the nearest atoms, "ari, popular" of the most probable ones, told also how many sites hold each.
    Beside them the errors of mu0 and sigma0 read off the true atoms: fifty atoms do not show them exactly.
    """
    true = drawn.atoms[present]
    share = (supports(drawn, present) + 0.5) / (len(drawn.values) + 1)
    result = {}
    for name, log_odds in (("ari", np.zeros(len(true))), ("ari, popular", np.log(share / (1 - share)))):
        costs = [cdist(values, true, "sqeuclidean") / (2 * noise**2) - log_odds for values in drawn.values]
        result[name] = rounded(adjusted_rand(drawn.truth, [present[linear_sum_assignment(c)[1]] for c in costs]))
    return {
        **result,
        "mu0": rounded(abs(true.mean() - FIGURE_MEAN) / FIGURE_MEAN),
        "sigma0": rounded(abs(np.sqrt(true.var(axis=0).mean()) - FIGURE_SPREAD_SD) / FIGURE_SPREAD_SD),
    }


def rounded(value: float, digits: int = DIGITS) -> float:
    """To the digits that are kept."""
    return float(f"{value:.{digits}g}")
