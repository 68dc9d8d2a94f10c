"""Moves of what is drawn with a matching of Gaussian values: noise, spread and mean, and which values scatter more.

With total the variance of all values in a dimension, what is expected is

    log(noise / total) ~ N(l, .5^2), l ~ N(log .05, .7^2);   log(spread / total) ~ N(l', .4^2), l' ~ N(0, .6^2);
    mean ~ N(origin, total)

and, as a factor, the family's own prior of noise (`families.math.start.NoisePrior`). The levels l and l' are common to
all dimensions: with a prior for each by itself, ten dimensions were ten witnesses that noise is a twentieth, whatever
three sites said. Values have heavy tails: the variance of each about its atom, noise and squared standard error alike,
has a factor that is one or, with probability `wide` ~ Beta(1, 19), any of `SCALES` above. Fits that merged or swapped
components are such values, which no standard error covers.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from modelweld.core.board import Board
from modelweld.core.family import sum_by_atom
from modelweld.core.gaussian import parts
from modelweld.core.moments import Hyperparameters
from modelweld.core.values import Array, total_variance
from modelweld.families.real_values import Gaussian
from modelweld.results.posterior.drawn_fusions import name_of_draw
from modelweld.results.posterior.sampler import ACCEPTED, Chain, Move

LEVEL, LEVEL_DEVIATION, WITHIN = np.array([np.log(0.05), 0.0]), np.array([0.7, 0.6]), np.array([0.5, 0.4])
"""Of the levels of log(noise / total) and log(spread / total), and of dimensions about them. Noise is a twentieth of
the variance, give or take a factor of two; with a factor of three (deviation 1), sites of which a quarter is shared in
three features were drawn with four times their noise in 4 of 12 sets. Most of the variance is that of the atoms."""

SCALES = np.array([1.0, 4.0, 16.0, 64.0])
"""Factors of the variance of a value: up to eight deviations."""

WIDE = (1.0, 19.0)
"""Beta law of the share of values with another factor than one: a twentieth is expected. Without any, 90 % intervals of
K held in .71 where noise has the t law of four degrees, as against 1.0; with half as many in .88 (24 sets)."""

NOISE, SPREAD = range(2)
"""Where they stand."""

FIRST_STEP = 0.4
"""Deviation of the first steps in logarithms."""


class GaussianMove(Move):
    """Hyperparameters of one array of Gaussian values with independent dimensions.

    Attributes
    ----------
    at : array (2, H)
        Logarithms of noise and spread over the variance of all values; H is the number of dimensions, or one.
    level : array (2,)
        What they are about.
    mean : array (D,)
        Measured from the family's origin.
    scale : array (N,)
        One of `SCALES` for each value.
    wide : float
        Share of values whose factor is not one.
    """

    def __init__(self, board: Board, array: int) -> None:
        family, stack = board.families[array], board.stacks[array].blind()
        assert isinstance(family, Gaussian)
        self.array, self.arrays, self.family = array, len(board.families), family
        self.total = total_variance(stack, family.scalar)[1]
        self.y, self.seen = stack.values - np.asarray(family.origin), stack.seen.astype(np.float64)
        self.inverse = np.ones_like(self.y) if stack.weight is None else 1.0 / np.where(stack.seen, stack.weight, 1.0)
        self.error = None if stack.variance is None else family.inflation * stack.variance
        mean, noise, spread = family.hyperparameters
        self.mean, self.at = mean + 0 * self.y[0], np.log([noise / self.total, spread / self.total])
        self.level, self.scale, self.wide = self.at.mean(1), np.ones(len(self.y)), WIDE[0] / sum(WIDE)
        self.log_steps = np.full((2, 2, 1), np.log(FIRST_STEP)) + np.zeros_like(self.at)

    def step(self, chain: Chain, rate: float) -> None:
        """Noise and spread, dimensions each by itself and then together with their level; mean; factors."""
        here = self._look(chain, self.at)
        for which in (NOISE, SPREAD):
            for together in (False, True):
                here = self._metropolis(chain, which, together, here, rate)
            self._draw_level(chain.rng, which)
        _, W, S, *_ = parts(self._sums(chain, self.at))
        noise, spread = np.exp(self.at) * self.total
        shrink = noise + spread * W  # an atom's values tell its distance from the mean with precision W / shrink
        precision = 1 / self.total + (W / shrink).sum(0)
        pull = ((S - self.mean * W) / shrink).sum(0) - self.mean / self.total
        self.mean = self.mean + pull / precision + chain.rng.standard_normal(len(self.mean)) / np.sqrt(precision)
        self._draw_factors(chain)
        self.family = self.family.with_hyperparameters(Hyperparameters(self.mean, *(np.exp(self.at) * self.total)))
        chain.refit(self.array, self.family, self._rows(np.exp(self.at[NOISE]) * self.total))

    def _rows(self, noise: Array) -> Array:
        """As `core.gaussian` has them, at this noise and at the values' factors."""
        inverse = self.scale[:, None] * (self.inverse if self.error is None else self.inverse + self.error / noise)
        w = self.seen / inverse
        return np.concatenate([self.seen, w, w * self.y, w * self.y * self.y, -self.seen * np.log(inverse)], axis=1)

    def _sums(self, chain: Chain, at: Array) -> Array:
        """Of atoms; with standard errors they depend on the noise."""
        if self.error is None:
            return chain.sums[self.array]
        return sum_by_atom(self._rows(np.exp(at[NOISE]) * self.total), chain.labels, len(chain.counts))

    def _look(self, chain: Chain, at: Array) -> Array:
        """Log density (H,) of the values, and of noise and spread by the family's own prior."""
        (n, W, S, Q, G), m, (noise, spread) = parts(self._sums(chain, at)), self.mean, np.exp(at) * self.total
        shrink, off = 1 + spread / noise * W, S - m * W
        squares = (Q - m * (S + off) - spread / noise * off * off / shrink) / noise
        each = 0.5 * (G - n * np.log(2 * np.pi * noise) - np.log(shrink) - squares).sum(0)
        each = each if len(noise) > 1 else each.sum(keepdims=True)
        own = self.family.noise_prior.log_density(m, noise, spread)
        return np.where(noise < self.family.floor, -np.inf, each + own)

    def _metropolis(self, chain: Chain, which: int, together: bool, here: Array, rate: float) -> Array:
        """Steps in logarithms of noise or spread; what `_look` says after them."""
        steps, H = self.log_steps[which, int(together)], here.size
        by = np.zeros_like(self.at)
        by[which] = np.exp(steps) * chain.rng.standard_normal(1 if together else H)
        there = self._look(chain, self.at + by)
        x, level = self.at[which], self.level[which]
        if together:  # dimensions stay where they are about their level
            off = (level - LEVEL[which] + np.array([0.0, by[which, 0]])) / LEVEL_DEVIATION[which]
            rise = np.full(H, (there - here).sum() + 0.5 * (off[0] ** 2 - off[1] ** 2))
            accepted = np.full(H, np.log(chain.rng.random()) < rise[0])
            self.level[which] += by[which, 0] * accepted[0]
        else:
            rise = there - here + 0.5 * (np.square(x - level) - np.square(x + by[which] - level)) / WITHIN[which] ** 2
            accepted = np.log(chain.rng.random(H)) < rise
        steps += rate * (accepted - ACCEPTED)
        self.at = self.at + by * accepted
        return np.where(accepted, there, here)

    def _draw_level(self, rng: np.random.Generator, which: int) -> None:
        """From its conditional given the dimensions."""
        precision = len(self.total) / WITHIN[which] ** 2 + LEVEL_DEVIATION[which] ** -2
        pull = self.at[which].sum() / WITHIN[which] ** 2 + LEVEL[which] / LEVEL_DEVIATION[which] ** 2
        self.level[which] = pull / precision + rng.standard_normal() / np.sqrt(precision)

    def _draw_factors(self, chain: Chain) -> None:
        """Atoms given their values, the factor of each value given its atom, the share of factors that are not one."""
        (_, W, S, *_), (noise, spread) = parts(self._sums(chain, self.at)), np.exp(self.at) * self.total
        q = 1 / spread + W / noise
        atoms = (self.mean / spread + S / noise) / q + chain.rng.standard_normal(S.shape) / np.sqrt(q)
        variance = noise * self.inverse + (0.0 if self.error is None else self.error)
        squares = (self.seen * np.square(self.y - atoms[chain.labels]) / variance).sum(1)
        shares = np.append(1 - self.wide, np.full(len(SCALES) - 1, self.wide / (len(SCALES) - 1)))
        scores = np.log(shares) - 0.5 * (self.seen.sum(1)[:, None] * np.log(SCALES) + squares[:, None] / SCALES)
        below = np.cumsum(np.exp(scores - scores.max(1, keepdims=True)), axis=1)
        self.scale = SCALES[(chain.rng.random((len(below), 1)) * below[:, -1:] > below).sum(1)]
        n = np.count_nonzero(self.scale > 1)
        self.wide = chain.rng.beta(WIDE[0] + n, WIDE[1] + len(self.scale) - n)

    def log_prior(self, chain: Chain) -> float:
        """Of noise, spread and their levels, up to a constant."""
        off = np.square((self.level - LEVEL) / LEVEL_DEVIATION).sum()
        return float(-0.5 * (off + np.square((self.at - self.level[:, None]) / WITHIN[:, None]).sum()))

    def drawn(self, chain: Chain) -> dict[str, ArrayLike]:
        """By name."""
        own = {name: getattr(self.family, name) for name in ("mean", "noise", "spread")} | {"wide": self.wide}
        return {name_of_draw(name, self.array, self.arrays): value for name, value in own.items()}
