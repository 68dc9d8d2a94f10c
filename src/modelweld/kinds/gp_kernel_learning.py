"""The kernel and mean under which what all sites' data said is most probable. No data is needed.

A factor y = R f(Z) + e (see `natural`) has a Gaussian density under every kernel, in closed form. What one site cannot
tell, how fast the function changes from site to site, is told by the factors of several sites together, so as many of
them as can be afforded are taken jointly. An approximation of this density by few inducing inputs will not do: it takes
what the inputs cannot follow for noise and finds the function too smooth (experiments/temperatures has figures).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from modelweld.gp.model import Kernel
from modelweld.inputs.local_model import Array
from modelweld.kinds.gp_natural import Factor

LEAST_HEARD = 0.1
"""Of the prior's precision: directions of which a site's data say less have no voice in learning (`factor_of`). Most
directions of most sites are such; they repeat how smooth the site's own kernel is."""

JOINT_POINTS = 3000
"""Inducing inputs of sites whose factors are taken jointly: half a second per step. Sites beyond form further groups,
whose densities are multiplied."""

MOST_POINTS = 12_000
"""Inducing inputs that are listened to, of sites spread evenly over the sequence: a kernel is a dozen numbers."""

WIDEST = 1e3
"""Lengthscales are learned between 1 / WIDEST and WIDEST times the deviation of all sites' inputs: beyond the function
is white or constant in that feature, and the density is flat. The outputscale within WIDEST^2 times its start."""

SMALLEST_STEP = 1e-6
"""Relative gain of a step at which learning ends: a thousandth of a nat where the log density is a thousand."""

Setting = tuple[Kernel, float]
"""Kernel and mean."""


def learned(factors: Sequence[Factor], starts: Sequence[Setting]) -> Setting:
    """Kernel and mean of the highest evidence, from the most probable of several starts.

    Parameters
    ----------
    factors : sequence of Factor
        Of sites, in an order that does not depend on that of arrival.
    starts : sequence of (Kernel, float)
        Kernels of one name.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> Z = rng.uniform(-5, 5, (60, 1))
    >>> seen = Factor(Z, 10 * np.eye(60), 10 * np.sin(Z[:, 0]) + rng.normal(size=60))     # noise of deviation 0.1
    >>> kernel, mean = learned([seen], [(Kernel(np.array([9.0]), 1.0), 0.0)])
    >>> bool(1 < kernel.lengthscales[0] < 3)
    True
    """
    factors = factors[:: -(-sum(len(f.inputs) for f in factors) // MOST_POINTS)]
    grouped = list(groups(factors))
    return climb(grouped, max(starts, key=lambda start: sum(evidence(group, *start)[0] for group in grouped)))


def groups(factors: Sequence[Factor]) -> Iterator[list[Factor]]:
    """Neighbours in the sequence, with at most JOINT_POINTS together, or one factor that has more."""
    group: list[Factor] = []
    for factor in factors:
        if group and sum(len(f.inputs) for f in [*group, factor]) > JOINT_POINTS:
            yield group
            group = []
        group.append(factor)
    yield group


def evidence(factors: Sequence[Factor], kernel: Kernel, mean: float) -> tuple[float, Array]:
    """The joint log density of factors, and its slopes by log lengthscales, log outputscale and mean.

    With Z, R and y of all factors, R block-diagonal, G = R k(Z, Z) R^T + 1 and e = y - mean R 1,

        F = -1/2 log|G| - 1/2 e^T G^-1 e.
    """
    from scipy.linalg import cho_factor, cho_solve

    from modelweld.inputs.stack import offsets_of

    points, heard = (offsets_of([len(f[k]) for f in factors]) for k in (0, 2))
    own = [(f.R, slice(*points[j : j + 2]), slice(*heard[j : j + 2])) for j, f in enumerate(factors)]
    Z, ones = np.concatenate([f.inputs for f in factors]), np.concatenate([f.R.sum(axis=1) for f in factors])
    e = np.concatenate([f.y for f in factors]) - mean * ones
    K, slopes = kernel.with_slopes(Z, Z)
    crossed = np.concatenate([R @ K[at] for R, at, _ in own])
    G = np.concatenate([crossed[:, at] @ R.T for R, at, _ in own], axis=1)
    G.flat[:: len(G) + 1] += 1
    factored = cho_factor(G, lower=True)
    a = cho_solve(factored, e)
    F = -np.log(np.diag(factored[0])).sum() - 0.5 * (e @ a)

    by_G = 0.5 * (np.outer(a, a) - cho_solve(factored, np.eye(len(e))))
    by_crossed = np.concatenate([by_G[:, at] @ R for R, _, at in own], axis=1)
    by_K = np.concatenate([R.T @ by_crossed[at] for R, _, at in own])
    return float(F), np.append(slopes(by_K), ones @ a)


def climb(grouped: Sequence[Sequence[Factor]], start: Setting) -> Setting:
    """The highest evidence near a start; the mean is counted in deviations of the function, so that its steps fit."""
    from scipy.optimize import minimize

    kernel, mean = start
    spread = np.concatenate([f.inputs for group in grouped for f in group]).std(axis=0)
    wide = np.where(spread > 0, spread, kernel.lengthscales)
    deviation, reach = float(np.sqrt(kernel.outputscale)), float(np.log(WIDEST))
    first = np.log(np.clip(kernel.lengthscales, wide / WIDEST, wide * WIDEST))
    about = float(np.log(kernel.outputscale))
    limits = [(x - reach, x + reach) for x in np.log(wide)]
    limits += [(about - 2 * reach, about + 2 * reach), (-np.inf, np.inf)]

    def at(x: Array) -> Setting:
        return Kernel(np.exp(x[:-2]), float(np.exp(x[-2])), kernel.name), float(x[-1] * deviation)

    def loss(x: Array) -> tuple[float, Array]:
        found = [evidence(group, *at(x)) for group in grouped]
        slopes = np.sum([slopes for _, slopes in found], axis=0)
        slopes[-1] *= deviation
        return -sum(F for F, _ in found), -slopes

    x = np.array([*first, about, mean / deviation])
    options = {"ftol": SMALLEST_STEP}
    found = minimize(loss, x, jac=True, method="L-BFGS-B", bounds=limits, options=options)
    return at(found.x)
