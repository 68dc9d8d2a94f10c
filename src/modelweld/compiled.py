"""The board that runs the compiled sweep: packing, hyperparameter tables and bookkeeping around `kernels`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from modelweld import kernels
from modelweld.assignment import NEW
from modelweld.compiled_ratio import best_log_ratio
from modelweld.families.base import Family
from modelweld.families.gaussian import Gaussian
from modelweld.families.random_effects import Effects, log_likelihood
from modelweld.local import Array
from modelweld.prior import AUTHORS_MOST_ATOMS, BetaBernoulli
from modelweld.stack import Index, Stack, canonical_groups

FEWEST_PER_ATOM = 4
"""Values per atom, on average, from which comparing all pairs of atoms is cheap beside scoring all values."""


def pack(stack: Stack) -> tuple[Stack, Index]:
    """The stack with its rows sorted within groups, in place, and its moments; and where each row came from."""
    rows = np.empty(len(stack.values), dtype=np.int64)
    kernels.sort_rows(stack.values, stack.offsets, rows)
    order = canonical_groups([stack])
    moments = kernels.mean_and_squares(stack.values, stack.offsets, order)
    return replace(stack, order=order, moments=moments), rows


class CompiledBoard:
    """A matching in the making, as `matching.Board`, for one array with plain values and a Gaussian family."""

    def __init__(self, stack: Stack, family: Gaussian, prior: BetaBernoulli) -> None:
        assert stack.moments is not None and stack.order is not None
        self.stack, self.family, self.prior = stack, family, prior
        N, D = stack.values.shape
        self.origin = np.array(family.origin)
        self.labels = np.full(N, NEW, dtype=np.int64)
        self.used = 0
        self.tally = np.zeros(5, dtype=np.int64)
        P = D if family.scalar else 2 * D
        # N slots could be needed; the system gives memory only for those that are touched
        self.atoms = kernels.Atoms(
            sums=np.empty((N, D)),
            counts=np.zeros(N, dtype=np.int64),
            weights=np.empty((N, P), dtype=np.float32),
            constants=np.empty(N, dtype=np.float32),
            curvature=np.empty(N, dtype=np.float32),
            reach=np.zeros(2),
        )
        self.steps = prior.steps(len(stack.sizes))
        mean, squares = stack.moments
        self.total_squares = squares + N * np.square(mean - self.origin)
        self._effects: Effects | None = None
        self._log_prior: float | None = None

    def sweep(self, order: Index) -> int:
        """Best assignment of every group given the others, in `order`."""
        assert self.stack.order is not None
        started = self.used > 0
        tables = self._tables()
        tally = np.zeros(5, dtype=np.int64)
        self.atoms.reach[:] = 0.0
        groups = self.stack.order[order]
        s = self.stack
        self.used = int(
            kernels.sweep(
                s.values, s.offsets, groups, self.labels, self.atoms, self.used, tables, self._bounds(tables), tally
            )
        )
        changes = int(tally[0])
        self.tally += tally
        if changes:
            self._effects = self._log_prior = None
            if started:  # taking out and adding back leaves rounding behind
                self.used = int(
                    kernels.rebuild(s.values, s.offsets, s.order, self.labels, self.atoms, self.used, self.origin)
                )
        return changes

    def learn(self) -> None:
        """Hyperparameters given the matching."""
        self.family = self.family.with_learned(self._current_effects(), best_log_ratio)

    def objective(self) -> float:
        """Log probability of the matching plus the log evidences of its atoms."""
        evidence = log_likelihood(self._current_effects(), self.family.hyperparameters).sum()
        if self._log_prior is None:
            self._log_prior = self.prior.log_prob(self.counts, self.stack.sizes)
        return self._log_prior + float(evidence)

    @property
    def families(self) -> list[Family]:
        """The one family."""
        return [self.family]

    def estimates(self) -> list[Array]:
        """Global values of the one array."""
        return [self.family.posterior_mean(self.counts[:, None], self.sums)]

    @property
    def counts(self) -> Index:
        """Number of groups at each atom."""
        return np.asarray(self.atoms.counts[: self.used])

    @property
    def sums(self) -> Array:
        """Sums (K, D) of each atom's values, measured from the origin."""
        return np.asarray(self.atoms.sums[: self.used])

    def _current_effects(self) -> Effects:
        if self._effects is None:
            self._effects = Effects.from_counts(self.counts, self.sums, self.total_squares)
        return self._effects

    def _tables(self) -> Any:
        """Everything the sweep needs to know of hyperparameters and prior."""
        mean, noise, spread = self.family.hyperparameters
        sizes = self.stack.sizes
        n = np.arange(len(sizes) + 1)[:, None]
        ratio = noise / spread
        v = 1 + 1 / (n + ratio)  # in units of the noise
        log_det = np.log(v * noise).sum(1) * (len(mean) / len(noise))
        return kernels.Tables(
            origin=self.origin,
            mean=mean,
            deviation=np.sqrt(noise),
            ratio=ratio,
            shrink=1 / (n + ratio),
            inverse=1 / v,
            constant=np.append(self.steps, self.steps[-1]) - 0.5 * log_det,
            surcharge=self.prior.surcharge(max(int(sizes.max(initial=0)), 1)),
            most_atoms=AUTHORS_MOST_ATOMS if self.prior.form == "authors" else 0,
        )

    def _bounds(self, tables: Any) -> Any:
        """For settling groups by the triangle inequality; empty when there are too many atoms for it to pay."""
        nearest = np.empty(0)
        if 0 < self.used <= len(self.labels) / FEWEST_PER_ATOM:
            nearest = kernels.atom_distances(self.atoms, self.used, tables)
        largest = int(self.counts.max(initial=1))
        return kernels.Bounds(
            nearest=nearest,
            constant=float(tables.constant[1 : largest + 1].max()),
            widest=float(1 / tables.inverse[1].min()),
        )
