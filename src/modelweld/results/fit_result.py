"""What a fit leaves: models, matchings and settings, and the boards from which everything else is computed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np

from modelweld.core.board import Board
from modelweld.core.family import Family, Signless, is_signless
from modelweld.core.matching import Matching, by_count, ranks
from modelweld.core.prior import Fragments, Prior
from modelweld.core.values import Array, Index, Key, Stack, arrange, group_of_values
from modelweld.errors import SHOWN, InputError
from modelweld.fit.effects.corrections import SiteEffects
from modelweld.fit.search.parts import Parts
from modelweld.inputs.clock import Time
from modelweld.inputs.local_model import LocalModel
from modelweld.inputs.sets import stack_of
from modelweld.inputs.stacks import stack_arrays
from modelweld.results.global_arrays import GlobalArrays, one_array
from modelweld.results.without_sites import first_sites, select_sites, sites_of_usual_size

Thing = TypeVar("Thing")


class Recipe(NamedTuple):
    """What was received, as it was, and how it was fused: `fuse` takes sites and their names."""

    given: Sequence[Any]
    fuse: Callable[[Sequence[Any], Sequence[str]], FitResult]


@dataclass(eq=False, repr=False)
class FitResult(GlobalArrays):
    """Models, sites, matchings and settings: what stands behind a `Fusion`, and what the rooms work with.

    Boards, one per set and order of values, are made once, when they are first asked for; so are draws.

    Attributes
    ----------
    given : sequence of LocalModel or of arrays
        What was fused.
    sites, matchings, settings
        As in `Fusion`.
    recipe : Recipe or None
        How to fuse other sites in the same way; None where that is not known.
    before : tuple of str and FitResult, or None
        The site that was added last, and the fit before that.
    """

    given: Sequence[Any]
    sites: list[str]
    matchings: dict[str, Matching]
    settings: dict[str, Any] = field(default_factory=dict)
    recipe: Recipe | None = None
    before: tuple[str, FitResult] | None = None
    _made: dict[tuple[Any, ...], Any] = field(default_factory=dict)

    def with_(self, **others: Any) -> FitResult:
        """The same with other models, sites, matchings or settings; how it was made is not known then, unless given."""
        return replace(self, **{"recipe": None, "before": None, "_made": {}, **others})

    @cached_property
    def models(self) -> list[LocalModel]:
        """The local models that were fused."""
        if self.has_models:
            return list(self.given)
        return [self._plain_model(j) for j in range(len(self.sites))]

    @property
    def first_model(self) -> LocalModel:
        """The first of them, for what all have in common."""
        return self.given[0] if self.has_models else self._plain_model(0)

    @property
    def has_models(self) -> bool:
        """Whether sites sent models, and not plain arrays."""
        return any(isinstance(model, LocalModel) for model in self.given)

    @property
    def times(self) -> list[Time] | None:
        """When each site's model was trained; None where that was not said."""
        times = [model.time for model in self.models]
        return None if any(time is None for time in times) else times

    def _plain_model(self, j: int) -> LocalModel:
        """What a site sent that sent an array."""
        [stack], site = self.stacks(next(iter(self.matchings))), self.sites[j]
        values = stack.values[stack.offsets[j] : stack.offsets[j + 1]]
        return LocalModel({"values": values}, {"values": ("atom", None)}, site=site)

    def drop_duplicates(self) -> FitResult:
        """The same without sites that repeat another in every set, made once; itself where there are none."""
        return self._of_sites(first_sites(self))

    def drop_oversized(self) -> FitResult:
        """The same without sites that were excluded for their number, made once; itself where there are none."""
        return self._of_sites(sites_of_usual_size(self))

    def counted(self) -> FitResult:
        """The same without either."""
        return self.drop_oversized().drop_duplicates()

    def _of_sites(self, stay: Sequence[int]) -> FitResult:
        if len(stay) == len(self.sites):
            return self
        return self.cache(
            ("sites", *stay),
            lambda: self.with_(
                given=[self.given[j] for j in stay],
                sites=[self.sites[j] for j in stay],
                matchings={name: select_sites(matching, stay) for name, matching in self.matchings.items()},
            ),
        )

    def cache(self, key: tuple[Any, ...], make: Callable[[], Thing]) -> Thing:
        """What is made when it is first asked for, and kept."""
        if key not in self._made:
            self._made[key] = make()
        found: Thing = self._made[key]
        return found

    @property
    def family(self) -> Family:
        """The family, with learned hyperparameters, of the one array that was matched."""
        return one_array(self.matching.families)

    @property
    def effects(self) -> SiteEffects | None:
        """What sites differed by, and was corrected; None: nothing."""
        return next((m.effects for m in self.matchings.values() if m.effects is not None), None)

    @property
    def signs(self) -> list[Array]:
        """Of each local parameter, one array per site: -1 where it agrees with its atom turned round, else 1."""
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

    def site_number(self, site: int | str) -> int:
        """The number of a site that is given by name or number; negative ones count nothing."""
        if isinstance(site, str):
            if site in self.sites:
                return self.sites.index(site)
            more = f" and {len(self.sites) - SHOWN} more" if len(self.sites) > SHOWN else ""
            raise InputError(f"there is no site {site!r}; there are {', '.join(map(repr, self.sites[:SHOWN]))}{more}.")
        if isinstance(site, (int, np.integer)) and not isinstance(site, bool) and 0 <= site < len(self.sites):
            return int(site)
        raise InputError(f"sites are numbered from 0 to {len(self.sites) - 1}; there is no site {site!r}.")

    def find_set(self, set_name: str | None = None) -> tuple[str, Matching]:
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
            if not self.has_models:
                return [stack_arrays(self.given)]
            keys = self.matchings[set_name].values
            return [stack_of(self.models, key, set_name, self.matchings) for key in keys]

        return self.cache(("stacks", set_name), make)

    def parts(self, set_name: str | None = None) -> Parts:
        """The fit, a few sites at a time: for what is asked of every site. Made once."""
        name, matching = self.find_set(set_name)
        labels = matching.stacked_labels
        return self.cache(("parts", name), lambda: Parts(self.stacks(name), *self._model(name), labels))

    def board(self, set_name: str | None = None) -> Board:
        """The board at the end of the fit, from which scores and probabilities are computed. Made once: do not move it.

        Values stand in the order given.
        """
        name, matching = self.find_set(set_name)
        labels = matching.stacked_labels
        return self.cache(("board", name), lambda: Board(self.stacks(name), *self._model(name), labels))

    def canonical_board(self, set_name: str) -> tuple[Board, Index]:
        """The same, values in an order that depends on their content alone; and where they stand in the order given."""

        def make() -> tuple[Board, Index]:
            stacks, order = arrange(self.stacks(set_name))
            return Board(stacks, *self._model(set_name), self.matchings[set_name].stacked_labels[order]), order

        return self.cache(("canonical board", set_name), make)

    def _model(self, name: str) -> tuple[list[Family], Prior, Fragments | None]:
        """Families, prior and fragments of a set."""
        matching = self.matchings[name]
        if matching.prior is None or not matching.families:
            raise InputError(
                f"this matching is a baseline's ({matching.engine}): without a family and a prior there are no scores "
                "and no probabilities."
            )
        if matching.engine == "time":
            raise InputError(
                "this is not asked of groups that have times, whose atoms move: ask fusion.timeline.path(atom), "
                "lifetimes(), forecast(time), or at(time) for the model of a day, which can be asked like any other."
            )
        return list(matching.families.values()), matching.prior.as_probability(), matching.splits

    def __getstate__(self) -> dict[str, object]:
        return {**vars(self), "_made": {}, "before": None}  # made again where it is asked for


def matching_by_labels(
    labels: Index,
    offsets: Index,
    name: str,
    values: Array,
    engine: str,
    *,
    prior: Prior | None = None,
    families: Mapping[Key, Family] | None = None,
    objective: float = float("nan"),
) -> Matching:
    """The matching of a method that is not `fuse`, from labels and the atoms' values, numbered as `fuse` numbers them.

    An atom counts once per site, also where a site holds it more than once.
    """
    held = np.unique(np.stack([labels, group_of_values(offsets)]), axis=1)[0]
    counts = np.bincount(held, minlength=len(values))
    number = by_count(counts, values)
    return Matching(
        stacked_labels=ranks(number)[labels],
        offsets=offsets,
        counts=counts[number],
        families=families or {},
        values={name: values[number]},
        prior=prior,
        objective=objective,
        history=() if np.isnan(objective) else (objective,),
        changes=(),
        converged=True,
        engine=engine,
    )
