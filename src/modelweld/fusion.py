"""What comes back from `fuse`: the matching of every set, global arrays, hyperparameters, how the run went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from modelweld.errors import InputError
from modelweld.families.base import Family
from modelweld.local import Array, LocalModel
from modelweld.prior import BetaBernoulli
from modelweld.stack import Index


@dataclass(frozen=True, eq=False)
class Matching:
    """Which members of one set are copies of the same atom.

    Atoms are numbered by decreasing count.

    Attributes
    ----------
    stacked_labels : int array (N,)
        Atom of each local parameter, sites one after the other.
    offsets : int array (J + 1,)
        Where the sites begin.
    counts : int array (K,)
        Number of sites that hold each atom.
    families : dict of str to Family
        Each array's family with learned hyperparameters.
    values : dict of str to array (K, D)
        Each array's global values, one row per atom.
    objective : float
        Log probability of the matching plus log evidence.
    history : tuple of float
        The objective after every sweep and every update of hyperparameters.
    changes : tuple of int
        How many groups changed in each sweep.
    converged : bool
        Whether the last sweep changed nothing.
    prior : BetaBernoulli or None
        The prior of the matching (None for baselines that have none).
    engine : str
        What did the sweeps: "numpy", "compiled", or the name of a baseline.
    """

    stacked_labels: Index
    offsets: Index
    counts: Index
    families: Mapping[str, Family]
    values: Mapping[str, Array]
    prior: BetaBernoulli | None
    objective: float
    history: tuple[float, ...]
    changes: tuple[int, ...]
    converged: bool
    engine: str

    @property
    def K(self) -> int:
        """Number of atoms."""
        return len(self.counts)

    @property
    def sweeps(self) -> int:
        """Number of sweeps, the idle last one included."""
        return len(self.changes)

    @cached_property
    def labels(self) -> list[Index]:
        """Atom of each local parameter, one array per site."""
        bounds = self.offsets.tolist()
        return [self.stacked_labels[a:b] for a, b in pairwise(bounds)]

    @cached_property
    def presence(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Which sites hold which atoms: (J, K)."""
        held = np.zeros((len(self.offsets) - 1, self.K), dtype=bool)
        held[np.repeat(np.arange(len(held)), np.diff(self.offsets)), self.stacked_labels] = True
        return held


class Fusion:
    """The result of `fuse`.

    With one set (the usual case) the matching's fields are the fusion's own: ``fusion.labels``, ``fusion.atoms``,
    ``fusion.K``. With several sets, ask ``fusion.matchings[name]``.

    Attributes
    ----------
    sites : list of str
        Names of the sites, in the order in which they were given.
    matchings : dict of str to Matching
        One per set, in the order in which they were matched.

    Examples
    --------
    >>> import modelweld, numpy as np
    >>> fusion = modelweld.fuse([[[0.0, 0.1], [9.0, 9.1]], [[9.1, 8.9]], [[0.1, 0.0], [5.0, -5.0]]])
    >>> fusion.K, [labels.tolist() for labels in fusion.labels]
    (3, [[0, 1], [1], [0, 2]])
    """

    def __init__(self, models: Sequence[Any], sites: Sequence[str], matchings: Mapping[str, Matching]) -> None:
        self._given = models
        self.sites = list(sites)
        self.matchings = dict(matchings)

    @cached_property
    def models(self) -> list[LocalModel]:
        """The local models that were fused."""
        return [
            m if isinstance(m, LocalModel) else LocalModel({"values": m}, {"values": ("atom", None)}, site=site)
            for m, site in zip(self._given, self.sites, strict=True)
        ]

    @property
    def matching(self) -> Matching:
        """The matching, when there is one set."""
        if len(self.matchings) != 1:
            raise InputError(
                f"this fusion matched the sets {list(self.matchings)}: ask fusion.matchings[name] for one of them."
            )
        return next(iter(self.matchings.values()))

    @property
    def K(self) -> int:
        """Number of atoms."""
        return self.matching.K

    @property
    def labels(self) -> list[Index]:
        """Atom of each local parameter, one array per site."""
        return self.matching.labels

    @property
    def counts(self) -> Index:
        """Number of sites that hold each atom."""
        return self.matching.counts

    @property
    def atoms(self) -> Array:
        """Global values (K, D) of the one array that was matched."""
        return next(iter(self._one_array(self.matching.values).values()))

    @property
    def family(self) -> Family:
        """The family, with learned hyperparameters, of the one array that was matched."""
        family: Family = next(iter(self._one_array(self.matching.families).values()))
        return family

    @property
    def hyperparameters(self) -> dict[str, Any]:
        """Learned hyperparameters of the one array that was matched, and the prior's."""
        prior = self.matching.prior or BetaBernoulli()
        names = ("mean", "noise", "spread")
        learned = {name: getattr(self.family, name) for name in names if hasattr(self.family, name)}
        return {**learned, "alpha": prior.alpha, "gamma0": prior.gamma0}

    @property
    def objective(self) -> float:
        """Log probability of the matching plus log evidence; over several sets, their sum."""
        return sum(m.objective for m in self.matchings.values())

    @property
    def history(self) -> tuple[float, ...]:
        """The objective after every sweep and every update."""
        return self.matching.history

    @property
    def sweeps(self) -> int:
        """Number of sweeps, the idle last one included."""
        return self.matching.sweeps

    @property
    def converged(self) -> bool:
        """Whether every set's last sweep changed nothing."""
        return all(m.converged for m in self.matchings.values())

    def array(self, name: str) -> Array:
        """Global array `name`, its set axes in global order."""
        if name not in self.models[0].axes:
            raise InputError(f"no array {name!r} was fused; there are {sorted(self.models[0].axes)}.")
        axes = self.models[0].axes[name]
        for set_name in reversed([axis for axis in axes if axis is not None]):
            matching = self.matchings[set_name]
            if name in matching.values:
                position = axes.index(set_name)
                others = [s for i, s in enumerate(self._global_shape(name)) if i != position]
                return np.moveaxis(matching.values[name].reshape(matching.K, *others), 0, position)
        return self.average(name)

    def total(self, name: str) -> Array:
        """Sum over sites of array `name`, added through the matching (for counts)."""
        result = np.zeros(self._global_shape(name))
        for j, model in enumerate(self.models):
            np.add.at(result, self._places(j, name), np.asarray(model.arrays[name]))
        return result

    def average(self, name: str) -> Array:
        """Mean over the sites that have seen each entry of array `name`; NaN where none has."""
        number, total = np.zeros((2, *self._global_shape(name)))
        for j, model in enumerate(self.models):
            values = np.asarray(model.arrays[name])
            seen = np.asarray(model.weight.get(name, np.ones(values.shape))) > 0
            np.add.at(number, self._places(j, name), seen)
            np.add.at(total, self._places(j, name), np.where(seen, values, 0.0))
        return np.where(number > 0, total / np.maximum(number, 1.0), np.nan)

    def _global_shape(self, name: str) -> tuple[int, ...]:
        shape = np.shape(self.models[0].arrays[name])
        axes = self.models[0].axes[name]
        return tuple(n if axis is None else self.matchings[axis].K for n, axis in zip(shape, axes, strict=True))

    def _places(self, j: int, name: str) -> tuple[Any, ...]:
        """Where site j's entries of array `name` belong in the global array."""
        model = self.models[j]
        return np.ix_(
            *(
                np.arange(n) if axis is None else self.matchings[axis].labels[j]
                for n, axis in zip(np.shape(model.arrays[name]), model.axes[name], strict=True)
            )
        )

    @staticmethod
    def _one_array(by_name: Mapping[str, Any]) -> Mapping[str, Any]:
        if len(by_name) != 1:
            raise InputError(
                f"several arrays were matched together, {list(by_name)}: ask fusion.array(name) for values and "
                "fusion.matching.families[name] for hyperparameters."
            )
        return by_name

    def __repr__(self) -> str:
        sets = ", ".join(f"{m.K} {name}s from {len(m.stacked_labels)}" for name, m in self.matchings.items())
        state = "" if self.converged else ", not converged"
        return f"<Fusion of {len(self.sites)} sites: {sets}{state}>"
