"""A fusion as sufficient statistics: sums of rows per atom, nothing that one site sent.

Everything a family scores is computed from the sums of rows at an atom (for a Gaussian: number, sum and sum of squares
of its values), so a site can be added, or taken away again, when the local values are gone:

- Adding is exact at fixed hyperparameters: the new site gets its best assignment given the atoms, as in `Fusion.add`.
- Removing is exact if the owner brings what only the owner has left: the site's values, and the atoms they were given
  (its labels, or what `place` said). These labels cannot be found again from values and sums, because a value belongs
  where it was put, which need not be where it would be put today; nothing is guessed.
- Hyperparameters are then learned from the sums. No sweeps follow: values of other sites are not there to be moved.

Fusions of shards are such sums, too. What is left says no more of a site than its atoms do. But an atom that one site
alone holds *is* that site's value, here as in the fusion, and how many values each site sent is kept, sorted, because
the prior asks for it.

What a site that comes later must send: arrays like those of the sites before it, which are gone.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

import modelweld
from modelweld.core.board import Board
from modelweld.core.family import Conditional, Family, align_sign, find_misfit, gather, log_prior, rows_change
from modelweld.core.prior import Prior
from modelweld.core.values import Array, Index, Key, Stack, arrays_of, group_of_values
from modelweld.errors import InputError
from modelweld.families.capabilities import misfit_error, name_hyperparameters
from modelweld.inputs.feature_names import change_axes
from modelweld.inputs.local_model import LocalModel
from modelweld.inputs.sets import check_models, stack_of
from modelweld.kinds.fused_parts import keep_arrays
from modelweld.libraries.reading import read_site
from modelweld.results.fit_result import FitResult

SUMS_ROUNDING = 1e-6
"""Share of the largest sum by which what a site takes along may differ from what it brought: adding and subtracting
loses about 1e-15 of the largest sum each time, measuring values again far more."""


@dataclass(frozen=True, eq=False)
class SlimFusion:
    """What `fusion.slim()` gives: atoms and all it takes to add sites to them.

    Attributes
    ----------
    pattern : LocalModel
        The arrays of a site that decide the matching, with no members.
    families : dict of str, or tuple of str, to Family
        With learned hyperparameters.
    sums : dict of str, or tuple of str, to array (K, k)
        Sums of the families' rows, one row per atom.
    prior : Prior
        The prior of the matching.
    counts : int array (K,)
        Number of sites that hold each atom.
    sizes : int array (J,)
        How many values the sites sent, in increasing order.
    names : int array (K,)
        A number for each atom that stays its own when others come and go: the fusion's, then on from there.
    opened : int
        The name that the next new atom gets.

    Examples
    --------
    >>> import modelweld
    >>> fusion = modelweld.fuse([[[0.0, 0.1], [9.0, 9.1]], [[9.1, 8.9]], [[0.1, 0.0], [5.0, -5.0]]])
    >>> slim = fusion.slim()
    >>> late = [[5.1, -4.9], [-9.0, 9.0]]
    >>> slim.place(late)                              # which atoms its values belong to; 3 is new
    array([2, 3])
    >>> larger = slim.add(late)
    >>> larger.K, larger.counts
    (4, array([2, 2, 2, 1]))
    >>> larger.remove(late, [2, 3]).K
    3
    """

    pattern: LocalModel
    families: Mapping[Key, Family]
    sums: Mapping[Key, Array]
    prior: Prior
    counts: Index
    sizes: Index
    names: Index
    opened: int

    @property
    def K(self) -> int:
        """Number of groups that any site has, by the rule of `Fusion.K`."""
        return int((self.counts > 0).sum())

    @property
    def shared(self) -> int:
        """How many of them several sites have."""
        return int((self.counts > 1).sum())

    @property
    def values(self) -> dict[Key, Array]:
        """Global values of every array, one row per atom."""
        return {key: family.estimate(self.sums[key]) for key, family in self.families.items()}

    @property
    def atoms(self) -> Array:
        """Global values of the one array that was matched; those excluded come last."""
        return self.values[self._one_array]

    @property
    def family(self) -> Family:
        """The family of the one array that was matched."""
        return self.families[self._one_array]

    @property
    def hyperparameters(self) -> dict[str, Any]:
        """Learned hyperparameters of the one array that was matched, and the prior's."""
        return {**name_hyperparameters(self.family), **self.prior.parameters()}

    @property
    def objective(self) -> float:
        """Log probability of the matching plus log evidence."""
        value = self.prior.log_prob(self.counts, self.sizes)
        for key, family in self.families.items():
            value += float(family.log_evidence(self.sums[key]).sum()) + log_prior(family)
        return value

    def place(self, model: Any) -> Index:
        """Names of the atoms that a site's values belong to; new ones go on from `opened`.

        `add` puts them there. The owner who may want to leave again keeps the answer: `remove` asks for it.
        """
        return self._names_of(self._board(model))

    def add(self, model: Any, *, refit: bool = True) -> SlimFusion:
        """With one more site: matched to the atoms there are, then (`refit`) hyperparameters learned.

        Whether the site is a gross outlier or has a site effect is not asked: that takes the others' values.
        """
        board = self._board(model)
        names = np.union1d(self.names, self._names_of(board))
        more = self._with(
            sums=dict(zip(self.families, board.sums, strict=True)),
            counts=board.counts,
            sizes=np.sort(np.append(self.sizes, len(board.labels))),
            names=names,
            opened=self.opened + len(names) - len(self.names),
        )
        return more.learn() if refit else more

    def remove(self, model: Any, atoms: ArrayLike, *, refit: bool = True) -> SlimFusion:
        """With one site less, whose values and atoms its owner brings.

        Parameters
        ----------
        model : as it was added
            What the site sent.
        atoms : ints
            The atoms its values were given: the site's labels in the fusion, or what `place` said when it was added.
        refit : bool
            Whether hyperparameters are learned afterwards.

        Notes
        -----
        Where the site was an atom's only holder, values that are not those once added are refused. At atoms that
        others hold too they cannot be checked and are accepted.
        """
        stacks = self._stacks(model)
        L, given = len(stacks[0].values), np.asarray(atoms)
        if given.shape != (L,) or len(np.unique(given)) < L or not np.isin(given, self.names).all():
            what = f"{L} different ones of slim.names, one per value of the site (its labels, or what `place` gave)"
            raise InputError(f"atoms must be {what}; found {given.tolist()}.")
        if L not in self.sizes:
            raise InputError(f"no site with {L} values was fused; there are sites of {np.unique(self.sizes).tolist()}.")
        if len(self.sizes) == 1:
            raise InputError("the last site cannot be removed: nothing would be left.")
        where = np.searchsorted(self.names, given)
        counts = self.counts.copy()
        counts[where] -= 1
        left, sums = counts > 0, {}
        for (key, family), stack in zip(self.families.items(), stacks, strict=True):
            rest = self.sums[key].copy()
            rest[where] -= align_sign(family, family.rows(stack.values, stack.variance, stack.weight), rest[where])
            if np.abs(rest[~left]).max(initial=0.0) > SUMS_ROUNDING * np.abs(self.sums[key]).max():
                held = f"the site is the only holder of atoms {self.names[~left].tolist()}"
                raise InputError(f"{held}, but sent other values: give the same values, in the order of their atoms.")
            sums[key] = rest[left]
        sizes = np.delete(self.sizes, np.searchsorted(self.sizes, L))
        less = self._with(sums=sums, counts=counts[left], sizes=sizes, names=self.names[left])
        return less.learn() if refit else less

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Write everything to one safetensors file; ``modelweld.load`` reads it again, bit for bit."""
        self.check_sufficient()
        return modelweld.files.slim_file.save_slim(self, path, force=force)

    def learn(self) -> SlimFusion:
        """The same matching with hyperparameters learned from the sums; never lowers the objective."""
        return self._with(
            prior=self.prior.learn(self.counts, self.sizes),
            families={key: family.update(self.sums[key]) for key, family in self.families.items()},
        )

    def check_sufficient(self) -> None:
        """Refuse to go on where sums are not all there is to know; here they are."""

    def _with(self, **changes: Any) -> SlimFusion:
        """The same with some parts changed."""
        return SlimFusion(**{part.name: getattr(self, part.name) for part in fields(SlimFusion)} | changes)

    @property
    def _one_array(self) -> Key:
        if len(self.families) != 1:
            raise InputError(
                f"several arrays were matched together, {list(self.families)}: ask for values[name] and families[name]."
            )
        return next(iter(self.families))

    def _board(self, model: Any) -> Board:
        """A board that holds the new site alone, placed at the atoms of all others."""
        board = Board(self._stacks(model), list(self.families.values()), self.prior)
        board.set_prior(self.prior, len(self.sizes) + 1)
        board.counts, board.sums = self.counts.copy(), [sums.copy() for sums in self.sums.values()]
        board.step(0)
        return board

    def _names_of(self, board: Board) -> Index:
        """Names of the atoms of a site that was placed."""
        fresh = self.opened + np.arange(len(board.counts) - len(self.names))
        return np.concatenate([self.names, fresh])[board.labels]

    def _stacks(self, model: Any) -> list[Stack]:
        """One stack per family of what a site sends, checked against what the others sent."""
        self.check_sufficient()
        own = conform(model, self.pattern)
        (set_name,) = self.pattern.sizes
        stacks = [stack_of([own], key, set_name, {}) for key in self.families]
        for (key, family), stack in zip(self.families.items(), stacks, strict=True):
            found = find_misfit(family, stack)
            if found is not None:
                raise misfit_error(family, found, stack, [own.site], key)
            _check_sufficient(family, stack, key)
        return stacks

    def __getattr__(self, name: str) -> Any:
        """What is not there is likely something that a Fusion has."""
        what = "it holds neither values nor labels of sites: ask the fusion before it is made slim"
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}; {what}.")

    def __repr__(self) -> str:
        (set_name,) = self.pattern.sizes
        return f"<{type(self).__name__} of {len(self.sizes)} sites: {self.K} {set_name}s ({self.shared} shared)>"


def slim(fit: FitResult) -> SlimFusion:
    """The fusion without its sites; gross outliers, which are atoms of their own, go with them."""
    if len(fit.matchings) != 1:
        raise InputError(f"slim is for one set; this fusion matched {list(fit.matchings)}.")
    ((set_name, matching),) = fit.matchings.items()
    if matching.prior is None or not matching.families:
        raise InputError(f"a fusion by {matching.engine!r} has no model that could go on from sums; use fuse.")
    if matching.delta > 0:
        raise InputError("slim: some sites hold atoms in fragments; fuse with search=Search(splits=False).")
    stacks = fit.stacks(set_name)
    for (key, family), stack in zip(matching.families.items(), stacks, strict=True):
        _check_sufficient(family, stack, key)
    if matching.duplicates:
        copy, first = next(iter(matching.duplicates.items()))
        both = f"sites {fit.sites[first]!r} and {fit.sites[copy]!r}"
        raise InputError(f"slim: {both} coincide and are counted once. Remove one first.")
    J, N = len(stacks[0].sizes), len(matching.stacked_labels)
    kept = np.ones(N, dtype=bool) if matching.kept is None else matching.kept
    sizes = np.bincount(group_of_values(stacks[0].offsets)[kept], minlength=J)
    counts = matching.counts[: matching.atoms_fitted]
    labels = np.where(kept, matching.stacked_labels, -1)
    return SlimFusion(
        pattern=pattern_of(fit.models, [name for key in matching.families for name in arrays_of(key)]),
        families=dict(matching.families),
        sums={
            key: gather(family, family.rows(stack.values, stack.variance, stack.weight), labels, len(counts))[1]
            for (key, family), stack in zip(matching.families.items(), stacks, strict=True)
        },
        prior=matching.prior,
        counts=counts.copy(),
        sizes=np.sort(sizes[(sizes > 0) | (stacks[0].sizes == 0)]),
        names=np.arange(len(counts)),
        opened=len(counts),
    )


def _check_sufficient(family: Family, stack: Stack, key: Key) -> None:
    """Refuse where sums of rows are not sufficient to refit."""
    why = "sites send a variance" if stack.variance is not None else ""
    why = why or ("rows depend on learned hyperparameters" if rows_change(family, stack) else "")
    if why or isinstance(family, Conditional):
        what = f"array {key!r}, {type(family).__name__}: {why or 'it works on the values themselves'}"
        raise InputError(f"{what}, so that sums cannot be refitted without the values. Keep the fusion.")


NEW_SITE = "new"
"""What messages call a site that has no name."""


def conform(model: Any, pattern: LocalModel) -> LocalModel:
    """What a site sends, as a LocalModel in the order of the pattern; refused if it is not like those before."""
    arrays, nothing = list(pattern.arrays), isinstance(model, (list, tuple)) and not model
    own = pattern if nothing else read_site(model)
    absent = sorted(set(arrays) - set(own.arrays))
    if absent:
        raise InputError(f"the site must send {arrays}, like those before; {absent} is not there.")
    _check_weights(own, pattern)
    own = keep_arrays(own, arrays)
    aligned, own = check_models([pattern, own.with_(site=own.site or NEW_SITE, auxiliary=())])
    if aligned.coordinates != pattern.coordinates:
        raise InputError("the site names coordinates that those before do not have: fuse all again, or leave them out.")
    return own


def pattern_of(models: Sequence[LocalModel], names: Sequence[str]) -> LocalModel:
    """These arrays of a site without members; with a weight where sites sent one that is not 0 or 1."""
    first = keep_arrays(models[0], names)
    (set_name,) = first.sizes
    empty = change_axes(first, set_name, lambda x, axis: np.take(x, [], axis=axis))["arrays"]
    weight = {n: np.ones_like(empty[n]) for n in names if any(_has_weight(model, n) for model in models)}
    return first.with_(arrays=empty, variance={}, weight=weight, auxiliary=(), site="", kind="", facts={}, time=None)


def _has_weight(model: LocalModel, name: str) -> bool:
    """Whether a weight other than 0 and 1 is sent."""
    return name in model.weight and not np.isin(model.weight[name], (0.0, 1.0)).all()


def _check_weights(own: LocalModel, pattern: LocalModel) -> None:
    """A weight is sent by all sites or by none."""
    for name in pattern.arrays:
        before = name in pattern.weight
        if before != (name in own.weight if before else _has_weight(own, name)):
            sent = "the sites before sent one and this one does not" if before else "only this site sends one"
            raise InputError(f"array {name!r}: a weight is sent by all sites or by none; {sent}.")
