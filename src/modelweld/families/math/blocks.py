"""Temporaries (values x atoms x dimensions) in blocks that stay small."""

from __future__ import annotations

from collections.abc import Iterator

LARGEST_BLOCK = 250_000
"""Numbers of a temporary: what is computed of them stays near the processor (of 50,000 to 10,000,000 the quickest at a
million values)."""


def blocks(number: int, each: int, largest: int = LARGEST_BLOCK) -> Iterator[slice]:
    """Slices of so many values, of which `each` takes that many elements, together `largest` at most (or one value).

    Examples
    --------
    >>> [(part.start, part.stop) for part in blocks(5, 10, 25)]
    [(0, 2), (2, 4), (4, 6)]
    """
    step = max(1, largest // max(1, each))
    return (slice(a, a + step) for a in range(0, number, step))
