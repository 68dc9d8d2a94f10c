"""Inputs drawn at the centre, for networks to be compared on: no site's data, but alike in what first layers look at.

Images are smooth: neighbouring pixels are nearly the same, and white noise, in which they are not, drives a network
where no image ever does. What is drawn is a Gaussian field with a *radial power spectrum* (how strong waves of so many
periods per width are), whose values are then spread as pixel values are. Sites may send both, `describe`: a spectrum of
half as many numbers as an image has rows, and eleven quantiles of all pixel values. Nothing is sent of any one image.
Without them the field is white noise blurred by a fourteenth of the width (two pixels of 28), and values those of a
normal distribution of deviation one half about zero, cut off below zero and above one: blots on black.

Tables are drawn feature by feature, by the means and deviations that sites send, or about zero.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy

from modelweld.core.values import Array
from modelweld.errors import InputError
from modelweld.inputs.local_model import LocalModel
from modelweld.kinds.network import DEVIATION, moments

BLUR = 1 / 14
"""Standard deviation of the default blur, as a share of the width. Two pixels of MNIST's 28, which was compared with
nothing but white noise."""

LEVELS = np.linspace(0.01, 0.99, 11)
"""Quantiles of pixel values that sites send; not the lowest and the highest, which are values of single pixels."""


def describe(X: Array) -> dict[str, Array]:
    """What a site sends of its inputs: `spectrum` and `levels` of images (rows, channels, places...), or `inputs`.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(200, 1, 8, 8))
    >>> {name: values.shape for name, values in describe(X).items()}
    {'spectrum': (4,), 'levels': (11,)}
    >>> describe(X)["spectrum"].round().tolist()  # white noise: all waves alike
    [1.0, 1.0, 1.0, 1.0]
    """
    if X.ndim < 3:
        return {"inputs": moments(X)}
    axes, radius = tuple(range(2, X.ndim)), _radii(X.shape[2:])
    power = np.mean(np.abs(np.fft.fftn(X - X.mean(axis=axes, keepdims=True), axes=axes)) ** 2, axis=(0, 1))
    n = max(1, min(X.shape[2:]) // 2)
    spectrum = np.array([power[radius == r].mean() for r in range(1, n + 1)])
    return {"spectrum": spectrum / max(float(spectrum.mean()), np.finfo(float).tiny), "levels": np.quantile(X, LEVELS)}


def _radii(size: Sequence[int]) -> Array:
    """Of every wave of a Fourier transform, how many periods it has per width, rounded."""
    waves = np.meshgrid(*(np.fft.fftfreq(n) * min(size) for n in size), indexing="ij")
    return np.asarray(np.rint(np.sqrt(np.sum(np.square(waves), axis=0))))


def draw(models: Sequence[LocalModel], shape: Sequence[int], draws: int, rng: np.random.Generator) -> Array:
    """So many inputs of this shape, as all sites together describe theirs.

    Examples
    --------
    >>> X = draw([LocalModel({}, {})], (1, 28, 28), 100, np.random.default_rng(0))
    >>> X.shape, float(X.min()), float(X.max()), bool(np.corrcoef(X[:, 0, 9, 9], X[:, 0, 9, 10])[0, 1] > 0.9)
    ((100, 1, 28, 28), 0.0, 1.0, True)
    """
    Z = rng.standard_normal((draws, *shape))
    sent = models[0].arrays
    if len(shape) == 1:
        if "inputs" not in sent:
            return np.asarray(DEVIATION * Z)
        means, deviations = np.moveaxis(np.array([m.arrays["inputs"] for m in models]), 1, 0)
        return np.asarray(means.mean(axis=0) + Z * np.sqrt((deviations**2).mean(axis=0) + means.var(axis=0)))
    size, axes = shape[1:], tuple(range(2, len(shape) + 1))
    radius = _radii(size)
    if "spectrum" in sent:
        mean = np.mean([np.asarray(m.arrays["spectrum"]) for m in models], axis=0)
        power = np.interp(radius, np.arange(1, len(mean) + 1), mean)
    else:
        power = np.exp(-np.square(2 * np.pi * BLUR * radius))
    power = power / power.mean()
    field = np.fft.ifftn(np.fft.fftn(Z, axes=axes) * np.sqrt(power), axes=axes).real
    if "levels" not in sent:
        return np.clip(DEVIATION * field, 0.0, 1.0)
    levels = np.mean([np.asarray(m.arrays["levels"]) for m in models], axis=0)
    return np.asarray(np.interp(scipy.special.ndtr(field), LEVELS, levels))


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
