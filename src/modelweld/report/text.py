"""What things are called, how many there are, and the words by which a topic is known.

Numbers as JSON takes them: of few digits, or exact; None where there is none.

Values have as many significant digits as tables show, six or more; sums, probabilities and scores are exact.

How much a page, a printed table or a figure shows; what is left out is stated there, and the fusion has all of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

import modelweld
from modelweld.core.values import Array
from modelweld.inputs.notebook import DIGITS, digits_of
from modelweld.kinds import kind_named

LISTED, NAMED, NOTED, DRAWN = 8, 40, 500, 2_000
"""How many are shown: names, values, words or columns on a line; groups, states, columns or doubtful matches that have
a row, a column or a label of their own; alerts, and parameters that are excluded or in fragments; local parameters that
are drawn, or that principal axes are fitted to, evenly picked: more would look the same."""

FEWEST_POINTS = 5
"""Points below which a group describes persons: the usual smallest cell of statistical offices and data safe havens."""

FEW = f"< {FEWEST_POINTS}"
"""What is shown of a number of points below it."""

FEW_SAID = "so few points describe persons; allow_small=True shows them, and what groups of so few are like"
"""Why, and what to do about it."""

LEVEL = 0.9
"""Probability with which intervals hold what they are about."""

MOST_PAIRS = 20_000_000
"""Local parameters, or sites, x atoms up to which there is a number for every pair: some seconds, 160 megabytes."""


Number: TypeAlias = float | None
"""None where there is none: JSON knows no NaN."""

Numbers: TypeAlias = "Number | list[Numbers]"
"""An array as nested lists."""

Content: TypeAlias = dict[str, Any]
"""Part of what a report holds; `modelweld.report.numbers_of` has the layout."""


def are_few(points: Array) -> NDArray[np.bool_]:
    """Which whole numbers of points are too few to be shown, nor what stands for them; zero is shown.

    Examples
    --------
    >>> are_few(np.array([0.0, 1.0, 4.0, 5.0, np.nan])).tolist()
    [False, True, True, False, False]
    """
    return (points > 0) & (points < FEWEST_POINTS)


def hide(rows: list[Any], small: NDArray[np.bool_], instead: Any = None) -> list[Any]:
    """Rows of a table, with something else for every entry of those that are too small to be shown.

    Examples
    --------
    >>> hide([[40.0, 1.0], [58.0, 2.0]], np.array([False, True])), hide([60, 1], np.array([False, True]), FEW)
    ([[40.0, 1.0], [None, None]], [60, '< 5'])
    """
    hidden = [[instead] * len(row) if isinstance(row, list) else instead for row in rows]
    return [other if few else row for row, other, few in zip(rows, hidden, small.tolist(), strict=True)]


def exact(x: float | np.floating) -> Number:
    """A float, or None where there is none."""
    return float(x) if np.isfinite(x) else None


def round_digits(x: float | np.floating, digits: int = DIGITS) -> Number:
    """A number of so many significant digits; None where there is none."""
    return float(f"{x:.{digits}g}") if np.isfinite(x) else None


def digits_needed(values: Array, decimals: Sequence[int]) -> int:
    """Significant digits with which values (n, D) are carried: so many after the point of each column are right.

    Examples
    --------
    >>> digits_needed(np.array([[0.1, 1013.25]]), [2, 2]), digits_needed(np.array([[0.1, 1013.25]]), [2, 4])
    (7, 9)
    """
    return max((digits_of(own, n) for own, n in zip(values.T, decimals, strict=True)), default=DIGITS)


def short(x: Array, digits: int = DIGITS) -> list[Numbers]:
    """Nested lists of such numbers.

    Examples
    --------
    >>> short(np.array([[1 / 3, float("nan")]]))
    [[0.333333, None]]
    """
    table = np.asarray(x)
    entries: list[Numbers] = [
        float(format(entry, f".{digits}g")) if abs(entry) < np.inf else None for entry in table.ravel().tolist()
    ]
    for length in table.shape[:0:-1] if table.size else ():
        entries = [entries[first : first + length] for first in range(0, len(entries), length)]
    return entries if table.size else table.tolist()


def several(number: int, noun: str) -> str:
    """A number of things; sets with a number in their name, such as a network's "h0", are sets of units.

    Examples
    --------
    >>> several(1, "site"), several(2000, "site"), several(3, "h0")
    ('1 site', '2,000 sites', '3 h0 units')
    """
    name = f"{noun} unit" if noun[-1:].isdigit() else noun
    return f"{number:,} {name}{'s' * (number != 1)}"


def align_cells(rows: Sequence[Sequence[str]], left: int = 0) -> list[str]:
    """A table as lines of text: the first `left` columns flush left, the others flush right.

    Examples
    --------
    >>> align_cells([["site", "n"], ["a", "100"]], left=1)
    ['site    n', 'a     100']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    cells = [
        [c.ljust(w) if i < left else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))]
        for row in rows
    ]
    return ["  ".join(row).rstrip() for row in cells]


def group_word(set_name: str) -> str:
    """What people call a member of a fused set: a group of points, a state, a topic, a unit of a network.

    Examples
    --------
    >>> [group_word(name) for name in ("component", "atom", "state", "h0")]
    ['group', 'group', 'state', 'unit']
    """
    return "unit" if set_name[-1:].isdigit() else {"component": "group", "atom": "group"}.get(set_name, set_name)


def units_of(fusion: modelweld.Fusion) -> dict[str, str]:
    """Units of features that sites state."""
    stated = [model.facts.get("units") for model in fusion._fit.models]
    return {name: unit for units in stated if isinstance(units, Mapping) for name, unit in units.items()}


def add_units(fusion: modelweld.Fusion, names: Sequence[str]) -> list[str]:
    """Names of features with their units, where sites state them."""
    units = units_of(fusion)
    return [f"{name} ({units[name]})" if name in units else str(name) for name in names]


MOST_WORDS = 12
"""Words that are shown of a topic."""


def list_words(fusion: modelweld.Fusion, set_name: str) -> list[list[list[str | float]]] | None:
    """Per atom its most probable words with their probabilities; None if they are known by none."""
    kind = kind_named(fusion._fit.models[0].kind)
    known_by = None if kind is None else kind.words(fusion._fit, set_name)
    if known_by is None:
        return None
    numbers, vocabulary = known_by
    shares = numbers / np.maximum(numbers.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    best = np.argsort(-shares, axis=1, kind="stable")[:, :MOST_WORDS]
    return [
        [[str(vocabulary[v]), round(float(row[v]), 4)] for v in order if row[v] > 0]
        for row, order in zip(shares, best, strict=True)
    ]
