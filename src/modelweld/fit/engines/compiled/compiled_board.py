"""The board (matching state) that runs the compiled sweep: packing, hyperparameters and bookkeeping."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from modelweld.core.algorithm1 import COMPILED, NEW, State
from modelweld.core.beta_bernoulli import AUTHORS_MOST_ATOMS, BetaBernoulli
from modelweld.core.family import Family
from modelweld.core.moments import Effects
from modelweld.core.prior import Fragments, Prior
from modelweld.core.tally import Tally
from modelweld.core.values import Array, Index, Stack, canonical_groups, check_squares, group_of_values, spans
from modelweld.families.math.random_effects import log_likelihood
from modelweld.families.real_values import Gaussian
from modelweld.fit.engines.compiled.packing import Tables, mean_and_squares, rebuild, sort_rows, tabulate, vacant_atoms
from modelweld.fit.engines.compiled.settle import find_bounds
from modelweld.fit.engines.compiled.sweep import sweep
from modelweld.progress import report_progress


def pack(stack: Stack) -> tuple[Stack, Index]:
    """The stack with its canonical order and its moments (nothing is moved), and that order of rows."""
    within = sort_rows(stack.values, stack.offsets)
    stack = replace(stack, value_order=within)
    order = canonical_groups([stack])
    mean, squares = mean_and_squares(stack.values, stack.offsets, within, order)
    check_squares(np.sqrt(squares))
    return replace(stack, group_order=order, moments=(mean, squares)), within


class CompiledBoard:
    """A matching in the making, as `core.board.Board`, for one array with plain values and a Gaussian family."""

    engine = COMPILED
    fragments: Fragments | None = None
    delta = 0.0
    """Every group holds an atom once."""
    margin = 0.0
    """Nats by which every value was where it is in the last sweep; zero if something changed since."""

    def __init__(self, stack: Stack, family: Gaussian, prior: Prior) -> None:
        assert stack.moments is not None
        assert stack.group_order is not None
        self.stack, self.family = stack, family
        N, D = stack.values.shape
        self.origin = np.array(family.origin)
        self.labels = np.full(N, NEW, dtype=np.int64)
        self.used = 0
        P = D if family.scalar or D == 1 else 2 * D  # one number serves all dimensions: no squares among the features
        self.atoms = vacant_atoms(N, D, P)
        self._believe(prior)
        self.surcharge = prior.surcharge(int(stack.sizes.max()))
        authors = isinstance(prior, BetaBernoulli) and prior.form == "authors"
        self.most_atoms = AUTHORS_MOST_ATOMS if authors else 0
        mean, squares = stack.moments
        self.total_squares = squares + N * np.square(mean - self.origin)
        self._forget()

    def sweep(self, order: Index) -> int:
        """Best assignment of every group given the others, in `order`."""
        assert self.stack.group_order is not None
        started = self.used > 0
        self.atoms.reach[:] = 0.0
        groups = self.stack.group_order[order]
        report_progress("matching sites", 0)
        s = self.stack
        tables = self._tables()
        bounds = find_bounds(self.atoms, self.used, tables, len(s.values))
        changes, self.used, margin = sweep(
            s.values, s.value_order, s.offsets, groups, self.labels, self.atoms, self.used, tables, bounds
        )
        if changes:
            self._forget()
            if started:  # taking out and adding back leaves rounding behind
                self.recount()
        self.margin = float(margin)
        return int(changes)

    def recount(self) -> None:
        """Atoms numbered without gaps, and their sums, from the labels alone."""
        s = self.stack
        self.used = int(
            rebuild(s.values, s.value_order, s.offsets, s.group_order, self.labels, self.atoms, self.origin)
        )
        self._forget()

    def release(self, groups: Index) -> None:
        """Take these groups out of the matching."""
        assert self.stack.group_order is not None
        for j in self.stack.group_order[groups]:
            self.labels[self.stack.offsets[j] : self.stack.offsets[j + 1]] = NEW
        self.recount()

    def place_new(self) -> None:
        """Sweep over the groups that have no atoms yet."""
        self.sweep(self.holders(NEW))

    def holders(self, atom: int) -> Index:
        """The groups that hold an atom (NEW: none yet), by their places in canonical order."""
        assert self.stack.group_order is not None
        own = group_of_values(self.stack.offsets)[self.labels == atom]
        return np.flatnonzero(np.isin(self.stack.group_order, own))

    def labels_by_content(self) -> Index:
        """The labels of groups in canonical order; values of each are so already."""
        assert self.stack.group_order is not None
        order = self.stack.group_order
        return np.asarray(self.labels[spans(self.stack.offsets[order], self.stack.sizes[order])])

    def tally(self) -> Tally:
        """The atoms as sums of the family's rows; sums of squares, which no union changes, are left at zero."""
        K, D = self.sums.shape
        rows = np.zeros((K, 5 * D))
        rows[:, : 2 * D], rows[:, 2 * D : 3 * D] = self.counts[:, None], self.sums
        none = [rows[:0]]  # of the values themselves
        tally = Tally([self.family], none, np.arange(0), np.arange(0))
        tally.group, tally.labels = group_of_values(self.stack.offsets), self.labels.copy()
        tally.counts, tally.sums = self.counts.copy(), [rows]
        return tally

    def state(self) -> State:
        """Labels, family and prior."""
        return State(self.labels.copy(), [self.family], self.prior, None)

    def restore(self, state: State) -> None:
        """Go back to an earlier state."""
        self.labels, [family], prior, _ = state
        assert isinstance(family, Gaussian)
        self.family = family
        self._believe(prior)
        self.recount()

    def _believe(self, prior: Prior) -> None:
        self.prior = prior
        self.increments = prior.increments(len(self.stack.sizes))
        self._log_prior: float | None = None

    def _forget(self) -> None:
        """What was computed from a matching that is no more."""
        self.margin = 0.0
        self._effects: Effects | None = None
        self._log_prior = None
        self._log_evidence: float | None = None

    def learn(self) -> None:
        """Hyperparameters of the family and the prior, given the matching."""
        prior = self.prior.learn(self.counts, self.stack.sizes)
        if prior is not self.prior:
            self._believe(prior)
        self.family = self.family.fit_to(self._matched())
        self._log_evidence = None

    def objective(self) -> float:
        """Log probability of the matching plus the log evidences of its atoms."""
        if self._log_prior is None:
            self._log_prior = self.prior.log_prob(self.counts, self.stack.sizes)
        if self._log_evidence is None:
            self._log_evidence = float(log_likelihood(self._matched(), self.family.hyperparameters).sum())
        return self._log_prior + self._log_evidence + self.family.log_prior()

    def _matched(self) -> Effects:
        """What the likelihood needs to know of the matching."""
        if self._effects is None:
            self._effects = Effects.from_counts(self.counts, self.sums, self.total_squares)
        return self._effects

    @property
    def families(self) -> list[Family]:
        """The one family."""
        return [self.family]

    def estimates(self) -> list[Array]:
        """Global values of the one array."""
        return [self.family.posterior_mean(self.counts[:, None].astype(np.float64), self.sums)]

    @property
    def sizes(self) -> Index:
        """Number of values of every group."""
        return self.stack.sizes

    @property
    def counts(self) -> Index:
        """Number of groups at each atom."""
        return np.asarray(self.atoms.counts[: self.used])

    @property
    def sums(self) -> Array:
        """Sums (K, D) of each atom's values, measured from the origin."""
        return np.asarray(self.atoms.sums[: self.used])

    def _tables(self) -> Tables:
        """Everything the sweep needs to know of hyperparameters and prior."""
        hyperparameters, J = self.family.hyperparameters, len(self.stack.sizes)
        return tabulate(self.origin, hyperparameters, self.increments, self.surcharge, self.most_atoms, J)
