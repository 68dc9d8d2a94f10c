"""The log density as a function of site effects, given labels: its slope and curvature in each, and what each gains."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy

from modelweld.core.board import Board
from modelweld.core.family import sum_by_atom
from modelweld.core.gaussian import parts
from modelweld.core.values import Array, Flags, Index, Stack
from modelweld.fit.effects.corrections import SiteEffects
from modelweld.fit.screening.distances import middle, sites_by_size

FEWEST_SHIFTED, FEWEST_SCALED = 3, 4
"""Values of a site from which an offset, or a scale, is looked for: two always agree about something."""

LEAST_SPREAD = 0.25
"""Median absolute difference over the deviation of a typical site's values: .67 of normal ones, none where most are
zero."""

NATURAL_WIDTHS = 0.5
"""Variance by which log deviations of all points of sites differ by themselves: other groups, other widths."""

WIDE_SCALES = 0.25
"""Least variance of the slab of log scales: a factor of 1.6."""


def is_spread_out(stack: Stack) -> Flags:
    """Features (D,) in which most values of most sites differ; not those that are mostly zero."""
    sites = [own for _, own in sites_by_size(stack.values, stack.offsets) if len(own) >= FEWEST_SHIFTED]
    ratios = [middle(np.abs(x - middle(x))) / np.maximum(x.std(axis=0), np.finfo(float).tiny) for x in sites]
    return np.asarray(middle(np.concatenate(ratios)) > LEAST_SPREAD)


def allow(stack: Stack, spread_out: Flags, unlike: Sequence[int] = ()) -> Flags:
    """Which effects (D, 2 J) a site has values enough to show, in features that are `spread_out`; none of sites that
    are `unlike` all others.
    """
    sizes = stack.sizes.copy()
    sizes[list(unlike)] = 0
    return np.concatenate([sizes >= FEWEST_SHIFTED, sizes >= FEWEST_SCALED]) & spread_out[:, None]


def count_shared(board: Board) -> Index:
    """Number of each site's values that others share (J,)."""
    return np.bincount(board.group[board.counts[board.labels] > 1], minlength=len(board.sizes))


def log_odds(number: Index | int, among: int) -> Array:
    """Log probability that just these of so many effects are not zero, beside that of none: Beta-binomial."""
    return np.asarray(scipy.special.betaln(number + 1, among - number + 1) + np.log(among + 1))


class Slopes:
    """The log density in all effects, feature by feature: (D, 2 J), offsets before log scales.

    Of a feature, with precisions p of values about their atoms, X has a column of ones and one of y + s for each site,
    and the inverse covariance of values is diag(p) - sum_k c_k p_k p_k' with c_k = spread / (1 + spread sum p_k).
    `least` (D,) is the least variance of the slab of offsets, `allowed` says which effects may differ from zero, and
    `widths` (J, D) are log deviations of sites beside the median site's, where these are known.
    """

    def __init__(
        self, board: Board, at: SiteEffects, least: Array, allowed: Flags, widths: Array | None = None
    ) -> None:
        self.allowed, self.widths = allowed, np.zeros_like(at.log_scale).T if widths is None else widths.T
        self.of_widths = 0.0 if widths is None else 1 / NATURAL_WIDTHS
        (self.J, self.D), K, self.least = at.offset.shape, len(board.counts), least
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

    def slab(self, e: Array) -> Array:
        """Variance of each effect that is not zero (D, 2 J)."""
        each = e.reshape(self.D, 2, self.J)
        square = (each**2).sum(2) / np.maximum((each != 0).sum(2), 1)
        least = np.stack([self.least, np.full(self.D, WIDE_SCALES)], axis=1)
        return np.repeat(np.maximum(square, least), self.J, axis=1)

    def price(self, e: Array) -> Array:
        """What each effect costs if it is not zero (D, 2 J)."""
        return np.asarray(0.5 * np.log1p(self.slab(e) * self.curvature))

    def gains(self, e: Array, slope: Array | None = None) -> Array:
        """What an offset, a scale or both of a site gain over none, beyond their price (3, D, J).

        `slope` (D, 2 J) is that of each effect given those of other sites, and none of its own.
        """
        J, t, r = self.J, self.slab(e), self.b if slope is None else slope
        h, price = self.curvature + 1 / t, np.where(self.allowed, self.price(e), np.inf)
        one, determinant = 0.5 * r**2 / h - price, h[:, :J] * h[:, J:] - self.cross**2
        both = 0.5 * (h[:, J:] * r[:, :J] ** 2 - 2 * self.cross * r[:, :J] * r[:, J:] + h[:, :J] * r[:, J:] ** 2)
        return np.stack([one[:, :J], one[:, J:], both / determinant - price[:, :J] - price[:, J:]])

    def gain_by_chance(self, e: Array) -> tuple[float, float]:
        """Mean and deviation of the sum of all gains above zero where there are no effects, and slopes are normal."""
        size = (self.slab(e) * self.curvature)[self.allowed]
        share, price = size / (1 + size) / 2, self.price(e)[self.allowed]
        at = np.sqrt(price / share / 2)
        bell, tail = np.exp(-at * at) / np.sqrt(np.pi), scipy.special.erfc(at)
        first = tail + 2 * at * bell  # beside `tail`, of chi-squares of 1, 3 and 5 degrees of freedom
        second = first + 4 / 3 * at**3 * bell
        mean = share * first - price * tail
        square = 3 * share**2 * second - 2 * share * price * first + price**2 * tail
        return float(mean.sum()), float(np.sqrt((square - mean**2).sum()))
