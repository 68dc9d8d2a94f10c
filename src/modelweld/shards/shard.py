"""A *shard*: sites that lie together, read and put in an order that depends on their content alone.

Labels of a shard's values number its own atoms 0, 1, ...; which atom of the centre each of these is, the centre knows.
Values that are not fitted have a negative label: EXCLUDED, or DUPLICATE where their site repeats another.

A shard's matching as sums of rows (sufficient statistics): what of it travels, and how it is stated and renamed.

What a shard does with its values: fuse them by themselves, and match them again to the atoms of all shards.

Every shard screens its own sites as `fuse` would.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np
import scipy
from numpy.typing import NDArray

from modelweld.core.board import Board
from modelweld.core.family import Family, canonical_sign, learn_from_values, pools, rows_change, sum_by_atom
from modelweld.core.match import Parts, Plan
from modelweld.core.matching import Matching
from modelweld.core.prior import Fragments, Prior
from modelweld.core.values import (
    Array,
    Index,
    Stack,
    block_size,
    canonical_order,
    check_squares,
    group_of_values,
    offsets_of,
)
from modelweld.errors import Finding, InputError, SiteEffectWarning
from modelweld.families import Gaussian
from modelweld.fit.effects.first_look import find_site_effects
from modelweld.fit.effects.words import list_effects
from modelweld.fit.engines.choice import is_compilable, is_large, is_sparse
from modelweld.fit.engines.sparse_board import SparseBoard
from modelweld.fit.screening.clipping import clip_weights
from modelweld.fit.static_matcher import match
from modelweld.fuse import receive
from modelweld.inputs.local_model import LocalModel, check_finite
from modelweld.inputs.sets import check_units, families_by_set, local_models, stack_of
from modelweld.inputs.stacks import stack_arrays
from modelweld.kinds import kind_of
from modelweld.threads import blas_threads

Source = str | os.PathLike[str] | Sequence[Any] | Callable[[], Any]
"""Where a shard comes from: sites, a file or files of sites, or a function that brings them."""

Values = TypeVar("Values", bound=NDArray[Any])

EXCLUDED, COPIES = -1, -2
"""Labels of values that are not fitted: they say nothing or lie far from all others, or, from COPIES downwards, they
are a value of another site again: COPIES minus the number of that value."""


@dataclass(frozen=True, eq=False)
class About:
    """What a shard states about its sites before anything is fused.

    Attributes
    ----------
    family : Family
        How values scatter about their global value: as given, or what suits the kind of model.
    array : str
        The array that is matched, "set/array"; empty where sites are plain arrays.
    columns : tuple of str
        Names of its columns, where the sites name them.
    once, screened : bool
        Whether a site holds an atom once whatever it sends, and whether gross outliers are looked for.
    reasons : tuple of str
        What was bounded as it was read, and why.
    mark : bytes
        Of all values: shards are taken in an order that depends on content alone.
    sites, width : int
        How many sites and columns there are.
    changing, errors : bool
        Whether rows depend on hyperparameters, and whether values have standard errors.
    """

    family: Family
    array: str = ""
    columns: tuple[str, ...] = ()
    once: bool = False
    screened: bool = True
    reasons: tuple[str, ...] = ()
    mark: bytes = b""
    sites: int = 0
    width: int = 0
    changing: bool = False
    errors: bool = False

    def of(self, stack: Stack) -> About:
        """The same of these values."""
        arrays = [np.ascontiguousarray(a) for a in (stack.values, stack.variance, stack.weight) if a is not None]
        return replace(
            self,
            mark=hashlib.blake2b(b"".join(x.tobytes() for x in (*arrays, stack.offsets))).digest(),
            sites=len(stack.sizes),
            width=stack.values.shape[1],
            changing=rows_change(self.family, stack),
            errors=stack.variance is not None,
        )


@dataclass(frozen=True, eq=False)
class Shard:
    """Sites that lie together: their values in canonical order.

    Attributes
    ----------
    stack : Stack
        Values of all sites; groups and values in canonical order.
    order : int array (N,)
        Where each value stood when it was given.
    groups : int array (sites,)
        Which of the sites given each group is.
    offsets : int array (sites + 1,)
        Where the sites began when they were given.
    sites : tuple of str
        Their names, in the order given.
    about : About
        What is said of them before anything is fused.
    """

    stack: Stack
    order: Index
    groups: Index
    offsets: Index
    sites: tuple[str, ...]
    about: About

    @property
    def names(self) -> list[str]:
        """Names of the groups."""
        return [self.sites[j] for j in self.groups]

    def select_fitted(self, labels: Index) -> tuple[Stack, Index]:
        """The values that are fitted, and their labels; sites none of whose values are, are no groups."""
        rows = np.flatnonzero(labels >= 0)
        if len(rows) == len(labels):
            return self.stack, labels
        number = np.diff(np.concatenate([[0], np.cumsum(labels >= 0)])[self.stack.offsets])
        gone = (number == 0) & (self.stack.sizes > 0)
        return self.stack.take(rows, offsets_of(number[~gone])), labels[rows]

    def as_given(self, x: Values) -> list[Values]:
        """What belongs to the values, site by site, in the order in which sites and values were given."""
        back = np.empty_like(x)
        back[self.order] = x
        return [back[a:b] for a, b in pairwise(self.offsets)]


def is_compiled(stack: Stack, family: Family) -> bool:
    """Whether the compiled sweep does this job and is worth its compiler: as in `fuse`."""
    return is_compilable(family) and stack.plain and is_large(stack)


def load(source: Source, family: Family | None = None) -> Shard:
    """Read a shard: plain arrays (L_j, D), LocalModels with one matched array, fitted models, or files of these.

    Examples
    --------
    >>> shard = load([[[1.0], [0.0]], [[0.5]]])
    >>> shard.stack.values.ravel().tolist(), [v.tolist() for v in shard.as_given(shard.stack.values)]
    ([0.5, 0.0, 1.0], [[[1.0], [0.0]], [[0.5]]])
    """
    found = source() if callable(source) else source
    given = receive(found, nothing="a shard holds no site: give at least one.")
    if any(isinstance(m, LocalModel) for m in given):
        stack, names, about = _models(given, family)
    else:
        stack, names = stack_arrays(given), tuple(map(str, range(len(given))))
        about = About(Gaussian() if family is None else family)
        check_finite(stack.values, "a shard")
    check_squares(stack.values)
    groups, order = canonical_order([stack])
    arranged = canonical_sign(about.family, stack.take(order, offsets_of(stack.sizes[groups])))
    return Shard(arranged, order, groups, stack.offsets, names, about.of(arranged))


def _models(given: Sequence[Any], family: Family | None) -> tuple[Stack, tuple[str, ...], About]:
    """Values of local models, treated as `fuse` treats those of their kind, their names, and what is said of them."""
    models = local_models(given)
    check_units(models)
    names = tuple(m.site or str(j) for j, m in enumerate(models))
    if any(m.time is not None for m in models):
        raise InputError("shards are fused without times: leave them out, or use modelweld.fuse.")
    kind = kind_of(models)
    sites, reasons = clip_weights(kind.arrange(models), names)
    sites = kind.weigh(sites) if family is None else sites
    decided = families_by_set(sites, kind.families(sites) if family is None else family)
    if len(decided) != 1 or len(next(iter(decided.values()))) != 1:
        arrays = {name: list(families) for name, families in decided.items()}
        raise InputError(f"shards are fused by one array of one set; found {arrays}. Make the others auxiliary.")
    [(set_name, families)] = decided.items()
    [(key, chosen)] = families.items()
    along = models[0].along[str(key)]
    about = About(
        chosen,
        array=f"{set_name}/{key}",
        columns=tuple(name for a in along if a is not None for name in sites[0].coordinates[a]),
        once=kind.holds_atoms_once(sites),
        screened=kind.has_outliers,
        reasons=reasons,
    )
    return stack_of(sites, key, set_name, {}), names, about


@dataclass(frozen=True, eq=False)
class Summary:
    """A shard's matching as sums.

    Attributes
    ----------
    place : int array (K,)
        Each atom's number at the centre; numbers from that of the centre's atoms upwards are new ones.
    counts : int array (K,)
        Number of sites that hold each.
    rows : array (K, k)
        Sums of the rows of their values.
    values : int
        How many values there are: more than sites at atoms where sites hold atoms in fragments.
    ways : float
        In how many ways fragments could stand, as a logarithm: the lgamma of `modelweld.core.prior`,
        sum_rows.
    """

    place: Index
    counts: Index
    rows: Array
    values: int
    ways: float


def summarise(shard: Shard, labels: Index, numbers: Index, family: Family) -> tuple[Index, Summary]:
    """Labels of the shard's own from any `numbers` of atoms of the fitted values, and what the centre needs of them."""
    place, own = np.unique(numbers, return_inverse=True)
    labels = labels.copy()
    labels[labels >= 0] = own
    stack, own = shard.select_fitted(labels)
    J = len(stack.sizes)
    held, fragments = np.unique(own * J + group_of_values(stack.offsets), return_counts=True)
    counts = np.bincount(held // max(J, 1), minlength=len(place))
    ways = float(scipy.special.gammaln(fragments[fragments > 1] + 1.0).sum())
    return labels, Summary(place, counts, _sums(stack, own, len(place), family), len(own), ways)


def restate(shard: Shard, labels: Index, family: Family) -> Array:
    """Sums (K, k) of the rows of the shard's atoms, made with this family."""
    stack, own = shard.select_fitted(labels)
    return _sums(stack, own, int(own.max(initial=-1)) + 1, family)


def summary_of(shard: Shard, labels: Index, family: Family) -> Summary:
    """The shard's matching as it is, by this family."""
    return summarise(shard, labels, labels[labels >= 0], family)[1]


def pool_sites(stack: Stack, labels: Index, family: Family) -> tuple[Array, Index] | None:
    """Statistics of what sites hold of atoms, and these atoms, where some hold one in fragments that are pooled."""
    J = len(stack.sizes)
    held, cell = np.unique(labels * J + group_of_values(stack.offsets), return_inverse=True)
    if not pools(family) or len(held) == len(labels):
        return None
    return sum_by_atom(family.fragment_statistics(stack), cell.ravel()), held // J


def _sums(stack: Stack, labels: Index, K: int, family: Family) -> Array:
    """Rows added up by atom, some values at a time; fragments that are pooled all at once."""
    pooled = pool_sites(stack, labels, family)
    if pooled is not None and pools(family):
        return sum_by_atom(family.pool_fragments(pooled[0]), pooled[1], K)
    block, total = block_size(5 * stack.values.shape[1]), None
    for a in range(0, max(len(labels), 1), block):
        part = slice(a, a + block)
        beside = (None if x is None else x[part] for x in (stack.variance, stack.weight))
        sums = sum_by_atom(family.rows(stack.values[part], *beside), labels[part], K)
        total = sums if total is None else total + sums
    assert total is not None
    return total


class Atoms(NamedTuple):
    """The atoms of all shards, and what they are scored by: all that a shard must know of the others.

    `counts` (K,) of sites and `sums` (K, k) of rows hold this shard's own values, too: every group is taken out before
    it is matched. J is the number of sites of all shards.
    """

    counts: Index
    sums: Array
    family: Family
    prior: Prior
    fragments: Fragments | None
    J: int


class Learned(NamedTuple):
    """What a shard has learned by itself: hyperparameters, from so many values of so many atoms.

    `sizes` are those of its sites that are fitted; so many values are set `aside`, so many sites are `duplicates` of
    others, for these `reasons`.
    """

    family: Family
    values: int
    atoms: int
    sizes: Index
    aside: int
    duplicates: int
    reasons: tuple[str, ...]


def survey(shard: Shard, labels: Index | None = None) -> About:
    """What is known of a shard once it is loaded."""
    return shard.about


def fuse_shard(shard: Shard, labels: Index | None, plan: Plan, seed: int) -> tuple[Index, Learned]:
    """Screen and fuse this shard's sites by themselves, as `fuse` would: labels of its values, and what was learned."""
    about = shard.about
    parts: Parts = {about.array or "values": (shard.stack, about.family)}
    columns = [about.columns] if len(about.columns) == about.width else None
    with blas_threads(1):
        matching = match(parts, shard.names, plan, np.random.default_rng(seed), columns)
    site, own = group_of_values(shard.stack.offsets), matching.stacked_labels
    matching = exclude_differing(shard, matching, plan)
    labels = own.copy() if matching.kept is None else np.where(matching.kept, own, EXCLUDED)
    for copy, first in (matching.duplicates or {}).items():
        rows, others = np.flatnonzero(site == copy), np.flatnonzero(site == first)
        same = (own[rows][:, None] == own[others]) & (labels[others] >= 0)
        labels[rows] = np.where(same.any(axis=1), COPIES - others[same.argmax(axis=1)], EXCLUDED)
    fitted = labels >= 0
    labels[fitted] = np.unique(labels[fitted], return_inverse=True)[1]
    return labels, Learned(
        family=next(iter(matching.families.values())),
        values=int(fitted.sum()),
        atoms=int(labels.max(initial=-1)) + 1,
        sizes=shard.select_fitted(labels)[0].sizes,
        aside=int((labels == EXCLUDED).sum()),
        duplicates=len(matching.duplicates or ()),
        reasons=matching.reasons,
    )


def exclude_differing(shard: Shard, matching: Matching, plan: Plan) -> Matching:
    """Exclude sites that differ from the others of their shard by an offset or a scale: shards correct nothing."""
    effects = find_site_effects(shard.stack, matching, plan, lambda units: shard.about.family)
    if effects is None:
        return matching
    found = list_effects(effects, shard.names, [f"dimension {d}" for d in range(shard.stack.values.shape[1])])
    sites = list(dict.fromkeys(one.site for one in found))
    kept = np.ones(len(matching.stacked_labels), dtype=bool) if matching.kept is None else matching.kept
    odd = np.isin(group_of_values(shard.stack.offsets), [shard.names.index(site) for site in sites])
    text = f" differ by an offset or a scale (for instance {found[0].words}) and are excluded: correct them there."
    return replace(matching, kept=kept & ~odd).say(Finding(text, SiteEffectWarning, sites))


def learn_here(shard: Shard, labels: Index, family: Family) -> Family:
    """What this shard's values teach, as if it were alone."""
    stack, own = shard.select_fitted(labels)
    sums, pooled = restate(shard, labels, family), pool_sites(stack, own, family)
    if pooled is not None and pools(family):
        family = family.learn_fragments(pooled[0])
        stack, own = family.pool_stack(pooled[0], stack.offsets), pooled[1]
    return learn_from_values(family, stack, own, sums)


def propose(
    shard: Shard, labels: Index, place: Index, atoms: Atoms, seed: tuple[int, ...]
) -> tuple[Index, Summary | None]:
    """One sweep over this shard's sites given the atoms of all shards: new labels and sums; None if nothing changes.

    `place` has the centre's number of each of the shard's atoms, `seed` draws the order of the groups.
    """
    stack, own = shard.select_fitted(labels)
    order = np.random.default_rng(seed).permutation(len(stack.sizes))
    sweep = _sweep_compiled if atoms.fragments is None and is_compiled(stack, atoms.family) else _sweep
    with blas_threads(1):
        numbers, changed = sweep(stack, place[own], atoms, order)
    return summarise(shard, labels, numbers, atoms.family) if changed else (labels, None)


def _sweep(stack: Stack, numbers: Index, atoms: Atoms, order: Index) -> tuple[Index, int]:
    """The reference: every site's best assignment given all others, on a board that holds all shards' sums."""
    sparse = atoms.fragments is None and is_sparse([stack], [atoms.family], atoms.prior)
    board = (SparseBoard if sparse else Board)([stack], [atoms.family], atoms.prior, atoms.fragments)
    board.set_prior(atoms.prior, atoms.J)
    board.counts, board.sums, board.labels = atoms.counts.copy(), [atoms.sums.copy()], numbers.copy()
    changed = sum(board.step(int(j)) for j in order)
    return board.labels, changed


def _sweep_compiled(stack: Stack, numbers: Index, atoms: Atoms, order: Index) -> tuple[Index, int]:
    """The same for large shards."""
    from modelweld.fit.engines.compiled.packing import tabulate, vacant_atoms
    from modelweld.fit.engines.compiled.settle import find_bounds
    from modelweld.fit.engines.compiled.sweep import sweep

    family, (N, D), K = atoms.family, stack.values.shape, len(atoms.counts)
    assert isinstance(family, Gaussian)
    board = vacant_atoms(K + N, D, D if family.scalar else 2 * D)
    board.sums[:K], board.counts[:K] = atoms.sums[:, 2 * D : 3 * D], atoms.counts
    surcharge, steps = atoms.prior.surcharge(int(stack.sizes.max())), atoms.prior.increments(atoms.J)
    tables = tabulate(np.array(family.origin), family.hyperparameters, steps, surcharge, 0, atoms.J)
    bounds = find_bounds(board, K, tables, N)
    changed, *_ = sweep(stack.values, np.arange(N), stack.offsets, order, numbers, board, K, tables, bounds)
    return numbers, int(changed)
