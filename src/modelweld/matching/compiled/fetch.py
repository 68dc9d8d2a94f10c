"""A group's values read as they lie in memory, before they are read in canonical order.

Processors fetch ahead along memory, and not in an order by content: where there are more values than caches hold, a
sweep that has little to compute waits for them half its time.
"""

from __future__ import annotations

from modelweld.compilers import exact

CACHE_LINE = 8
"""Numbers of float64 that are fetched at once."""


@exact
def fetch(X, a, b, sink):
    """Read a number of each cache line of rows a .. b-1; `sink` (1,) receives their sum, so that they have to be."""
    total = 0.0
    for row in range(a, b):
        for d in range(0, X.shape[1], CACHE_LINE):
            total += X[row, d]
    sink[0] = total
