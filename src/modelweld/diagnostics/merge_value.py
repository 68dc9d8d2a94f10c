"""Was fusing worth it? Log posterior odds: changes of the one objective, in nats, at the learned hyperparameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from modelweld.matching.board import Board
from modelweld.matching.leave_one_out import Without, leave_out
from modelweld.progress import track

if TYPE_CHECKING:
    from modelweld.diagnostics.questions import Questions


@dataclass(frozen=True)
class SiteVerdict:
    """What matching one site to the others is worth: `gain` in nats, `shared` of its `parameters`, one sentence."""

    site: str
    parameters: int
    shared: int
    gain: float
    sentence: str


@dataclass(frozen=True)
class MergeVerdict:
    """What fusing is worth against keeping every site apart: `gain` in nats, one sentence, and the same per site."""

    gain: float
    sentence: str
    sites: tuple[SiteVerdict, ...]


def worth_merging(fusion: Questions, set_name: str | None = None) -> MergeVerdict:
    """Compare the matching with keeping every site apart.

    Parameters
    ----------
    fusion : Fusion
        A fit.
    set_name : str, optional
        Which set; default: all of them, added.

    Returns
    -------
    MergeVerdict
        The objective of the matching minus that of all values alone; and for each site, the objective minus that with
        this site's values alone and all others matched as they are. Sites' gains do not add up to the whole: what
        two sites share counts for both.

    Examples
    --------
    >>> import modelweld
    >>> sites = [[[0.0], [5.0]], [[0.1], [5.1]], [[0.2], [4.9]], [[-20.0]]]
    >>> verdict = worth_merging(modelweld.fuse(sites, prior=modelweld.BetaBernoulli()))
    >>> verdict.gain > 0
    True
    >>> print(verdict.sites[3].sentence)
    site '3' shares nothing with the others: fusing it changes nothing.
    """
    J = len(fusion.sites)
    total, gains = 0.0, np.zeros(J)
    parameters, shared = np.zeros((2, J), dtype=np.int64)
    for name in fusion.matchings if set_name is None else [set_name]:
        board = fusion.board(name)
        total += gain_over_apart(board)
        for j in track(range(J), "weighing sites", J):
            out = leave_out(board, j)
            gains[j] += gain_of_site(board, out)
            parameters[j] += len(out.values)
            shared[j] += out.shared.sum()
    verdicts = tuple(
        SiteVerdict(site, n, s, gain, _site_sentence(site, n, s, gain))
        for site, n, s, gain in zip(fusion.sites, parameters.tolist(), shared.tolist(), gains.tolist(), strict=True)
    )
    return MergeVerdict(total, _overall_sentence(int(parameters.sum()), int(shared.sum()), total), verdicts)


def gain_over_apart(board: Board) -> float:
    """The objective minus that of all values alone."""
    placed = board.labels >= 0
    ones = np.ones(int(placed.sum()), dtype=np.int64)
    gain = board.prior.log_prob(board.counts, board.sizes) - board.prior.log_prob(ones, board.sizes)
    for family, rows, sums in zip(board.families, board.rows, board.sums, strict=True):
        gain += float(family.log_evidence(sums).sum()) - float(family.log_evidence(rows[placed]).sum())
    if board.pieces is not None:
        gain += board.pieces.log_prob(board.pieces_held()) - board.pieces.log_prob(ones)
    return gain


def gain_of_site(board: Board, out: Without) -> float:
    """The objective minus that with one site's values alone, each an atom of its own."""
    if len(out.values) == 0:
        return 0.0
    ones = np.ones(len(out.values), dtype=np.int64)
    apart = np.concatenate([np.delete(board.counts, out.atoms), out.holders[out.holders > 0], ones])
    gain = board.prior.log_prob(board.counts, board.sizes) - board.prior.log_prob(apart, board.sizes)
    for family, rows, own, rest in zip(board.families, board.rows, out.own, out.rest, strict=True):
        gain += float((family.log_evidence(rest + own) - family.log_evidence(rest)).sum())
        gain -= float(family.log_evidence(rows[out.values]).sum())
    if board.pieces is not None:
        gain += board.pieces.log_prob(np.bincount(out.where)) - board.pieces.log_prob(ones)
    return gain


def _site_sentence(site: str, parameters: int, shared: int, gain: float) -> str:
    if parameters == 0:
        return f"site {site!r} sent nothing: fusing it changes nothing."
    if shared == 0:
        return f"site {site!r} shares nothing with the others: fusing it changes nothing."
    part = f"site {site!r} shares {shared:,} of its {parameters:,} values with the others"
    if gain < 0:
        return f"{part}, but would fit better alone, by {-gain:,.1f} nats."
    return f"{part}: matching them gains {gain:,.1f} nats."


def _overall_sentence(parameters: int, shared: int, gain: float) -> str:
    if shared == 0:
        return "no two sites share anything: fusing changes nothing."
    part = f"{shared:,} of {parameters:,} values are shared between sites"
    if gain < 0:
        return f"{part}, but keeping the sites apart explains the values better, by {-gain:,.1f} nats."
    return f"{part}: fusing explains the values better than keeping the sites apart, by {gain:,.1f} nats."
