"""How atoms evolve where sites have times: paths, forecasts, lifetimes, and the model of a day.

The model of a day is made of what sites near that time sent of atoms that live then, moved along with their atoms.
Places are those of the day. What is auxiliary (counts, covariances, transitions) is of the sites nearest in time, as
many of them as it takes to have seen every atom that lives.

Matching and hyperparameters are taken as they were found: intervals are those of paths and values given both.

Groups as they come, each matched at a cost that does not grow with how many came before.

What is known of every atom at the newest time, without the groups it is known from: the next group costs the same.

Of an atom: its past (`modelweld.time.motion`) and the probability p that it lives. Of those not seen yet: how
many live, F, on average. In a gap dt, p falls by e^(-hazard dt) and F goes to `alive` by as much; a group that does not
hold an atom leaves p (1 - held) / (1 - p held) of it, and (1 - held) F. The log odds of an atom against a new one are
log p - log(1 - p held) - log F: those of `modelweld.fit.priors.birth_death`, where nothing comes after.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from modelweld.core.algorithm1 import NEW, best_assignment
from modelweld.core.matching import Matching, by_count, ranks
from modelweld.core.values import Array, Index, Stack, offsets_of
from modelweld.errors import InputError
from modelweld.families import Family
from modelweld.families.capabilities import follow
from modelweld.families.fading import Moving
from modelweld.fit.priors.birth_death import BirthDeath
from modelweld.inputs.clock import Time, like, number_of, read_time, spell
from modelweld.inputs.feature_names import change_axes
from modelweld.inputs.local_model import LocalModel
from modelweld.inputs.sets import stack_of
from modelweld.kinds import align_again, kind_of
from modelweld.libraries.reading import read_site
from modelweld.results.fit_result import FitResult
from modelweld.time.matcher import timeline_of
from modelweld.time.motion import Place, State
from modelweld.time.timeline import Timeline, motion_of, pasts, places_of_values, smooth

if TYPE_CHECKING:
    from modelweld.fusion import Fusion

NO_TIMES = "these sites have no times: fuse(models, times=[...]) says when each was trained."


class Path(NamedTuple):
    """Where one atom is at several times.

    Attributes
    ----------
    times : list of float or of dates
        When.
    values, low, high : arrays (T, D)
        Its place then, given all its values, and an interval for it.
    alive : array (T,)
        Probability that it lives then: one from when it is first seen to when it is last seen.
    """

    times: list[Time]
    values: Array
    low: Array
    high: Array
    alive: Array


class Forecast(NamedTuple):
    """What sites would send at a time.

    Attributes
    ----------
    time : float or date
        When.
    atoms : int array (A,)
        Atoms that may live then, the most probable first.
    values, low, high : arrays (A, D)
        What a site that holds them would send, with an interval for that: noise included.
    alive, held : arrays (A,)
        Probability that an atom lives then, and that a site sends it.
    newborn : float
        How many atoms live then, on average, that no site has sent yet.
    """

    time: Time
    atoms: Index
    values: Array
    low: Array
    high: Array
    alive: Array
    held: Array
    newborn: float


class Lifetimes(NamedTuple):
    """When atoms live.

    Attributes
    ----------
    first, last : lists of float or of dates
        When each was seen first and last.
    counts : int array (K,)
        How many groups hold it.
    alive : array (K,)
        Probability that it still lives at the newest time.
    newest : float or date
        That time.
    """

    first: list[Time]
    last: list[Time]
    counts: Index
    alive: Array
    newest: Time

    def __str__(self) -> str:
        head = f"{'atom':>5}  {'first':>12}  {'last':>12}  {'groups':>6}  alive at {spell(self.newest)}"
        rows = zip(self.first, self.last, self.counts, self.alive, strict=True)
        lines = (f"{k:>5}  {spell(a):>12}  {spell(b):>12}  {n:>6}  {p:.2f}" for k, (a, b, n, p) in enumerate(rows))
        return "\n".join([head, *lines])


LEAST_ALIVE, FORGOTTEN = 0.01, 1e-9
"""Probability of being alive below which an atom is not forecast. Probability of living below which an atom is
forgotten: an atom that comes back all the same gets a new number."""


def timeline_board(fit: FitResult, set_name: str | None = None) -> tuple[Timeline, Index]:
    """The board at the end of the fit, atoms numbered as in `labels`, and where its values stood in the order given.

    Do not move it. Refused where sites have no times.
    """
    name, matching = fit.find_set(set_name)
    times = fit.times
    if times is None or matching.engine != "time":
        raise InputError(NO_TIMES)
    numbers = np.array([number_of(time) for time in times])
    return fit.cache(("timeline", name), lambda: timeline_of(matching, fit.stacks(name)[0], numbers))


def interval(board: Timeline, place: Place, level: float) -> tuple[Array, Array]:
    """Where a place is with this probability, in each dimension."""
    if not 0 < level < 1:
        raise InputError(f"level must lie between 0 and 1; found {level!r}.")
    return board.motion.interval(place, level)


class Evolution:
    """How atoms evolve, ``fusion.timeline``: paths, forecasts, lifetimes; refused where sites have no times.

    Examples
    --------
    >>> import modelweld
    >>> fusion = modelweld.fuse([[[0.0], [9.0]], [[0.2], [9.1]], [[0.4]], [[0.6], [9.0]]], times=[1, 2, 3, 4])
    >>> fusion.timeline.times
    [1.0, 2.0, 3.0, 4.0]
    """

    def __init__(self, fit: FitResult, make: Callable[[FitResult], Fusion]) -> None:
        self._fit = fit
        self._make = make

    @property
    def times(self) -> list[Time] | None:
        """When each site's model was trained; None where that was not said."""
        return self._fit.times

    def path(
        self, atom: int, times: Sequence[Any] | None = None, level: float = 0.9, set_name: str | None = None
    ) -> Path:
        """Where an atom is at several times, with intervals, and how probable it is that it lives then.

        Parameters
        ----------
        atom : int
            Its number, as in `labels`.
        times : sequence, optional
            Numbers or dates as the sites have; default: all times of sites from when it is first seen on.
        level : float
            Probability with which an interval holds the place, in each dimension.
        set_name : str, optional
            Which set, if several were matched.

        Examples
        --------
        >>> import modelweld
        >>> fusion = modelweld.fuse([[[0.0], [9.0]], [[0.2], [9.1]], [[0.4]], [[0.6], [9.0]]], times=[1, 2, 3, 4])
        >>> path = fusion.timeline.path(0)
        >>> path.times, path.values.shape
        ([1.0, 2.0, 3.0, 4.0], (4, 1))
        """
        board, newest = self._board(set_name)
        K = int(board.labels.max()) + 1
        if not 0 <= atom < K:
            raise InputError(f"path: atoms are numbered from 0 to {K - 1}; there is no {atom!r}.")
        spans = board.lifespans()
        if times is None:
            wanted = np.unique(board.times)[spans.first[atom] :]
        else:
            wanted = np.array([number_of(read_time(time, newest)) for time in times])
        place = smooth(board, np.full(len(wanted), atom), wanted)
        alive = np.array([board.prior.living(spans, float(t))[atom] for t in wanted])
        return Path([like(t, newest) for t in wanted], place.mean, *interval(board, place, level), alive)

    def forecast(self, time: Any, level: float = 0.9, set_name: str | None = None) -> Forecast:
        """What a site would send at a time to come: which atoms with which probability, and where its values would lie.

        Examples
        --------
        >>> import modelweld
        >>> sites = [[[0.0], [9.0]], [[0.2], [9.1]], [[0.4]], [[0.6], [9.0]]]
        >>> fusion = modelweld.fuse(sites, times=["2024-01", "2024-02", "2024-03", "2024-04"])
        >>> found = fusion.timeline.forecast("2024-05")
        >>> bool(((found.low < found.values) & (found.values < found.high)).all())
        True
        """
        board, newest = self._board(set_name)
        when = number_of(read_time(time, newest))
        alive = board.prior.living(board.lifespans(), when)
        atoms = np.flatnonzero(alive >= LEAST_ALIVE)
        atoms = atoms[np.argsort(-alive[atoms], kind="stable")]
        sent = board.motion.predict(smooth(board, atoms, np.full(len(atoms), when)))
        newborn, living = max(float(board.prior.alive - alive.sum()), 0.0), alive[atoms]
        ends = interval(board, sent, level)
        return Forecast(like(when, newest), atoms, sent.mean, *ends, living, living * board.prior.held, newborn)

    def lifetimes(self, set_name: str | None = None) -> Lifetimes:
        """When each atom is first and last seen, and how probable it is that it still lives at the newest time.

        Examples
        --------
        >>> import modelweld
        >>> fusion = modelweld.fuse([[[0.0], [9.0]], [[0.2], [9.1]], [[0.4]]], times=[1, 2, 3])
        >>> fusion.timeline.lifetimes().last
        [3.0, 2.0]
        """
        board, newest = self._board(set_name)
        spans, slots = board.lifespans(), np.unique(board.times)
        alive = board.prior.living(spans, float(slots[-1]))
        first, last = ([like(t, newest) for t in slots[x]] for x in (spans.first, spans.last))
        return Lifetimes(first, last, spans.counts, alive, like(slots[-1], newest))

    def at(self, time: Any) -> Fusion:
        """The fusion as of one time: ``fusion.timeline.at("2024-03").model()`` is the model of that day.

        Atoms that probably live then, where they are then; counts and covariances of the sites nearest in time.

        Examples
        --------
        >>> import modelweld
        >>> fusion = modelweld.fuse([[[0.0], [9.0]], [[0.2], [9.1]], [[0.4], [9.0]]], times=[1, 2, 3])
        >>> fusion.timeline.at(3).K
        2
        """
        newest = self._board(next(iter(self._fit.matchings), None))[1]
        return self._make(fit_at(self._fit, number_of(read_time(time, newest))))

    def stream(self, set_name: str | None = None) -> Stream:
        """Groups that come from now on, matched one by one, at a cost that does not grow: see `Stream`.

        Examples
        --------
        >>> import modelweld
        >>> fusion = modelweld.fuse([[[0.0], [9.0]], [[0.2], [9.1]], [[0.4], [9.2]]], times=[1, 2, 3])
        >>> fusion.timeline.stream().add([[9.1], [0.5]], time=4).shape
        (2,)
        """
        name, _ = self._fit.find_set(set_name)
        return Stream(self._fit, self._board(name)[0], name)

    def _board(self, set_name: str | None) -> tuple[Timeline, Time]:
        """The board at the end of the fit, and the newest time."""
        return timeline_board(self._fit, set_name)[0], max(self._fit.times or ())


def fit_at(fit: FitResult, time: float) -> FitResult:
    """A fit of sites without times, all of which speak of that one."""
    if len(fit.matchings) > 1:
        raise InputError(f"at: the model of a day is made of one set; these sites have {list(fit.matchings)}.")
    name, old = fit.find_set()
    board, order = timeline_board(fit, name)
    living = np.asarray(board.prior.living(board.lifespans(), time) > 0.5)
    if not living.any():
        raise InputError("at: no atom is likely to live at that time; fusion.timeline.lifetimes() says when they do.")
    seen = np.array([number_of(moment) for moment in fit.times or ()])
    near = nearest_sites(old, seen, time, living)
    [key] = old.families
    here, there = places_of_values(board, order), places_of_values(board, order, time)
    models = []
    for j in near:
        own = slice(old.offsets[j], old.offsets[j + 1])
        move = _Move(old.families[key], here[own], there[own])
        models.append(_of_day(fit.models[j], key, name, move, living[old.stacked_labels[own]]))
    matching = _matching_of_day(old, board, near, living, time)
    return fit.with_(given=models, sites=[fit.sites[j] for j in near], matchings={name: matching})


def nearest_sites(matching: Matching, seen: Array, time: float, living: NDArray[np.bool_]) -> list[int]:
    """The sites nearest to a time, in their own order, up to where each atom that lives was seen once."""
    distance = np.abs(seen - time)
    held = matching.presence[:, living]
    reach = np.where(held, distance[:, None], np.inf).min(0).max()
    return np.flatnonzero((distance <= reach) & held.any(1)).tolist()


class _Move(NamedTuple):
    """How a site's values (L, D) move with their atoms."""

    family: Family
    here: Array
    there: Array


def _of_day(model: LocalModel, key: Any, set_name: str, move: _Move, stay: NDArray[np.bool_]) -> LocalModel:
    """A site's model with members that `stay`, their places moved."""
    if isinstance(key, str):
        position = model.axes[key].index(set_name)
        members = np.moveaxis(np.asarray(model.arrays[key]), position, 0)
        moved = follow(move.family, members.reshape(move.here.shape), move.here, move.there)
        model = kind_of([model]).move(model, {key: np.moveaxis(moved.reshape(members.shape), 0, position)})
    stayed = change_axes(model, set_name, lambda x, axis: np.compress(stay, x, axis=axis))
    return model.with_(**stayed, time=None)


def _matching_of_day(
    old: Matching, board: Timeline, near: list[int], living: NDArray[np.bool_], time: float
) -> Matching:
    """Atoms that live, where they are then, numbered by how many of the near sites hold them."""
    atoms = np.flatnonzero(living)
    places = smooth(board, atoms, np.full(len(atoms), time)).mean
    counts = old.presence[near][:, atoms].sum(0)
    number = by_count(counts, places)
    rank = np.full(len(living), -1)
    rank[atoms] = ranks(number)
    labels = [rank[old.labels[j]][living[old.labels[j]]] for j in near]
    [(key, family)] = old.families.items()
    assert isinstance(family, Moving)
    return Matching(
        stacked_labels=np.concatenate(labels),
        offsets=offsets_of([len(own) for own in labels]),
        counts=counts[number],
        families={key: family.still()},
        values={key: places[number]},
        prior=old.prior,
        objective=old.objective,
        history=old.history,
        changes=old.changes,
        converged=old.converged,
        engine="numpy",
    )


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
            newest = f"the newest time is {spell(self._newest)}; found {time!r}"
            raise InputError(f"a stream goes forwards: {newest}. fusion.add(model, time=...) takes any time.")
        models = align_again([self._like, read_site(model).with_(time=self._like.time)])
        stack = stack_of(models[1:], self._key, self._set, {})
        if stack.values.shape[1] != self._width:
            found = f"{stack.values.shape[1]} columns in array {self._key!r} instead of {self._width}"
            raise InputError(f"the group has {found}: it has names that no earlier one has. Fuse all sites again.")
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
