"""Draws from the posterior of the matching, hyperparameters fixed: P(matching | values) ∝ exp(objective).

Two kinds of move, each of which leaves the posterior invariant:

- `redraw_group`: the values of one group two at a time, from their exact conditional given everything else. One table
  of scores serves the whole group, because its values do not share atoms. Where they may
  (`modelweld.matching.pieces.prior`), `redraw_pieces` redraws them one at a time as well.
- `redraw_atoms`: two values i and j, drawn by a law that does not look at the matching. Either the atoms of i and j
  *exchange* values group by group (exact conditionals, i and j stay), or they are *merged*, or, if i and j
  are at one atom, it is *split* round them, value after value, with the sequential proposal of Dahl (2005) and the
  Metropolis-Hastings rule. Without this, an atom of many groups could come apart only through improbable stages.
"""

from __future__ import annotations

import numpy as np

from modelweld.errors import InputError
from modelweld.families.base import gather
from modelweld.inputs.local_model import Array
from modelweld.inputs.stack import Index
from modelweld.matching.algorithm1 import NEW
from modelweld.matching.board import Board
from modelweld.matching.tally import Tally
from modelweld.posterior.convergence import FEWEST_DRAWS
from modelweld.posterior.draws import Posterior
from modelweld.posterior.pair_moves import draw, draw_log, redraw
from modelweld.progress import track

PAIRS_PER_VALUE = 0.25
"""Moves of `redraw_atoms` in a sweep, per value: about as much time as the groups take."""

FREED_SHARE = 0.5
"""Share of the groups whose values start alone in every second dispersed chain."""

UNLIKELY_PAIR = 1e-6
"""Least weight of a pair in `redraw_atoms`, so that the weights of a far value still add up to something."""

MOVES = ("split", "merge", "value")
"""What acceptance is counted of."""

SPLIT, MERGE, VALUE = range(len(MOVES))


def sample(
    board: Board, draws: int, chains: int, seed: int, warm_up: int | None = None, chain_of: type[Chain] | None = None
) -> Posterior:
    """Run chains from the board's matching and from dispersed starts; values in the board's order."""
    check_lengths(draws, chains)
    make = Chain if chain_of is None else chain_of
    runs = [make(board, np.random.default_rng(s)) for s in np.random.SeedSequence(seed).spawn(chains)]
    drawn: list[list[dict[str, Array]]] = [[] for _ in runs]
    labels = np.empty((chains, draws, len(board.labels)), dtype=np.int64)
    K, objective = np.empty((chains, draws), dtype=np.int64), np.empty((chains, draws))
    for c, chain in enumerate(track(runs, "drawing matchings", chains)):
        chain.start(c)
        for _ in range(draws // 2 if warm_up is None else warm_up):
            chain.sweep()
        chain.forget()
        for t in range(draws):
            chain.sweep()
            labels[c, t], K[c, t], objective[c, t] = chain.labels, np.count_nonzero(chain.counts), chain.objective()
            drawn[c].append(chain.drawn())
    tried, done = np.sum([chain.tried for chain in runs], axis=0), np.sum([chain.done for chain in runs], axis=0)
    shares = done / np.maximum(tried, 1)
    named = {name: np.stack([[draw[name] for draw in chain] for chain in drawn]) for name in drawn[0][0]}
    return Posterior(labels, K, objective, dict(zip(MOVES, shares.tolist(), strict=True)), named or None)


def check_lengths(draws: int, chains: int) -> None:
    """Refuse what has no variance."""
    if draws < FEWEST_DRAWS or chains < 1:
        raise InputError(f"sample: at least 1 chain of {FEWEST_DRAWS} draws; found {chains} of {draws}.")


class Chain(Tally):
    """A matching that moves, with room for as many atoms as there are values.

    Parameters
    ----------
    board : Board
        Values, families, prior and the matching that was fitted; it is only read.
    rng : Generator
        Source of all that is random.
    """

    def __init__(self, board: Board, rng: np.random.Generator) -> None:
        super().__init__(board.families, board.rows, board.group, board.labels, room=True)
        self.rng, self.fitted = rng, board.labels
        self.alone, self.steps, self.pieces, self.offsets = board.alone, board.steps, board.pieces, board.offsets
        self.R = np.concatenate([[0.0], np.cumsum(board.steps)])  # log prior of an atom by its count
        self.constant = 0.0  # what does not depend on the matching
        self.constant = board.objective() - self.objective()
        self.forget()

    def start(self, number: int) -> None:
        """Even chains start as fitted; odd ones with all values alone, or with those of some groups alone."""
        N, J = len(self.fitted), len(self.offsets) - 1
        if number % 2 == 0:
            return self.place(self.fitted)
        freed = np.arange(J) if number % 4 == 1 else self.rng.permutation(J)[: max(1, round(FREED_SHARE * J))]
        self.place(np.where(np.isin(self.group, freed), N + np.arange(N), self.fitted))

    def place(self, labels: Index) -> None:
        """Put all values where these labels say."""
        self.labels = labels
        self.recount()

    def forget(self) -> None:
        """Count moves from here on."""
        self.tried, self.done = np.zeros((2, len(MOVES)), dtype=np.int64)

    def objective(self) -> float:
        """Log probability of the matching plus the log evidences of its atoms."""
        held = np.flatnonzero(self.counts)
        value = self.constant + float(self.R[self.counts[held]].sum()) + self.evidence([s[held] for s in self.sums])
        if self.pieces is None:
            return value
        return value + self.pieces.log_prob(self.pieces_held())

    def drawn(self) -> dict[str, Array]:
        """Hyperparameters that move, by name: none."""
        return {}

    def sweep(self) -> None:
        """Every group once, then pairs of atoms; a number of moves that does not depend on the matching."""
        for j in self.rng.permutation(len(self.offsets) - 1).tolist():
            if self.pieces is not None:
                self.redraw_pieces(j, self.pieces.delta)
            self.redraw_group(j)
        N = len(self.labels)
        if N > 1:
            for _ in range(max(1, round(PAIRS_PER_VALUE * N))):
                self.redraw_atoms(*self.two_values())
        self.recount()

    # -- one group

    def redraw_group(self, j: int) -> None:
        """The group's values, each with a partner, from their conditional given all else."""
        values = np.arange(self.offsets[j], self.offsets[j + 1])
        old = self.labels[values]
        if len(values) == 0 or len(np.unique(old)) < len(old):  # pieces stay
            return
        self.take(values)
        atoms = np.flatnonzero(self.counts)
        new = len(atoms)
        column = np.full(len(self.counts), new)
        column[atoms] = np.arange(new)
        scores = np.zeros((len(values), new + 1))
        scores[:, :new] = self.steps[self.counts[atoms]] - self.steps[0] - self.alone[values, None]
        scores[:, :new] += self.gain(values, atoms)
        choice = redraw(scores, column[old], self.rng)
        self.put(values, self.open(np.append(atoms, NEW)[choice]))
        self.tried[VALUE] += len(values)
        self.done[VALUE] += np.count_nonzero(choice != column[old])

    def redraw_pieces(self, j: int, delta: float) -> None:
        """The group's values one at a time; a value may join one of its own group as a further piece."""
        group = slice(self.offsets[j], self.offsets[j + 1])
        for value in (self.offsets[j] + self.rng.permutation(group.stop - group.start)).tolist():
            one, old = np.array([value]), int(self.labels[value])
            others = np.delete(self.labels[group], value - group.start)
            self.take(one, counted=old not in others)
            atoms = np.flatnonzero(self.counts)
            pieces = (atoms[:, None] == others).sum(1)
            prior = np.log(delta) + np.log(pieces + 1.0)  # of a further piece
            first = pieces == 0
            prior[first] = np.log1p(-delta) + self.steps[self.counts[atoms[first]]]
            alone = np.log1p(-delta) + self.steps[0] + self.alone[value]
            pick = draw_log(np.append(prior + self.gain(one, atoms)[0], alone), self.rng)
            atom = self.open(np.append(atoms, NEW)[[pick]])
            self.put(one, atom, counted=atom[0] not in others)
            self.tried[VALUE] += 1
            self.done[VALUE] += atom[0] != old

    # -- two atoms

    def two_values(self) -> tuple[int, int]:
        """A value, and another one like it: by the odds that the two alone would share an atom."""
        i = int(self.rng.integers(len(self.labels)))
        odds = sum(f.gain(r[i : i + 1], r)[0] for f, r in zip(self.families, self.rows, strict=True)) - self.alone[i]
        weights = np.exp(np.minimum(odds, 0.0)) + UNLIKELY_PAIR
        weights[i] = 0.0
        return i, draw(weights, self.rng)

    def redraw_atoms(self, i: int, j: int) -> None:
        """Exchange between the atoms of i and j, or split or merge, as a coin decides.

        Splits and merges are for members of different groups: they neither make nor undo pieces.
        """
        one, other = int(self.labels[i]), int(self.labels[j])
        members = np.flatnonzero((self.labels == one) | (self.labels == other))
        if self.rng.random() < 0.5:
            if one != other:
                self.exchange(i, j, members)
        elif len(np.unique(self.group[members])) == len(members):
            self.split_or_merge(i, j, members)

    def exchange(self, i: int, j: int, members: Index) -> None:
        """Group by group, which of its values is at which of two atoms; i, j, their groups and pieces stay."""
        members = members[(self.group[members] != self.group[i]) & (self.group[members] != self.group[j])]
        atoms = self.labels[[i, j]]
        for g in self.rng.permutation(np.unique(self.group[members])).tolist():
            values = members[self.group[members] == g]
            if len(np.unique(self.labels[values])) < len(values):
                continue
            self.take(values)
            scores = self.steps[self.counts[atoms]] + self.gain(values, atoms)
            if len(values) == 2:  # (first at one, second at other), or the reverse
                scores = np.array([scores[0, 0] + scores[1, 1], scores[0, 1] + scores[1, 0]])
            pick = draw_log(scores.ravel(), self.rng)
            self.put(values, atoms[[pick, 1 - pick]][: len(values)])

    def split_or_merge(self, i: int, j: int, members: Index) -> None:
        """Propose one atom for i, j and all `members` if they are at two, two atoms if they are at one."""
        split = self.labels[i] == self.labels[j]
        order = self.rng.permutation(members[(members != i) & (members != j)])
        sums = [rows[[i, j]] for rows in self.rows]
        one = np.zeros(len(members), dtype=np.int64)
        whole = [gather(f, rows[members], one, 1)[1] for f, rows in zip(self.families, self.rows, strict=True)]
        counts = np.array([1, 1])
        side = np.zeros(len(order), dtype=np.int64)
        log_proposal = 0.0
        for position, value in enumerate(order.tolist()):
            scores = self.steps[counts].copy()
            for family, rows, s in zip(self.families, self.rows, sums, strict=True):
                scores += family.gain(rows[value : value + 1], s)[0]
            pick = draw_log(scores, self.rng) if split else int(self.labels[value] == self.labels[j])
            log_proposal += float(scores[pick] - np.logaddexp(*scores))
            for family, rows, s in zip(self.families, self.rows, sums, strict=True):
                s[pick] += family.facing(rows[value : value + 1], s[pick : pick + 1])[0]
            counts[pick] += 1
            side[position] = pick
        rise = float(self.R[counts].sum() - self.R[len(members)]) + self.evidence(sums) - self.evidence(whole)
        log_ratio = rise - log_proposal
        move = SPLIT if split else MERGE
        self.tried[move] += 1
        if np.log(self.rng.random()) >= (log_ratio if split else -log_ratio):
            return
        self.done[move] += 1
        moving = np.array([j, *order[side == 1]]) if split else members[self.labels[members] == self.labels[j]]
        to = self.open(np.array([NEW])) if split else self.labels[[i]]
        for value in moving:
            self.take(np.array([value]))
        for value in moving:
            self.put(np.array([value]), to)
