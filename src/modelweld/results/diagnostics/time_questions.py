"""What can be asked about groups that came with a date: where atoms were when, what is to come, who lives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from modelweld.errors import InputError
from modelweld.inputs.clock import Time, asked_time, number_of
from modelweld.inputs.sets import stack_of
from modelweld.results.diagnostics.questions import Questions

if TYPE_CHECKING:
    from modelweld.core.values import Index
    from modelweld.time.paths import Forecast, Lifetimes, Path
    from modelweld.time.timeline import Timeline

NO_TIMES = "these sites have no times: fuse(models, times=[...]) says when each was trained."


class TimeQuestions(Questions):
    """What can be asked where sites have times; refused where they have none."""

    @property
    def times(self) -> list[Time] | None:
        """When each site's model was trained; None where that was not said."""
        times = [model.time for model in self.models]
        return None if any(time is None for time in times) else times

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
        >>> path = fusion.path(0)
        >>> path.times, path.values.shape
        ([1.0, 2.0, 3.0, 4.0], (4, 1))
        """
        from modelweld.time.paths import path

        board, newest = self.timeline(set_name)
        K = int(board.labels.max()) + 1
        if not 0 <= atom < K:
            raise InputError(f"path: atoms are numbered from 0 to {K - 1}; there is no {atom!r}.")
        slots = np.unique(board.times)
        if times is None:
            wanted = slots[board.lifespans().first[atom] :]
        else:
            wanted = np.array([number_of(asked_time(time, newest)) for time in times])
        return path(board, int(atom), wanted, level, newest)

    def forecast(self, time: Any, level: float = 0.9, set_name: str | None = None) -> Forecast:
        """What a site would send at a time to come: which atoms with which probability, and where its values would lie.

        Examples
        --------
        >>> import modelweld
        >>> sites = [[[0.0], [9.0]], [[0.2], [9.1]], [[0.4]], [[0.6], [9.0]]]
        >>> found = modelweld.fuse(sites, times=["2024-01", "2024-02", "2024-03", "2024-04"]).forecast("2024-05")
        >>> bool(((found.low < found.values) & (found.values < found.high)).all())
        True
        """
        from modelweld.time.paths import forecast

        board, newest = self.timeline(set_name)
        return forecast(board, number_of(asked_time(time, newest)), level, newest)

    def lives(self, set_name: str | None = None) -> Lifetimes:
        """When each atom is first and last seen, and how probable it is that it still lives at the newest time."""
        from modelweld.time.paths import lifetimes

        board, newest = self.timeline(set_name)
        return lifetimes(board, newest)

    def timeline(self, set_name: str | None = None) -> tuple[Timeline, Time]:
        """The board at the end of the fit, atoms numbered as in `labels`, and the newest time. Do not move it."""
        name, _ = self.named_set(set_name)
        return self._ordered_timeline(name)[0], max(self.times or ())

    def timeline_order(self, set_name: str) -> Index:
        """Where the values of `timeline` stood in the order given."""
        return self._ordered_timeline(set_name)[1]

    def _ordered_timeline(self, name: str) -> tuple[Timeline, Index]:
        from modelweld.time.matcher import timeline_of

        matching, times = self.matchings[name], self.times
        if times is None or matching.engine != "time":
            raise InputError(NO_TIMES)

        def make() -> tuple[Timeline, Index]:
            [key] = matching.families
            stack = stack_of(self.models, key, name, self.matchings)
            return timeline_of(matching, stack, np.array([number_of(time) for time in times]))

        return self.made_once(("timeline", name), make)

    def number_of_time(self, time: Any) -> float:
        """A time that a user gives, as a number."""
        return number_of(asked_time(time, self.timeline(next(iter(self.matchings), None))[1]))
