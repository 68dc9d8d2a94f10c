"""What a site sends is brought within what the others allow: widths of components, and weights.

Weights are brought down to what a site's distances from its atoms show, where these refute them. The place of an atom
is first taken with no member weighed more than a typical site's, so that no minority can claim it. About it every value
should lie as far as its site says that it is known; the median site tells how far that is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import scipy
from numpy.typing import ArrayLike

from modelweld.core.family import find_misfit, sum_by_atom
from modelweld.core.matching import Matching
from modelweld.core.values import Array, Stack, group_of_values
from modelweld.errors import Finding, OutlierWarning
from modelweld.families.capabilities import variances_of
from modelweld.fit.screening.distances import (
    FALSE_ALARM,
    FEWEST_SITES_TO_COMPARE,
    GENEROUS,
    REACH,
    median_over_sites,
    site_means,
)
from modelweld.inputs.local_model import LocalModel, derive

if TYPE_CHECKING:
    from modelweld.stages import Job

MOST_ROUNDS = 4
"""Times that sites are weighed again: where bad ones are many, some are seen only when others count for less."""


def weigh_again(job: Job, stack: Stack, match_sets: Callable[[Job], Job], *, sites: bool = True) -> Job:
    """Models whose values are `stack` matched again, as often as weights are refuted, with those that values show.

    Without `sites` only single entries lose theirs: what sites differ by may explain the rest.
    """
    [(set_name, first)], sent = job.matchings.items(), stack.seen if stack.weight is None else stack.weight
    matching, [key], plan = first, list(first.families), replace(job.plan, engine="auto")  # the compiled has no weights
    for _ in range(MOST_ROUNDS):
        weight = refuted_weights(stack, matching, sites=sites)
        if weight is None or find_misfit(matching.families[key], replace(stack, weight=weight)) is not None:
            break
        stack, own = replace(stack, weight=weight), np.split(weight, stack.offsets[1:-1])
        models = [derive(m, weight={**m.weight, key: w}) for m, w in zip(job.sites, own, strict=True)]
        job = match_sets(replace(job, sites=models, plan=plan))
        matching = job.matchings[set_name]
    if matching is first or stack.weight is None:
        return job
    less = np.unique(group_of_values(stack.offsets)[(stack.weight < sent).any(1)])
    text = " sent values that lie too far from their atoms: these count for less, or not at all."
    kept = [reason for reason in first.reasons if reason not in matching.reasons]
    matching = matching.say(*kept, Finding(text, None, [job.names[j] for j in less]))
    return replace(job, matchings={set_name: replace(matching, effects=first.effects)})


def as_models(stack: Stack, names: Sequence[str]) -> list[LocalModel]:
    """Plain arrays of sites with these names as models, which may have weights."""
    own = zip(np.split(stack.values, stack.offsets[1:-1]), names, strict=True)
    return [LocalModel({"values": x}, {"values": ("atom", None)}, site=name) for x, name in own]


def refuted_weights(stack: Stack, matching: Matching, *, sites: bool = True) -> Array | None:
    """Weights (N, D) that values show in a matching; None where no site's are refuted, or nothing tells.

    A site is refuted whose mean square distance, in units of what it claims, is beyond chance and beyond what other
    sites differ by: its weights are divided by how many times the typical site's it is. So is a single entry, which
    then counts for nothing.

    Examples
    --------
    >>> import modelweld
    >>> rng, w = np.random.default_rng(0), np.repeat([1.0] * 7 + [90.0], 9)[:, None] * np.ones(2)
    >>> sent = np.tile(10.0 * np.arange(9)[:, None], (8, 2)) + rng.normal(size=(72, 2))
    >>> stack = Stack(sent, np.arange(0, 73, 9), weight=w)
    >>> matching = modelweld.fuse(np.split(sent, 8)).matching
    >>> bool((refuted_weights(stack, matching)[-9:] < 2).all())
    True
    """
    [family], site, labels = matching.families.values(), group_of_values(stack.offsets), matching.stacked_labels
    known = variances_of(family)
    noise, inflation = (np.ones(1), 1.0) if known is None else (known.noise, known.inflation)
    given = np.ones((1, 1)) if stack.weight is None else stack.weight
    sent = 0.0 if stack.variance is None else inflation * stack.variance
    claimed = noise / np.where(given > 0, given, 1.0) + sent
    typical = claimed[0] if stack.plain else np.nan_to_num(_typical(replace(stack, values=claimed)))
    fitted = np.where((labels < matching.K) & ~np.isin(site, list(matching.duplicates or ())), labels, -1)
    seen, K = np.broadcast_to(given > 0, (len(labels), given.shape[1])), len(matching.counts)
    even, number = seen / np.maximum(claimed, typical), sum_by_atom(seen.astype(float), fitted, K)
    total = sum_by_atom(even, fitted, K)
    off = stack.values - (sum_by_atom(even * stack.values, fitted, K) / np.where(total > 0, total, 1.0))[labels]
    expected = claimed if stack.plain else np.maximum(claimed, (typical / np.maximum(number, 1.0))[labels])
    usable = seen & (number >= FEWEST_SITES_TO_COMPARE)[labels]
    off *= usable / np.sqrt(expected)
    column = _typical(Stack(off**2, stack.offsets, weight=None if usable.all() else usable * np.ones(off.shape)))
    usable = usable & (column > 0)
    off *= np.where(column > 0, 1 / np.sqrt(np.where(column > 0, column, 1.0)), 0.0)
    if not off.any():
        return None
    furthest = np.maximum.reduceat(np.abs(off).max(1), np.unique(stack.offsets)[:-1])
    chance = FALSE_ALARM / off.size
    far = np.abs(off) > max(GENEROUS * np.median(furthest[furthest > 0]), float(scipy.special.ndtri(1 - chance)))
    off = np.where(far, 0.0, off)
    held = (usable & ~far).sum(1)
    level = np.bincount(site, (off**2).sum(1)) / np.maximum(np.bincount(site, held), 1)
    ratio = level / np.median(level[level > 0])
    refuted = sites & (ratio > REACH)
    if refuted.any():
        free = np.bincount(site, held) * independent_share(off)
        refuted &= scipy.special.chdtrc(free, free * ratio) < chance
    if not (refuted.any() or far.any()):
        return None
    measured = noise / (expected * np.where(refuted, ratio, 1.0)[site][:, None] - sent)
    return np.where(far, 0.0, np.where(refuted[site][:, None] & (given > 0), measured, given))


def _typical(stack: Stack) -> Array:
    """Median over sites of the means of their values (D,); NaN where too few sites have some."""
    return median_over_sites(site_means(stack, lambda block: block.values))


def independent_share(x: Array) -> float:
    """How many columns of x (N, D) are worth of independent ones, over D: one over D where all say the same."""
    products = x.T @ x if x.shape[0] > x.shape[1] else x @ x.T
    return float(np.square(x).sum() ** 2 / np.square(products).sum() / x.shape[1])


def describe_widths(site: str, array: str, own: float, typical: float, bound: float) -> Finding:
    """That widths of a site are taken for a bound: in one digit, since they may be of a few persons."""
    wide = own > typical
    return Finding(
        f": {array!r} {'up to' if wide else 'of'} about {own:.1g} in a feature, and {typical:.3g} at a typical "
        f"site: they are taken for {bound:.3g} at {'most' if wide else 'least'}, so that its components do not "
        f"{'cover all others' if wide else 'stand for single points'}. Ask its owner in which units they are, and "
        "whether the model was fitted well.",
        OutlierWarning,
        [site],
    )


def between(spreads: ArrayLike, own: Array, least: Array, most: Array) -> Array:
    """Variances `own`, or covariances with their correlations, of neither less nor more than this in any feature."""
    spreads = np.asarray(spreads, dtype=np.float64)
    scale = np.sqrt(np.minimum(1.0, most / np.where(own > 0, own, 1.0)))
    added = np.maximum(least - own, 0.0)
    if spreads.ndim == 2:
        return np.asarray(spreads * scale * scale + added)
    return np.asarray(spreads * scale[:, :, None] * scale[:, None, :] + added[:, :, None] * np.eye(own.shape[1]))
