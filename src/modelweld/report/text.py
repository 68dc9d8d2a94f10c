"""What things are called, how many there are, and the words by which a topic is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from modelweld.kinds import kind_named

if TYPE_CHECKING:
    from modelweld.fusion import Fusion


def several(number: int, noun: str) -> str:
    """A number of things; sets with a number in their name, such as a network's "h0", are sets of units.

    Examples
    --------
    >>> several(1, "site"), several(2000, "site"), several(3, "h0")
    ('1 site', '2,000 sites', '3 h0 units')
    """
    name = f"{noun} unit" if noun[-1:].isdigit() else noun
    return f"{number:,} {name}{'s' * (number != 1)}"


def group_word(set_name: str) -> str:
    """What people call a member of a fused set: a group of points, a state, a topic, a unit of a network.

    Examples
    --------
    >>> [group_word(name) for name in ("component", "atom", "state", "h0")]
    ['group', 'group', 'state', 'unit']
    """
    return "unit" if set_name[-1:].isdigit() else {"component": "group", "atom": "group"}.get(set_name, set_name)


MOST_WORDS = 12
"""Words that are shown of a topic."""


def list_words(fusion: Fusion, set_name: str) -> list[list[list[str | float]]] | None:
    """Per atom its most probable words with their probabilities; None if they are known by none."""
    kind = kind_named(fusion.models[0].kind)
    known_by = None if kind is None else kind.words(fusion, set_name)
    if known_by is None:
        return None
    numbers, vocabulary = known_by
    shares = numbers / np.maximum(numbers.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    best = np.argsort(-shares, axis=1, kind="stable")[:, :MOST_WORDS]
    return [
        [[str(vocabulary[v]), round(float(row[v]), 4)] for v in order if row[v] > 0]
        for row, order in zip(shares, best, strict=True)
    ]
