"""How many observations a site's value is worth: its effective sample size.

A site's rate, proportion, topic or covariance comes from n observations, but sites also differ from each other: n alone
would have them all different. As if each site had drawn its own truth from `between` observations of the atom's, the
value is worth

    1 / n_eff = 1 / n + 1 / between,

which is `between` where n is not known (infinite). It is for counts what noise is for real values, and is learned.
"""

from __future__ import annotations

import numpy as np

from modelweld.inputs.local_model import Array

SMALLEST_SHARE = 0.1
"""Of the first noise, put down to differences between sites even where sites' observations would explain all."""


def effective_count(n: Array, between: float | Array) -> Array:
    """Observations that values from n of them are worth; n may be infinite, and zero stays zero."""
    with np.errstate(divide="ignore"):
        return np.asarray(1.0 / (1.0 / n + 1.0 / between))
