"""Integrals over the value of an atom, by draws round the modes of its posterior: functions that jax compiles.

The equations are those of `modelweld.families.own.laplace`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from modelweld.families.own.jax_functions import (
    Compiled,
    LogDensity,
    LogPrior,
    TracedHyper,
    bounded,
    compiled,
    load_jax,
    untransformed,
)
from modelweld.inputs.local_model import Array

if TYPE_CHECKING:
    from jax import Array as Traced

TAIL = 5.0
"""Degrees of freedom of the draws: tails heavier than those of any posterior with a normal prior, and still with a
fourth moment, so that a normal posterior is sampled at 9/10 of its own efficiency in few dimensions."""

PARTS = 0.5, 0.25, 0.25
"""Shares of the draws about the first mode, about the second, and about the first but as wide as the prior."""

NEWTON_STEPS = 60
"""More than any mode took; a step that does not rise ends the search."""

HALVINGS = 12
"""Lengths tried along a Newton step: from the whole to 1/2048 of it."""

FLATTEST = 1e-9
"""Smallest curvature relative to the largest: a direction that flat is taken to be as wide as this allows."""


class Integral(NamedTuple):
    """Log evidence of an atom, its standard error, effective share of the draws, mode; nodes and their log weights."""

    log_evidence: Array
    error: Array
    effect: Array
    mode: Array
    nodes: Array
    log_weight: Array


class Peak(NamedTuple):
    """A place (d,) to draw about, a root (d, d) of the curvature there, and the share of the draws."""

    mode: Traced
    root: Traced
    share: float


@dataclass(frozen=True)
class Posterior:
    """Of an atom's value theta, given values (M, D), how often each is there (M,), and hyperparameters h.

    Up to a constant: the density of values and theta together. Methods are for one atom, inside what jax compiles.
    """

    log_density: LogDensity
    log_prior: LogPrior

    def joint(self, theta: Traced, values: Traced, counts: Traced, h: TracedHyper) -> Traced:
        """Its logarithm at theta (d,)."""
        logs = bounded(load_jax().vmap(self.log_density, in_axes=(0, None, None))(values, theta, h))
        return (counts * logs).sum() + bounded(self.log_prior(theta, h))

    def heights(self, nodes: Traced, values: Traced, counts: Traced, h: TracedHyper) -> Traced:
        """Its logarithm at nodes (S, d)."""
        return load_jax().vmap(self.joint, in_axes=(0, None, None, None))(nodes, values, counts, h)

    def curved(self, theta: Traced, values: Traced, counts: Traced, h: TracedHyper) -> tuple[Traced, Traced]:
        """Eigenvectors and sizes of its curvature, made positive."""
        jax = load_jax()
        jnp = jax.numpy
        curvature, vectors = jnp.linalg.eigh(-jax.hessian(self.joint)(theta, values, counts, h))
        sizes = jnp.abs(curvature)
        return vectors, jnp.maximum(sizes, FLATTEST * sizes.max() + jnp.finfo(sizes.dtype).tiny)

    def root_at(self, theta: Traced, values: Traced, counts: Traced, h: TracedHyper) -> Traced:
        """The triangular root of that curvature."""
        vectors, sizes = self.curved(theta, values, counts, h)
        return load_jax().numpy.linalg.cholesky((vectors * sizes) @ vectors.T)

    def mode_from(self, theta: Traced, values: Traced, counts: Traced, h: TracedHyper) -> Traced:
        """Uphill by Newton steps, shortened until they rise."""
        jax = load_jax()
        jnp = jax.numpy
        data = (values, counts, h)
        lengths = jnp.exp2(-jnp.arange(HALVINGS, dtype=float))

        def going_on(state: tuple[Traced, ...]) -> Traced:
            _, _, rise, step = state
            return (rise > 0) & (step < NEWTON_STEPS)

        def onwards(state: tuple[Traced, ...]) -> tuple[Traced, ...]:
            theta, value, _, step = state
            vectors, sizes = self.curved(theta, *data)
            direction = vectors @ ((vectors.T @ jax.grad(self.joint)(theta, *data)) / sizes)
            tried = theta + lengths[:, None] * direction
            found = self.heights(tried, *data)
            best = jnp.nanargmax(jnp.where(jnp.isnan(found), -jnp.inf, found))
            risen = found[best] > value
            return (
                jnp.where(risen, tried[best], theta),
                jnp.where(risen, found[best], value),
                jnp.where(risen, found[best] - value, 0.0),
                step + 1,
            )

        return jax.lax.while_loop(going_on, onwards, (theta, self.joint(theta, *data), jnp.inf, 0))[0]

    def integral(
        self,
        mode: Traced,
        root: Traced,
        other: Traced,
        other_root: Traced,
        wide: Traced,
        draws: Traced,
        values: Traced,
        counts: Traced,
        h: TracedHyper,
    ) -> Integral:
        """From draws (S, d) about two modes, and about the first as wide as the prior."""
        jax = load_jax()
        jnp, d = jax.numpy, draws.shape[1]
        peaks = [Peak(*peak) for peak in zip((mode, other, mode), (root, other_root, wide), PARTS, strict=True)]
        nodes, proposal = proposed(peaks, draws)
        at_all = self.heights(jnp.concatenate([mode[None], nodes]), values, counts, h)
        top, log_joint = at_all[0], at_all[1:]
        off = (nodes - mode) @ root
        log_normal = top - 0.5 * (off * off).sum(-1)
        log_integral = top + d / 2 * jnp.log(2 * jnp.pi) - jnp.log(jnp.diag(root)).sum()
        log_weight = log_integral - jax.nn.logsumexp(log_normal - proposal) - proposal
        share, expected = jax.nn.softmax(log_joint - proposal), jax.nn.softmax(log_normal - proposal)
        return Integral(
            log_evidence=jax.nn.logsumexp(log_joint + log_weight),
            error=jnp.sqrt(((share - expected) ** 2).sum()),
            effect=1 / (share**2).sum() / len(draws),
            mode=mode,
            nodes=nodes,
            log_weight=log_weight,
        )


def student(theta: Traced, mode: Traced, root: Traced) -> Traced:
    """Log density of draws about a mode, up to a constant, where root root' is the curvature."""
    jnp, d = load_jax().numpy, len(mode)
    off = (theta - mode) @ root
    return jnp.log(jnp.diag(root)).sum() - (TAIL + d) / 2 * jnp.log1p((off * off).sum(-1) / TAIL)


def proposed(peaks: list[Peak], draws: Traced) -> tuple[Traced, Traced]:
    """Nodes (S, d) about the peaks, each with its share of the draws, and the log density of such nodes (S,)."""
    jax = load_jax()
    jnp, d = jax.numpy, draws.shape[1]
    constant = jax.scipy.special.gammaln((TAIL + d) / 2) - jax.scipy.special.gammaln(TAIL / 2)
    constant = constant - d / 2 * jnp.log(TAIL * jnp.pi)
    ends = (np.cumsum([0.0, *(peak.share for peak in peaks)]) * len(draws)).astype(int)
    nodes = jnp.concatenate([
        peak.mode + jax.scipy.linalg.solve_triangular(peak.root.T, draws[a:b].T).T
        for peak, a, b in zip(peaks, ends, ends[1:], strict=False)
    ])  # fmt: skip
    logs = jnp.stack([jnp.log(peak.share) + student(nodes, peak.mode, peak.root) for peak in peaks])
    return nodes, jax.nn.logsumexp(logs, axis=0) + constant


class Functions(NamedTuple):
    """Steps of the integrals of a batch of atoms, compiled one by one because some are needed twice."""

    heights: Compiled
    mode: Compiled
    root: Compiled
    excess: Compiled
    integral: Compiled
    ascent: Compiled


@lru_cache(maxsize=32)
def functions_of(log_density: LogDensity, log_prior: LogPrior, positive: tuple[str, ...]) -> Functions:
    """Compiled once for all families that share these functions, whatever their hyperparameters."""
    jax = load_jax()
    jnp = jax.numpy
    posterior = Posterior(log_density, log_prior)

    def evidence(
        free: TracedHyper,
        units: TracedHyper,
        others: TracedHyper,
        values: Traced,
        counts: Traced,
        nodes: Traced,
        log_weight: Traced,
    ) -> Traced:
        """Sum over a batch of log evidences with nodes that are held."""
        h = untransformed(free, units, others, positive)
        at_all = jax.vmap(posterior.heights, in_axes=each)
        logs = jax.nn.logsumexp(at_all(nodes, values, counts, h) + log_weight, axis=1)
        return jnp.where(counts.sum(1) > 0, logs, 0.0).sum()

    each = (0, 0, 0, None)
    return Functions(
        heights=compiled(jax.vmap(posterior.heights, in_axes=each)),
        mode=compiled(jax.vmap(posterior.mode_from, in_axes=each)),
        root=compiled(jax.vmap(posterior.root_at, in_axes=each)),
        excess=compiled(jax.vmap(lambda height, begin, mode, root: height - student(begin, mode, root))),
        integral=compiled(jax.vmap(posterior.integral, in_axes=(0, 0, 0, 0, 0, None, *each[1:]))),
        ascent=compiled(jax.value_and_grad(evidence)),
    )


@lru_cache(maxsize=8)
def base_draws(number: int, d: int) -> Array:
    """Points (number, d) of a Student distribution, evenly spread: the same in every run, all atoms share them."""
    from scipy.special import gammaincinv, ndtri
    from scipy.stats.qmc import Sobol

    shift = np.random.default_rng(0).random(d + 1)
    u = (Sobol(d + 1, scramble=False).random(number) + shift) % 1.0
    u = np.clip(u, np.finfo(float).eps, 1 - np.finfo(float).eps)
    chi2 = 2 * gammaincinv(TAIL / 2, u[:, d])
    return np.asarray(ndtri(u[:, :d]) / np.sqrt(chi2 / TAIL)[:, None])
