"""What was fused and how it was matched, and the boards from which questions about that are answered."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, Self, TypeVar

import numpy as np

from modelweld.core.board import Board
from modelweld.core.family import Family, Signless, is_signless
from modelweld.core.matching import Matching
from modelweld.core.prior import Fragments, Prior
from modelweld.core.values import Array, Index, Key, Stack, arrange
from modelweld.errors import InputError
from modelweld.families.capabilities import name_hyperparameters
from modelweld.fit.search.parts import Parts
from modelweld.inputs.local_model import LocalModel
from modelweld.inputs.names import SHOWN
from modelweld.inputs.plain_tables import stack_arrays
from modelweld.inputs.sets import stack_of
from modelweld.results.diagnostics.global_arrays import GlobalArrays
from modelweld.results.diagnostics.without_sites import staying, without_oversized

Thing = TypeVar("Thing")


class Matched:
    """Models, sites, matchings and settings: the ground of `Questions`.

    Boards, one per set and order of values, are made once, when they are first asked for; so are draws.
    """

    def __init__(
        self,
        models: Sequence[Any],
        sites: Sequence[str],
        matchings: Mapping[str, Matching],
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self.given = models
        self.sites = list(sites)
        self.matchings = dict(matchings)
        self.settings = dict(settings or {})
        self._made: dict[tuple[Any, ...], Any] = {}

    @cached_property
    def models(self) -> list[LocalModel]:
        """The local models that were fused."""
        if self._is_modelled:
            return list(self.given)
        return [self._plain_model(j) for j in range(len(self.sites))]

    @property
    def first_model(self) -> LocalModel:
        """The first of them, for what all have in common."""
        return self.given[0] if self._is_modelled else self._plain_model(0)

    @property
    def _is_modelled(self) -> bool:
        return any(isinstance(model, LocalModel) for model in self.given)

    def _plain_model(self, j: int) -> LocalModel:
        """What a site sent that sent an array."""
        [stack], site = self.stacks(next(iter(self.matchings))), self.sites[j]
        values = stack.values[stack.offsets[j] : stack.offsets[j + 1]]
        return LocalModel({"values": values}, {"values": ("atom", None)}, site=site)

    def once(self) -> Self:
        """The same without sites that repeat another in every set, made once; itself where there are none."""
        return self._of_sites(staying(self))

    def without_oversized(self) -> Self:
        """The same without sites that were excluded for their number, made once; itself where there are none."""
        return self._of_sites(without_oversized(self))

    def _of_sites(self, stay: Sequence[int]) -> Self:
        if len(stay) == len(self.sites):
            return self
        return self.made_once(
            ("sites", *stay),
            lambda: type(self)(
                [self.given[j] for j in stay],
                [self.sites[j] for j in stay],
                {name: matching.of_sites(stay) for name, matching in self.matchings.items()},
                self.settings,
            ),
        )

    def made_once(self, key: tuple[Any, ...], make: Callable[[], Thing]) -> Thing:
        """What was made when it was first asked for."""
        if key not in self._made:
            self._made[key] = make()
        found: Thing = self._made[key]
        return found

    @property
    def matching(self) -> Matching:
        """The matching, when there is one set."""
        if not self.matchings:
            raise InputError("nothing was matched: what these sites sent has names, by which it was put together.")
        if len(self.matchings) != 1:
            raise InputError(
                f"this fusion matched the sets {list(self.matchings)}: ask fusion.matchings[name] for one of them."
            )
        return next(iter(self.matchings.values()))

    @property
    def K(self) -> int:
        """Number of atoms that are not excluded."""
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
        """Global values of the one array that was matched, one row per atom: K, then those excluded."""
        return next(iter(self._one_array(self.matching.values).values()))

    @property
    def signs(self) -> list[Array]:
        """Of each local parameter, one array per site: -1 where it agrees with its atom turned round, else 1.

        Ones where values have signs of their own; see ``Directions(axial=True)`` and `Factors`. With several sets, of
        the first in which some have none.
        """
        name, key = next(
            ((name, key) for name, m in self.matchings.items() for key, f in m.families.items() if is_signless(f)),
            (next(iter(self.matchings)), None),
        )
        matching = self.matchings[name]
        signs = np.ones(len(matching.stacked_labels))
        if key is not None and isinstance(family := matching.families[key], Signless):
            stack, atoms = self.stacks(name)[list(matching.values).index(key)], matching.values[key]
            agreement = family.agreement(stack, atoms[matching.stacked_labels])
            signs = np.where(agreement < 0, -1.0, 1.0)
        return [signs[a:b] for a, b in pairwise(matching.offsets.tolist())]

    @property
    def family(self) -> Family:
        """The family, with learned hyperparameters, of the one array that was matched."""
        return next(iter(self._one_array(self.matching.families).values()))

    @property
    def hyperparameters(self) -> dict[str, Any]:
        """Learned hyperparameters of the one array that was matched, and the prior's."""
        prior = {} if self.matching.prior is None else self.matching.prior.parameters()
        return {**name_hyperparameters(self.family), **prior}

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
        return self._arrays.array(name)

    def total(self, name: str) -> Array:
        """Sum over sites of array `name`, added through the matching (for counts)."""
        return self._arrays.total(name)

    def average(self, name: str) -> Array:
        """Mean over the sites that have seen each entry of array `name`; NaN where none has."""
        return self._arrays.average(name)

    @property
    def _arrays(self) -> GlobalArrays:
        return GlobalArrays(self.models, self.matchings)

    @staticmethod
    def _one_array(by_name: Mapping[Key, Thing]) -> Mapping[Key, Thing]:
        if len(by_name) != 1:
            raise InputError(
                f"several arrays were matched together, {list(by_name)}: ask fusion.array(name) for values and "
                "fusion.matching.families[name] for hyperparameters."
            )
        return by_name

    def number_of(self, site: int | str) -> int:
        """The number of a site that is given by name or number; negative ones count nothing."""
        if isinstance(site, str):
            if site in self.sites:
                return self.sites.index(site)
            more = f" and {len(self.sites) - SHOWN} more" if len(self.sites) > SHOWN else ""
            raise InputError(f"there is no site {site!r}; there are {', '.join(map(repr, self.sites[:SHOWN]))}{more}.")
        if isinstance(site, (int, np.integer)) and not isinstance(site, bool) and 0 <= site < len(self.sites):
            return int(site)
        raise InputError(f"sites are numbered from 0 to {len(self.sites) - 1}; there is no site {site!r}.")

    def named_set(self, set_name: str | None = None) -> tuple[str, Matching]:
        """The set of this name and its matching; None means the only one."""
        if set_name is None:
            matching = self.matching
            return next(iter(self.matchings)), matching
        if set_name not in self.matchings:
            raise InputError(f"no set {set_name!r} was matched; there are {list(self.matchings)}.")
        return set_name, self.matchings[set_name]

    def stacks(self, set_name: str) -> list[Stack]:
        """The values of a set as they were given, one stack per array, or per family of several. Made once."""

        def make() -> list[Stack]:
            if not self._is_modelled:
                return [stack_arrays(self.given)]
            keys = self.matchings[set_name].values
            return [stack_of(self.models, key, set_name, self.matchings) for key in keys]

        return self.made_once(("stacks", set_name), make)

    def parts(self, set_name: str | None = None) -> Parts:
        """The fit, a few sites at a time: for what is asked of every site. Made once."""
        name, matching = self.named_set(set_name)
        labels = matching.stacked_labels
        return self.made_once(("parts", name), lambda: Parts(self.stacks(name), *self._settings(name), labels))

    def board(self, set_name: str | None = None, *, canonical: bool = False) -> Board:
        """The board at the end of the fit, from which scores and probabilities are computed. Made once: do not move it.

        Values stand in the order given, or `canonical`, in one that depends on their content alone (`core.values`).
        """
        return self.arranged_board(self.named_set(set_name)[0], canonical)[0]

    def arranged_board(self, set_name: str, canonical: bool = True) -> tuple[Board, Index]:
        """The same board, and where its values stand in the order given."""
        return self.made_once(("board", set_name, canonical), lambda: self._make_board(set_name, canonical))

    def _make_board(self, name: str, canonical: bool) -> tuple[Board, Index]:
        """The board of a set, and where its values stand in the order given."""
        settings, labels = self._settings(name), self.matchings[name].stacked_labels
        stacks, order = self.stacks(name), np.arange(len(labels))
        if canonical:
            stacks, order = arrange(stacks)
        return Board(stacks, *settings, labels[order]), order

    def _settings(self, name: str) -> tuple[list[Family], Prior, Fragments | None]:
        """Families, prior and fragments of a set."""
        matching = self.matchings[name]
        if matching.prior is None or not matching.families:
            raise InputError(
                f"this matching is a baseline's ({matching.engine}): without a family and a prior there are no scores "
                "and no probabilities."
            )
        if matching.engine == "time":
            raise InputError(
                "this is not asked of groups that have times, whose atoms move: ask fusion.path(atom), fusion.lives(), "
                "fusion.forecast(time), or fusion.at(time) for the model of a day, which can be asked like any other."
            )
        return list(matching.families.values()), matching.prior.as_probability(), matching.splits

    def __getstate__(self) -> dict[str, object]:
        return {**vars(self), "_made": {}, "before": None}  # made again where it is asked for
