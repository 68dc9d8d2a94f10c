"""What a compiled chain believes of hyperparameters, and how probable values and matching are under them.

With total the variance of all values in a dimension,

    log(noise / total) ~ N(share, .5^2) in each dimension, share ~ N(log .05, 1)        dimensions learn from each other
    log(spread / total) ~ N(0, .7^2),   mean ~ N(mean of all values, total)
    log(a / b) ~ N(0, 1),   log(a + b) ~ N(log 30, 1.5^2)                             shape of `fit.priors.spectrum`
    log(number of atoms the prior expects) ~ N(log(mean size of groups), 2^2)
    share of fragments ~ Beta(.2, 49.8), where the fit may have fragments

and, as factors, what the family believes of noise (`families.real_values`). Given those, numbers of atoms by
support are Poisson (`fit.priors.spectrum`).
"""

from __future__ import annotations

from math import lgamma
from typing import NamedTuple

import numpy as np

from modelweld.compilers import exact
from modelweld.core.values import Array
from modelweld.fit.priors.spectrum import BOUNDS
from modelweld.results.posterior.compiled_state import JUNK, LOG_A, LOG_ATOMS, LOG_B

SHARE_MEAN, SHARE_DEVIATION = np.log(0.05), 1.0
"""Noise is a twentieth of the variance, give or take a factor of three: hardly ever more than half of it. Three sites
in two features say little of it; with a factor of five their matches were right in .73 where .65 was stated."""

NOISE_DEVIATION = 0.5
"""Of log(noise / total) about its mean over the dimensions: within a factor of e, mostly."""

SPREAD_DEVIATION = 0.7
"""Of log(spread / total): most of the variance is that of the atoms."""

PIECES = (0.2, 49.8)
"""Beta law of the share of fragments, where the fit has any: as good as none, most probably, or else anything. With a
mean of a twentieth, one of twenty values of three sites was taken for a fragment where none was, and K was too low by
one."""

HELD, ALIKE = (0.0, 1.0), (float(np.log(30.0)), 1.5)
"""Mean and deviation of the log odds with which a site holds an atom, and of log(a + b), how alike atoms are in that.
The fit's prior, which learns from its best matching, expects many atoms that one site holds; drawn, where values hardly
say which matches are right, it adds two atoms of fifteen that each of eight sites holds with probability one half."""

ATOMS_DEVIATION = 2.0
"""Of log(number of atoms) about the log of the mean size of groups."""


class Beliefs(NamedTuple):
    """What the priors above need, and what is to be drawn at all."""

    total: Array  # (H,)
    floor: Array  # (H,): noise is at least so much
    squares: Array  # (H,): and what the family believes of it
    degrees: float
    log_size: float  # of the mean group
    background_mean: float
    draws_values: bool  # whether mean, noise and spread move
    draws_prior: bool  # whether the prior's parameters move


@exact
def log_likelihood(values, state, d, noise, at_p, at_s):
    """Log evidence of dimension d at this noise, less log(2 pi) terms; at_p, at_s (N,) are overwritten."""
    N, spread, mean = len(values.y), state.spread[d if len(state.spread) > 1 else 0], state.mean[d]
    for c in range(state.held[0]):
        at_p[state.slots[c]] = 0.0
        at_s[state.slots[c]] = 0.0
    total, product = 0.0, 1.0
    for i in range(N):
        if values.seen[i, d] > 0:
            wide = values.inverse[i, d] + values.variance[i, d] / noise
            product *= wide
            if product > 1e200 or product < 1e-200:
                total -= np.log(product)
                product = 1.0
            p, off = 1 / (noise * wide), values.y[i, d] - mean
            at_p[state.labels[i]] += p
            at_s[state.labels[i]] += p * off
            total -= p * off * off
    total -= np.log(product) + np.log(noise) * values.seen[:, d].sum()
    return 0.5 * (total + atoms_part(state, at_p, at_s, spread))


@exact
def atoms_part(state, at_p, at_s, spread):
    """Twice what atoms with sums at_p, at_s (N,), measured from the mean, add to the log evidence of a dimension."""
    total, product = 0.0, 1.0
    for c in range(state.held[0]):
        k = state.slots[c]
        wide = 1 + spread * at_p[k]
        total += spread * at_s[k] * at_s[k] / wide
        product *= wide
        if product > 1e200:
            total -= np.log(product)
            product = 1.0
    return total - np.log(product)


@exact
def believed_noise(state, beliefs, h, noise, share):
    """Log prior density of log noise, up to a constant."""
    if noise < beliefs.floor[h]:
        return -np.inf
    off = (np.log(noise / beliefs.total[h]) - share) / NOISE_DEVIATION
    each = len(state.mean) // len(state.noise)
    return -0.5 * off * off - 0.5 * each * (beliefs.squares[h] / noise + beliefs.degrees * np.log(noise))


@exact
def believed_spread(ratio):
    """Log prior density of log(spread / total), up to a constant."""
    off = np.log(ratio) / SPREAD_DEVIATION
    return -0.5 * off * off


@exact
def span(state, h):
    """The dimensions that noise h is of."""
    return (h, h + 1) if len(state.noise) > 1 else (0, len(state.mean))


@exact
def likelihood_of(values, state, h, noise, at_p, at_s):
    """Log evidence of all dimensions that share noise h."""
    a, b = span(state, h)
    total = 0.0
    for d in range(a, b):
        total += log_likelihood(values, state, d, noise, at_p, at_s)
    return total


@exact
def log_beta(a, b):
    """Logarithm of the beta function."""
    return lgamma(a) + lgamma(b) - lgamma(a + b)


@exact
def fill_rates(rest, R):
    """R(m) of `fit.priors.spectrum` at these parameters; the number of atoms that are expected replaces its c."""
    J = len(R) - 2
    a, b = np.exp(rest[LOG_A]), np.exp(rest[LOG_B])
    whole, none = log_beta(a, b), log_beta(a, b + J)
    log_c = rest[LOG_ATOMS] - whole - np.log(-np.expm1(none - whole))
    for m in range(1, J + 1):
        R[m] = log_c + log_beta(a + m, b + J - m)
    if rest[JUNK] > 0:
        R[1] = np.logaddexp(R[1], np.log(rest[JUNK]))
    R[J + 1] = -np.inf


@exact
def log_belief(rest, log_size, background_mean, J):
    """Log density of the prior's parameters, in their logarithms, up to a constant, less what it says of J groups."""
    if not (BOUNDS[0][0] <= rest[LOG_A] <= BOUNDS[0][1] and BOUNDS[1][0] <= rest[LOG_B] <= BOUNDS[1][1]):
        return -np.inf
    total = -np.exp(rest[LOG_ATOMS])
    for off in (  # (log a, log b) -> (log(a / b), log(a + b)) keeps volumes
        (rest[LOG_A] - rest[LOG_B] - HELD[0]) / HELD[1],
        (np.logaddexp(rest[LOG_A], rest[LOG_B]) - ALIKE[0]) / ALIKE[1],
        (rest[LOG_ATOMS] - log_size) / ATOMS_DEVIATION,
    ):
        total -= 0.5 * off * off
    if rest[JUNK] > 0:
        total += np.log(rest[JUNK]) - rest[JUNK] * (J + 1 / background_mean)
    return total


@exact
def log_prior(counts, rest, log_size, background_mean, R):
    """Log probability of supports and of the prior's parameters; `R`, zero at zero, is filled."""
    total = log_belief(rest, log_size, background_mean, len(R) - 2)
    if total > -np.inf:
        fill_rates(rest, R)
        for k in range(len(counts)):
            total += R[counts[k]]
    return total
