"""Do the sites of a fusion share anything? From what they sent alone, without the matching that is to be judged."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from modelweld.core.family import Family
from modelweld.core.values import Array, Index, Stack, blocks, canonical_order, group_of_values, offsets_of
from modelweld.families.capabilities import embed_values
from modelweld.fit.effects.corrections import SiteEffects
from modelweld.results.diagnostics.pair_scan import Places, embed, place, scan_pairs, untie

if TYPE_CHECKING:
    from modelweld.results.fit_result import FitResult

MOST_VALUES, MOST_OF_SITE = 1000, 200
"""Local parameters that are looked at, in all and of one site: some seconds. Sites beyond it are not judged."""

FEWEST_VALUES, FEWEST_OF_SITE = 10, 5
"""Values in all, and of a site (on average), from which a no can be said. Sites that share all of three or four values,
at a noise of .12 of the spread, get their yes in .4 to .9 of cases at three and five sites; of six in .98 and more."""


class Sharing(NamedTuple):
    """P-values that sites have nothing in common: of all, and of each (J,); NaN where it cannot be said.

    `why_not` says why, and why a no cannot be said where there is a p-value; `aligned` whether sites differ in place.
    """

    p_value: float
    sites: Array
    why_not: str = ""
    aligned: bool = False


def judge_sharing(fit: FitResult, name: str, draws: int, seed: int) -> Sharing:
    """Whether values of different sites lie closer together than chance explains: see `results.diagnostics.pair_scan`.

    Gross outliers, sites that were excluded whole and those that repeat another are left out.
    """
    J = len(fit.sites)
    unknown = np.full(J, np.nan)
    matching, stacks = fit.matchings[name], fit.stacks(name)
    families = fit.parts(name).families
    if any(embed_values(family, stack.values[:1]) is None for stack, family in zip(stacks, families, strict=True)):
        kinds = " and ".join(sorted({type(f).__name__ for f in families}))
        return Sharing(np.nan, unknown, f"the family {kinds} has no distances between values")
    _, order = canonical_order(stacks)
    usable = _has_place(stacks, families)[order]
    if matching.kept is not None:
        usable &= matching.kept[order]
    group = group_of_values(matching.offsets)[order]
    usable &= ~np.isin(group, list(matching.duplicates or ()))
    rows, sites, offsets = _choose(np.flatnonzero(usable), group, seed)
    if len(sites) < 2:
        return Sharing(np.nan, unknown, "fewer than two sites have values to compare")
    values = embed([stack.take(order[rows], stack.offsets) for stack in stacks], families)
    assert values is not None
    seen = np.isfinite(values)
    untied = _untie_as_sent(values, None if matching.effects is None else matching.effects.of(group[rows]))
    spreads = [(p, reach_of_sites(p, seen, offsets)) for x in untied if (p := place(x)) is not None]
    if not spreads:
        return Sharing(np.nan, unknown, "all values coincide")
    aligned = matching.effects is not None
    if aligned and spreads[0][0].on_circle:
        return Sharing(np.nan, unknown, "sites differ by offsets, and one feature does not tell these from sharing")
    found = scan_pairs(spreads, offsets, draws, seed, aligned=aligned)
    unknown[sites] = found.sites
    few = len(rows) < max(FEWEST_VALUES, FEWEST_OF_SITE * len(sites))
    why_not = f"{len(rows)} values of {len(sites)} sites are too few to tell sharing from chance" if few else ""
    return Sharing(found.p_value, unknown, why_not, aligned)


def _untie_as_sent(values: Array, effects: SiteEffects | None) -> list[Array]:
    """Values without ties; those that were corrected have them as they were before, by effects of each value."""
    if effects is None:
        return untie(values)
    scale = np.exp(effects.log_scale)
    return [untied / scale - effects.offset for untied in untie(scale * (values + effects.offset))]


def _has_place(stacks: Sequence[Stack], families: Sequence[Family]) -> NDArray[np.bool_]:
    """Values (N,) of which something was seen that has a place."""
    N, D = stacks[0].values.shape
    found = np.ones(N, dtype=bool)
    for part in blocks(N, D) if all(stack.weight is not None for stack in stacks) else ():
        points = embed([stack.take(part, stack.offsets) for stack in stacks], families)
        found[part] = points is not None and np.isfinite(points).any(1)
    return found


def _choose(rows: Index, group: Index, seed: int) -> tuple[Index, Index, Index]:
    """Rows to look at, sites one after the other; the sites; where they begin. At random where they are too many."""
    rng = np.random.default_rng([seed, 1])
    parts = np.split(rows, np.flatnonzero(np.diff(group[rows])) + 1) if len(rows) else []
    parts = [p if len(p) <= MOST_OF_SITE else np.sort(rng.choice(p, MOST_OF_SITE, replace=False)) for p in parts]
    if sum(map(len, parts)) > MOST_VALUES:
        mixed = rng.permutation(len(parts))
        number = np.cumsum([len(parts[i]) for i in mixed])
        parts = [parts[i] for i in np.sort(mixed[number <= MOST_VALUES])]
    rows = np.concatenate(parts) if parts else rows
    return rows, group[[part[0] for part in parts]], offsets_of([len(part) for part in parts])


def reach_of_sites(places: Places, seen: Array, offsets: Index) -> Sequence[Array | None]:
    """Directions (q, k) in which the values of each site vary, None for all: those of features that all its rows have.

    Sites that lack the same features are alike in that; turned out of it they would seem to have shared something.
    """
    result: list[Array | None] = []
    for a, b in pairwise(offsets.tolist()):
        whole = seen[a:b, places.used].all(0)
        if whole.all() or places.on_circle:
            result.append(None)
            continue
        u, length, _ = np.linalg.svd(places.axes[whole].T, full_matrices=False)
        result.append(u[:, length > 1e-8 * max(length.max(initial=0.0), 1.0)])
    return result
