"""What a shard does with its values: fuse them by themselves, and match them again to the atoms of all shards.

Every shard screens its own sites as `fuse` would.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from modelweld.core.board import Board
from modelweld.core.family import Family, learn_from_values, pools
from modelweld.core.match import Parts, Plan
from modelweld.core.matching import Matching
from modelweld.core.prior import Fragments, Prior
from modelweld.core.values import Array, Index, Stack, group_of_values
from modelweld.errors import Finding, SiteEffectWarning
from modelweld.families import Gaussian
from modelweld.fit.effects.first_look import find_site_effects
from modelweld.fit.effects.words import list_effects
from modelweld.fit.engines.choice import is_sparse
from modelweld.fit.engines.sparse_board import SparseBoard
from modelweld.fit.static_matcher import match
from modelweld.shards.shard import COPIES, EXCLUDED, About, Shard, Summary, is_compiled, pool_sites, restate, summarise
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
    from modelweld.fit.engines.compiled.sweep import sweep

    family, (N, D), K = atoms.family, stack.values.shape, len(atoms.counts)
    assert isinstance(family, Gaussian)
    board = vacant_atoms(K + N, D, D if family.scalar else 2 * D)
    board.sums[:K], board.counts[:K] = atoms.sums[:, 2 * D : 3 * D], atoms.counts
    surcharge, steps = atoms.prior.surcharge(int(stack.sizes.max())), atoms.prior.increments(atoms.J)
    tables = tabulate(np.array(family.origin), *family.hyperparameters, steps, surcharge, 0, atoms.J)
    changed, *_ = sweep(stack.values, np.arange(N), stack.offsets, order, numbers, board, K, tables)
    return numbers, int(changed)
