"""Draws from the posterior of a matching, P(matching | values) ∝ exp(objective), and of what moves with it (`Move`).

The matching's own moves are those of `compiled_sweep`, which makes them where all evidences are compiled:
`redraw_value`, one value from its exact conditional given all else; `swap`, two values of a group that trade atoms,
which one by one they cannot; `split_or_merge`, of the atoms of two values by the sequential proposal of Dahl (2005) and
the Metropolis-Hastings rule. Without it, an atom of many groups could come apart only through improbable stages. Each
leaves the posterior invariant.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from modelweld.core.algorithm1 import NEW
from modelweld.core.board import Board
from modelweld.core.family import Family, gather, log_predictive, log_prior, sum_by_atom, unite
from modelweld.core.tally import Tally
from modelweld.core.values import Array, Index, blocks, offsets_of
from modelweld.errors import InputError
from modelweld.progress import track
from modelweld.results.posterior.compiled_evidences import compiled_evidence
from modelweld.results.posterior.compiled_sweep import PER_PAIR, Given, at_start, sweeps
from modelweld.results.posterior.draws import DISAGREE, FEWEST_DRAWS, MERGE, MOVES, SPLIT, VALUE, Posterior

SWEEPS = 4
"""Compiled sweeps of the matching for each step of what moves with it, after which a draw is kept: neighbours tell
little more than one of them."""

TUNING, ACCEPTED = 0.1, 0.44
"""How fast the logarithm of a step's length is tuned in warm-up, and the share of accepted steps in one dimension that
it is tuned to (Gelman, Roberts, Gilks 1996)."""

WARM_UP = 0.4
"""Sweeps of warm-up per draw that is kept."""

ROUNDS = 3
"""Times that compiled chains run, twice as long each time, until they agree: seven times the effort of one round."""

PAIRS_PER_SITE, FEWEST_NEAR = 1.5, 8
"""Values of other groups that are near: half as many again as there are sites, which an atom's own are among."""


def sample(
    board: Board,
    draws: int,
    chains: int,
    seed: int,
    warm_up: int | None = None,
    moves: Callable[[Board], Sequence[Move]] = lambda board: (),
    kept: NDArray[np.bool_] | None = None,
) -> Posterior:
    """Run chains from the board's matching and from dispersed starts; values in the board's order.

    `kept` says which values were fitted; the others are atoms of their own in every draw. Fragments are values like
    others, each about its atom: which values are fragments of one is drawn, too.
    """
    check_lengths(draws, chains)
    N, fitted = len(board.labels), np.arange(len(board.labels)) if kept is None else np.flatnonzero(kept)
    part = board if len(fitted) == N else _take(board, fitted)
    seeds = np.random.SeedSequence(seed).spawn(chains)
    runs = [Chain(part, np.random.default_rng(s), moves(part)) for s in seeds]
    for number, chain in enumerate(runs):
        chain.start(number)
        for _ in range(round(WARM_UP * draws) if warm_up is None else warm_up):
            chain.sweep()
        chain.forget()
    for again in range(ROUNDS if runs[0].is_compiled else 1):
        parts = [chain.draw(draws, 2**again) for chain in track(runs, "drawing matchings", chains)]
        labels, drawn = np.tile(N + np.arange(N), (chains, draws, 1)), [drawn for _, drawn in parts]
        labels[..., fitted] = np.stack([own for own, _ in parts])
        shares = sum(chain.done for chain in runs) / np.maximum(sum(chain.tried for chain in runs), 1)
        named = {name: np.stack([[draw[name] for draw in chain] for chain in drawn]) for name in drawn[0][0]}
        K = np.count_nonzero(np.diff(np.sort(labels, axis=-1), axis=-1), axis=-1) + 1
        acceptance = dict(zip(MOVES, shares.tolist(), strict=True))
        posterior = Posterior(labels, K, named.pop("objective"), acceptance, named or None)
        if max(posterior.r_hat.values()) <= DISAGREE:
            break
    return posterior


def _take(board: Board, fitted: Index) -> Board:
    """A board of these values alone."""
    offsets = offsets_of(np.bincount(board.group[fitted], minlength=len(board.sizes)))
    stacks = [stack.take(fitted, offsets) for stack in board.stacks]
    return Board(stacks, board.families, board.prior, board.fragments, board.labels[fitted])


def check_lengths(draws: int, chains: int) -> None:
    """Refuse what has no variance."""
    if draws < FEWEST_DRAWS or chains < 1:
        raise InputError(f"sample: at least 1 chain of {FEWEST_DRAWS} draws; found {chains} of {draws}.")


class Move:
    """Something that moves with a matching: see `gaussian_moves`, `sharing_moves`, `metropolis`."""

    def step(self, chain: Chain, rate: float) -> None:
        """Move once, given all else, and let the chain have it; lengths of steps are tuned at this rate."""
        raise NotImplementedError

    def log_prior(self, chain: Chain) -> float:
        """Log density of where it is, up to a constant."""
        return 0.0

    def drawn(self, chain: Chain) -> dict[str, ArrayLike]:
        """Where it is, by name."""
        return {}


class Chain(Tally):
    """A matching that moves, with room for as many atoms as there are values.

    Parameters
    ----------
    board : Board
        Values, families, prior and the matching that was fitted; it is only read.
    rng : Generator
        Source of all that is random.
    moves : sequence of Move
        What moves with it; nothing where hyperparameters are fixed.
    """

    def __init__(self, board: Board, rng: np.random.Generator, moves: Sequence[Move] = ()) -> None:
        super().__init__(board.families, board.rows, board.group, board.labels, room=True)
        self.rng, self.fitted, self.moves, self.rate = rng, self.labels, moves, TUNING
        self.singletons, self.increments, self.offsets = board.singletons, board.increments, board.offsets
        self.fragments = board.fragments
        self.R = np.concatenate([[0.0], np.cumsum(board.increments)])  # log prior of an atom by its count
        self.near = self._nearest()
        self.is_compiled = compiled_evidence(self.families, self.rows) is not None
        self.constant = 0.0  # what does not depend on the matching
        self.constant = board.objective() - self.objective()
        self.forget()

    def _nearest(self) -> Index:
        """Values (N, M) of other groups that most likely share an atom with each, by the odds of the two alone."""
        N, found = len(self.labels), []
        number = min(N, max(FEWEST_NEAR, round(PAIRS_PER_SITE * (len(self.offsets) - 1))))
        for part in blocks(N, N):
            gains = [log_predictive(f, r[part], r) for f, r in zip(self.families, self.rows, strict=True)]
            odds = np.sum(gains, axis=0) - self.singletons[part, None]
            odds[self.group[part, None] == self.group] = -np.inf
            best = np.argsort(-odds, axis=1, kind="stable")[:, :number]
            far = np.isneginf(np.take_along_axis(odds, best, axis=1))
            found.append(np.where(far, np.arange(N)[part, None], best))
        return np.concatenate([np.zeros((0, number), dtype=np.int64), *found])

    def start(self, number: int) -> None:
        """Even chains start as fitted, odd ones with all values alone."""
        self.rate = TUNING
        self.place(np.arange(len(self.fitted)) if number % 2 else self.fitted)

    def place(self, labels: Index) -> None:
        """Put all values where these labels say."""
        self.labels = labels
        self.recount()

    def forget(self) -> None:
        """Count moves from here on, and let steps be as long as they are."""
        self.rate = 0.0
        self.tried, self.done = np.zeros((2, len(MOVES)), dtype=np.int64)

    def objective(self) -> float:
        """Log probability of the matching and of what moves with it, plus the log evidences of its atoms."""
        held = np.flatnonzero(self.counts)
        value = self.constant + float(self.R[self.counts[held]].sum()) + self.evidence([s[held] for s in self.sums])
        if self.moves:
            value += sum(map(log_prior, self.families)) + sum(move.log_prior(self) for move in self.moves)
        return value if self.fragments is None else value + self.fragments.log_prob(self.fragments_held())

    def draw(self, n: int, every: int) -> tuple[Index, list[dict[str, Array]]]:
        """Labels (n, N) and all else by name, of so many draws, so many sweeps apart."""
        labels, drawn = np.empty((n, len(self.labels)), dtype=np.int64), []
        for t in range(n):
            for _ in range(every):
                self.sweep()
            labels[t] = self.labels
            drawn.append({"objective": np.array(self.objective()), **self.hyperparameters()})
        return labels, drawn

    def hyperparameters(self) -> dict[str, Array]:
        """All that moves with the matching, by name."""
        return {name: np.array(value) for move in self.moves for name, value in move.drawn(self).items()}

    def sweep(self) -> None:
        """The matching, then what moves with it."""
        self.move_matching()
        for move in self.moves:
            move.step(self, self.rate)

    def refit(self, array: int, family: Family, rows: Array) -> None:
        """Have this family of an array, and its rows."""
        self.families[array] = family
        self.rows[array], self.sums[array] = gather(family, rows, self.labels, len(self.counts))

    def expect(self, R: Array) -> None:
        """Have these log probabilities of atoms held by one group, by two, ..."""
        self.R = np.concatenate([[0.0], R])
        self.increments = np.diff(self.R)

    def move_matching(self) -> None:
        """Every value, then pairs of atoms; compiled, where all evidences are."""
        if not len(self.labels):
            return None
        found = compiled_evidence(self.families, self.rows)
        delta = 0.0 if self.fragments is None else self.fragments.delta
        if found is None:
            return self.sweep_in_numpy(delta)
        given = Given(*found, self.group, self.offsets, self.near, self.R, delta)
        state = at_start(given, self.labels, int(self.rng.integers(2**63)))
        sweeps(given, state, SWEEPS, self.tried, self.done)
        self.labels, self.counts = state.labels, state.counts
        self.sums = [sum_by_atom(rows, self.labels, len(self.counts)) for rows in self.rows]

    def sweep_in_numpy(self, delta: float) -> None:
        """As `compiled_sweep.sweeps`, for families whose evidence is not compiled."""
        self.singletons = np.sum([f.log_evidence(r) for f, r in zip(self.families, self.rows, strict=True)], axis=0)
        N = len(self.labels)
        for value in self.rng.permutation(N).tolist():
            self.redraw_value(value, delta)
            self.swap(value)
        for _ in range(max(1, N // PER_PAIR)):
            i = int(self.rng.integers(N))
            j = int(self.rng.choice(self.near[i]))
            members = np.flatnonzero((self.labels == self.labels[i]) | (self.labels == self.labels[j]))
            if i != j and len(np.unique(self.group[members])) == len(members):  # fragments are neither made nor undone
                self.split_or_merge(i, j, members)
        self.recount()

    def _group_of(self, value: int) -> slice:
        """Where the values of its group stand."""
        return slice(*self.offsets[self.group[value] + np.arange(2)].tolist())

    def redraw_value(self, value: int, delta: float) -> None:
        """One value from its conditional given all else; it may join one of its own group as a further fragment."""
        group, one, old = self._group_of(value), np.array([value]), int(self.labels[value])
        others = np.delete(self.labels[group], value - group.start)
        self.take(one, counted=old not in others)
        atoms = np.flatnonzero(self.counts)
        fragments = (atoms[:, None] == others).sum(1)
        first = fragments == 0
        prior = np.full(len(atoms), -np.inf)
        prior[first] = np.log1p(-delta) + self.increments[self.counts[atoms[first]]]
        if delta > 0:
            prior[~first] = np.log(delta) + np.log(fragments[~first] + 1.0)
        alone = np.log1p(-delta) + self.increments[0] + self.singletons[value]
        pick = draw_log(np.append(prior + self.log_predictive(one, atoms)[0], alone), self.rng)
        atom = self.open(np.append(atoms, NEW)[[pick]])
        self.put(one, atom, counted=atom[0] not in others)
        self.tried[VALUE] += 1
        self.done[VALUE] += atom[0] != old

    def swap(self, value: int) -> None:
        """Trade the atoms of a value and another of its group, or not, by the exact odds; fragments stay."""
        group = self._group_of(value)
        both = np.array([value, self.rng.integers(group.start, group.stop)])
        atoms = self.labels[both]
        if np.isin(self.labels[group], atoms).sum() > 2 or atoms[0] == atoms[1]:
            return
        self.take(both)
        gain = self.log_predictive(both, atoms)
        traded = draw_log(np.array([np.trace(gain), np.trace(gain[::-1])]), self.rng)
        self.put(both, atoms[::-1] if traded else atoms)

    def split_or_merge(self, i: int, j: int, members: Index) -> None:
        """Propose one atom for i, j and all `members` if they are at two, two atoms if they are at one."""
        split, at_second = self.labels[i] == self.labels[j], self.labels == self.labels[j]
        each = {value: np.array([value]) for value in members.tolist()}
        for one in each.values():
            self.take(one)
        both, log_proposal = self.open(np.array([NEW, NEW])), 0.0
        self.put(np.array([i, j]), both)
        for value in self.rng.permutation(members[(members != i) & (members != j)]).tolist():
            scores = self.increments[self.counts[both]] + self.log_predictive(each[value], both)[0]
            pick = draw_log(scores, self.rng) if split else int(at_second[value])
            log_proposal += float(scores[pick] - np.logaddexp(*scores))
            self.put(each[value], both[[pick]])
        united = [unite(f, sums, int(both[0]), both[[1]]) for f, sums in zip(self.families, self.sums, strict=True)]
        rise = self.evidence([sums[both] for sums in self.sums]) - self.evidence(united)
        log_ratio = rise + float(self.R[self.counts[both]].sum() - self.R[len(members)]) - log_proposal
        accepted = np.log(self.rng.random()) < (log_ratio if split else -log_ratio)
        self.tried[SPLIT if split else MERGE] += 1
        self.done[SPLIT if split else MERGE] += accepted
        for value in members[self.labels[members] == both[1]].tolist() if split != accepted else ():
            self.take(each[value])
            self.put(each[value], both[[0]])


def draw_log(log_weights: Array, rng: np.random.Generator) -> int:
    """An index, with probability in proportion to the exponential of its weight."""
    cumulative = np.exp(log_weights - log_weights.max()).cumsum()
    return int(cumulative.searchsorted(rng.random() * cumulative[-1], side="right"))
