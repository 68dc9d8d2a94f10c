"""Effects given labels: linear equations, and which effects are worth their price."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from modelweld.core.values import Array, Flags, blocks
from modelweld.fit.effects.corrections import SiteEffects
from modelweld.fit.effects.slopes import Slopes, log_odds

MOST_ROUNDS = 12
"""Of effects and which of them are not zero, in turn."""


EACH, ALL_OF_A_SITE = 3.0, 6.0
"""Nats beyond its price that an effect must gain in the end, or all effects of a site together."""


class Design(Slopes):
    """The quadratic form of the log density in all effects of a feature."""

    @cached_property
    def A(self) -> Array:
        """Minus the second derivatives (D, 2 J, 2 J)."""
        J, K, j = self.J, len(self.c), np.arange(self.J)
        result = np.empty((self.D, 2 * J, 2 * J))
        for part in blocks(self.D, 2 * J * K):
            c = self.c[:, part].T
            M = np.zeros((len(c), 2, J * K))
            M[:, :, self.cells] = np.stack([m[:, part].T for m in self.sums], axis=1)
            M = M.reshape(len(c), 2 * J, K)
            result[part] = -(M * c[:, None]) @ M.swapaxes(1, 2)
        result[:, j, j] += self.own[0]
        result[:, j, j + J] += self.own[1]
        result[:, j + J, j] += self.own[1]
        result[:, j + J, j + J] += self.own[2] + self.number + self.of_widths
        return result

    def log_prior(self, at: SiteEffects) -> float:
        """Of effects, with the Jacobian of scales."""
        e = at.coefficients
        on = e != 0
        value = -(e**2 / (2 * self.slab(e)) + self.price(e))[on].sum() - (self.number * at.log_scale.T).sum()
        value -= 0.5 * self.of_widths * ((self.widths - at.log_scale.T) ** 2).sum()
        for kind in (on[:, : self.J], on[:, self.J :]):
            number = min(int(kind.sum()), kind.size // 2)  # effects are never taken for the rule
            value += log_odds(number, kind.size)
        return float(value)

    def proposals(self, at: SiteEffects, scaled: bool) -> Iterator[Array]:
        """Effects (D, 2 J) as they are; and all of them free, the median site's taken off."""
        yield at.coefficients
        on = self.allowed.copy()
        on[:, self.J :] &= scaled
        e = self._solve(on, at.coefficients)
        for kind in (slice(self.J), slice(self.J, None)):
            e[:, kind] -= np.where(on[:, kind].all(1), lower_medians(e[:, kind]), 0.0)[:, None]
        yield e

    def select(self, e: Array, scaled: bool, *, strictly: bool = False) -> SiteEffects:
        """The best effects, of which those are zero that are not worth their price.

        `strictly`: nor those that gain little, at sites that gain little by all of theirs.
        """
        on = e != 0
        for _ in range(MOST_ROUNDS):
            before, on = on, self._worth(e, scaled, strictly)
            e = self._solve(on, e)
            if (on == before).all():
                break
        return SiteEffects(e[:, : self.J].T.copy(), e[:, self.J :].T.copy())

    def _worth(self, e: Array, scaled: bool, strictly: bool) -> Flags:
        """Which effects are worth their price, given those of other sites: no effect, either or both of a site."""
        J, number = self.J, 4 if scaled else 2
        r = self.b - (np.einsum("dab,db->da", self.A, e) if e.any() else 0.0) + self.curvature * e
        r[:, :J] += self.cross * e[:, J:]
        r[:, J:] += self.cross * e[:, :J]
        gains = self.gains(e, r)
        gains = np.concatenate([np.zeros_like(gains[:1]), gains])[:number]
        for _ in range(2):  # the second time with the odds that follow from the first
            best = gains.argmax(0)
            offset, scale = (best == 1) | (best == 3), best >= 2
            odds = [np.log(min((on.sum() + 1) / ((~on).sum() + 1), 1.0)) for on in (offset, scale)]
            gains = gains + np.array([0.0, odds[0], odds[1], odds[0] + odds[1]])[:number, None, None]
        best_gain = gains.max(0)
        enough = (best_gain > EACH) | (best_gain.sum(0) > ALL_OF_A_SITE) if strictly else True
        return np.concatenate([offset & enough, scale & enough], axis=1)

    def _solve(self, on: Flags, e: Array) -> Array:
        """The best effects where they may differ from zero."""
        t, found = self.slab(e), np.zeros_like(self.b)
        number = on.sum(1)
        for n in np.unique(number[number > 0]):
            d = np.flatnonzero(number == n)[:, None]  # features in which so many differ
            at = np.nonzero(on[d[:, 0]])[1].reshape(-1, n)
            A = self.A[d[:, :, None], at[:, :, None], at[:, None]]
            A[:, range(n), range(n)] += 1 / t[d, at]
            found[d, at] = np.linalg.solve(A, self.b[d, at][..., None])[..., 0]
        return found


def lower_medians(x: Array) -> Array:
    """Lower median of each row: one of its entries."""
    return np.asarray(np.sort(x, axis=1)[:, (x.shape[1] - 1) // 2])
