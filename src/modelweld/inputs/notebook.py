"""How objects look in a notebook: one small table, everything in it escaped, because names come from strangers."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

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


def _line(tag: str, cells: Sequence[object]) -> str:
    shown = [_cell(cell) for cell in cells[:MOST_COLUMNS]]
    shown += ["..."] if len(cells) > MOST_COLUMNS else []
    return f"<tr>{''.join(f'<{tag}>{escape(cell)}</{tag}>' for cell in shown)}</tr>"


def _cell(cell: object) -> str:
    if cell is None:
        return ""
    return f"{cell:.4g}" if isinstance(cell, float) else str(cell)
