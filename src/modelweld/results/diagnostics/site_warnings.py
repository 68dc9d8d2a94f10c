"""What is said of a site that stands out among the others, in the order of what is worst: one sentence, or none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy

from modelweld.core.values import Array, Index
from modelweld.fit.screening.distances import FEWEST_SITES_TO_COMPARE, MAD_TO_DEVIATION
from modelweld.results.diagnostics.shifts import Shift

SMALLEST_SHIFT = 0.5
"""Noise deviations from which a shift is worth a warning: with many values smaller ones are certain, but harmless."""

LARGEST_SURPRISE, SMALLEST_SCORE = 6.0, 0.5
"""A site fits badly if its score is six robust deviations below the others' median (a robust deviation of ten sites is
uncertain by a third, so this is four true ones) and less than half of it (else it fits well, only less so)."""

LARGEST_INFLUENCE = 5.0
"""Times the median site's influence: a typical site at an atom of five or more has at most a fifth of the weight, so
this one has nearly all. And as many robust deviations of the sites' log influence: sites that are unlike in size are
unlike in influence."""

FEWEST_TO_SCALE, LARGEST_SCATTER = 6, 1.3
"""Honest sites may have shifts of their own (a cold station is cold everywhere): where that many others' z-scores have
a robust deviation above this, a site's is divided by it. Six give it to a third, and one below 1.3 may be chance."""


class Measured(NamedTuple):
    """What each of J sites is without itself: see `results.diagnostics.sites.SiteDiagnostics`."""

    atoms: int
    parameters: Index
    unshared: Index
    score: Array
    influence: Array
    shifts: list[Shift]

    @property
    def freedom(self) -> int:
        """Degrees of freedom of the noise: shared values, less one for each of their atoms."""
        return max(int((self.parameters - self.unshared).sum()) - self.atoms, 1)


def warn_of_sites(
    measured: Measured, surprise: Array, sites: Sequence[str], dimensions: Sequence[str], rate: float
) -> list[str]:
    """One sentence about each site, empty if there is nothing to say; any by chance with probability `rate`."""
    said = [""] * len(measured.parameters)
    for about in (
        about_unshared(measured.unshared, measured.parameters, rate / 2),
        about_shifts(measured.shifts, dimensions, rate / 2, measured.freedom),
        about_scores(measured.score, surprise, measured.parameters > 0),
        about_influence(measured.influence, sites),
    ):
        for j, sentence in about.items():
            said[j] = said[j] or sentence
    return said


def about_unshared(unshared: Index, parameters: Index, rate: float) -> dict[int, str]:
    """Sites more of whose atoms are unshared than chance gives at the other sites' share."""
    others, others_unshared = parameters.sum() - parameters, unshared.sum() - unshared
    share = (others_unshared + 1) / (others + 2)
    rare = scipy.special.bdtrc(np.maximum(unshared - 1.0, 0.0), parameters, share) < rate / len(parameters)
    return {
        j: f"holds {unshared[j]} of its {parameters[j]} atoms alone; at the other sites that is "
        f"{100 * others_unshared[j] / others[j]:.0f} %. Ask whether it measures the same things of the same population."
        for j in np.flatnonzero(rare & (unshared > 0)).tolist()
    }


def about_shifts(shifts: Sequence[Shift], dimensions: Sequence[str], rate: float, freedom: int) -> dict[int, str]:
    """Sites whose values lie above or below the others' in one dimension, by more than sites do anyway.

    In deviations of a noise that is known from so many degrees of `freedom`, shifts are Student's by chance.
    """
    mean, z = (np.array([getattr(shift, name) for shift in shifts]) for name in ("mean", "z"))
    size = np.where(np.abs(mean) >= SMALLEST_SHIFT, np.abs(z), 0.0)  # NaN counts as zero
    least = -scipy.special.stdtrit(freedom, rate / max(z.size, 1) / 2)
    for j, d in np.argwhere(size > least).tolist():  # how others scatter only makes it smaller
        size[j, d] /= scatter_of_others(z[:, d], j)
    found = {}
    for j in np.flatnonzero((size > least).any(1)).tolist():
        d = int(size[j].argmax())
        side = "above" if mean[j, d] > 0 else "below"
        found[j] = (
            f"sends values that lie {abs(mean[j, d]):.1f} noise deviations {side} the others' in {dimensions[d]} "
            f"(z = {z[j, d]:.1f}). Ask how that is measured there."
        )
    return found


def about_scores(score: Array, surprise: Array, counted: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> dict[int, str]:
    """Sites that the others predict badly."""
    typical = float(np.median(score[counted]))
    return {
        j: f"fits the others badly: sharing their atoms explains its values by {score[j]:.1f} nats each better than "
        f"new ones would, against {typical:.1f} at the typical site. Look at what it sent before using the fused "
        "model there."
        for j in np.flatnonzero((surprise <= -LARGEST_SURPRISE) & (score < SMALLEST_SCORE * typical)).tolist()
    }


def about_influence(influence: Array, sites: Sequence[str]) -> dict[int, str]:
    """Sites without which atoms would lie elsewhere."""
    typical = float(np.median(influence))
    if len(influence) < FEWEST_SITES_TO_COMPARE or typical == 0:
        return {}
    ratio = np.log(np.maximum(influence, np.finfo(float).tiny) / typical)
    usual = MAD_TO_DEVIATION * float(np.median(np.abs(ratio)))  # sites that differ in size differ in influence
    return {
        j: f"moves the fused atoms {influence[j] / typical:.0f} times as much as a typical site: without it they would "
        f"lie {influence[j]:.2f} noise deviations elsewhere. Compare with fusion.remove({sites[j]!r})."
        for j in np.flatnonzero(ratio > max(np.log(LARGEST_INFLUENCE), LARGEST_INFLUENCE * usual)).tolist()
    }


def scatter_of_others(z: Array, j: int) -> float:
    """By how much the z-scores (J,) of all sites but j scatter more than chance; one if it may be chance.

    Examples
    --------
    >>> round(scatter_of_others(np.array([9.0, -2, 2, -2, 2, -2, 2]), 0), 3)
    2.965
    """
    others = np.delete(z, j)
    others = others[np.isfinite(others)]
    if len(others) < FEWEST_TO_SCALE:
        return 1.0
    deviation = MAD_TO_DEVIATION * float(np.median(np.abs(others - np.median(others))))
    return deviation if deviation > LARGEST_SCATTER else 1.0
