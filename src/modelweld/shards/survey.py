"""What a shard says of itself before anything is fused, and which of its values stay out of the fit.

Every shard screens its own sites as `fuse` would: what says nothing before all else, the rest as it is fused
(`shards.fit`). What takes all sites to see, the centre finds by what shards say: sites of far too many values (by their
sizes), and sites that repeat another to the last bit (by the `marks` of what they sent).
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
from modelweld.screening.duplicates import FEWEST_OWN
from modelweld.screening.screens import find_idle, find_oversized, numbered
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
    changing, once, screened : bool
        Whether rows depend on hyperparameters, sites hold atoms once, and gross outliers are looked for.
    errors : bool
        Whether values have standard errors.
    array, columns, width
        What is matched, names of its columns, their number.
    reasons : tuple of str
        What was bounded or set aside, and why: weights, counts, values that say nothing or repeat others.
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
    found = family.misfit(stack)
    if found is not None:
        raise misfit_error(family, found, stack, shard.names, shard.array or "values")
    keep, reasons, _ = (
        find_idle(numbered(shard.values_of(np.arange(len(stack.values))))) if screen else (None, [], None)
    )
    labels = np.zeros(len(stack.values), dtype=np.int64) if keep is None else np.where(keep, 0, ASIDE)
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


def oversized_of(surveys: Sequence[Survey]) -> list[Index]:
    """Of every shard the sites that send far more values than others of all shards do."""
    return _by_shard(find_oversized(np.maximum(np.concatenate([x.sizes for x in surveys]), 0)), surveys)


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
