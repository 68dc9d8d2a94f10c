"""Temporaries (values x atoms x dimensions) in blocks that stay small."""

from __future__ import annotations

from collections.abc import Iterator

BLOCK = 250_000
"""Numbers of a temporary: what is computed of them stays near the processor (of 50,000 to 10,000,000 the quickest at a
million values). Results do not depend on it."""


def block_size(each: int) -> int:
    """How many values fit into a block if each takes so many elements: at least one."""
    return max(1, BLOCK // max(1, each))


def blocks(number: int, each: int) -> Iterator[slice]:
    """Slices of so many values, of which `each` takes that many elements.

    Examples
    --------
    >>> [(part.start, part.stop) for part in blocks(5, 100_000)]
    [(0, 2), (2, 4), (4, 6)]
    """
    step = block_size(each)
    return (slice(a, a + step) for a in range(0, number, step))
