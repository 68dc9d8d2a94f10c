"""The evidence of atoms that move, and its slopes: a Kalman filter along each atom's values, and the way back.

An atom's values in the order of their times are a *chain*. Of each dimension, measured from the mean, with phi =
exp(-gap / memory) since the value before,

    expected:  m- = phi m,  P- = spread - phi^2 (spread - P)        (first value: m- = 0, P- = spread)
    seen:      e = y - m-,  V = P- + R,  log density -(log 2 pi V + e^2 / V) / 2
    known:     m = m- + e P- / V,  P = P- R / V

where R is the value's own variance. Slopes follow the same steps backwards (reverse differentiation), which is stable
also where memory is infinite. All chains are worked on side by side, value by value.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from modelweld.core.values import Index
from modelweld.inputs.local_model import Array

COMPILED_FROM = 1_000
"""Values x dimensions from which the filter is compiled: chains are worked on value by value, and some hundred passes
over thirty groups of ten values take a second without. By the input alone."""


class Slopes(NamedTuple):
    """Of the log evidence in each value's own variance (N, D), in mean and spread (D,), and in the log of memory."""

    variance: Array
    mean: Array
    spread: Array
    log_memory: float


class Chains:
    """Values of every atom in the order of time.

    Parameters
    ----------
    labels : int array (N,)
        Atom of each value; values stand in the order of their times.
    times : array (N,)
        When each value was seen.

    Attributes
    ----------
    labels : int array (N,)
        Atom of each value.
    ranks : list of int arrays
        The first values of all chains, the second ones, ...; longer chains first.
    before : int array (N,)
        The value before each in its chain; -1 at the first.
    gap : array (N,)
        Time since that.
    span : float
        From the first value of all to the last.
    """

    def __init__(self, labels: Index, times: Array) -> None:
        self.labels = labels
        by_atom = np.argsort(labels, kind="stable")
        atoms, first, lengths = np.unique(labels[by_atom], return_index=True, return_counts=True)
        self.atoms = atoms
        longest = np.argsort(-lengths, kind="stable")
        first, lengths = first[longest], lengths[longest]
        number = np.searchsorted(-lengths, -np.arange(lengths.max(initial=0)), side="left")
        self.ranks = [by_atom[first[:n] + r] for r, n in enumerate(number.tolist())]
        self.before = np.full(len(labels), -1)
        for earlier, later in zip(self.ranks, self.ranks[1:], strict=False):
            self.before[later] = earlier[: len(later)]
        self.order, self.ends = by_atom, np.cumsum(np.unique(labels, return_counts=True)[1])
        self.span = float(np.ptp(times)) if len(times) else 0.0
        self.gap = np.where(self.before >= 0, times - times[self.before], 0.0)

    def log_evidence(self, y: Array, variance: Array, spread: Array, memory: float) -> float:
        """Log evidence of values y (N, D), measured from the mean, of these own variances (infinite: not seen)."""
        if y.size >= COMPILED_FROM:
            return self.compiled(y, variance, spread, memory, sloped=False)[0]
        return self._filter(y, variance, spread, memory, None)

    def with_slopes(self, y: Array, variance: Array, spread: Array, memory: float) -> tuple[float, Slopes]:
        """The same, and its slopes."""
        if y.size >= COMPILED_FROM:
            return self.compiled(y, variance, spread, memory, sloped=True)
        return self.plain_slopes(y, variance, spread, memory)

    def compiled(
        self, y: Array, variance: Array, spread: Array, memory: float, *, sloped: bool
    ) -> tuple[float, Slopes]:
        """The same, compiled."""
        from modelweld.time.motion_kernels import evidence_and_slopes

        own = np.ascontiguousarray(variance)
        value, *slopes = evidence_and_slopes(self.order, self.ends, self.gap, y, own, spread, memory, sloped)
        return float(value), Slopes(*slopes)

    def plain_slopes(self, y: Array, variance: Array, spread: Array, memory: float) -> tuple[float, Slopes]:
        """Evidence and slopes in plain numpy."""
        steps: list[tuple[Array, Array]] = []
        value = self._filter(y, variance, spread, memory, steps)
        by_variance = np.zeros_like(y)
        by_mean, by_spread, by_memory = np.zeros(y.shape[1]), np.zeros(y.shape[1]), 0.0
        to_m, to_P = np.zeros((0, y.shape[1])), np.zeros((0, y.shape[1]))
        for r in range(len(self.ranks) - 1, -1, -1):
            index, (m, P) = self.ranks[r], steps[r]
            to_m, to_P = (np.concatenate([x, np.zeros((len(index) - len(x), y.shape[1]))]) for x in (to_m, to_P))
            R, e = variance[index], y[index] - m
            V = P + R  # what was not seen has infinite variance, and slopes of zero
            part, rest = P / V, np.where(np.isinf(R), 1.0, R / np.where(np.isinf(V), 1.0, V))
            to_e = to_m * part - e / V
            of_V = -0.5 / V + 0.5 * (e / V) ** 2
            of_part = to_m * e / V
            by_variance[index] = of_V + to_P * part * part - of_part * part
            to_P = of_V + to_P * rest * rest + of_part * rest
            to_m = to_m - to_e
            by_mean -= to_e.sum(0)
            if r == 0:
                by_spread += to_P.sum(0)
                break
            n = len(index)
            phi = np.exp(-self.gap[index] / memory)[:, None]
            last_m, last_P = self._known(steps[r - 1], y, variance, self.ranks[r - 1][:n], n)
            by_spread += ((1 - phi * phi) * to_P).sum(0)
            slope = (last_m * to_m - 2 * phi * (spread - last_P) * to_P).sum(1)
            by_memory += float((slope * phi[:, 0] * self.gap[index]).sum() / memory)
            to_m, to_P = phi * to_m, phi * phi * to_P
        return value, Slopes(by_variance, by_mean, by_spread, by_memory)

    @staticmethod
    def _known(step: tuple[Array, Array], y: Array, variance: Array, index: Index, n: int) -> tuple[Array, Array]:
        """What was known after the values of one rank, from what was expected before them."""
        m, P = (x[:n] for x in step)
        part = P / (P + variance[index])
        return m + part * (y[index] - m), P - part * P

    def _filter(
        self, y: Array, variance: Array, spread: Array, memory: float, steps: list[tuple[Array, Array]] | None
    ) -> float:
        value = 0.0
        for r, index in enumerate(self.ranks):
            if r == 0:
                m, P = np.zeros((len(index), y.shape[1])), np.zeros((len(index), y.shape[1])) + spread
            else:
                phi = np.exp(-self.gap[index] / memory)[:, None]
                m, P = phi * m[: len(index)], spread - phi * phi * (spread - P[: len(index)])
            if steps is not None:
                steps.append((m, P))
            R, e = variance[index], y[index] - m
            V = P + R
            part = P / V
            seen = np.isfinite(V)
            value -= 0.5 * float((np.log(2 * np.pi * np.where(seen, V, 1 / (2 * np.pi))) + e * e / V).sum())
            m, P = m + part * e, P - part * P
        return value
