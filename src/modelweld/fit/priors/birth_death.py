"""How probable a matching of groups in time is: atoms are born, held while they live, and die.

At any moment `alive` atoms live, on average. Each dies with rate `hazard` per unit of time, and as many are born; a
group that comes at time t holds every atom that lives then with probability `held`, independently. With births and
deaths summed out, atoms by which groups hold them are independent Poisson, and the log rate of a pattern depends on
its first slot f (a slot is a distinct time), its last slot l and the number m of groups that hold it:

    R = opening[f] + closing[l] + m log(held / (1 - held)),

    opening[f] = log F_f + hazard t_f - N_<f log(1 - held)
    closing[l] = log G_l - hazard t_l + N_<=l log(1 - held)
    F_s = born_s + e^(-hazard dt_s) (1 - held)^n_(s-1) F_(s-1)
    G_s = 1 - e^(-hazard dt_(s+1)) (1 - (1 - held)^n_(s+1) G_(s+1))

with n_s groups in slot s, N their running sum, dt_s the gap before slot s, born_1 = alive (the process is stationary),
born_s = alive (1 - e^(-hazard dt_s)), and G = 1 at the last slot. F_f is the rate of atoms that live at slot f and were
not seen before, G_l the probability that one which lives at slot l is not seen after. The log probability of a matching
is the sum of R over atoms, less the expected number of atoms that are seen, less sum_j log L_j! as in all priors here.
`hazard` = 0 is certain life: then R depends on m alone.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import ArrayLike

from modelweld.core.prior import Prior
from modelweld.core.values import Array, Index
from modelweld.errors import InputError

HELD_PRIOR = 1.0
"""Groups that hold an atom, and groups that do not, counted as if seen before any: Beta(2, 2)."""

LOG_LIVES_DEVIATION = 3.0
"""Prior deviation of log(hazard x the whole span): lives between a twentieth of it and twenty times as long. Weak, and
free of units; without it a set in which nothing dies would have the hazard at minus infinity."""

BOUNDS = ((-7.0, 7.0), (-12.0, 8.0))
"""Where the log odds of being held and log(hazard x span) are looked for."""


class Ends(NamedTuple):
    """What the beginning and the end of an atom's life are worth, by slot: `opening`, `closing` (T,), and `seen`.

    `seen` is how many atoms are seen at all, on average.
    """

    opening: Array
    closing: Array
    seen: float


class Lifespans(NamedTuple):
    """Of every atom the first and last slot in which it is held, and by how many groups: all that `BirthDeath` looks
    at.
    """

    first: Index
    last: Index
    counts: Index


@dataclass(frozen=True, eq=False)
class BirthDeath(Prior):
    """Atoms that are born, held while they live, and die; all three rates are learned.

    Parameters
    ----------
    alive : float
        Number of atoms that live at a time, on average.
    held : float
        Probability that a group holds an atom which lives at its time.
    hazard : float
        Deaths of an atom per unit of time: one over the mean life. Zero: certain life.

    Attributes
    ----------
    times : array (J,)
        When the groups come, in their order, once they are given (`seeing`); empty: all at one moment.
    slots : arrays (T,) and (T,)
        Their distinct times, and how many groups come at each.

    Examples
    --------
    >>> prior = BirthDeath(alive=2.0, held=0.5, hazard=0.1).condition_on([0.0, 1.0, 9.0])
    >>> ends = prior.ends()
    >>> bool(ends.closing[1] > ends.closing[2])      # who is seen again after so long must have lived all the while
    True
    """

    alive: float = 10.0
    held: float = 0.5
    hazard: float = 0.0
    times = np.zeros(0)
    slots = np.zeros(1), np.ones(1)

    def __post_init__(self) -> None:
        for name, low, high in (("alive", 0.0, np.inf), ("held", 0.0, 1.0)):
            value = getattr(self, name)
            if not (np.isfinite(value) and low < value < high):
                raise InputError(
                    f"BirthDeath: {name} must lie between {low:g} and {high:g}, ends excluded; found {value!r}."
                )
        if not (np.isfinite(self.hazard) and self.hazard >= 0):
            raise InputError(f"BirthDeath: hazard must be a number that is not negative; found {self.hazard!r}.")

    def condition_on(self, times: ArrayLike) -> BirthDeath:
        """The same prior of groups that come at these times (J,), in any order."""
        moments = np.asarray(times, dtype=np.float64)
        return self._with(times=moments, slots=_slots(moments if len(moments) else np.zeros(1)))

    def _with(self, **changes: Any) -> BirthDeath:
        """The same prior with other rates, of the same groups."""
        result = copy(self)
        for name, value in changes.items():
            object.__setattr__(result, name, value)
        return result

    def increments(self, J: int) -> Array:
        """Of groups that all come at one moment: a new atom, then one more group at an old one."""
        steps = np.full(max(J, 1), self.log_odds)
        steps[0] += np.log(self.alive) + J * np.log1p(-self.held)
        return steps

    @property
    def log_odds(self) -> float:
        """What one more group at an atom is worth, all else equal."""
        return float(np.log(self.held) - np.log1p(-self.held))

    def log_prob(self, counts: Index, sizes: Index) -> float:
        """Of groups that all come at one moment."""
        J = len(sizes)
        zero = np.zeros(len(counts), dtype=np.int64)
        return self.condition_on(np.zeros(J)).log_prob_in_time(Lifespans(zero, zero, counts), sizes)

    def log_prob_in_time(self, spans: Lifespans, sizes: Index) -> float:
        """Log probability of a matching, with the log priors of what is learned."""
        return self._log_posterior(spans) - float(scipy.special.gammaln(sizes + 1.0).sum())

    def learn_in_time(self, spans: Lifespans) -> BirthDeath:
        """The most probable rates given a matching; never less probable than these.

        A search in two dimensions; `alive` is K / seen per alive.
        """
        if len(spans.counts) == 0 or not len(self.times):
            return self
        span = self._span

        def at(x: Array) -> BirthDeath:
            held, hazard = 1 / (1 + np.exp(-x[0])), np.exp(x[1]) / span
            unit = self._with(alive=1.0, held=float(held), hazard=float(hazard))
            return unit._with(alive=len(spans.counts) / unit.ends().seen)

        start = np.array([self.log_odds, np.log(max(self.hazard * span, np.exp(BOUNDS[1][0] + 1.0)))])
        start = np.clip(start, [low + 0.1 for low, _ in BOUNDS], [high - 0.1 for _, high in BOUNDS])
        found = scipy.optimize.minimize(lambda x: -at(x)._log_posterior(spans), start, method="L-BFGS-B", bounds=BOUNDS)
        best = at(found.x)
        return best if best._log_posterior(spans) > self._log_posterior(spans) else self

    def living(self, spans: Lifespans, time: float) -> Array:
        """Probability (K,) that atoms live at a time, given when they are seen and when not; also of times to come."""
        slots, _ = self.slots
        first, last = slots[spans.first], slots[spans.last]
        # the process is the same in both directions
        mirror = self.condition_on(-(self.times if len(self.times) else np.zeros(1)))
        before = mirror._living_after(len(slots) - 1 - spans.first, -time)
        return np.where(time < first, before, np.where(time > last, self._living_after(spans.last, time), 1.0))

    def _living_after(self, last: Index, time: float) -> Array:
        """The same of a time after the last slot in which each was seen."""
        slots, numbers = self.slots
        passed = np.cumsum(numbers) * np.log1p(-self.held)
        never = self._not_seen_after()
        here = int(np.searchsorted(slots, time, side="right")) - 1  # the last slot that is not later
        not_after = 1.0
        if here + 1 < len(slots):
            stays = np.exp(-self.hazard * (slots[here + 1] - time))
            not_after = 1 - stays * (1 - np.exp(numbers[here + 1] * np.log1p(-self.held)) * never[here + 1])
        unseen = np.exp(np.minimum(passed[here] - passed[last], 0.0))
        return np.asarray(np.exp(-self.hazard * np.abs(time - slots[last])) * unseen * not_after / never[last])

    def ends(self) -> Ends:
        """Tables by slot."""
        slots, numbers = self.slots
        gone = -np.expm1(-self.hazard * np.diff(slots, prepend=slots[0]))  # in the gap before each slot
        unseen = np.exp(numbers * np.log1p(-self.held))
        fresh = _recursion(self.alive, self.alive * gone[1:], (1 - gone[1:]) * unseen[:-1])
        never = self._not_seen_after()
        born = self.alive * np.where(np.arange(len(slots)) == 0, 1.0, gone)
        passed = np.cumsum(numbers) * np.log1p(-self.held)
        since = self.hazard * (slots - slots[0])
        with np.errstate(divide="ignore"):
            opening = np.log(fresh) + since - (passed - numbers * np.log1p(-self.held))
            closing = np.log(never) - since + passed
        return Ends(opening, closing, float((born * (1 - unseen * never)).sum()))

    def _not_seen_after(self) -> Array:
        """G: probability (T,) that an atom which lives in a slot is not seen after it."""
        slots, numbers = self.slots
        gone = -np.expm1(-self.hazard * np.diff(slots))
        unseen = np.exp(numbers * np.log1p(-self.held))
        return _recursion(1.0, gone[::-1], ((1 - gone) * unseen[1:])[::-1])[::-1]

    def _log_posterior(self, spans: Lifespans) -> float:
        ends = self.ends()
        value = float((ends.opening[spans.first] + ends.closing[spans.last]).sum())
        value += float(spans.counts.sum()) * self.log_odds - ends.seen
        value += HELD_PRIOR * float(np.log(self.held) + np.log1p(-self.held))
        if self.hazard > 0 and self._span > 0:
            value -= 0.5 * (np.log(self.hazard * self._span) / LOG_LIVES_DEVIATION) ** 2
        return value

    @property
    def _span(self) -> float:
        return float(np.ptp(self.times)) if len(self.times) and np.ptp(self.times) > 0 else 1.0


def _recursion(first: float, added: Array, factor: Array) -> Array:
    """x[0] = first, x[s + 1] = added[s] + factor[s] x[s]."""
    found = [first]
    for more, times in zip(added.tolist(), factor.tolist(), strict=True):  # plain numbers: ten times as quick
        found.append(more + times * found[-1])
    return np.array(found)


def _slots(times: Array) -> tuple[Array, Array]:
    """Distinct times (T,) in order, and how many groups come at each."""
    slots, numbers = np.unique(times, return_counts=True)
    return slots, numbers.astype(np.float64)
