"""Chains that also move hyperparameters, of some families and of the prior: random walks in their logarithms, in numpy.

What is walked is a family's `walked`: positive numbers and arrays of such. Every sweep multiplies each by a random
factor, and entries of arrays by factors of their own. Each is believed to be what was learned, give or take WIDE; the
prior over matchings has the parameters and beliefs of the compiled chains (`compiled_beliefs`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from modelweld.families.base import Family, sum_by_atom, with_fields
from modelweld.inputs.local_model import Array
from modelweld.matching.board import Board
from modelweld.posterior.joint import TUNING, is_drawn
from modelweld.posterior.sampler import Chain
from modelweld.priors.spectrum import JUNK_SHARE, Spectrum
from modelweld.priors.spectrum_fit import BOUNDS, LOG_A, LOG_B

WIDE = 0.7
"""Deviation of the logarithm of a hyperparameter about what was learned: a factor of two. Of .5, .7 and 1 the middle:
proportions want less, rates more (seeds 0 to 11)."""

ENTRIES = 2
"""Entries of an array that are walked by themselves in a sweep."""

FIRST_STEP, ACCEPTED = 0.3, 0.44
"""Deviation of a walk's first steps, and the share of them that warm-up tunes to be accepted."""


WALKED_UP_TO, WALKED_DRAWS = 60, 100
"""Values up to which hyperparameters are drawn without being asked to, and draws per chain: together some five
seconds, for a sweep takes ten milliseconds at fifty values and grows with their square."""


class Walked(NamedTuple):
    """A hyperparameter that is walked: its name, and what was learned."""

    name: str
    learned: Array

    def log_belief(self, family: Family) -> float:
        """Log density of the logarithms, up to a constant."""
        off = np.log(np.asarray(getattr(family, self.name), dtype=np.float64) / self.learned) / WIDE
        return -0.5 * float((off * off).sum())

    def moved(self, family: Family, entry: int | None, factor: float) -> Family:
        """The family with the hyperparameter, or one entry of it, multiplied."""
        now = np.array(getattr(family, self.name), dtype=np.float64)
        if entry is None:
            now = now * factor
        else:
            now.ravel()[entry] *= factor
        return with_fields(family, **{self.name: float(now) if now.ndim == 0 else now})


def walked(board: Board) -> list[Walked]:
    """What is walked: of one array's family, where it learns, all that is finite and positive."""
    if len(board.families) != 1:
        return []
    family = board.families[0]
    fields = {name: getattr(family, name) for name in family.walked} if learns(family) else {}
    found = [Walked(name, np.asarray(value, dtype=np.float64)) for name, value in fields.items()]
    return [w for w in found if np.isfinite(w.learned).all() and (w.learned > 0).all()]


def affordable_walks(board: Board) -> int:
    """Draws per chain that take seconds; zero where values are too many, or nothing is walked."""
    return WALKED_DRAWS if len(board.labels) <= WALKED_UP_TO and walked(board) else 0


def learns(family: Family) -> bool:
    """Whether hyperparameters are learned, so that they may be drawn, too."""
    return getattr(family, "learning", "nothing") != "nothing"


class WalkingChain(Chain):
    """A chain whose hyperparameters move with its matching."""

    def __init__(self, board: Board, rng: np.random.Generator) -> None:
        self.stacks, self.sizes, self.prior = board.stacks, board.sizes, board.prior
        self.walked = walked(board)
        self.log_steps = {w.name: np.full(2, np.log(FIRST_STEP)) for w in self.walked}
        self.draws_prior, self.rate = is_drawn(board.prior, len(board.sizes)), TUNING
        self.at = self._first_prior(len(board.counts))
        super().__init__(board, rng)

    def forget(self) -> None:
        """Count moves from here on, and let steps be what they are."""
        super().forget()
        self.rate = 0.0

    def start(self, number: int) -> None:
        """As fitted or dispersed, with steps to be tuned."""
        self.rate = TUNING
        super().start(number)

    def sweep(self) -> None:
        """Matching, then hyperparameters given it."""
        super().sweep()
        for w in self.walked:
            self.walk(w, None)
            if w.learned.size > 1:
                for entry in self.rng.integers(w.learned.size, size=ENTRIES).tolist():
                    self.walk(w, entry)
        self.alone = self.families[0].log_evidence(self.rows[0])
        if self.draws_prior:
            self.walk_prior()

    def objective(self) -> float:
        """Log density of matching, values and hyperparameters, up to a constant."""
        believed = sum(w.log_belief(self.families[0]) for w in self.walked)
        prior = self.log_prior(self.at) if self.draws_prior else 0.0
        return float(super().objective() + believed + prior)

    # -- families

    def walk(self, w: Walked, entry: int | None) -> None:
        """One step of a hyperparameter, by the rule of Metropolis."""
        [family], [stack], held = self.families, self.stacks, np.flatnonzero(self.counts)
        steps, kind = self.log_steps[w.name], 0 if entry is None else 1
        new = w.moved(family, entry, float(np.exp(np.exp(steps[kind]) * self.rng.standard_normal()))).seeing(stack)
        [rows], [sums] = self.rows, self.sums
        if new.rows_change(stack):
            rows = new.rows(stack.values, stack.variance, stack.weight)
            sums = sum_by_atom(rows, self.labels, len(self.counts))
        rise = float(new.log_evidence(sums[held]).sum() - family.log_evidence(self.sums[0][held]).sum())
        rise += new.log_prior() - family.log_prior() + w.log_belief(new) - w.log_belief(family)
        accepted = bool(np.log(self.rng.random()) < rise)  # NaN is not
        steps[kind] += self.rate * (accepted - ACCEPTED)
        if accepted:
            self.families, self.rows, self.sums = [new], [rows], [sums]

    # -- prior

    def _first_prior(self, K: int) -> Array:
        """Logarithms of a, b and the expected number of atoms, and junk."""
        prior = self.prior
        if not isinstance(prior, Spectrum):
            return np.array([LOG_A[0], LOG_B[0], np.log(max(K, 1)), 0.0])
        log_a, log_b = (float(np.clip(np.log(x), *bound)) for x, bound in zip((prior.a, prior.b), BOUNDS, strict=True))
        return np.array([log_a, log_b, np.log(max(K, 1)), prior.junk])

    def spectrum(self, at: Array) -> Spectrum:
        """The prior with these parameters."""
        a, b, atoms = np.exp(at[:3]).tolist()
        return Spectrum.expecting(a, b, atoms, len(self.sizes), float(at[3]))

    def log_prior(self, at: Array) -> float:
        """Log density of the prior's parameters, up to a constant, less what it says of the matching."""
        from modelweld.posterior.compiled_beliefs import ALIKE, ATOMS_DEVIATION, HELD

        if not all(low <= x <= high for x, (low, high) in zip(at[:2], BOUNDS, strict=True)):
            return -np.inf
        mean_size = float(self.sizes[self.sizes > 0].mean())
        believed = (at[0] - at[1], np.logaddexp(at[0], at[1]), at[2])
        laws = (HELD, ALIKE, (np.log(mean_size), ATOMS_DEVIATION))
        total = -float(np.exp(at[2]))
        total -= 0.5 * sum(((x - mean) / deviation) ** 2 for x, (mean, deviation) in zip(believed, laws, strict=True))
        if at[3] > 0:
            total += float(np.log(at[3]) - at[3] * (len(self.sizes) + 1 / (JUNK_SHARE * mean_size)))
        return float(total)

    def walk_prior(self) -> None:
        """Walk log a, log b, both together, log(number of atoms), and junk where there is any."""
        J, counts = len(self.sizes), self.counts[self.counts > 0].astype(np.float64)
        here = self.log_prior(self.at) + float(self.spectrum(self.at).log_rate(counts, J).sum())
        for move, step in enumerate(([1, 0, 0], [0, 1, 0], [1, 1, 0], [0, 0, 0.5], [0, 0, 0])):
            at, by = self.at.copy(), self.rng.standard_normal()
            at[:3] += by * np.array(step)
            if move == 4:
                at[3] *= np.exp(0.5 * by)
            there = self.log_prior(at)
            if np.isfinite(there):
                there += float(self.spectrum(at).log_rate(counts, J).sum())
            if np.log(self.rng.random()) < there - here:
                self.at, here = at, there
        self.steps = self.spectrum(self.at).steps(J)
        self.R = np.concatenate([[0.0], np.cumsum(self.steps)])

    def drawn(self) -> dict[str, Array]:
        """Hyperparameters as they are now, by name."""
        found = {w.name: np.array(getattr(self.families[0], w.name)) for w in self.walked}
        if self.draws_prior:
            names = ("a", "b", "expected_atoms", "junk")
            found |= dict(zip(names, map(np.array, (*np.exp(self.at[:3]), self.at[3])), strict=True))
        return found
