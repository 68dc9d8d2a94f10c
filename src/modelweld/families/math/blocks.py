"""Temporaries (values x atoms x dimensions) in blocks that stay small."""

from __future__ import annotations

from collections.abc import Iterator


def blocks(number: int, each: int, largest: int) -> Iterator[slice]:
    """Slices of so many values, of which `each` takes that many elements, together `largest` at most (or one value).

    Examples
    --------
    >>> [(part.start, part.stop) for part in blocks(5, 10, 25)]
    [(0, 2), (2, 4), (4, 6)]
    """
    step = max(1, largest // max(1, each))
    return (slice(a, a + step) for a in range(0, number, step))
