"""What happens where a shard lies: sites are read, fused, and matched again to the atoms of all shards.

A *shard* is a group of sites that lie together. Every function here takes a `Shard` and the labels of its values and
gives back little: sums of the family's sufficient statistics (for a Gaussian: number, sum and sum of squares of an
atom's values). Labels number the shard's own atoms 0, 1, ...; which atom of the centre each is, the centre knows
(`Summary.place`).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from modelweld.errors import InputError
from modelweld.families import Gaussian
from modelweld.families.base import sum_by_atom
from modelweld.fuse import receive
from modelweld.inputs.alignment import check_models
from modelweld.inputs.local_model import Array, LocalModel, check_finite, check_squares
from modelweld.inputs.stack import Index, Stack, arrange, stack_arrays
from modelweld.matching.algorithm1 import AnyBoard
from modelweld.matching.board import Board
from modelweld.matching.plan import MOST_SWEEPS
from modelweld.matching.search import Effort, best_run, is_large
from modelweld.matching.sets import families_by_set, stack_of
from modelweld.priors.beta_bernoulli import Prior
from modelweld.threads import blas_threads

Source = str | os.PathLike[str] | Sequence[Any] | Callable[[], Any]
"""Where a shard comes from: sites, a file or files of sites, or a function that brings them."""

Values = TypeVar("Values", bound=NDArray[Any])

BLOCK = 20_000
"""Rows whose squares are made at a time, so that a pass over a shard needs little more memory than the shard."""


@dataclass(frozen=True, eq=False)
class Shard:
    """Sites that lie together: their values in canonical order.

    Attributes
    ----------
    stack : Stack
        Values of all sites; groups and values in canonical order.
    order : int array (N,)
        Where each value stood when it was given.
    offsets : int array (sites + 1,)
        Where the sites began when they were given.
    sites : tuple of str
        Their names, in the order given.
    array : str
        The array that is matched, "set/array"; empty where sites are plain arrays.
    columns : tuple of str
        Names of its columns, where the sites name them.
    """

    stack: Stack
    order: Index
    offsets: Index
    sites: tuple[str, ...]
    array: str = ""
    columns: tuple[str, ...] = ()

    @property
    def compiled(self) -> bool:
        """Whether the compiled sweep is worth its compiler: as in `fuse`."""
        return self.stack.plain and is_large(self.stack)

    def as_given(self, x: Values) -> list[Values]:
        """What belongs to the values, site by site, in the order in which sites and values were given."""
        back = np.empty_like(x)
        back[self.order] = x
        return [back[a:b] for a, b in pairwise(self.offsets)]


@dataclass(frozen=True, eq=False)
class Survey:
    """What a shard says of itself before anything is fused: numbers, scales, and a mark that tells it from others."""

    mark: bytes
    sizes: Index
    values: int
    seen: Array
    mean: Array
    squares: Array
    bounds: tuple[float, float]
    varying: bool
    array: str
    columns: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Summary:
    """A shard's matching as sums: `rows` (K, k) and `counts` of sites, and `place`, each atom's number at the centre.

    Numbers from that of the centre's atoms upwards are new ones. `family` has the hyperparameters that the rows
    were made with.
    """

    place: Index
    counts: Index
    rows: Array
    family: Gaussian


def load(source: Source) -> Shard:
    """Read a shard: plain arrays (L_j, D), LocalModels with one matched array, fitted models, or files of these.

    Examples
    --------
    >>> shard = load([[[1.0], [0.0]], [[0.5]]])
    >>> shard.stack.values.ravel().tolist(), [v.tolist() for v in shard.as_given(shard.stack.values)]
    ([0.5, 0.0, 1.0], [[[1.0], [0.0]], [[0.5]]])
    """
    found = source() if callable(source) else source
    given = receive(found, nothing="a shard holds no site: give at least one.")
    names, array = tuple(map(str, range(len(given)))), ""
    columns: tuple[str, ...] = ()
    if any(isinstance(m, LocalModel) for m in given):
        models = check_models(given)
        names = tuple(m.site or str(j) for j, m in enumerate(models))
        set_name, key = _one_array(models)
        stack, array = stack_of(models, key, set_name, {}), f"{set_name}/{key}"
        along = models[0].along[key]
        columns = tuple(name for a in along if a is not None for name in models[0].coordinates[a])
    else:
        stack = stack_arrays(given)
        check_finite(stack.values, "a shard")
    check_squares(stack.values)
    offsets = stack.offsets
    [stack], order = arrange([stack])
    return Shard(stack, order, offsets, names, array, columns)


def _one_array(models: Sequence[LocalModel]) -> tuple[str, str]:
    """The one set and the one array of it that decides its matching."""
    decided = {name: list(families) for name, families in families_by_set(models, None).items()}
    if len(decided) != 1 or len(next(iter(decided.values()))) != 1:
        raise InputError(
            f"shards are fused by one array of one set, but these sites send {decided}. Let the other arrays ride, "
            "send the one array only, or use modelweld.fuse."
        )
    set_name, [key] = next(iter(decided.items()))
    return set_name, str(key)


def survey(shard: Shard, labels: Index | None) -> Survey:
    """Numbers and scales of a shard; nothing of a single value but the two extremes."""
    stack = shard.stack
    arrays = [a for a in (stack.offsets, stack.values, stack.variance, stack.weight) if a is not None]
    mark = hashlib.blake2b(b"".join(hashlib.blake2b(np.ascontiguousarray(a).data).digest() for a in arrays)).digest()
    N, D = stack.values.shape
    weight: Any = 1.0 if stack.weight is None else (stack.weight > 0).astype(np.float64)
    seen = np.full(D, float(N)) if stack.weight is None else weight.sum(0)
    mean = (weight * stack.values).sum(0) / np.maximum(seen, 1.0)
    return Survey(
        mark=mark,
        sizes=stack.sizes,
        values=N,
        seen=seen,
        mean=mean,
        squares=(weight * np.square(stack.values - mean)).sum(0),
        bounds=(float(stack.values.min(initial=np.inf)), float(stack.values.max(initial=-np.inf))),
        varying=stack.variance is not None,
        array=shard.array,
        columns=shard.columns,
    )


def fuse_shard(
    shard: Shard, labels: Index | None, family: Gaussian, origin: Array, total: Array, prior: Prior, seed: int
) -> tuple[Index, Summary]:
    """Algorithm 1 on this shard's sites alone: labels of its values, and its atoms as sums measured from `origin`."""
    stack = shard.stack
    J = len(stack.sizes)
    starts = [start.scaled(origin, total) for start in family.starts(stack)]
    boards: list[AnyBoard]
    if shard.compiled:
        from modelweld.matching.compiled import CompiledBoard, pack

        packed, _ = pack(stack)
        boards = [CompiledBoard(packed, start, prior) for start in starts]
    else:
        boards = [Board([stack], [start], prior) for start in starts]
    with blas_threads(1):
        effort = Effort(moves=False, max_sweeps=MOST_SWEEPS)
        board, _ = best_run(boards, J, np.random.default_rng(seed), effort)
    learned: Any = board.families[0]
    return summarise(shard, board.labels, learned)


def summarise(shard: Shard, numbers: Index, family: Gaussian) -> tuple[Index, Summary]:
    """Labels of the shard's own from any `numbers` of atoms, and what the centre needs of them."""
    place, labels = np.unique(numbers, return_inverse=True)
    rows = restate(shard, labels, family)
    return labels, Summary(place, np.bincount(labels, minlength=len(place)), rows, family)


def restate(shard: Shard, labels: Index, family: Gaussian) -> Array:
    """Sums (K, k) of the rows of the shard's atoms, made with this family."""
    stack, K = shard.stack, int(labels.max(initial=-1)) + 1
    parts = [slice(a, a + BLOCK) for a in range(0, len(labels), BLOCK)]
    total = sum((sum_by_atom(_rows(family, stack, part), labels[part], K) for part in parts), np.zeros((K, 1)))
    if not stack.plain:
        return np.asarray(total)
    counts = np.bincount(labels, minlength=K)[:, None] * np.ones(stack.values.shape[1])
    return np.concatenate([counts, counts, np.asarray(total), 0 * counts], axis=1)


def _rows(family: Gaussian, stack: Stack, part: slice) -> Array:
    """The family's rows; of plain values only [y, y^2], because counts tell the rest."""
    if stack.plain:
        y = stack.values[part] - np.asarray(family.origin)
        return np.concatenate([y, y * y], axis=1)
    beside = (None if a is None else a[part] for a in (stack.variance, stack.weight))
    return family.rows(stack.values[part], *beside)


def propose(
    shard: Shard,
    labels: Index,
    place: Index,
    counts: Index,
    rows: Array,
    family: Gaussian,
    prior: Prior,
    J: int,
    seed: tuple[int, ...],
) -> tuple[Index, Summary | None]:
    """One sweep over this shard's sites given the atoms of all shards: new labels and sums; None if nothing changes.

    Parameters
    ----------
    shard, labels : Shard, int array
        The shard and the labels it has.
    place : int array
        The centre's number of each of the shard's atoms.
    counts, rows : arrays (K,), (K, k)
        The centre's atoms, this shard's own values included: every group is taken out before it is matched.
    family, prior : Gaussian, Prior
        The hyperparameters of all shards.
    J : int
        Number of sites of all shards.
    seed : tuple of int
        Draws the order of the groups.
    """
    order = np.random.default_rng(seed).permutation(len(shard.stack.sizes))
    sweep = _compiled_sweep if shard.compiled else _sweep
    with blas_threads(1):
        numbers, changed = sweep(shard.stack, place[labels], counts, rows, family, prior, J, order)
    if not changed:
        return labels, None
    return summarise(shard, numbers, family)


def _sweep(
    stack: Stack, numbers: Index, counts: Index, rows: Array, family: Gaussian, prior: Prior, J: int, order: Index
) -> tuple[Index, int]:
    """Every group's best assignment on the reference board."""
    board = Board([stack], [family], prior)
    board.set_prior(prior, J)
    board.set_atoms(counts, [rows], numbers)
    changed = sum(board.step(int(j)) for j in order)
    return board.labels, changed


def _compiled_sweep(
    stack: Stack, numbers: Index, counts: Index, rows: Array, family: Gaussian, prior: Prior, J: int, order: Index
) -> tuple[Index, int]:
    """The same for large shards."""
    from modelweld.matching.compiled.layout import tabulate, vacant_atoms
    from modelweld.matching.compiled.sweep import sweep

    (N, D), K = stack.values.shape, len(counts)
    atoms = vacant_atoms(K + N, D, D if family.scalar else 2 * D)
    atoms.sums[:K], atoms.counts[:K] = rows[:, 2 * D : 3 * D], counts
    surcharge = prior.surcharge(int(stack.sizes.max()))
    tables = tabulate(np.array(family.origin), *family.hyperparameters, prior.steps(J), surcharge, 0, J)
    done = np.zeros(5, dtype=np.int64)
    sweep(stack.values, np.arange(N), stack.offsets, order, numbers, atoms, K, tables, done)
    return numbers, int(done[0])
