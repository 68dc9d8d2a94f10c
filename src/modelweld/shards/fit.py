"""What a shard does with its values: fuse them by themselves, and match them again to the atoms of all shards.

What a shard says of itself before anything is fused, and which of its values stay out of the fit.

Every shard screens its own sites as `fuse` would: what says nothing before all else, the rest as it is fused
(`shards.fit`). What takes all sites to see, the centre finds by what shards say: sites of far too many values (by their
sizes), and sites that repeat another to the last bit (by the `marks` of what they sent).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from modelweld.core.algorithm1 import AnyBoard
from modelweld.core.board import Board
from modelweld.core.family import Family, find_misfit, find_starts, rows_change
from modelweld.core.match import through
from modelweld.core.matching import Matching, make_matching
from modelweld.core.plan import Plan
from modelweld.core.prior import Fragments, Prior
from modelweld.core.values import Array, Index, SetValues, Stack, group_of_values
from modelweld.families import Gaussian
from modelweld.families.registry import misfit_error
from modelweld.fit.engines.choice import is_sparse
from modelweld.fit.engines.sparse_board import SparseBoard
from modelweld.fit.screening.duplicate_sites import FEWEST_OWN
from modelweld.fit.screening.screens import exclude_oversized, find_oversized, find_unobserved, number_rows
from modelweld.fit.search.starts import run
from modelweld.fit.static_matcher import screens_of
from modelweld.shards.shard import DUPLICATE, EXCLUDED, Shard, Summary, is_compiled, summarise
from modelweld.threads import blas_threads


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


def fuse_shard(
    shard: Shard, labels: Index, plan: Plan, prior: Prior, seed: int, oversized: Index, duplicates: Index
) -> tuple[Index, Learned]:
    """Screen and fuse this shard's sites by themselves, as `fuse` would: labels of its values, and what was learned.

    Parameters
    ----------
    shard, labels : Shard, int array
        The shard, and which of its values are fitted.
    plan, prior, seed
        How hard to look.
    oversized, duplicates : int arrays
        Sites that are not fitted: those of far too many values, and those that repeat another.
    """
    site, labels = group_of_values(shard.stack.offsets), labels.copy()
    for sites, label in ((oversized, EXCLUDED), (duplicates, DUPLICATE)):
        labels[np.isin(site, sites) & (labels >= 0)] = label
    family, reasons = find_starts(shard.family, shard.select_fitted(labels)[0])[0], tuple[str, ...]()
    values = shard.values_of(np.flatnonzero(labels >= 0))
    if len(values.rows):
        with blas_threads(1):
            matching, fitted, board = _fit_screened(values, plan, prior, np.random.default_rng(seed))
        family, reasons = board.families[0], matching.reasons
        labels[values.rows] = np.where(
            np.isin(group_of_values(values.offsets), list(matching.duplicates or ())), DUPLICATE, EXCLUDED
        )
        labels[fitted] = board.labels
    number = np.bincount(labels[labels >= 0])
    sizes = shard.select_fitted(labels)[0].sizes
    repeated = len(np.unique(site[labels == DUPLICATE]))
    return labels, Learned(
        family, int(number.sum()), len(number), sizes, int((labels == EXCLUDED).sum()), repeated, reasons
    )


def _fit_screened(
    values: SetValues, plan: Plan, prior: Prior, rng: np.random.Generator
) -> tuple[Matching, Index, AnyBoard]:
    """The matching of all values, which of them were fitted at last, and on which board.

    The centre has excluded sites that are oversized compared with those of all shards.
    """
    last: list[tuple[Index, AnyBoard]] = []

    def fit(values: SetValues) -> Matching:
        board, progress, order = run(values.stacks, values.families, prior, plan, rng)
        last[:] = [(values.rows[order], board)]
        return make_matching(board, progress, values.names, order, values.offsets, progress.history[-1])

    def refit(old: Matching, values: SetValues, labels: Index, *, learn: bool = True) -> Matching:
        return fit(values)

    screens = [screen for screen in screens_of(plan, refit) if screen is not exclude_oversized]
    return through(screens, fit)(values), *last[0]


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


def board_of(stack: Stack, atoms: Atoms, numbers: Index | None = None) -> Board:
    """A board of these values on which atoms are those of all shards."""
    sparse = atoms.fragments is None and is_sparse([stack], [atoms.family], atoms.prior)
    make = SparseBoard if sparse else Board
    board = make([stack], [atoms.family], atoms.prior, atoms.fragments)
    board.set_prior(atoms.prior, atoms.J)
    board.set_atoms(atoms.counts, [atoms.sums], numbers)
    return board


def _sweep(stack: Stack, numbers: Index, atoms: Atoms, order: Index) -> tuple[Index, int]:
    """Every group's best assignment on the reference board."""
    board = board_of(stack, atoms, numbers)
    changed = sum(board.step(int(j)) for j in order)
    return board.labels, changed


def _sweep_compiled(stack: Stack, numbers: Index, atoms: Atoms, order: Index) -> tuple[Index, int]:
    """The same for large shards."""
    from modelweld.fit.engines.compiled.packing import tabulate, vacant_atoms
    from modelweld.fit.engines.compiled.sweep import sweep

    family, (N, D), K = atoms.family, stack.values.shape, len(atoms.counts)
    assert isinstance(family, Gaussian)
    board = vacant_atoms(K + N, D, D if family.scalar else 2 * D)
    board.sums[:K], board.counts[:K] = atoms.sums[:, 2 * D : 3 * D], atoms.counts
    surcharge, steps = atoms.prior.surcharge(int(stack.sizes.max())), atoms.prior.increments(atoms.J)
    tables = tabulate(np.array(family.origin), *family.hyperparameters, steps, surcharge, 0, atoms.J)
    done = np.zeros(5, dtype=np.int64)
    sweep(stack.values, np.arange(N), stack.offsets, order, numbers, board, K, tables, done)
    return numbers, int(done[0])


GONE = -1
"""Size of a site that is excluded whole."""


@dataclass(frozen=True, eq=False)
class Survey:
    """Numbers, scales, and marks that tell what was sent from what others sent.

    Attributes
    ----------
    mark : bytes
        Of the whole shard: shards are taken in an order that depends on content alone.
    marks : uint64 array (sites,)
        Of every site's values.
    sizes : int array (sites,)
        How many values of every site are fitted; GONE where none is of those it sent.
    family : Family
        How values scatter: as given, or what suits the kind of model.
    changing, once, screened : bool
        Whether rows depend on hyperparameters, sites hold atoms once, and gross outliers are looked for.
    errors : bool
        Whether values have standard errors.
    array, columns, width
        What is matched, names of its columns, their number.
    reasons : tuple of str
        What was bounded or excluded, and why: weights, counts, values that say nothing or repeat others.
    """

    mark: bytes
    marks: NDArray[np.uint64]
    sizes: Index
    family: Family
    changing: bool
    once: bool
    screened: bool
    errors: bool
    array: str
    columns: tuple[str, ...]
    width: int
    reasons: tuple[str, ...]


def survey(shard: Shard, labels: Index | None, screen: bool) -> tuple[Index, Survey]:
    """Labels that say which values are fitted (zero) and which not, and what the centre needs to know."""
    stack, family = shard.stack, shard.family
    found = find_misfit(family, stack)
    if found is not None:
        raise misfit_error(family, found, stack, shard.names, shard.array or "values")
    keep, reasons, _ = (
        find_unobserved(number_rows(shard.values_of(np.arange(len(stack.values))))) if screen else (None, [], None)
    )
    labels = np.zeros(len(stack.values), dtype=np.int64) if keep is None else np.where(keep, 0, EXCLUDED)
    fitted, _ = shard.select_fitted(labels)
    kept = np.diff(np.concatenate([[0], np.cumsum(labels == 0)])[stack.offsets])
    marks = _marks(stack)
    return labels, Survey(
        mark=hashlib.blake2b(marks.tobytes() + stack.offsets.tobytes()).digest(),
        marks=marks,
        sizes=np.where((kept == 0) & (stack.sizes > 0), GONE, kept),
        family=family,
        changing=rows_change(family, fitted),
        once=shard.once,
        screened=shard.screened,
        errors=stack.variance is not None,
        array=shard.array,
        columns=shard.columns,
        width=stack.values.shape[1],
        reasons=(*shard.reasons, *reasons),
    )


def _marks(stack: Stack) -> NDArray[np.uint64]:
    """A number drawn from what each site sent."""
    arrays = [np.ascontiguousarray(a) for a in (stack.values, stack.variance, stack.weight) if a is not None]

    def mark(a: int, b: int) -> bytes:
        return hashlib.blake2b(b"".join(x[a:b].tobytes() for x in arrays), digest_size=8).digest()

    return np.frombuffer(b"".join(mark(a, b) for a, b in pairwise(stack.offsets.tolist())), dtype=np.uint64)


def list_oversized(surveys: Sequence[Survey]) -> list[Index]:
    """Of every shard the sites that send far more values than others of all shards do."""
    return _by_shard(find_oversized(np.maximum(np.concatenate([x.sizes for x in surveys]), 0)), surveys)


def list_duplicates(surveys: Sequence[Survey]) -> list[Index]:
    """Of every shard the sites that repeat another of it, or of a shard before it; none where all sites coincide."""
    marks, sizes = (np.concatenate([getattr(x, name) for x in surveys]) for name in ("marks", "sizes"))
    compared = np.flatnonzero(sizes >= FEWEST_OWN)
    distinct, first = np.unique(marks[compared], return_index=True)
    if len(distinct) == 1:
        return _by_shard(np.arange(0), surveys)
    return _by_shard(np.delete(compared, first), surveys)


def _by_shard(sites: Index, surveys: Sequence[Survey]) -> list[Index]:
    """Sites numbered through all shards, as those of each."""
    first = np.cumsum([0, *(len(x.sizes) for x in surveys)])
    return [sites[(sites >= a) & (sites < b)] - a for a, b in pairwise(first.tolist())]
