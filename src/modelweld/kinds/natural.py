"""Natural fusion of sparse Gaussian processes: what every site's data said, put on one prior. No data is needed.

A site's q(u) = N(values, covariance) is its prior N(mean, K) times a Gaussian factor, which is what its data said of
its inducing values. Written as observations of unit noise, y = R f(inputs) + e with R^T R = covariance^-1 - K^-1, all
sites' factors together are the data of an ordinary sparse Gaussian process: one kernel and one mean are learned by its
variational bound (Titsias, 2009), and its posterior at the fused inputs is the fused model.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from modelweld.gp_kernels import Kernel, whitened
from modelweld.local import Array
from modelweld.sparse_gp import SparseGP

SMALLEST_SHARE = 1e-8
"""Of a prior variance that a site can leave: one ten-thousandth of its deviation, far below what data tell. Where
a covariance has zero or (by rounding) negative eigenvalues, its values are taken as known so well, and no better."""

LEAST_SAID = 1e-8
"""Precision, in units of the prior's, below which a direction of a factor says nothing and is left out."""

JITTER = 1e-8
"""Added to the diagonal, relative to it, where a kernel is learned: bounds of near kernels must be comparable."""

MOST_DOUBT = 0.05
"""Share of its variance that the function may keep at a site's inducing input, given its values at the fused ones."""

LEARNING_INPUTS = 150
"""Inducing inputs with which a kernel is learned: its bound changes little with more, and costs their square."""

WIDEST = 1e3
"""Lengthscales are learned between 1 / WIDEST and WIDEST times the deviation of all sites' inputs: beyond the function
is white or constant in that feature, and the bound is flat. The outputscale within WIDEST^2 times its start."""

MOST_STEPS = 100
"""Steps of L-BFGS: the hardest of the trials needed 60."""


class Factor(NamedTuple):
    """What a site's data said: y = R f(inputs) + noise of variance one."""

    inputs: Array
    R: Array
    y: Array


class Posterior(NamedTuple):
    """Of the values at inducing inputs: mean and covariance."""

    values: Array
    covariance: Array


def factor_of(gp: SparseGP) -> Factor:
    """A site's posterior over its inducing values, divided by its prior.

    Examples
    --------
    >>> gp = SparseGP(np.zeros((1, 1)), np.array([3.0]), np.array([[0.8]]), Kernel(np.ones(1), 4.0))
    >>> R, y = factor_of(gp)[1:]
    >>> (R.T @ R).round(6).tolist(), (R.T @ y).round(6).tolist()       # 1 / 0.8 - 1 / 4, 3 / 0.8
    ([[1.0]], [3.75])
    """
    a, B = gp.knowledge
    shares, Q = np.linalg.eigh((B + B.T) / 2)
    shares = np.clip(shares, SMALLEST_SHARE, 1.0)
    precision = 1 / shares - 1
    said = precision > LEAST_SAID
    shares, Q, root = shares[said], Q[:, said], np.sqrt(precision[said])
    R = (gp.basis.white @ (Q * root)).T
    return Factor(gp.inputs, R, (Q.T @ a) / (shares * root) + R.sum(axis=1) * gp.mean)


def projected(factors: Sequence[Factor], kernel: Kernel, mean: float, inputs: Array) -> Posterior:
    """The posterior at `inputs` that is nearest to the one given all factors, by the variational bound."""
    basis = whitened(kernel(inputs, inputs))
    rank = basis.white.shape[1]
    precision, linear = np.eye(rank), np.zeros(rank)
    for Z, R, y in factors:
        A = basis.white.T @ (R @ kernel(Z, inputs)).T
        precision += A @ A.T
        linear += A @ (y - mean * R.sum(axis=1))
    values, vectors = np.linalg.eigh(precision)
    root = basis.colour @ (vectors / np.sqrt(values))
    return Posterior(mean + root @ ((vectors.T @ linear) / np.sqrt(values)), root @ root.T)


def bound(factors: Sequence[Factor], kernel: Kernel, mean: float, inputs: Array) -> tuple[float, Array]:
    """The variational bound of the factors, and its slopes by log lengthscales, log outputscale and mean.

    With A = L^-1 k(inputs, Z) R^T over all factors, L L^T = k(inputs, inputs), B = 1 + A A^T, e = y - mean R 1,

        F = -1/2 log|B| - 1/2 e^T e + 1/2 (A e)^T B^-1 (A e) - 1/2 tr[R k(Z, Z) R^T] + 1/2 tr[A A^T].
    """
    from scipy.linalg import cho_factor, cho_solve, cholesky, solve_triangular

    M = len(inputs)
    K = kernel(inputs, inputs) + JITTER * kernel.outputscale * np.eye(M)
    L = cholesky(K, lower=True)
    crossed = [R @ kernel(Z, inputs) for Z, R, _ in factors]
    A = solve_triangular(L, np.concatenate(crossed).T, lower=True)
    ones = np.concatenate([R.sum(axis=1) for _, R, _ in factors])
    e = np.concatenate([y for _, _, y in factors]) - mean * ones
    P = A @ A.T
    factored = cho_factor(np.eye(M) + P, lower=True)
    c = A @ e
    b = cho_solve(factored, c)
    left = e - A.T @ b
    F = -np.log(np.diag(factored[0])).sum() - 0.5 * (e @ left) + 0.5 * np.trace(P)

    by_A = A - cho_solve(factored, A) + np.outer(b, left)
    by_crossed = solve_triangular(L, by_A, lower=True, trans="T").T
    inner = P - cho_solve(factored, P) + np.outer(b, b)
    half = solve_triangular(L, inner, lower=True, trans="T")
    by_K = -0.5 * solve_triangular(L, half.T, lower=True, trans="T")
    slopes = kernel.slopes(inputs, inputs, by_K)
    slopes[-1] += JITTER * kernel.outputscale * np.trace(by_K)
    start = 0
    for Z, R, _ in factors:
        by_own = -0.5 * (R.T @ R)
        F += float((by_own * kernel(Z, Z)).sum())
        slopes += kernel.slopes(Z, Z, by_own)
        slopes += kernel.slopes(Z, inputs, R.T @ by_crossed[start : start + len(R)])
        start += len(R)
    return float(F), np.append(slopes, ones @ left)


def completed(inputs: Array, points: Array, kernel: Kernel) -> Array:
    """The inputs, and those of the points that they leave in doubt, the most doubtful first.

    Averages of matched points stand for these only where the function hardly changes between them.

    Examples
    --------
    >>> completed(np.array([[1.0]]), np.array([[0.9], [8.0], [1.1], [8.1]]), Kernel(np.ones(1), 1.0)).ravel().tolist()
    [1.0, 8.0]
    """
    white = whitened(kernel(inputs, inputs)).white
    known = kernel(points, inputs) @ white
    doubt = 1 - np.square(known).sum(axis=1) / kernel.outputscale
    added: list[int] = []
    while doubt.max() > MOST_DOUBT:
        i = int(doubt.argmax())
        row = kernel(points, points[i : i + 1])[:, 0] - known @ known[i]
        column = row / np.sqrt(doubt[i] * kernel.outputscale)
        known = np.column_stack([known, column])
        doubt = doubt - np.square(column) / kernel.outputscale
        added.append(i)
    return np.concatenate([inputs, points[added]])


def learned(factors: Sequence[Factor], starts: Sequence[tuple[Kernel, float]], inputs: Array) -> tuple[Kernel, float]:
    """Kernel and mean with the highest bound, from the best of several starts."""
    few = inputs[np.unique(np.linspace(0, len(inputs) - 1, LEARNING_INPUTS).astype(np.int64))]
    runs = [_climbed(factors, kernel, mean, few) for kernel, mean in starts]
    _, kernel, mean = max(runs, key=lambda run: run[0])
    return kernel, mean


def _climbed(factors: Sequence[Factor], kernel: Kernel, mean: float, inputs: Array) -> tuple[float, Kernel, float]:
    """The highest bound near a start; the mean is counted in deviations of the function, so that its steps fit."""
    from scipy.optimize import minimize

    spread = np.concatenate([Z for Z, _, _ in factors]).std(axis=0)
    wide = np.where(spread > 0, spread, kernel.lengthscales)
    deviation, reach = float(np.sqrt(kernel.outputscale)), float(np.log(WIDEST))
    first = np.log(np.clip(kernel.lengthscales, wide / WIDEST, wide * WIDEST))
    about = float(np.log(kernel.outputscale))
    limits = [(x - reach, x + reach) for x in np.log(wide)]
    limits += [(about - 2 * reach, about + 2 * reach), (-np.inf, np.inf)]

    def at(x: Array) -> tuple[Kernel, float]:
        return Kernel(np.exp(x[:-2]), float(np.exp(x[-2])), kernel.name), float(x[-1] * deviation)

    def loss(x: Array) -> tuple[float, Array]:
        F, slopes = bound(factors, *at(x), inputs)
        slopes[-1] *= deviation
        return -F, -slopes

    start = np.array([*first, about, mean / deviation])
    options = {"maxiter": MOST_STEPS}
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=limits, options=options)
    return (-float(found.fun), *at(found.x))
