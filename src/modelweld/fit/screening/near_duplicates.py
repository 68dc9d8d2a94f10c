"""Whether sites that lie close to each other are copies, once some do.

Copies with more noise agree with each other far better than with anybody else, which two sites that know their values
well do not: those agree with all the others' mean.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy

from modelweld.core.family import Signless, sum_by_atom
from modelweld.core.matching import Matching
from modelweld.core.values import Array, Flags, Index, SetValues
from modelweld.families import Drift
from modelweld.families.capabilities import embed_values

SIMILAR, ASTRAY = 0.12, 5.0
"""Of that deviation within which copies lie that have gone astray together: the mean square of their distance from the
others' mean is that many times what two independent sites as close would have. Branches of one house may be a third of
the deviation apart, and each says something of its own."""

BY_CHANCE = 1e-4
"""Probability that any two sites of a fusion come as close by chance as copies do."""


def components(pairs: Index, N: int) -> Index:
    """The connected parts of a graph, numbered."""
    if not pairs.size:
        return np.arange(N)
    # of arrays (`coo_array`) older SciPy (1.11) wants other numbers
    graph = scipy.sparse.coo_matrix((np.ones(pairs.shape[1], dtype=bool), (pairs[0], pairs[1])), shape=(N, N))
    return np.asarray(scipy.sparse.csgraph.connected_components(graph, directed=False)[1], dtype=np.int64)


def join(numbers: Index, pairs: Sequence[Index]) -> Index:
    """The numbers with those of each pair made the same; the very same if there is none."""
    return components(np.hstack(pairs), int(numbers.max()) + 1)[numbers] if pairs else numbers


def number_suspects(
    given: SetValues, values: Array, scale: Array, limit: float, near: Sequence[tuple[int, int, float]]
) -> Index:
    """Numbers of values, those of sites the same that may be copies: pairs that are `near`, value by value too."""
    offsets, numbers, pairs, suspects = given.offsets, given.numbers, list[Index](), set[int]()
    for one, other, _ in near:
        a, b = (slice(offsets[k], offsets[k + 1]) for k in (one, other))
        squares = np.square((values[a, None] - values[b]) / scale).mean(axis=2)
        nearest = squares.argmin(axis=1)
        pair = np.stack([numbers[a], numbers[b][nearest]])
        once = len(np.unique(nearest)) == len(nearest) and not np.array_equal(*pair)
        if once and squares.min(axis=1).mean() < limit:
            pairs.append(pair)
            suspects |= {one, other}
    return (
        join(numbers, pairs) if 2 * len(suspects) < np.count_nonzero(given.sizes) else numbers
    )  # a majority is no copy


def choose_copies(
    similar: Sequence[Index], alike: Sequence[Index], values: Array, labels: Index, site: Index, J: int
) -> list[Index]:
    """Of pairs of values of `similar` sites those of copies; `values` in deviations between sites."""
    part = components(np.array([site[pair[:, 0]] for pair in [*similar, *alike]]).T, J)[site]
    own = {p: _agree_alone(part == p, values, labels, J) for p in {int(part[pair[0, 0]]) for pair in similar}}
    return [pair for pair in similar if own[int(part[pair[0, 0]])]]


def _agree_alone(members: Flags, values: Array, labels: Index, J: int) -> bool:
    """Whether sites agree better than chance allows, and with each other only; `values` in deviations between sites."""
    number, others = (np.bincount(labels[which], minlength=int(labels.max()) + 1) for which in (members, ~members))
    held, shared = number > 1, (number > 1) & (others > 0)
    centre, elsewhere = (
        sum_by_atom(np.where(which[:, None], values, 0.0), labels) / np.maximum(n, 1)[:, None]
        for which, n in ((members, number), (~members, others))
    )
    free = number[held].sum() - held.sum()
    apart = np.square(values - centre[labels])[members & held[labels]].mean(axis=1).sum() / free
    # columns may all say the same: no more numbers are taken for independent than there are columns, or atoms
    independent = free * max(values.shape[1] / held.sum(), 1.0)
    if scipy.special.chdtr(independent, independent * apart) > BY_CHANCE / J**2:
        return False
    if shared.sum() < held.sum() / 2:
        return True
    off = np.square(centre - elsewhere)[shared].mean()
    return bool(off > ASTRAY * (apart * np.mean(1 / number[shared]) + np.mean(1 / others[shared])))


def embed_all(given: SetValues, matching: Matching | None = None) -> tuple[Array, Flags] | None:
    """Values as points, all arrays side by side, and what was seen of them; None where a family has none.

    Values without sign are turned to agree with their atom in a matching. Times have places alone.
    """
    found, seen = list[Array](), list[Flags]()
    for name, stack, family in zip(given.names, given.stacks, given.families, strict=True):
        values = stack.filled()
        if matching is not None and isinstance(learned := matching.families[name], Signless) and learned.is_signless:
            agreement = learned.agreement(stack, matching.values[name][matching.stacked_labels])
            values = np.where(agreement[:, None] < 0, -values, values)
        points = embed_values(family, values) if given.times is None else None
        if points is None:
            return None
        same = points.shape == stack.values.shape
        found.append(points)
        seen.append(stack.seen if same else np.repeat(stack.seen.all(1, keepdims=True), points.shape[1], axis=1))
    return np.hstack(found), np.hstack(seen)


def noise_in_time(matching: Matching, values: Array) -> Array:
    """Deviation of values about atoms that move: few of one atom are of one time."""
    [family] = matching.families.values()
    assert isinstance(family, Drift)
    return np.sqrt(np.broadcast_to(np.asarray(family.noise, dtype=np.float64), values.shape[1:]))
