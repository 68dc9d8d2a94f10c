"""Metropolis moves of the parameters of the prior over matchings, compiled, and their hyperprior; random numbers.

    log(a / b) ~ N(0, 1),   log(a + b) ~ N(log 30, 1.5^2)                             shape of `fit.priors.spectrum`
    log(number of atoms the prior expects) ~ N(log(mean size of groups), 2^2)
    log(own) ~ N(log(.03 mean size of groups), 2^2)

Given those, numbers of atoms by support are Poisson (`fit.priors.spectrum`); besides, every group has Poisson(own)
atoms that no other has. Frequencies of one Beta law cannot say that some atoms are common and the others their site's
own: without `own`, where half of the values are, twice as many atoms were said to be shared as are.
"""

from __future__ import annotations

from math import lgamma
from typing import NamedTuple

import numpy as np

from modelweld.compilers import exact
from modelweld.core.beta_bernoulli import BetaBernoulli
from modelweld.core.board import Board
from modelweld.core.prior import Prior
from modelweld.core.values import Array
from modelweld.fit.priors.spectrum import BOUNDS, Spectrum

HELD, ALIKE = (0.0, 1.0), (float(np.log(30.0)), 1.5)
"""Mean and deviation of the log odds with which a site holds an atom, and of log(a + b), how alike atoms are in that.
The fit's prior, which learns from its best matching, expects many atoms that one site holds; drawn, where values hardly
say which matches are right, it adds two atoms of fifteen that each of eight sites holds with probability one half."""

ATOMS_DEVIATION = 2.0
"""Of log(number of atoms) about the log of the mean size of groups."""

OWN = (-3.5, 2.0)
"""Mean and deviation of log(own / mean size of groups): a thirtieth of a site's values, give or take a factor of seven,
so that neither none nor half of them come as a surprise. With -3 three sites that share freely have one of eight shared
atoms too few, with -4 five sites that share a quarter have three of two too many."""

SHAPE_STEP, ATOMS_STEP = 1.0, 0.5
"""Of log a, log b and log(own), and of log(number of atoms): about the posterior deviations with ten sites."""

LOG_A, LOG_B, LOG_ATOMS, LOG_OWN = range(4)
"""Where the prior's parameters stand: log a, log b, log of the number of atoms expected, log(own)."""


def is_drawn(prior: Prior) -> bool:
    """Whether the prior's own parameters are drawn: where they are learned."""
    return prior.learning if isinstance(prior, BetaBernoulli) else type(prior) is Spectrum


class Parameters(NamedTuple):
    """The prior's parameters, and what their hyperprior needs."""

    at: Array  # (4,)
    J: int
    log_size: float  # of the mean group
    are_drawn: bool


def parameters_of(board: Board) -> Parameters:
    """Where chains of the prior's parameters begin."""
    prior, size = board.prior, float(board.sizes[board.sizes > 0].mean())
    shape = np.log([prior.a, prior.b]) if isinstance(prior, Spectrum) else np.zeros(2)
    at = np.array([*np.clip(shape, *BOUNDS), np.log(max(len(board.counts), 1)), np.log(size) + OWN[0]])
    return Parameters(at, len(board.sizes), float(np.log(size)), is_drawn(prior))


def name_parameters(at: Array) -> dict[str, Array]:
    """The prior's parameters (4,) by name."""
    names = {"a": LOG_A, "b": LOG_B, "expected_atoms": LOG_ATOMS, "own": LOG_OWN}
    return {name: np.exp(at[i]) for name, i in names.items()}


@exact
def uniform(random):
    """A number between 0 and 1: splitmix64 (Steele, Lea, Flood 2014)."""
    random[0] += np.uint64(0x9E3779B97F4A7C15)
    z = random[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((z ^ (z >> np.uint64(31))) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@exact
def below(random, n):
    """A whole number below n."""
    return min(int(uniform(random) * n), n - 1)


@exact
def normal(random):
    """A standard normal number (Box and Muller)."""
    return np.sqrt(-2 * np.log(1.0 - uniform(random))) * np.cos(2 * np.pi * uniform(random))


@exact
def accepts(random, log_ratio):
    """The rule of Metropolis and Hastings."""
    return log_ratio >= 0 or np.log(1.0 - uniform(random)) < log_ratio


@exact
def log_beta(a, b):
    """Logarithm of the beta function."""
    return lgamma(a) + lgamma(b) - lgamma(a + b)


@exact
def fill_rates(at, R):
    """R(m) of `fit.priors.spectrum` at these parameters, with `own`; the number of atoms expected replaces its c."""
    J = len(R) - 1
    a, b = np.exp(at[LOG_A]), np.exp(at[LOG_B])
    whole, none = log_beta(a, b), log_beta(a, b + J)
    log_c = at[LOG_ATOMS] - whole - np.log(-np.expm1(none - whole))
    for m in range(1, J + 1):
        R[m] = log_c + log_beta(a + m, b + J - m)
    R[1] = np.logaddexp(R[1], at[LOG_OWN])


@exact
def log_hyperprior(of):
    """Log density of the prior's parameters, in their logarithms, up to a constant, less the atoms it expects."""
    at = of.at
    if not (BOUNDS[0] <= min(at[LOG_A], at[LOG_B]) and max(at[LOG_A], at[LOG_B]) <= BOUNDS[1]):
        return -np.inf
    total = -np.exp(at[LOG_ATOMS]) - of.J * np.exp(at[LOG_OWN])
    for off in (  # (log a, log b) -> (log(a / b), log(a + b)) keeps volumes
        (at[LOG_A] - at[LOG_B] - HELD[0]) / HELD[1],
        (np.logaddexp(at[LOG_A], at[LOG_B]) - ALIKE[0]) / ALIKE[1],
        (at[LOG_ATOMS] - of.log_size) / ATOMS_DEVIATION,
        (at[LOG_OWN] - of.log_size - OWN[0]) / OWN[1],
    ):
        total -= 0.5 * off * off
    return total


@exact
def log_prior(counts, of, R):
    """Log probability of supports and of the prior's parameters; `R`, zero at zero, is filled."""
    total = log_hyperprior(of)
    if total > -np.inf:
        fill_rates(of.at, R)
        for k in range(len(counts)):
            total += R[counts[k]]
    return total


@exact
def move_prior(counts, of, R, random):
    """Step in log a, log b, both, log(number of atoms) and log(own); `R` follows."""
    at = of.at
    here, old = log_prior(counts, of, R), at.copy()
    for move in range(5):
        by = normal(random)
        if move in (0, 2):
            at[LOG_A] += SHAPE_STEP * by
        if move in (1, 2):
            at[LOG_B] += SHAPE_STEP * by
        if move == 3:
            at[LOG_ATOMS] += ATOMS_STEP * by
        if move == 4:
            at[LOG_OWN] += SHAPE_STEP * by
        there = log_prior(counts, of, R)
        kept = accepts(random, there - here)
        here = there if kept else here
        for i in range(len(at)):
            old[i] = at[i] if kept else old[i]
            at[i] = old[i]
    fill_rates(at, R)
