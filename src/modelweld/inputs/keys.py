"""What a family is named by: the array, or the arrays, it takes."""

from __future__ import annotations

Key = str | tuple[str, ...]
"""An array, or several arrays that one family takes together."""


def arrays_of(key: Key) -> tuple[str, ...]:
    """The arrays of a family.

    Examples
    --------
    >>> arrays_of("means"), arrays_of(("means", "covariances"))
    (('means',), ('means', 'covariances'))
    """
    return (key,) if isinstance(key, str) else tuple(key)
