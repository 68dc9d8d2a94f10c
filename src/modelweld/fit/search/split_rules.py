"""Fragments among values without standard errors, and sites that send many of them.

Such values are in fragments only where the objective insists. Where sites send atoms in
fragments, the matching that holds every atom once has an atom for each fragment. The search for fragments starts from
those atoms, joined at the noise of that matching, which values of different sites taught it: two of one say nothing of
it. What it takes grows with the number of atoms, however many values there are.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from modelweld.core.algorithm1 import Run, is_same_partition
from modelweld.core.board import Board
from modelweld.core.matching import Matching
from modelweld.core.prior import Fragments
from modelweld.core.tally import Tally
from modelweld.core.values import Index, Stack, arrange, group_of_values
from modelweld.errors import Finding, OversplitWarning
from modelweld.fit.engines.sweep_engines import Movable
from modelweld.fit.search.moves import LARGEST_TABLE, Effort, Pairs, search_from

OVERSPLIT, FEWEST_SECOND = 1.5, 4
"""Fragments per atom, on average, and fragments beyond the first of their atom from which a site is named, if most
others are not like it. A mixture of eight components that is given two too many has 1.25 and 2: every site has some."""

LARGEST_SHARE = 0.15
"""Share of second fragments among the values of all others up to which a site that has many is named."""

EVIDENT = 10.0
"""Nats by which fragments must raise the objective: atoms that merely overlap raise it by 2 or 3, sites that split
theirs by a hundred."""

SHARES = (0.5, Fragments().delta)
"""Shares of fragments at which atoms are joined, one start of the search for each. At a half one fragment more costs
nothing; at .05 two atoms that forty sites hold side by side lose a hundred nats by being joined, and stay two. At .05
neighbours that overlap stay apart where few atoms are in fragments; at a half they are joined."""


def _second_fragments(labels: Index, group: Index, J: int) -> Index:
    """Fragments beyond the first of its atom, of each group."""
    held = np.unique(np.stack([labels, group]), axis=1)[1]
    return np.asarray(np.bincount(group, minlength=J) - np.bincount(held, minlength=J))


def _share(second: Index, sizes: Index, groups: Index) -> float:
    """Share of second fragments among the values of some groups."""
    return float(second[groups].sum() / max(sizes[groups].sum(), 1))


def name_oversplit(matching: Matching, sites: Sequence[str]) -> list[Finding]:
    """Sites that sent their atoms in fragments, if they are a minority and the others did not."""
    sizes = np.diff(matching.offsets)
    second = _second_fragments(matching.stacked_labels, group_of_values(matching.offsets), len(sizes))
    split = (second >= FEWEST_SECOND) & (sizes >= OVERSPLIT * (sizes - second))
    whole = np.flatnonzero(~split & (sizes > 0))
    if 2 * split.sum() > np.count_nonzero(sizes) or _share(second, sizes, whole) > LARGEST_SHARE:
        return []
    return [
        Finding(
            f" sent about {sizes[j] / (sizes[j] - second[j]):.2g} fragments of every atom it holds "
            f"({sizes[j]} values, {sizes[j] - second[j]} atoms); most others hold theirs whole. They are taken "
            "together. Fewer components there, or more restarts, would help; with search=Search(splits=False) each "
            "would be an atom of its own.",
            OversplitWarning,
            [sites[j]],
        )
        for j in np.flatnonzero(split).tolist()
    ]


def prefer_fragments(
    whole: Movable, stacks: Sequence[Stack], order: Index, rng: np.random.Generator, effort: Effort
) -> tuple[Board, Run, Index] | None:
    """The best matching of plain values with atoms in fragments, where these are evident beside the one without them.

    The values of that one, `whole`, stood in `order`.
    """
    joined, J = join_fragments(whole), len(whole.sizes)
    if not joined:
        return None
    stacks, arranged = arrange(stacks)
    at = np.argsort(order)[arranged]
    starts = [Board(stacks, whole.families, whole.prior, Fragments(), labels[at]) for labels in joined]
    rng = rng.spawn(1)[0]  # what follows draws as it would have
    runs = [search_from([b], J, rng, effort) for b in starts if invites_fragments(b, whole)]
    runs = [run for run in runs if insists(run[0], whole)]
    return (*max(runs, key=lambda run: run[0].objective()), arranged) if runs else None


def join_fragments(whole: Movable) -> list[Index]:
    """Labels of a matching without fragments after its atoms were joined, the best two first, at each share."""
    K, J = len(whole.counts), len(whole.sizes)
    found: list[Index] = []
    if K < 2 or K * max(K, J) > LARGEST_TABLE:
        return found
    for share in SHARES:
        pairs = Pairs(whole, Fragments(share))
        if not pairs.join_all():  # at smaller shares no two atoms are rather joined than at this one
            break
        new = not any(is_same_partition(pairs.tally.labels, labels) for labels in found)
        if new and _rise(pairs.tally, whole) > 0:  # what is then learned and swept may make them evident
            found.append(pairs.tally.labels)
    return found


def _rise(joined: Tally, whole: Movable) -> float:
    """By how much joined atoms are more probable than those of `whole`, at the share of fragments they are held in."""
    before, held, fragments = whole.tally(), joined.counts > 0, joined.fragments_held()
    value = joined.evidence([sums[held] for sums in joined.sums]) - before.evidence(before.sums)
    value += whole.prior.log_prob(joined.counts[held], whole.sizes) - whole.prior.log_prob(before.counts, whole.sizes)
    return value + Fragments().learn(fragments).log_prob(fragments)


def invites_fragments(joined: Board, whole: Movable) -> bool:
    """Whether joined atoms are insisted on once the share of fragments is learned, and a sweep leaves some in
    fragments.
    """
    joined.learn()
    if not insists(joined, whole):
        return False
    joined.sweep(np.arange(len(joined.sizes)))
    return _holds_fragments(joined)


def insists(board: Board, whole: Movable) -> bool:
    """Whether atoms are held in fragments, and the objective is higher for it by enough."""
    return _holds_fragments(board) and board.objective() > whole.objective() + EVIDENT


def _holds_fragments(board: Board) -> bool:
    return bool((board.fragments_held() > 1).any())
