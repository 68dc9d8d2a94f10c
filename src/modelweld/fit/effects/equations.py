"""Effects given labels: a quadratic form, which of them are worth their price, and what they add to the objective."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np
import scipy

from modelweld.core.board import Board
from modelweld.core.family import sum_by_atom
from modelweld.core.gaussian import parts
from modelweld.core.matching import SiteEffects
from modelweld.core.values import Array, Flags

MOST_ROUNDS = 12
"""Of effects and which of them are not zero, in turn."""

NATURAL_WIDTHS = 0.5
"""Variance by which log deviations of all points of sites differ by themselves: other groups, other widths."""

WIDE_SCALES = 0.25
"""Least variance of the slab of log scales: a factor of 1.6."""


class Design:
    """The quadratic form of the log density in all effects, feature by feature: (D, 2 J), offsets before log scales.

    Of a feature, with precisions p of values about their atoms, X has a column of ones and one of y + s for each site,
    and the inverse covariance of values is diag(p) - sum_k c_k p_k p_k' with c_k = spread / (1 + spread sum p_k).
    """

    def __init__(
        self, board: Board, at: SiteEffects, deviation: Array, allowed: Flags, widths: Array | None = None
    ) -> None:
        self.allowed, self.widths = allowed, np.zeros_like(at.log_scale).T if widths is None else widths.T
        self.of_widths = 0.0 if widths is None else 1 / NATURAL_WIDTHS
        self.board = board
        (self.J, self.D), K, self.least = at.offset.shape, len(board.counts), deviation**2
        [stack], own, atom = board.stacks, board.group, board.labels
        seen, w, wy, _, _ = parts(board.rows[0])
        mean, noise, spread = (np.zeros(self.D) + x for x in board.families[0].hyperparameters)  # type: ignore[attr-defined]
        p, u = w / noise, stack.values + at.offset[own]
        pt = wy / noise - p * (mean - at.offset[own] - at.log_scale[own] * u)
        self.cells, cell = np.unique(own * K + atom, return_inverse=True)
        self.sums = [sum_by_atom(x, cell, len(self.cells)) for x in (p, p * u)]
        self.c = spread / (1 + spread * sum_by_atom(p, atom, K))
        self.number = sum_by_atom(seen, own, self.J).T
        self.own = [sum_by_atom(x, own, self.J).T for x in (p, p * u, p * u * u)]
        site, kind = self.cells // K, self.cells % K
        total = (self.c * sum_by_atom(pt, atom, K))[kind]
        b = [
            sum_by_atom(x, own, self.J) - sum_by_atom(m * total, site, self.J)
            for x, m in zip((pt, u * pt), self.sums, strict=True)
        ]
        scales = b[1].T - self.number * (1 - at.log_scale.T) + self.of_widths * self.widths
        self.b = np.concatenate([b[0].T, scales], axis=1)
        less = [sum_by_atom(m * m * self.c[kind], site, self.J).T for m in self.sums]
        self.cross = self.own[1] - sum_by_atom(self.sums[0] * self.sums[1] * self.c[kind], site, self.J).T
        of_scales = self.own[2] + self.number + self.of_widths - less[1]
        self.curvature = np.concatenate([self.own[0] - less[0], of_scales], axis=1)

    @cached_property
    def A(self) -> Array:
        """Minus the second derivatives (D, 2 J, 2 J)."""
        J, K, j = self.J, len(self.c), np.arange(self.J)
        result = np.empty((self.D, 2 * J, 2 * J))
        for d in range(self.D):
            M = np.zeros((2, J * K))
            M[:, self.cells] = [m[:, d] for m in self.sums]
            M = M.reshape(2 * J, K)
            result[d] = -(M * self.c[:, d]) @ M.T
        result[:, j, j] += self.own[0]
        result[:, j, j + J] += self.own[1]
        result[:, j + J, j] += self.own[1]
        result[:, j + J, j + J] += self.own[2] + self.number + self.of_widths
        return result

    def slab(self, e: Array) -> Array:
        """Variance of each effect that is not zero (D, 2 J)."""
        each = e.reshape(self.D, 2, self.J)
        square = (each**2).sum(2) / np.maximum((each != 0).sum(2), 1)
        least = np.stack([self.least, np.full(self.D, WIDE_SCALES)], axis=1)
        return np.repeat(np.maximum(square, least), self.J, axis=1)

    def price(self, e: Array) -> Array:
        """What each effect costs if it is not zero (D, 2 J)."""
        return np.asarray(0.5 * np.log1p(self.slab(e) * self.curvature))

    def log_prior(self, at: SiteEffects) -> float:
        """Of effects, with the Jacobian of scales."""
        e = at.coefficients
        on = e != 0
        value = -(e**2 / (2 * self.slab(e)) + self.price(e))[on].sum() - (self.number * at.log_scale.T).sum()
        value -= 0.5 * self.of_widths * ((self.widths - at.log_scale.T) ** 2).sum()
        for kind in (on[:, : self.J], on[:, self.J :]):
            number = min(int(kind.sum()), kind.size // 2)  # effects are never taken for the rule
            value += scipy.special.betaln(number + 1, kind.size - number + 1) + np.log(kind.size + 1)
        return float(value)

    def is_worth(self, at: SiteEffects) -> bool:
        """Whether a single effect would be worth its price."""
        return bool(self._worth(at.coefficients, scaled=True).any())

    def proposals(self, at: SiteEffects, scaled: bool) -> Iterator[Array]:
        """Effects (D, 2 J) as they are; and all of them free, the median site's taken off."""
        yield at.coefficients
        on = self.allowed.copy()
        on[:, self.J :] &= scaled
        e = self._solve(on, at.coefficients)
        for kind in (slice(self.J), slice(self.J, None)):
            e[:, kind] -= np.where(on[:, kind].all(1), lower_medians(e[:, kind]), 0.0)[:, None]
        yield e

    def select(self, e: Array, scaled: bool) -> SiteEffects:
        """The best effects, of which those are zero that are not worth their price."""
        on = e != 0
        for _ in range(MOST_ROUNDS):
            before, on = on, self._worth(e, scaled)
            e = self._solve(on, e)
            if (on == before).all():
                break
        return SiteEffects(e[:, : self.J].T.copy(), e[:, self.J :].T.copy())

    def _worth(self, e: Array, scaled: bool) -> Flags:
        """Which effects are worth their price, given those of other sites: no effect, either or both of a site."""
        J, t, price = self.J, self.slab(e), self.price(e)
        r = self.b - (np.einsum("dab,db->da", self.A, e) if e.any() else 0.0) + self.curvature * e
        r[:, :J] += self.cross * e[:, J:]
        r[:, J:] += self.cross * e[:, :J]
        h, number = self.curvature + 1 / t, 4 if scaled else 2
        price = np.where(self.allowed, price, np.inf)
        one, determinant = 0.5 * r**2 / h - price, h[:, :J] * h[:, J:] - self.cross**2
        both = 0.5 * (h[:, J:] * r[:, :J] ** 2 - 2 * self.cross * r[:, :J] * r[:, J:] + h[:, :J] * r[:, J:] ** 2)
        both = both / determinant - price[:, :J] - price[:, J:]
        gains = np.stack([np.zeros_like(both), one[:, :J], one[:, J:], both])[:number]
        for _ in range(2):  # the second time with the odds that follow from the first
            best = gains.argmax(0)
            offset, scale = (best == 1) | (best == 3), best >= 2
            odds = [np.log(min((on.sum() + 1) / ((~on).sum() + 1), 1.0)) for on in (offset, scale)]
            gains = gains + np.array([0.0, odds[0], odds[1], odds[0] + odds[1]])[:number, None, None]
        return np.concatenate([offset, scale], axis=1)

    def _solve(self, on: Flags, e: Array) -> Array:
        """The best effects where they may differ from zero."""
        t, found = self.slab(e), np.zeros_like(self.b)
        for d in np.flatnonzero(on.any(1)):
            at = np.flatnonzero(on[d])
            found[d, at] = np.linalg.solve(self.A[d][np.ix_(at, at)] + np.diag(1 / t[d, at]), self.b[d, at])
        return found


def lower_medians(x: Array) -> Array:
    """Lower median of each row: one of its entries."""
    return np.asarray(np.sort(x, axis=1)[:, (x.shape[1] - 1) // 2])
