"""Rows of one table shared out to sites that lack classes."""

import numpy as np

FEWEST_ROWS, FEWEST_CLASSES = 10, 2
"""Of a site; shares are drawn again until all have them."""


def shared_out(y, J, share, rng):
    """Site of every row: equal parts, or every class by shares drawn from a Dirichlet distribution."""
    if np.isinf(share):
        return rng.permutation(len(y)) % J
    while True:
        site = np.empty(len(y), dtype=int)
        for c in np.unique(y):
            rows = rng.permutation(np.flatnonzero(y == c))
            bounds = (np.cumsum(rng.dirichlet([share] * J))[:-1] * len(rows)).astype(int)
            for j, part in enumerate(np.split(rows, bounds)):
                site[part] = j
        held = [y[site == j] for j in range(J)]
        if all(len(h) >= FEWEST_ROWS and len(np.unique(h)) >= FEWEST_CLASSES for h in held):
            return site
