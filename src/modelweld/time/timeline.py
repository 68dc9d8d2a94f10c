"""The board of groups that come in time: a matching is a set of chains, and a sweep goes along all of them at once.

The next sweep goes the other way: the model is the same in both. From nothing, where no atom has a future, a sweep is
the start by consecutive matching. `modelweld.time.walk` has what a sweep does on its way.

Where moving atoms were, are and will be: given all their values, with the variance of that.
"""

from __future__ import annotations

import numpy as np

from modelweld.core import algorithm1
from modelweld.core.algorithm1 import NEW, SMALLEST_RISE
from modelweld.core.prior import Prior
from modelweld.core.values import Index, Stack, group_of_values
from modelweld.families.drift import Drift
from modelweld.families.fading import Moving
from modelweld.inputs.local_model import Array
from modelweld.progress import track
from modelweld.time.chains import Chains
from modelweld.time.lives import BirthDeath, Lifespans
from modelweld.time.motion import Fading, Kalman, Motion, Place, State
from modelweld.time.walk import Walk, Way


class Timeline:
    """The state of a matching in time, which improves itself sweep by sweep.

    Parameters
    ----------
    stack : Stack
        Values of one array, groups in the order of their times.
    times : array (J,)
        When the groups come; never falling.
    family : Moving
        With its hyperparameters.
    prior : Lives
        Of births, deaths and being held.
    labels : int array (N,), optional
        The matching to begin with; default: every value is NEW.
    """

    engine = "time"
    margin = 0.0
    delta = 0.0

    def __init__(
        self, stack: Stack, times: Array, family: Moving, prior: BirthDeath, labels: Index | None = None
    ) -> None:
        self.stack, self.times = stack, times
        self.prior: BirthDeath = prior.seeing(times)
        self.offsets, self.sizes, self.group = stack.offsets, stack.sizes, group_of_values(stack.offsets)
        self.slot = np.unique(times, return_inverse=True)[1]
        self.labels = np.full(len(self.group), NEW) if labels is None else labels
        self.backwards = False
        self.motion: Motion = motion_of(stack, family)

    @property
    def family(self) -> Moving:
        """With its present hyperparameters."""
        family: Moving = self.motion.family
        return family

    @property
    def families(self) -> list[Moving]:
        """The one family."""
        return [self.family]

    @property
    def counts(self) -> Index:
        """Number of groups at each atom."""
        return np.bincount(self.labels[self.labels >= 0])

    def values_of(self, j: int) -> slice:
        """Where the values of group j stand."""
        return slice(self.offsets[j], self.offsets[j + 1])

    def way(self) -> Way:
        """The direction of the next sweep."""
        ends = self.prior.ends()
        J = len(self.sizes)
        opening, closing = (ends.closing, ends.opening) if self.backwards else (ends.opening, ends.closing)
        return Way(np.arange(J)[:: -1 if self.backwards else 1], opening, closing, self._values_after())

    def _values_after(self) -> Index:
        """The next value of each value's atom in the direction of the sweep; -1 at the last one."""
        position = -self.group if self.backwards else self.group
        order = np.lexsort((position, self.labels))
        order = order[self.labels[order] != NEW]
        after = np.full(len(self.labels), -1)
        same = self.labels[order[1:]] == self.labels[order[:-1]]
        after[order[:-1][same]] = order[1:][same]
        return after

    def futures(self, way: Way) -> State:
        """What each value and those after it in its chain say of the atom at its time: (N, ...)."""
        told = self.motion.told()
        for j in way.groups[::-1]:
            own = np.arange(self.offsets[j], self.offsets[j + 1])
            own = own[way.after[own] >= 0]
            if len(own) == 0:
                continue
            next_ = way.after[own]
            elapsed = self.times[self.group[next_]] - self.times[j]
            for x, more in zip(told, self.motion.earlier(tuple(x[next_] for x in told), elapsed), strict=True):
                x[own] += more
        return told

    def sweep(self, order: Index) -> int:
        """Link and match along all groups, forwards and backwards in turn; returns how often that changed something."""
        del order  # time has one of its own
        if self.motion.exact or (self.labels == NEW).any():
            return self._walk()
        before, height = self.labels.copy(), self.objective()
        for _ in range(2):  # scores are approximate: a walk that led down is taken back, and another goes the other way
            changed = self._walk()
            if changed and self.objective() > height + SMALLEST_RISE:
                return changed
            self.labels = before.copy()
        return 0

    def _walk(self) -> int:
        """One walk along all groups."""
        walk = Walk(self)
        changed = sum(walk.step(int(j)) for j in track(walk.way.groups, "matching groups", len(walk.way.groups)))
        self.labels = np.unique(self.labels, return_inverse=True)[1]
        self.backwards = not self.backwards
        return changed

    def place_new(self) -> None:
        """Match groups that have no atoms yet, and no others."""
        new = np.zeros(len(self.sizes), dtype=bool)
        new[self.group[self.labels == NEW]] = True
        walk = Walk(self)
        for j in walk.way.groups:
            walk.match(int(j)) if new[j] else walk.pass_by(int(j))
        self.labels = np.unique(self.labels, return_inverse=True)[1]

    def learn(self) -> None:
        """Rates of lives, and hyperparameters of the family, given the matching."""
        self.prior = self.prior.learned_in_time(self.lifespans())
        self.motion = motion_of(self.stack, self.motion.learned(self.chains()))

    def lifespans(self) -> Lifespans:
        """First and last slots and counts of atoms."""
        K, slot = int(self.labels.max(initial=-1)) + 1, self.slot[self.group]
        first, last = np.full(K, len(self.slot)), np.full(K, -1)
        np.minimum.at(first, self.labels, slot)
        np.maximum.at(last, self.labels, slot)
        return Lifespans(first, last, np.bincount(self.labels, minlength=K))

    def chains(self) -> Chains:
        """The present matching, atom by atom."""
        return Chains(self.labels, self.times[self.group])

    def objective(self) -> float:
        """Log probability of the matching plus the log evidences of its atoms, plus log priors of what was learned."""
        evidence = self.motion.log_evidence(self.chains())
        return evidence + self.prior.log_prob_in_time(self.lifespans(), self.sizes) + self.family.log_prior()

    def release(self, groups: Index) -> None:
        """Take these groups out of the matching."""
        for j in groups:
            self.labels[self.values_of(j)] = NEW

    def state(self) -> algorithm1.State:
        """Labels, family and prior."""
        return algorithm1.State(self.labels.copy(), [self.family], self.prior, None)

    def restore(self, state: algorithm1.State) -> None:
        """Go back to an earlier state."""
        prior: Prior = state.prior
        family = state.families[0]
        assert isinstance(prior, BirthDeath)
        assert isinstance(family, Moving)
        self.labels, self.prior = state.labels, prior.seeing(self.times)
        self.motion = motion_of(self.stack, family)

    def estimates(self) -> list[Array]:
        """Where each atom was when it was last seen, given all its values: (K, D)."""
        spans = self.lifespans()
        slots = np.unique(self.times)
        places = smooth(self, np.arange(len(spans.last)), slots[spans.last])
        return [places.mean]


def motion_of(stack: Stack, family: Moving) -> Motion:
    """How atoms of such values move."""
    return Kalman(stack, family) if isinstance(family, Drift) else Fading(stack, family)


def smooth(board: Timeline, atoms: Index, times: Array) -> Place:
    """Place of each of these atoms (A,) at a time of its own (A,), in the coordinates of the values.

    What the last value at or before that time and those before it say, and what the first one after it and those after
    that say, brought to the time and put together.
    """
    backwards, board.backwards = board.backwards, False
    way = board.way()
    board.backwards = backwards
    known, told = pasts(board), board.futures(way)
    seen_at = board.times[board.group]
    order = np.lexsort((seen_at, board.labels))
    label, when = board.labels[order], seen_at[order]
    start = np.searchsorted(label, atoms, side="left")
    before = np.empty(len(atoms), dtype=np.int64)
    for i, (k, t) in enumerate(zip(start, times, strict=True)):
        end = k + np.searchsorted(label[k:], atoms[i], side="right")
        before[i] = k + np.searchsorted(when[k:end], t, side="right") - 1
    has_past = before >= start
    last = order[np.maximum(before, 0)]
    next_ = np.where(has_past, way.after[last], order[np.minimum(start, len(order) - 1)])
    has_future = next_ >= 0
    motion = board.motion
    anywhere = motion.nothing(len(atoms))
    past = tuple(np.where(has_past[:, None], x[last], x0) for x, x0 in zip(known, anywhere, strict=True))
    past = motion.later(past, np.where(has_past, times - seen_at[last], 0.0))
    future = tuple(np.where(has_future[:, None], x[next_], 0.0) for x in told)
    future = motion.earlier(future, np.where(has_future, seen_at[next_] - times, 0.0))
    return motion.place(past, future)


def places_of_values(board: Timeline, order: Index, time: float | None = None) -> Array:
    """Where each value's atom is at a time, or at the value's own: (N, D), in the order given."""
    times = board.times[board.group] if time is None else np.full(len(board.labels), time)
    found = smooth(board, board.labels, times).mean
    places = np.empty_like(found)
    places[order] = found
    return places


def pasts(board: Timeline) -> State:
    """What each value and those before it in its chain say of the atom at its time: (N, ...)."""
    motion, chains = board.motion, board.chains()
    found = motion.nothing(len(board.labels))
    for rank, index in enumerate(chains.ranks):
        past = motion.nothing(len(index))
        if rank:
            past = motion.later(tuple(x[chains.before[index]] for x in found), chains.gap[index])
        for x, new in zip(found, motion.seeing(past, index), strict=True):
            x[index] = new
    return found
