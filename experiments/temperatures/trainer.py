"""A compact trainer of sparse Gaussian processes, for sites and for pooled data alike.

The collapsed variational bound (Titsias, 2009) of responses y = mean + f(x) + noise, climbed by L-BFGS in the inducing
inputs, the lengthscales, the function's variance and the noise at once.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.optimize import minimize
from sklearn.cluster import KMeans

from modelweld.core.values import Array
from modelweld.kinds.gp_natural import Kernel, SparseGP, whiten

JITTER = 1e-6
"""Added to the diagonal of K, relative to it, while learning."""

SPAN = np.log([[1e-2, 1e2], [1e-2, 1e2], [1e-4, 1e1]])
"""Where lengthscales, the function's variance and the noise are looked for, in public units (see `data`)."""


LENGTHSCALE, OUTPUTSCALE, NOISE = 3.0, 1.0, 0.1
"""Where learning starts: a lengthscale for all features, the function's variance, the noise."""


def trained(
    X: Array, y: Array, points: int, *, steps: int, start: SparseGP | None = None, inputs: Array | None = None
) -> SparseGP:
    """A sparse Gaussian process with `points` inducing inputs, in at most so many steps; prior mean zero.

    It starts with the settings above or those of another process, and with the inputs given or averages of neighbouring
    rows (k-means).
    """
    inputs = centres(X, points) if inputs is None else inputs
    D = X.shape[1]
    first = np.log([*[LENGTHSCALE] * D, OUTPUTSCALE, NOISE])
    if start is not None:
        first = np.log([*start.kernel.lengthscales, start.kernel.outputscale, start.noise])
    limits = [*[tuple(SPAN[0])] * D, tuple(SPAN[1]), tuple(SPAN[2]), *[(None, None)] * inputs.size]

    def loss(x: Array) -> tuple[float, Array]:
        F, by_settings, by_inputs = bound(X, y, x[D + 2 :].reshape(-1, D), *parts(x, D))
        return -F, -np.concatenate([by_settings, by_inputs.ravel()])

    begin = np.concatenate([np.clip(first, *np.array(limits[: D + 2]).T), inputs.ravel()])
    options = {"maxiter": steps, "maxcor": 20}
    found = minimize(loss, begin, jac=True, method="L-BFGS-B", bounds=limits, options=options)
    return posterior(X, y, found.x[D + 2 :].reshape(-1, D), *parts(found.x, D))


def parts(x: Array, D: int) -> tuple[Kernel, float]:
    """Kernel and noise, of their logarithms."""
    values = np.exp(x[: D + 2])
    return Kernel(values[:D], float(values[D])), float(values[D + 1])


def centres(X: Array, points: int) -> Array:
    """Averages of neighbouring rows."""
    return KMeans(points, n_init=1, max_iter=20, random_state=0).fit(X).cluster_centers_


def bound(X: Array, y: Array, inputs: Array, kernel: Kernel, noise: float) -> tuple[float, Array, Array]:
    """The bound, its slopes by log lengthscales, log outputscale and log noise, and those by the inputs.

    With L L^T = k(Z, Z), A = L^-1 k(Z, X) / sqrt(noise), B = 1 + A A^T, e = y / sqrt(noise),

        F = -N/2 log(2 pi noise) - 1/2 log|B| - 1/2 e^T e + 1/2 (A e)^T B^-1 (A e)
            - N outputscale / (2 noise) + 1/2 tr[A A^T].
    """
    M, N = len(inputs), len(X)
    eye = np.eye(M)
    K, C = kernel(inputs, inputs), kernel(inputs, X)
    L = cholesky(K + JITTER * kernel.outputscale * eye, lower=True)
    inverse = solve_triangular(L, eye, lower=True)
    e = y / np.sqrt(noise)
    P = inverse @ (C @ C.T) @ inverse.T / noise
    factored = cholesky(eye + P, lower=True)
    b = cho_solve((factored, True), inverse @ (C @ e) / np.sqrt(noise))
    back = inverse.T @ b / np.sqrt(noise)
    left = e - back @ C
    spare = N * kernel.outputscale / (2 * noise)
    F = -N / 2 * np.log(2 * np.pi * noise) - np.log(np.diag(factored)).sum() - 0.5 * (e @ left) - spare
    F += 0.5 * np.trace(P)

    gained = eye - cho_solve((factored, True), eye)  # 1 - B^-1 = B^-1 P
    by_C = (inverse.T @ gained @ inverse / noise) @ C + np.outer(back, left)
    by_K = -0.5 * inverse.T @ (P - gained + np.outer(b, b)) @ inverse
    by_K_scale = float((by_K * K).sum()) + JITTER * kernel.outputscale * float(np.trace(by_K))
    by_C_scale = float((by_C * C).sum())
    by_noise = -0.5 * by_C_scale + 0.5 * (e @ left) - N / 2 + spare

    by_K *= K
    by_C *= C
    z, x = inputs / kernel.lengthscales, X / kernel.lengthscales
    by_z = 2 * (by_K @ z - by_K.sum(1)[:, None] * z)
    crossed = by_C @ x
    by_z += crossed - by_C.sum(1)[:, None] * z
    spread = 2 * (by_K.sum(1) @ (z * z)) - 2 * (z * (by_K @ z)).sum(0)
    spread += by_C.sum(1) @ (z * z) + by_C.sum(0) @ (x * x) - 2 * (z * crossed).sum(0)
    return float(F), np.array([*spread, by_K_scale + by_C_scale - spare, by_noise]), by_z / kernel.lengthscales


def posterior(X: Array, y: Array, inputs: Array, kernel: Kernel, noise: float) -> SparseGP:
    """What the rows say of the values at the inducing inputs."""
    basis = whiten(kernel(inputs, inputs))
    A = basis.white.T @ kernel(inputs, X) / np.sqrt(noise)
    mean, covariance = known(basis.colour, A, A @ y)
    return SparseGP(inputs, mean / np.sqrt(noise), covariance, kernel, 0.0, noise)


def known(colour: Array, seen: Array, said: Array) -> tuple[Array, Array]:
    """Mean and covariance of values whose prior has the root `colour`, by what of them is seen and what it says."""
    precision, vectors = np.linalg.eigh(np.eye(len(seen)) + seen @ seen.T)
    root = colour @ (vectors / np.sqrt(precision))
    return root @ ((vectors.T @ said) / np.sqrt(precision)), root @ root.T
