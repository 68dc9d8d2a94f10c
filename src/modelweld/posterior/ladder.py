"""A compiled chain and, where it sticks, heated copies that trade places with it: parallel tempering (Geyer, 1991).

A copy at power p draws from prior x evidence^p: the lower its power, the easier it goes from one matching to another.
Neighbours p > q with log evidences E and F trade with probability min(1, exp((p - q) (F - E))), which leaves the law of
each power as it is; what the coldest one, at power one, has after each trade is kept.
"""

from __future__ import annotations

import numpy as np

from modelweld.inputs.local_model import Array
from modelweld.inputs.stack import Index
from modelweld.posterior.compiled_beliefs import Beliefs
from modelweld.posterior.compiled_chain import Kept, evidence, room_for, run
from modelweld.posterior.compiled_hyperparameters import Steps
from modelweld.posterior.compiled_state import BETA, State, Values
from modelweld.posterior.draws import MOVES

LEAST_POWER, RUNGS = 0.6, 6
"""Of the hottest copy, and copies with the chain itself. Below .6 atoms of twenty sites in two features fall apart all
at once, and no copy comes back from there; neighbours among six trade in .1 to .7 of all tries."""

WARM_UP = 100
"""Sweeps in which the steps of a copy are tuned to its power."""


class Ladder:
    """A chain that has a place to start from, alone until it is heated.

    Attributes
    ----------
    states : list of State
        The chain itself, at power one, then its copies, hotter and hotter.
    tried, done : int array
        How many of each move the chain itself tried, and did, since warm-up.
    """

    def __init__(
        self, values: Values, beliefs: Beliefs, state: State, steps: Steps, tuning: float, seed: tuple[int, ...]
    ) -> None:
        self.values, self.beliefs, self.tuning, self.seed = values, beliefs, tuning, seed
        self.states, self.steps, self.powers = [state], [steps], np.ones(1)
        self.rng = np.random.default_rng(seed)
        self.tried, self.done = np.zeros((2, len(MOVES)), dtype=np.int64)

    def warm(self, rung: int, sweeps: int) -> None:
        """Tune the steps of one rung, and keep nothing."""
        unused = np.zeros((2, len(MOVES)), dtype=np.int64)
        self._run(rung, self.tuning, sweeps, sweeps + 1, self.room(1), unused)

    def heat(self, trades: int) -> None:
        """Put copies beside the chain, and let all trade places so many times."""
        self.powers = np.geomspace(1.0, LEAST_POWER, RUNGS)
        for rung, power in enumerate(self.powers[1:], start=1):
            state = State._make(array.copy() for array in self.states[0])
            state.rest[BETA] = power
            state.random[:] = np.random.SeedSequence([*self.seed, rung]).generate_state(1, np.uint64)
            self.states.append(state)
            self.steps.append(Steps._make(array.copy() for array in self.steps[0]))
            self.warm(rung, WARM_UP)
        self.draw(trades, every=1)

    def draw(self, n: int, every: int) -> Kept:
        """Draws of the chain itself, so many sweeps apart."""
        kept, counted = self.room(n), np.stack([self.tried, self.done])
        if len(self.states) == 1:
            self._run(0, 0.0, n * every, every, kept, counted)
        else:
            unused, nowhere = np.zeros_like(counted), self.room(1)
            for t in range(n):
                for rung in range(1, len(self.states)):
                    self._run(rung, 0.0, every, every + 1, nowhere, unused)
                self._run(0, 0.0, every, every, Kept._make(array[t : t + 1] for array in kept), counted)
                self.trade()
        self.tried, self.done = counted
        return kept

    def trade(self) -> Array:
        """Let neighbours trade places, every second pair first: the log evidences, coldest first."""
        room = np.empty((2, len(self.values.y)))
        at = np.array([evidence(self.values, state, *room) for state in self.states])
        pairs = len(at) - 1
        for b in (*range(0, pairs, 2), *range(1, pairs, 2)):
            rise = (self.powers[b] - self.powers[b + 1]) * (at[b + 1] - at[b])
            if np.log(self.rng.random()) < rise:
                at[[b, b + 1]] = at[[b + 1, b]]
                self.states[b], self.states[b + 1] = self.states[b + 1], self.states[b]
                for rung in (b, b + 1):
                    self.states[rung].rest[BETA] = self.powers[rung]
        return at

    def room(self, n: int) -> Kept:
        """For so many draws."""
        N, D = self.values.y.shape
        return room_for(n, N, D, len(self.beliefs.total))

    def _run(self, rung: int, rate: float, sweeps: int, every: int, kept: Kept, counted: Index) -> None:
        run(self.values, self.states[rung], self.beliefs, self.steps[rung], rate, sweeps, every, kept, *counted)
