"""What sites differ by in each feature, and values corrected for it."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from modelweld.core.values import Array, Index, Stack, group_of_values


class SiteEffects(NamedTuple):
    """What sites differ by: v = exp(log_scale) (y + offset), of which y is fitted; (J, D) each, mostly zero.

    Examples
    --------
    >>> effects = SiteEffects(np.array([[0.0], [5.0]]), np.zeros((2, 1)))
    >>> effects.correct(Stack(np.array([[1.0], [6.1]]), np.array([0, 1, 2]))).values.round(1).tolist()
    [[1.0], [1.1]]
    """

    offset: Array
    log_scale: Array

    def of(self, sites: Index) -> SiteEffects:
        """Those of some sites, in this order."""
        return SiteEffects(self.offset[sites], self.log_scale[sites])

    def after(self, before: SiteEffects) -> SiteEffects:
        """Of values that `before` was corrected first, and then what is here."""
        return SiteEffects(self.offset + np.exp(-self.log_scale) * before.offset, self.log_scale + before.log_scale)

    def any(self) -> bool:
        """Whether some site differs."""
        return bool(self.offset.any() or self.log_scale.any())

    @property
    def coefficients(self) -> Array:
        """Offsets and log scales side by side (D, 2 J)."""
        return np.concatenate([self.offset.T, self.log_scale.T], axis=1)

    def correct(self, stack: Stack) -> Stack:
        """Values as if sites did not differ."""
        own = group_of_values(stack.offsets)
        factor = np.exp(-self.log_scale)[own]
        variance = None if stack.variance is None else stack.variance * factor**2
        return replace(stack, values=stack.values * factor - self.offset[own], variance=variance, moments=None)
