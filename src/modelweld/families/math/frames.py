"""A frame in which full covariances are diagonal: where noise and spread can be learned dimension by dimension.

For a noise covariance A and a spread covariance B there is a matrix T with T' A T = 1 and T' B T diagonal. Measured
as y = (v - origin) T, values have independent coordinates, so everything a diagonal Gaussian knows applies; densities
are multiplied by |det T| per value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np
import scipy

from modelweld.core.family import sum_by_atom, with_fields
from modelweld.core.values import NOISE_FLOOR, Array, Index, Stack

if TYPE_CHECKING:
    from modelweld.families.real_values import Gaussian

Some = TypeVar("Some", bound="Gaussian")


def learn_frame(here: Some, stack: Stack, labels: Index, sums: Array) -> Some:
    """The family `here`, or one learned in the frame that suits the present matching, whichever is more likely."""
    if len(np.unique(labels)) in (1, len(labels)):
        return here
    y = stack.values - np.asarray(here.origin)
    frame = frame_of(*pool_covariances(y, labels))
    D = len(frame)
    floor = NOISE_FLOOR * np.maximum((y @ frame).var(0), 1.0)  # the frame's unit is the noise
    moved = with_fields(here, frame=frame, noise=np.ones(D), spread=np.ones(D), floor=floor)
    atoms = sum_by_atom(moved.rows(stack.values), labels)
    moved = moved.update(atoms)
    return moved if moved.log_evidence(atoms).sum() > here.log_evidence(sums).sum() else here


def pool_covariances(y: Array, labels: Index) -> tuple[Array, Array]:
    """Covariance of values about their atoms' averages, and of these averages, both shrunk (Ledoit and Wolf)."""
    K = int(labels.max()) + 1
    counts = np.bincount(labels, minlength=K)
    averages = np.zeros((K, y.shape[1]))
    np.add.at(averages, labels, y)
    averages /= counts[:, None]
    residuals = y - averages[labels]
    # an atom's own average takes one degree of freedom: values alone say nothing
    several = counts[labels] > 1
    scale = np.sqrt(counts / np.maximum(counts - 1, 1))
    within = _shrunk((residuals * scale[labels][:, None])[several], centred=True)
    return within, _shrunk(averages, centred=False)


def _shrunk(rows: Array, *, centred: bool) -> Array:
    """Ledoit and Wolf's covariance, in units in which fourth powers, which it takes, are numbers; to the same bit."""
    from sklearn.covariance import ledoit_wolf

    unit = 2.0 ** np.frexp(np.abs(rows).max())[1]
    found, _ = ledoit_wolf(rows / unit, assume_centered=centred)
    return np.asarray(found * unit * unit)


def frame_of(within: Array, between: Array) -> Array:
    """T with T' within T = 1 and T' between T diagonal; noise is never nothing, even where values coincide."""
    scale = np.diagonal(within) + np.diagonal(between)
    least = NOISE_FLOOR * np.where(scale > 0, scale, max(scale.max(), np.finfo(float).tiny))
    _, T = scipy.linalg.eigh(between, within + np.diag(least))
    return np.asarray(T)


def full_covariances(family: Gaussian) -> tuple[Array, Array]:
    """Noise and spread of a family as matrices (D, D), in the coordinates of the values."""
    D = np.asarray(family.mean).size
    noise, spread = (np.eye(D) * np.asarray(x) for x in (family.noise, family.spread))
    if family.frame is None:
        return noise, spread
    back = np.linalg.inv(family.frame)
    return back.T @ noise @ back, back.T @ spread @ back
