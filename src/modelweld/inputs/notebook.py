"""How objects look in a notebook: one small table, everything in it escaped, because names come from strangers.

How many digits a feature's numbers deserve, wherever people read them: tables, notebooks, the page.

As many that a typical standard error shows, and that values which differ look different, whichever needs more; never
more than a number holds. `report/groups.js` writes numbers as `spell` does.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from math import floor, log10
from sys import float_info
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from modelweld.core.values import Array
    from modelweld.inputs.local_model import LocalModel

MOST_ROWS, MOST_COLUMNS = 20, 9
"""What is shown of a long or a wide table; how much is left out is said."""


def html_table(caption: str, header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table with a caption, as ``_repr_html_`` returns it.

    Examples
    --------
    >>> print(html_table("<Fusion>", ["site", "age"], [["<b>", 51.23456]]))
    <table><caption>&lt;Fusion&gt;</caption><tr><th>site</th><th>age</th></tr><tr><td>&lt;b&gt;</td><td>51.23</td></tr></table>
    """
    more = len(rows) - MOST_ROWS
    lines = [_line("th", header), *(_line("td", row) for row in rows[:MOST_ROWS])]
    if more > 0:
        lines.append(_line("td", [f"... and {more:,} more"]))
    return f"<table><caption>{escape(caption)}</caption>{''.join(lines)}</table>"


def title_of(model: LocalModel) -> str:
    """What a site's model is, in a few words."""
    return "LocalModel" + (f" of {model.site!r}" if model.site else "") + (f", {model.kind}" if model.kind else "")


def list_arrays(model: LocalModel) -> list[tuple[str, str, str]]:
    """Arrays of a site's model: their names, how many entries they have of what, and what stands beside them."""
    rows = []
    for name, values in model.arrays.items():
        named = zip(np.shape(values), model.axes[name], model.along[name], strict=True)
        beside = [what for what in ("variance", "weight") if name in getattr(model, what)]
        beside += ["is auxiliary"] if name in model.auxiliary else []
        entries = ", ".join(f"{n} {a or c}s" if a or c else str(n) for n, a, c in named)
        rows.append((name, entries, ", ".join(beside)))
    return rows


def _line(tag: str, cells: Sequence[object]) -> str:
    shown = ["" if c is None else f"{c:.4g}" if isinstance(c, float) else str(c) for c in cells[:MOST_COLUMNS]]
    shown += ["..."] if len(cells) > MOST_COLUMNS else []
    return f"<tr>{''.join(f'<{tag}>{escape(cell)}</{tag}>' for cell in shown)}</tr>"


DIGITS, HELD = 6, float_info.dig
"""Digits that people read, after the point or of a number below one; and decimal digits that a float holds."""

MOST_DECIMALS = 7
"""Digits after the point beyond which numbers are written as powers of ten."""

ALIKE = 1e-9
"""Deviation, as a share of the largest value, up to which values are the same but for rounding."""


def decimals_of(values: Array, errors: Array | None = None) -> int:
    """Digits after the point for values (n,) of one feature, with standard errors (n,) where these are known.

    The scale is the typical error, or how much values differ if that is less: it is 2 to 20 of the last digit. Without
    errors it is a tenth of how much values differ; those that do not are taken to differ by what they are. Below zero
    only for numbers with more digits than are held.

    Examples
    --------
    >>> decimals_of(np.array([9.41, 13.2]), np.array([0.3, 0.5])), decimals_of(np.array([0.094, 0.102, 0.099]))
    (1, 4)
    >>> decimals_of(np.array([0.094, 0.102, 0.099]), np.array([22.0, 22.0, 22.0]))
    3
    """
    known = values[np.isfinite(values)]
    largest = float(np.abs(known).max(initial=0.0))
    if largest == 0:
        return 0
    unit = known / largest  # squares are numbers
    differ = float(unit.std())
    scale = differ if differ > ALIKE else 1.0
    stated = np.zeros(0) if errors is None else errors[np.isfinite(errors) & (errors > 0)]
    scale = min(scale, float(np.median(stated)) / largest) if len(stated) else scale / 10
    first = floor(log10(largest))
    wanted = -floor(log10(max(scale, np.finfo(float).tiny) / 2) + log10(largest))
    if first >= HELD:
        return min(wanted, HELD - 1 - first)
    return min(max(wanted, 0), DIGITS + max(0, -1 - first), HELD - 1 - first)


def digits_of(values: Array, decimals: int) -> int:
    """Significant digits with which values (n,) are carried so that so many after the point are right.

    Examples
    --------
    >>> digits_of(np.array([0.1, 0.2]), 3), digits_of(np.array([1_700_000_123.4]), 1)
    (6, 12)
    """
    largest = float(np.abs(values[np.isfinite(values)]).max(initial=0.0))
    return DIGITS if largest == 0 else int(np.clip(floor(log10(largest)) + decimals + 2, DIGITS, HELD + 2))


def spell(value: float, decimals: int) -> str:
    """A number with so many digits after the point; a dash where there is none.

    Examples
    --------
    >>> spell(49.61, 1), spell(float("nan"), 1), spell(12345678.0, 0), spell(-0.001, 2)
    ('49.6', '–', '12,345,678', '0.00')
    >>> spell(1.2345e-9, 11), spell(1.23456e30, -27), spell(1e-12, 11)
    ('1.23e-9', '1.235e+30', '0')
    """
    if not np.isfinite(value):
        return "–"
    if 0 <= decimals <= MOST_DECIMALS:
        return f"{round(float(value), decimals) + 0.0:,.{decimals}f}"
    digits = -1 if value == 0 else floor(log10(abs(value))) + decimals
    digits = min(digits, DIGITS - 1) if decimals > 0 else digits
    return "0" if digits < 0 else f"{value:.{digits}e}".replace("e-0", "e-").replace("e+0", "e+")
