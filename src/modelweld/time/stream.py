"""Groups as they come, each matched at a cost that does not grow with how many came before.

What is known of every atom at the newest time, without the groups it is known from: the next group costs the same.

Of an atom: its past (`modelweld.time.motion`) and the probability p that it lives. Of those not seen yet: how
many live, F, on average. In a gap dt, p falls by e^(-hazard dt) and F goes to `alive` by as much; a group that does not
hold an atom leaves p (1 - held) / (1 - p held) of it, and (1 - held) F. The log odds of an atom against a new one are
log p - log(1 - p held) - log F: those of `modelweld.fit.priors.birth_death`, where nothing comes after.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from modelweld.core.algorithm1 import NEW, best_assignment
from modelweld.core.values import Array, Index, Stack
from modelweld.errors import InputError
from modelweld.fit.priors.birth_death import BirthDeath
from modelweld.inputs.clock import number_of, read_time, spell
from modelweld.inputs.sets import stack_of
from modelweld.kinds import align_again
from modelweld.libraries.reading import read_site
from modelweld.time.motion import State
from modelweld.time.timeline import Timeline, motion_of, pasts

if TYPE_CHECKING:
    from modelweld.results.fit_result import FitResult

FORGOTTEN = 1e-9
"""Probability of living below which an atom is forgotten: an atom that comes back all the same gets a new number."""


class Stream:
    """A fusion in time that goes on: it keeps what is known of atoms, and of groups the last, as what one looks like.

    ``fusion.timeline.stream()`` makes one. Hyperparameters stay as they were learned, and no earlier label changes:
    fuse all again now and then. Atoms that live with a probability below 1e-9 are forgotten. Without that, the labels
    are those of ``fusion.add(model, time=..., refit=False)``, group after group.

    Attributes
    ----------
    atoms : int array (A,)
        Numbers of the atoms that are remembered, those of the fusion as they were there.
    alive : array (A,)
        Probability that they live at the newest time.
    values : array (A, D)
        Where they are then, by all that came so far.

    Examples
    --------
    >>> import modelweld
    >>> fusion = modelweld.fuse([[[0.0], [9.0]], [[0.2], [9.1]], [[0.4], [9.2]]], times=[1, 2, 3])
    >>> stream = fusion.timeline.stream()
    >>> a, b = stream.add([[9.1], [0.5]], time=4)
    >>> bool(a == fusion.labels[0][1]), bool(b == fusion.labels[0][0])
    (True, True)
    """

    def __init__(self, fit: FitResult, board: Timeline, set_name: str) -> None:
        self._set, self._newest = set_name, max(fit.times or ())
        [self._key] = fit.matchings[set_name].families
        self._like, self._width = fit.models[-1], board.stack.values.shape[1]
        self._prior: BirthDeath = board.prior
        self._motion = motion_of(board.stack.take(np.arange(0), np.zeros(1, np.int64)), board.family)  # of no values
        self._time = float(board.times[-1])
        spans = board.lifespans()
        last = np.full(len(spans.counts), -1)
        np.maximum.at(last, board.labels, np.arange(len(board.labels)))  # values stand in the order of time
        self._past: State = tuple(x[last] for x in pasts(board))
        self._seen = board.times[board.group[last]]
        self.alive = self._prior.living(spans, self._time)
        self.atoms, self._numbers = np.arange(len(last)), len(last)
        slots, groups = self._prior.slots
        fresh = np.exp(self._prior.ends().opening[-1] - self._prior.hazard * (slots[-1] - slots[0]))
        before = np.log1p(-self._prior.held) * (groups.sum() - groups[-1])
        self._unseen = float(fresh * np.exp(before) * (1 - self._prior.held) ** groups[-1])

    def add(self, model: Any, time: Any) -> Index:
        """Numbers of the atoms of one more group, which comes at the newest time or later."""
        when = read_time(time, self._newest)
        if number_of(when) < self._time:
            raise InputError(
                f"a stream goes forwards: its newest time is {spell(self._newest)}, found {time!r}. "
                "fusion.add(model, time=...) takes groups of any time."
            )
        models = align_again([self._like, read_site(model).with_(time=self._like.time)])
        stack = stack_of(models[1:], self._key, self._set, {})
        if stack.values.shape[1] != self._width:
            raise InputError(
                f"the group has {stack.values.shape[1]} columns in array {self._key!r} instead of {self._width}: it "
                "names something that no earlier one has. Fuse all sites again."
            )
        self._newest = max(self._newest, when)
        return self._match(stack, number_of(when))

    def _match(self, stack: Stack, time: float) -> Index:
        """Numbers of the atoms of a group that comes at a time not before the newest; all is known as of then."""
        prior, stays = self._prior, np.exp(-self._prior.hazard * (time - self._time))
        alive, unseen = self.alive * stays, prior.alive * (1 - stays) + stays * self._unseen
        remembered = alive >= FORGOTTEN
        alive, self.atoms, self._seen = alive[remembered], self.atoms[remembered], self._seen[remembered]
        self._past = tuple(x[remembered] for x in self._past)
        motion, values = motion_of(stack, self._motion.family), np.arange(len(stack.values))
        past = motion.later(self._past, time - self._seen)
        odds = np.log(alive) - np.log1p(-alive * prior.held) - np.log(unseen)
        scores = motion.scores(values, past, motion.silence(len(alive))) + odds
        choice = best_assignment(scores, np.zeros(len(values)), len(values))
        born, old = np.flatnonzero(choice == NEW), np.flatnonzero(choice != NEW)
        alive = alive * (1 - prior.held) / (1 - alive * prior.held)
        known = motion.update(tuple(x[choice[old]] for x in past), old)
        for x, new in zip(self._past, known, strict=True):
            x[choice[old]] = new
        alive[choice[old]], self._seen[choice[old]] = 1.0, time
        first = motion.update(motion.nothing(len(born)), born)
        fresh = self._numbers + np.arange(len(born))
        self._past = tuple(np.concatenate(x) for x in zip(self._past, first, strict=True))
        self._seen = np.concatenate([self._seen, np.full(len(born), time)])
        self.alive = np.concatenate([alive, np.ones(len(born))])
        labels = np.empty(len(values), dtype=np.int64)
        labels[old], labels[born] = self.atoms[choice[old]], fresh
        self.atoms, self._numbers = np.concatenate([self.atoms, fresh]), self._numbers + len(born)
        self._time, self._unseen = time, float((1 - prior.held) * unseen)
        return labels

    @property
    def values(self) -> Array:
        """Where they are at the newest time, by what came up to it."""
        past = self._motion.later(self._past, self._time - self._seen)
        return self._motion.place(past, self._motion.silence(len(self.atoms))).mean
