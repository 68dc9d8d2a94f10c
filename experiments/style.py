"""How figures of the studies look, and how they are written: text as text, the same bytes for the same results."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def plain(name: str, *, grid: bool = False) -> None:
    """Draw without a screen from here on; `name`, the study's, makes the identifiers in its files its own."""
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams.update(
        {
            "font.size": 9, "axes.grid": grid, "grid.color": "#e6e6e6", "axes.axisbelow": True,
            "axes.spines.top": False, "axes.spines.right": False, "svg.fonttype": "none", "svg.hashsalt": name,
        }
    )  # fmt: skip


def written(figure: Any, path: Path, **options: Any) -> None:
    """Save a figure as SVG without a date, and forget it."""
    import matplotlib.pyplot as plt

    figure.savefig(path, metadata={"Date": None}, **options)
    plt.close(figure)
