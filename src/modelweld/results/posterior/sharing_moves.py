"""Moves of what is expected of the matching: how many atoms there are, how many sites hold each, how many fragments.

    log(a / b) ~ N(0, 1),   log(a + b) ~ N(log 30, 1.5^2)                             shape of `fit.priors.spectrum`
    log(number of atoms the prior expects) ~ N(log(mean size of groups), 2^2)
    log(own) ~ N(log(.03 mean size of groups), 2^2)

Given those, numbers of atoms by support are Poisson (`fit.priors.spectrum`); besides, every group has Poisson(own)
atoms that no other has. Frequencies of one Beta law cannot say that some atoms are common and the others their site's
own: without `own`, where half of the values are, twice as many atoms were said to be shared as are.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from modelweld.core.beta_bernoulli import BetaBernoulli
from modelweld.core.board import Board
from modelweld.core.prior import PRIOR_EXTRA, PRIOR_HELD, Fragments, Prior
from modelweld.core.values import Array, Index
from modelweld.fit.priors.spectrum import BOUNDS, Spectrum
from modelweld.results.posterior.sampler import Chain, Move

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

STEPS = np.array([[1.0, 0, 0, 0], [0, 1.0, 0, 0], [1.0, 1.0, 0, 0], [0, 0, 0.5, 0], [0, 0, 0, 1.0]])
"""Directions of the five moves, as long as the posterior deviations with ten sites."""

NAMES = ("a", "b", "expected_atoms", "own")


def is_drawn(prior: Prior) -> bool:
    """Whether the prior's own parameters are drawn: where they are learned."""
    return prior.learning if isinstance(prior, BetaBernoulli) else type(prior) is Spectrum


def log_rates(parameters: Sequence[float] | Array, J: int, of: int) -> Array:
    """R(1), ..., R(J) of `fit.priors.spectrum` that expects so many atoms in `of` groups, with `own`."""
    a, b, expected, own = parameters
    R = Spectrum.expecting(a, b, expected, of).log_rate(np.arange(1.0, J + 1), J)
    R[0] = np.logaddexp(R[0], np.log(own))
    return R


class SharingMove(Move):
    """The prior's parameters, in their logarithms: a, b, the number of atoms expected, own."""

    def __init__(self, board: Board) -> None:
        prior, self.J = board.prior, len(board.sizes)
        self.log_size = float(np.log(board.sizes[board.sizes > 0].mean()))
        shape = np.log([prior.a, prior.b]) if isinstance(prior, Spectrum) else np.zeros(2)
        atoms = np.log(max(len(board.counts), 1))
        self.at = np.array([*np.clip(shape, *BOUNDS), atoms, self.log_size + OWN[0]])

    def step(self, chain: Chain, rate: float) -> None:
        """Metropolis steps in log a, log b, both, log(number of atoms) and log(own)."""
        supports = np.bincount(chain.counts, minlength=self.J + 1)[1:]
        here, R = self._look(self.at, supports)
        for by in STEPS:
            at = self.at + by * chain.rng.standard_normal()
            there, found = self._look(at, supports)
            if np.log(chain.rng.random()) < there - here:
                self.at, here, R = at, there, found
        chain.expect(R)

    def _look(self, at: Array, supports: Index) -> tuple[float, Array]:
        """Log density of so many atoms by support and of the parameters, and log rates."""
        own = self.log_density(at)
        if own == -np.inf:
            return own, np.zeros(self.J)
        R = log_rates(np.exp(at), self.J, self.J)
        return own + float(supports @ R), R

    def log_density(self, at: Array) -> float:
        """Of the parameters, up to a constant, less the atoms that they expect."""
        if not (BOUNDS[0] <= at[:2].min() and at[:2].max() <= BOUNDS[1]):
            return -np.inf
        a, b, atoms, own = at  # (log a, log b) -> (log(a / b), log(a + b)) keeps volumes
        off = np.array(
            [a - b - HELD[0], np.logaddexp(a, b) - ALIKE[0], atoms - self.log_size, own - self.log_size - OWN[0]]
        )
        off /= HELD[1], ALIKE[1], ATOMS_DEVIATION, OWN[1]
        return float(-0.5 * off @ off - np.exp(atoms) - self.J * np.exp(own))

    def log_prior(self, chain: Chain) -> float:
        """Of where it is."""
        return self.log_density(self.at)

    def drawn(self, chain: Chain) -> dict[str, ArrayLike]:
        """The parameters by name."""
        return dict(zip(NAMES, np.exp(self.at), strict=True))


class FragmentMove(Move):
    """The share of fragments from its conditional, a Beta law; before, that of the fit (`core.prior`)."""

    def step(self, chain: Chain, rate: float) -> None:
        """Given how many values are further fragments."""
        once = int(chain.counts.sum())
        delta = chain.rng.beta(PRIOR_EXTRA + 1 + len(chain.labels) - once, PRIOR_HELD + 1 + once)
        chain.fragments = Fragments(max(delta, np.finfo(float).tiny))

    def drawn(self, chain: Chain) -> dict[str, ArrayLike]:
        """By name."""
        return {"delta": np.array(chain.fragments.delta)} if chain.fragments else {}
