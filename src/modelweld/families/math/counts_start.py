"""First hyperparameters of `Counts`: read off values that most likely belong to one atom.

Groups of all sizes are matched in pairs, each pair votes by those of its matched values that most likely belong to one
atom, and the median counts: two groups that coincide, or are more exact than the others, have no majority. Two values
p, q of one atom, each of effective sample size n, have mean m and, on average,

    n (KL(p, m) + KL(q, m)) = half of their degrees of freedom (see `modelweld.families.math.event_densities`).
"""

from __future__ import annotations

import numpy as np

from modelweld.core.values import Array, Index, Stack
from modelweld.families.math.event_densities import SEEN_ONCE, SMALLEST_SHARE, freedom
from modelweld.families.math.simplex import ZERO, Compositions
from modelweld.families.math.start import (
    CLOSER,
    CLOSEST,
    FEW_DIMENSIONS,
    LARGEST_MATCHED,
    VOTERS,
    evenly,
)

WORTH = (1e-2, 1e7)
"""Bounds of `between`: values that tell nothing, or that coincide to three digits."""

UNKNOWN_WORTH = 100.0
"""`between` when there are no two groups to compare: the likelihood will not move it (nothing is matched)."""

PARTNERS = (1, 2, 5)
"""With which of the next groups each votes."""

LEAST_PER_WORD = 1.0
"""Observations that a word is worth on average if `between` is to fall below its first value at all. Further down the
density of a value is no longer right (a word that is present costs too little): the likelihood has no maximum, and
everything would be explained as chance about one mean. Topics over 1,000 words of three sites slid to any floor below
the first value, and topics that share nothing were joined."""

ROWS_LOOKED_AT = 200
"""Values from which the first pseudo-counts are learned, those of the largest groups first."""

HALVINGS = 30
"""Of the interval of log n: to one part in 1e8."""


def first_worths(stack: Stack, compositions: Compositions) -> list[float]:
    """Values of `between` worth trying: two where few dimensions leave it open which pairs are copies, and a lower one.

    That is halfway down to the least that may be learned: values that most likely belong to one atom are very alike.
    """
    shares = (CLOSER, CLOSEST) if stack.values.shape[1] < FEW_DIMENSIONS else (CLOSEST,)
    matched = _match_groups(stack, compositions)
    if not matched:
        return [UNKNOWN_WORTH]
    found = []
    for q in shares:
        voters = [pairs[int(q * (len(pairs) - 1))] for pairs in matched]
        found.append(float(np.clip(np.median([_worth_of_pair(compositions, *pair) for pair in voters]), *WORTH)))
    lowest = least_worth(found[-1], stack.values.shape[1])
    return [*found, float(np.sqrt(lowest * found[-1]))] if lowest < found[-1] else found


def least_worth(first: float, D: int) -> float:
    """What `between` may fall to from its first value, for values of D words.

    Examples
    --------
    >>> least_worth(600.0, 20), least_worth(600.0, 1000)
    (20.0, 600.0)
    """
    return max(WORTH[0], min(first, WORTH[1], LEAST_PER_WORD * D))


def first_values(stack: Stack, compositions: Compositions) -> Index:
    """Values that pseudo-counts are first learned from."""
    largest = [stack.group(int(j)) for j in stack.largest(len(stack.sizes))]
    chosen = np.concatenate([np.zeros(0, dtype=np.int64), *largest])
    return np.asarray(chosen[compositions.n[chosen] > 0][:ROWS_LOOKED_AT])


def _match_groups(stack: Stack, compositions: Compositions) -> list[list[tuple[int, int]]]:
    """Of pairs of groups, values that an optimal matching of square roots puts together, the most alike first."""
    from scipy.optimize import linear_sum_assignment

    groups = [stack.group(int(j)) for j in stack.largest(len(stack.sizes))]
    groups = [g for g in (g[compositions.n[g] > 0] for g in groups) if len(g)]
    groups = [groups[i] for i in evenly(len(groups), VOTERS)]
    G, found = len(groups), []
    for one, other in sorted({(min(i, j), max(i, j)) for i in range(G) for j in ((i + s) % G for s in PARTNERS)}):
        if one == other:
            continue
        a, b = groups[one], groups[other]
        alike = np.sqrt(compositions.p[a]) @ np.sqrt(compositions.p[b]).T
        if max(alike.shape) > LARGEST_MATCHED:
            i, j = np.arange(len(a)), alike.argmax(1)
        else:
            i, j = linear_sum_assignment(-alike)
        order = np.argsort(-alike[i, j], kind="stable")
        found.append(list(zip(a[i][order].tolist(), b[j][order].tolist(), strict=True)))
    return found


def _worth_of_pair(compositions: Compositions, i: int, j: int) -> float:
    """`between` at which the two values differ as much as copies do on average."""
    p, q = _in_common(compositions, i, j)
    m = (p + q) / 2
    divergence = sum(float((r[r > ZERO] * np.log(r[r > ZERO] / m[r > ZERO])).sum()) for r in (p, q))
    low, high = np.log(WORTH)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        n = float(np.exp(middle))
        expected = 0.5 * sum(_freedom(r, n, compositions.once[k] / compositions.n[k]) for r, k in ((p, i), (q, j)))
        low, high = (middle, high) if n * divergence < expected else (low, middle)
    noise = float(np.exp(-low))
    return 1 / max(noise - float(1 / compositions.n[i] + 1 / compositions.n[j]) / 2, SMALLEST_SHARE * noise)


def _in_common(compositions: Compositions, i: int, j: int) -> tuple[Array, Array]:
    """Both values over the words that both know."""
    p, q = compositions.p[i], compositions.p[j]
    if compositions.seen is not None:
        both = compositions.seen[i] * compositions.seen[j]
        p, q = (x * both / max(float((x * both).sum()), ZERO) for x in (p, q))
    return p, q


def _freedom(p: Array, n: float, once: float) -> float:
    """Degrees of freedom of one value worth n."""
    return float(freedom(n * p[p > ZERO]).sum() - freedom(np.array([n]))[0] + SEEN_ONCE * n * once)
