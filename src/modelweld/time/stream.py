"""Groups as they come, each matched at a cost that does not grow with how many came before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from modelweld.core.values import Array, Index
from modelweld.errors import InputError
from modelweld.inputs.clock import number_of, read_time, spell
from modelweld.inputs.sets import stack_of
from modelweld.kinds import align_again
from modelweld.libraries import read_site
from modelweld.time.trajectories import Filtered

if TYPE_CHECKING:
    from modelweld.results.fit_result import FitResult
    from modelweld.time.timeline import Timeline


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
        self._like, self._filtered = fit.models[-1], Filtered(board)
        self._width = board.stack.values.shape[1]

    def add(self, model: Any, time: Any) -> Index:
        """Numbers of the atoms of one more group, which comes at the newest time or later."""
        when = read_time(time, self._newest)
        if number_of(when) < self._filtered.newest:
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
        return self._filtered.add(stack, number_of(when))

    @property
    def atoms(self) -> Index:
        """Numbers of the atoms that are remembered."""
        return np.asarray(self._filtered.number)

    @property
    def alive(self) -> Array:
        """Probability that they live at the newest time."""
        return np.asarray(self._filtered.alive)

    @property
    def values(self) -> Array:
        """Where they are then."""
        return self._filtered.places().mean
