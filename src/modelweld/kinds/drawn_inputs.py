"""Inputs drawn at the centre, for networks to be compared on: no site's data, but alike in what first layers look at.

Every input is drawn as one of the sites describes its own, in proportion to its rows. What is drawn is a Gaussian field
with a mean and a deviation at every pixel, or of every feature, which sites may send (`describe`). The values of images
are cut off below their lowest and above their highest.

Images are smooth: neighbouring pixels are nearly the same, and white noise, in which they are not, drives a network
where no image ever does. So the field of images is white noise blurred by a tenth to a twenty-eighth of the width (one
to three pixels of 28). Without moments, images are taken to have something in their middle, on black: mean and
deviation of pixels fall off from there. Tables are drawn about zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from modelweld.core.values import Array
from modelweld.errors import InputError
from modelweld.inputs.local_model import LocalModel
from modelweld.kinds.network import DEVIATION, moments

BLURS = (1 / 28, 1 / 20, 1 / 14, 1 / 10)
"""Standard deviations of the blur, as shares of the width, for one drawn image after the other. 1 / 14 alone was level
with all four where sites send no moments, and .003 behind where they do (six cells, seed 8101)."""

MIDDLE = (0.25, 0.3, 0.6)
"""Of images that no site describes: how wide what is in the middle is, as a share of the width (a standard deviation),
and mean and deviation of pixels there, before they are cut off. Taught for 300 steps, four of the same six cells were
nearer to the ensemble with .25 than with .4, one level, the residual network further; by .013 in the mean."""

BOUNDS = (0.01, 0.99)
"""Quantiles of pixel values that sites send; not the lowest and the highest, which are values of single pixels."""


def describe(X: Array) -> dict[str, Array]:
    """What a site sends of its inputs: `inputs`, means and deviations; of images also `bounds`.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(200, 1, 8, 8))
    >>> {name: values.shape for name, values in describe(X).items()}
    {'inputs': (2, 64), 'bounds': (2,)}
    """
    inputs = moments(X)
    if X.ndim < 3:
        return {"inputs": inputs}
    return {"inputs": inputs, "bounds": np.quantile(X, BOUNDS)}


def draw(models: Sequence[LocalModel], shape: Sequence[int], draws: int, rng: np.random.Generator) -> Array:
    """So many inputs of this shape, each as one of the sites describes its own.

    Examples
    --------
    >>> X = draw([LocalModel({}, {})], (1, 28, 28), 100, np.random.default_rng(0))
    >>> X.shape, float(X.min()), bool(np.corrcoef(X[:, 0, 14, 14], X[:, 0, 14, 15])[0, 1] > 0.8)
    ((100, 1, 28, 28), 0.0, True)
    """
    Z: Any = rng.standard_normal((draws, *shape), dtype=np.float32)
    sent = models[0].arrays
    if len(shape) > 1:
        Z = _smooth(Z)
    if "inputs" in sent:
        rows = np.array([np.sum(m.arrays.get("counts", 1.0)) for m in models])
        site = rng.choice(len(models), draws, p=rows / rows.sum() if rows.sum() else None)
        given = np.array([m.arrays["inputs"] for m in models], dtype=np.float32)
        if given.shape[1:] != (2, prod(shape)):
            raise InputError(f"moments of inputs of {given.shape[-1]} numbers were sent; one input has {prod(shape)}.")
        given = given.reshape(len(models), 2, *shape)
        X = given[site, 0] + given[site, 1] * Z
    elif len(shape) == 1:
        return np.asarray(DEVIATION * Z)
    else:
        wide, mean, deviation = MIDDLE
        places = np.meshgrid(*((np.arange(n) + 0.5) / n - 0.5 for n in shape[1:]), indexing="ij")
        X = np.exp(-np.sum(np.square(places), axis=0) / (2 * wide**2)) * (mean + deviation * Z)
    bounds = np.array([m.arrays["bounds"] if "bounds" in sent else (0.0, 1.0) for m in models])
    return np.asarray(X if len(shape) == 1 else np.clip(X, bounds.min(), bounds.max()))


def _smooth(Z: Array) -> Array:
    """White noise of images, each blurred by one of the widths in turn, in deviations of one."""
    size, axes = Z.shape[2:], tuple(range(2, Z.ndim))
    waves = np.meshgrid(*(np.fft.fftfreq(n) * min(size) for n in size), indexing="ij")
    power = np.exp(np.multiply.outer(-np.square(2 * np.pi * np.array(BLURS)), np.sum(np.square(waves), axis=0)))
    strength = np.sqrt(power / power.mean(axis=tuple(range(1, power.ndim)), keepdims=True)).astype(np.float32)
    half = strength[np.arange(len(Z)) % len(BLURS), None, ..., : size[-1] // 2 + 1]  # the others are their conjugates
    return np.asarray(np.fft.irfftn(np.fft.rfftn(Z, axes=axes) * half, s=size, axes=axes))


def shape_of(models: Sequence[LocalModel], features: int | None = None) -> tuple[int, ...]:
    """Of one input: what sites say, or the features of a table."""
    said = {tuple(m.facts["shape"]) for m in models if m.facts.get("shape")}
    if len(said) > 1:
        raise InputError(f"sites have inputs of different shapes, {' and '.join(map(str, sorted(said)))}: resize some.")
    if said:
        return said.pop()
    if features is None:
        raise InputError(
            "the size of images is not known, so none can be drawn: read(net, X=X), or read(net, shape=(1, 28, 28))."
        )
    return (features,)
