"""What a shard says of itself before anything is fused, and which of its values stay out of the fit.

Every shard screens its own sites as `fuse` would: values that say nothing or repeat another of their site, and gross
outliers, are set aside. What takes all sites to see, the centre finds by what shards say: sites of far too many values
(by their sizes), and sites that repeat another to the last bit (by the `marks` of what they sent).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from modelweld.families.base import Family
from modelweld.families.suggest import misfit_error
from modelweld.inputs.stack import Index, Stack
from modelweld.screening.crowds import find_crowds
from modelweld.screening.outliers import find_outliers
from modelweld.screening.pipeline import SetValues
from modelweld.screening.set_aside import find_idle
from modelweld.screening.twins import FEWEST_OWN, number_values
from modelweld.shards.shard import ASIDE, Shard

GONE = -1
"""Size of a site that is set aside whole."""


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
        How values scatter, as it was asked for or suits the kind of model.
    changing, once : bool
        Whether rows depend on hyperparameters, and whether sites hold atoms once.
    errors : bool
        Whether values have standard errors.
    array, columns, width
        What is matched, names of its columns, their number.
    idle, far : tuples of str
        What was set aside, and why: values that say nothing or repeat others, gross outliers.
    aside : int
        How many values.
    """

    mark: bytes
    marks: NDArray[np.uint64]
    sizes: Index
    family: Family
    changing: bool
    once: bool
    errors: bool
    array: str
    columns: tuple[str, ...]
    width: int
    idle: tuple[str, ...]
    far: tuple[str, ...]
    aside: int


def survey(shard: Shard, labels: Index | None, screen: bool) -> tuple[Index, Survey]:
    """Labels that say which values are fitted (zero) and which not, and what the centre needs to know."""
    stack, family = shard.stack, shard.family
    found = family.misfit(stack)
    if found is not None:
        raise misfit_error(family, found, stack, shard.names, shard.array or "values")
    labels, idle, far = _screened(shard, screen)
    fitted, _ = shard.fitted(labels)
    kept = np.diff(np.concatenate([[0], np.cumsum(labels == 0)])[stack.offsets])
    marks = _marks(stack)
    return labels, Survey(
        mark=hashlib.blake2b(marks.tobytes() + stack.offsets.tobytes()).digest(),
        marks=marks,
        sizes=np.where((kept == 0) & (stack.sizes > 0), GONE, kept),
        family=family,
        changing=family.rows_change(fitted),
        once=shard.once,
        errors=stack.variance is not None,
        array=shard.array,
        columns=shard.columns,
        width=stack.values.shape[1],
        idle=tuple(idle),
        far=tuple(far),
        aside=int((labels == ASIDE).sum()),
    )


def _screened(shard: Shard, screen: bool) -> tuple[Index, list[str], list[str]]:
    """Zero for values to fit, ASIDE for the others; and why, of idle values and of outliers."""
    stack, names = shard.stack, shard.names
    if not screen:
        return np.zeros(len(stack.values), dtype=np.int64), [], []
    numbers = number_values([stack], [shard.family])
    columns = [shard.columns] if len(shard.columns) == stack.values.shape[1] else None
    values = SetValues([stack], [shard.family], [""], names, columns, np.arange(len(numbers)), numbers)
    keep, idle, _ = find_idle(values)
    labels = np.where(keep, 0, ASIDE)
    if not (shard.screened and shard.family.has_places):
        return labels, idle, []
    left = values.keep(keep)
    far = find_outliers(left.stacks, left.sites, None, columns)
    labels[left.rows[~far.keep]] = ASIDE
    return labels, idle, far.reasons


def _marks(stack: Stack) -> NDArray[np.uint64]:
    """A number drawn from what each site sent."""
    arrays = [np.ascontiguousarray(a) for a in (stack.values, stack.variance, stack.weight) if a is not None]

    def mark(a: int, b: int) -> bytes:
        return hashlib.blake2b(b"".join(x[a:b].tobytes() for x in arrays), digest_size=8).digest()

    return np.frombuffer(b"".join(mark(a, b) for a, b in pairwise(stack.offsets.tolist())), dtype=np.uint64)


def crowds_of(surveys: Sequence[Survey]) -> list[Index]:
    """Of every shard the sites that send far more values than others of all shards do."""
    crowds = find_crowds(np.maximum(np.concatenate([x.sizes for x in surveys]), 0))
    return _by_shard(crowds, surveys)


def twins_of(surveys: Sequence[Survey]) -> list[Index]:
    """Of every shard the sites that repeat another of it, or of a shard before it; none where all sites coincide."""
    marks, sizes = (np.concatenate([getattr(x, name) for x in surveys]) for name in ("marks", "sizes"))
    asked = np.flatnonzero(sizes >= FEWEST_OWN)
    distinct, first = np.unique(marks[asked], return_index=True)
    if len(distinct) == 1:
        return _by_shard(np.arange(0), surveys)
    return _by_shard(np.delete(asked, first), surveys)


def _by_shard(sites: Index, surveys: Sequence[Survey]) -> list[Index]:
    """Sites numbered through all shards, as those of each."""
    first = np.cumsum([0, *(len(x.sizes) for x in surveys)])
    return [sites[(sites >= a) & (sites < b)] - a for a, b in pairwise(first.tolist())]
