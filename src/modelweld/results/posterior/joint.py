"""Draws of matching *and* hyperparameters, for one array of Gaussian values: compiled, so that both fit into seconds.

Chains run over the values that were fitted; gross outliers are atoms of their own in every draw. Fragments are
drawn where the fit has some.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from modelweld.core.board import Board
from modelweld.core.prior import BetaBernoulli, Prior
from modelweld.core.values import Array, Index, Stack, group_of_values, offsets_of
from modelweld.families.capabilities import is_compilable
from modelweld.families.math.start import total_variance
from modelweld.families.real_values import Gaussian
from modelweld.fit.priors.spectrum import BOUNDS, FEWEST_FOR_SPECTRUM, JUNK_SHARE, LOG_A, LOG_B, Spectrum
from modelweld.fit.search.parts import Parts
from modelweld.progress import track
from modelweld.results.posterior.draws import DISAGREE, FEWEST_DRAWS, MOVES, Posterior, split_r_hat

if TYPE_CHECKING:
    from modelweld.results.posterior.compiled_beliefs import Beliefs
    from modelweld.results.posterior.compiled_chain import Kept
    from modelweld.results.posterior.compiled_hyperparameters import Steps
    from modelweld.results.posterior.compiled_state import State, Values

EVERY = 5
"""Sweeps between draws that are kept: neighbours tell little more than one of them."""

WARM_UP = 1.5
"""Sweeps of warm-up per draw that is kept: 300 for 200 draws of 5 sweeps each."""

ROUNDS = 3
"""Times that chains are run, twice as long each time, until they agree: seven times the effort of one round."""

TUNING = 0.1
"""How fast the walks' steps are tuned in warm-up, in their logarithm: a factor of e in some twenty sweeps."""

PAIRS_PER_SITE, FEWEST_NEAR, TWINS = 1.5, 8, 3
"""Values of other groups that are near: half as many again as there are sites, which an atom's copies are among; and
values of the own group."""


def drawable(board: Board | Parts) -> bool:
    """Whether matching and hyperparameters of this board can be drawn: one Gaussian array, without a frame."""
    return len(board.families) == 1 and is_compilable(board.families[0]) and len(board.labels) > 0


def sample_jointly(
    board: Board,
    draws: int,
    chains: int,
    seed: int,
    *,
    warm_up: int | None = None,
    kept: NDArray[np.bool_] | None = None,
    fixed: bool = False,
) -> Posterior:
    """Run chains from the board's matching and, every second one, from all values alone; values in the board's order.

    `kept` says which values were fitted; with `fixed` hyperparameters stay as they are and the matching alone moves.
    """
    fitted = np.arange(len(board.labels)) if kept is None else np.flatnonzero(kept)
    setting = _Setting(board, fitted, fixed)
    runs = [setting.chain(c, seed) for c in range(chains)]
    for chain in runs:
        chain.warm(round(WARM_UP * draws) if warm_up is None else warm_up)
    parts = _until_they_agree(runs, draws)
    labels = np.tile(len(board.labels) + np.arange(len(board.labels)), (chains, draws, 1))
    labels[..., fitted] = np.stack([part.labels for part in parts])
    tried, done = (np.sum([getattr(chain, name) for chain in runs], axis=0) for name in ("tried", "done"))
    acceptance = dict(zip(MOVES, (done / np.maximum(tried, 1)).tolist(), strict=True))
    drawn = None if fixed else setting.named(*(np.stack(x) for x in list(zip(*parts, strict=True))[1:5]))
    return Posterior(labels, numbers_held(labels), np.stack([part.objective for part in parts]), acceptance, drawn)


def _until_they_agree(chains: Sequence[_Chain], n: int) -> list[Kept]:
    """Draws of all chains; those of a round in which they disagree are warm-up of the next, twice as long."""
    for again in range(ROUNDS):
        parts = [chain.draw(n, EVERY * 2**again) for chain in track(chains, "drawing matchings", len(chains))]
        if n < FEWEST_DRAWS or agree(parts):
            break
    return parts


def agree(parts: Sequence[Kept]) -> bool:
    """Whether chains have met, in how probable their draws are and in how many atoms these have."""
    objective, K = np.stack([part.objective for part in parts]), numbers_held(np.stack([part.labels for part in parts]))
    return max(split_r_hat(objective), split_r_hat(K)) <= DISAGREE


def numbers_held(labels: Index) -> Index:
    """Atoms of each draw (chains, n), of labels (chains, n, N)."""
    changes = np.diff(np.sort(labels, axis=-1), axis=-1) != 0
    return np.asarray(changes.sum(-1) + 1)


class _Chain:
    """A compiled chain, with how many of each move it tried, and did, since warm-up."""

    def __init__(self, values: Values, beliefs: Beliefs, state: State, steps: Steps) -> None:
        self.values, self.beliefs, self.state, self.walks = values, beliefs, state, steps
        self.tried, self.done = np.zeros((2, len(MOVES)), dtype=np.int64)

    def warm(self, sweeps: int) -> None:
        """Tune the walks' steps, and keep nothing."""
        self._run(1, sweeps, sweeps + 1, TUNING)
        self.tried[:], self.done[:] = 0, 0

    def draw(self, n: int, every: int) -> Kept:
        """So many draws, so many sweeps apart."""
        return self._run(n, n * every, every, 0.0)

    def _run(self, n: int, sweeps: int, every: int, rate: float) -> Kept:
        from modelweld.results.posterior.compiled_chain import room_for, run

        N, D = self.values.y.shape
        kept = room_for(n, N, D, len(self.beliefs.total))
        run(self.values, self.state, self.beliefs, self.walks, rate, sweeps, every, kept, self.tried, self.done)
        return kept


class _Setting:
    """What chains of one board have in common."""

    def __init__(self, board: Board, fitted: Index, fixed: bool) -> None:
        from modelweld.results.posterior.compiled_beliefs import Beliefs

        family = board.families[0]
        assert isinstance(family, Gaussian)  # `drawable`
        sizes = np.bincount(board.group[fitted], minlength=len(board.sizes))
        self.board, self.family, self.fitted = board, family, fitted
        stack = board.stacks[0].take(fitted, offsets_of(sizes)).blind()
        _, total = total_variance(stack, family.scalar)
        at = family.hyperparameters
        self.values = _values(stack, family, np.sqrt(at.noise))
        H = len(at.noise)
        mean_size = float(sizes[sizes > 0].mean())
        self.beliefs = Beliefs(
            total=total,
            floor=np.zeros(H) + np.asarray(family.floor),
            squares=np.zeros(H) + np.asarray(family.squares),
            degrees=float(family.degrees),
            log_size=float(np.log(mean_size)),
            background_mean=JUNK_SHARE * mean_size,
            draws_values=not fixed and family.learning != "nothing",
            draws_prior=not fixed and is_drawn(board.prior, len(sizes)),
        )

    def chain(self, number: int, seed: int) -> _Chain:
        """A chain at its start."""
        from modelweld.results.posterior.compiled_state import place

        state, labels = self.start(number, seed)
        place(self.values, state, labels)
        return _Chain(self.values, self.beliefs, state, self.increments())

    def start(self, number: int, seed: int) -> tuple[State, Index]:
        """Where a chain starts: as fitted, or with every value alone and as much noise as is believed beforehand."""
        from modelweld.results.posterior.compiled_beliefs import SHARE_MEAN, fill_rates
        from modelweld.results.posterior.compiled_state import vacant

        at, N, J = self.family.hyperparameters, len(self.fitted), len(self.board.sizes)
        labels = np.unique(self.board.labels[self.fitted], return_inverse=True)[1].ravel()
        noise = at.noise
        if number % 2:
            labels = np.arange(N)
            if self.beliefs.draws_values:
                noise = np.maximum(np.exp(SHARE_MEAN) * self.beliefs.total, self.beliefs.floor)
        share = float(np.log(noise / self.beliefs.total).mean())
        prior = first_prior(self.board.prior, int(labels.max()) + 1)
        rest = np.array([share, *prior, self.board.delta])
        random = int(np.random.SeedSequence([seed, number]).generate_state(1, np.uint64)[0])
        state = vacant(self.values, noise, at.spread, at.mean, rest, random)
        if self.beliefs.draws_prior:
            fill_rates(state.rest, state.R)
        else:
            state.R[1 : J + 1] = np.cumsum(self.board.increments)
        return state, labels

    def increments(self) -> Steps:
        """First steps of the walks, in logarithms."""
        from modelweld.results.posterior.compiled_hyperparameters import Steps

        H = len(self.beliefs.total)
        return Steps(np.full(H, np.log(0.3)), np.full(H, np.log(0.5)), np.full(1, np.log(0.2)))

    def named(self, noise: Array, spread: Array, mean: Array, rest: Array) -> dict[str, Array]:
        """Draws of hyperparameters by name, each (chains, draws, ...)."""
        from modelweld.results.posterior.compiled_state import DELTA

        found = {"noise": noise, "spread": spread, "mean": mean + np.asarray(self.family.origin)}
        if self.beliefs.draws_prior:
            found |= named_prior(rest)
        if self.board.delta > 0:
            found["delta"] = rest[..., DELTA]
        return found


def is_drawn(prior: Prior, J: int) -> bool:
    """Whether the prior's own parameters are drawn: where they are learned, and where J is too few to learn them."""
    if isinstance(prior, BetaBernoulli):
        return prior.learning or J < FEWEST_FOR_SPECTRUM
    return type(prior) is Spectrum


def first_prior(prior: Prior, K: int) -> tuple[float, float, float, float]:
    """Where walks of the prior's parameters begin: logarithms of a, b and the expected number of atoms, and
    background.
    """
    if not isinstance(prior, Spectrum):
        return LOG_A[0], LOG_B[0], float(np.log(max(K, 1))), 0.0
    log_a, log_b = (float(np.clip(np.log(x), *bound)) for x, bound in zip((prior.a, prior.b), BOUNDS, strict=True))
    return log_a, log_b, float(np.log(max(K, 1))), prior.background


def named_prior(rest: Array) -> dict[str, Array]:
    """Draws of the prior's parameters by name, from single numbers (..., 6)."""
    from modelweld.results.posterior import compiled_state as at

    logs = {"a": at.LOG_A, "b": at.LOG_B, "expected_atoms": at.LOG_ATOMS}
    return {name: np.exp(rest[..., i]) for name, i in logs.items()} | {"background": rest[..., at.JUNK].copy()}


def _values(stack: Stack, family: Gaussian, unit: Array) -> Values:
    """What is given, as chains take it."""
    from modelweld.results.posterior.compiled_state import Values

    y = np.ascontiguousarray(stack.values - np.asarray(family.origin))
    ones = np.ones_like(y)
    weight = ones if stack.weight is None else stack.weight
    group = group_of_values(stack.offsets)
    distance = y / unit
    return Values(
        y=y,
        seen=(weight > 0).astype(np.float64),
        inverse=1.0 / np.where(weight > 0, weight, 1.0),
        variance=np.zeros_like(y) if stack.variance is None else family.inflation * stack.variance,
        group=group,
        offsets=stack.offsets,
        near=nearest(distance, group, max(FEWEST_NEAR, round(PAIRS_PER_SITE * len(stack.sizes))), own=False),
        duplicates=nearest(distance, group, TWINS, own=True),
    )


def nearest(values: Array, group: Index, number: int, *, own: bool) -> Index:
    """The nearest values (N, M) of other groups, or of the `own`; the value itself where there are too few.

    Examples
    --------
    >>> nearest(np.array([[0.0], [1.0], [0.1], [5.0]]), np.array([0, 0, 1, 1]), 1, own=False).ravel()
    array([2, 2, 0, 1])
    """
    N = len(values)
    number = min(number, N)
    found = np.empty((N, number), dtype=np.int64)
    squares = (values * values).sum(1)
    for begin in range(0, N, 256):
        rows = np.arange(begin, min(begin + 256, N))
        table = squares - 2 * values[rows] @ values.T  # less the row's own square
        table[(group[rows, None] == group) != own] = np.inf
        table[np.arange(len(rows)), rows] = np.inf
        best = np.argpartition(table, number - 1, axis=1)[:, :number]
        far = np.isinf(np.take_along_axis(table, best, axis=1))
        found[rows] = np.where(far, rows[:, None], best)
    return found
