"""Inputs drawn at the centre, for networks to be compared on: no site's data, but alike in what first layers look at.

Every input is drawn as one of the sites describes its own, in proportion to its rows. What is drawn is a Gaussian field
with a mean and a deviation at every pixel, or of every feature, which sites may send (`describe`); the values of images
are cut off below their lowest and above their highest.

Images are smooth: neighbouring pixels are nearly the same, and white noise, in which they are not, drives a network
where no image ever does. So the field of images is white noise blurred by a fourteenth of the width (two pixels of 28).
A site's own *radial power spectrum* (how strong waves of so many periods per width are, `spectrum`) is taken if it is
there; `describe` sends none: beside moments of pixels it gained nothing, and a residual network lost .07 by it (MNIST,
seeds 8101 and 8102). Without anything, images are taken to have something in their middle, on black: mean and deviation
of pixels fall off from there. Tables are drawn about zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from modelweld.core.values import Array
from modelweld.errors import InputError
from modelweld.inputs.local_model import LocalModel
from modelweld.kinds.network import DEVIATION, moments

BLUR = 1 / 14
"""Standard deviation of the default blur, as a share of the width. Two pixels of MNIST's 28, which was compared with
nothing but white noise."""

MIDDLE = (0.4, 0.4)
"""Of images that no site describes: how wide what is in the middle is, as a share of the width (a standard deviation),
and mean and deviation of pixels there. On digits (seeds 8101, 8102; 2 and 5 sites) .2 lost .03 to .1 of
accuracy beside images that fill their frame, .4 nothing; on MNIST both gained .01 to .05."""

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


def _radii(size: Sequence[int]) -> Array:
    """Of every wave of a Fourier transform, how many periods it has per width, rounded."""
    waves = np.meshgrid(*(np.fft.fftfreq(n) * min(size) for n in size), indexing="ij")
    return np.asarray(np.rint(np.sqrt(np.sum(np.square(waves), axis=0))))


def draw(models: Sequence[LocalModel], shape: Sequence[int], draws: int, rng: np.random.Generator) -> Array:
    """So many inputs of this shape, each as one of the sites describes its own.

    Examples
    --------
    >>> X = draw([LocalModel({}, {})], (1, 28, 28), 100, np.random.default_rng(0))
    >>> X.shape, float(X.min()), bool(np.corrcoef(X[:, 0, 14, 14], X[:, 0, 14, 15])[0, 1] > 0.9)
    ((100, 1, 28, 28), 0.0, True)
    """
    Z, sent = rng.standard_normal((draws, *shape)), models[0].arrays
    if len(shape) > 1:
        Z = _smooth(Z, [np.asarray(m.arrays["spectrum"]) for m in models] if "spectrum" in sent else None)
    if "inputs" in sent:
        rows = np.array([np.sum(m.arrays.get("counts", 1.0)) for m in models])
        site = rng.choice(len(models), draws, p=rows / rows.sum() if rows.sum() else None)
        given = np.array([m.arrays["inputs"] for m in models])
        if given.shape[1:] != (2, prod(shape)):
            raise InputError(f"moments of inputs of {given.shape[-1]} numbers were sent; one input has {prod(shape)}.")
        given = given.reshape(len(models), 2, *shape)
        X = given[site, 0] + given[site, 1] * Z
    elif len(shape) == 1:
        return np.asarray(DEVIATION * Z)
    else:
        wide, height = MIDDLE
        places = np.meshgrid(*((np.arange(n) + 0.5) / n - 0.5 for n in shape[1:]), indexing="ij")
        X = height * np.exp(-np.sum(np.square(places), axis=0) / (2 * wide**2)) * (1 + Z)
    if len(shape) > 1:
        bounds = np.array([m.arrays["bounds"] if "bounds" in sent else (0.0, 1.0) for m in models])
        X = np.clip(X, bounds.min(), bounds.max())
    return np.asarray(X)


def _smooth(Z: Array, spectra: Sequence[Array] | None) -> Array:
    """White noise of images with their waves as strong as in the mean of these spectra, in deviations of one."""
    axes = tuple(range(2, Z.ndim))
    radius = _radii(Z.shape[2:])
    if spectra is None:
        power = np.exp(-np.square(2 * np.pi * BLUR * radius))
    else:
        mean = np.mean(spectra, axis=0)
        power = np.interp(radius, np.arange(1, len(mean) + 1), mean)
    half = np.sqrt(power / power.mean())[..., : Z.shape[-1] // 2 + 1]  # the other waves are their conjugates
    return np.asarray(np.fft.irfftn(np.fft.rfftn(Z, axes=axes) * half, s=Z.shape[2:], axes=axes))


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
