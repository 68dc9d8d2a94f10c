"""A figure of the errors of all methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from telling import METHODS, PAPER, column, gathered

from study import Figure
from style import plain, written

INK, OURS, POOLED, OTHER = "#333333", "#0072b2", "#009e73", "#999999"  # Okabe and Ito's


def draw(results: Mapping[str, Mapping[str, Any]], folder: Path) -> Sequence[Figure]:
    """Errors."""
    plain("temperatures")
    return [draw_errors(gathered(results), folder)]


def draw_errors(scores: Mapping[str, Any], folder: Path) -> Figure:
    """Errors of all methods; the paper's beside."""
    from matplotlib import pyplot

    names = [name for name in METHODS if name in scores]
    figure, panels = pyplot.subplots(1, 2, figsize=(11, 4.2), sharey=True, layout="constrained")
    for panel, part, title in zip(panels, ("own", "across"), ("own state", "across all states"), strict=True):
        for y, name in enumerate(names):
            values = column(scores, name, part)
            colour = POOLED if "pooled" in name else OURS if "natural" in name else OTHER
            spread = values.std(ddof=1) if len(values) > 1 else 0.0
            panel.errorbar(values.mean(), y, xerr=spread, fmt="o", color=colour, markersize=5, capsize=2, linewidth=1)
            panel.annotate(f"{values.mean():.2f}", (values.mean(), y), (7, 3), textcoords="offset points", fontsize=7)
            if name in PAPER:
                panel.plot(PAPER[name][part == "across"], y, "D", markerfacecolor="none", color=INK, markersize=4)
        panel.axvline(column(scores, "pooled", part).mean(), color=POOLED, linewidth=0.8, linestyle=":")
        panel.set(title=title, xlabel="RMSE in F")
        panel.grid(axis="x", color="#eeeeee")
        panel.set_axisbelow(True)
    panels[1].set_xscale("log")
    ticks = [5, 6, 8, 10, 12, 16]
    panels[1].set_xticks(ticks, [str(t) for t in ticks])
    panels[1].minorticks_off()
    panels[0].set_yticks(range(len(names)), [METHODS[name] for name in names])
    panels[0].invert_yaxis()
    written(figure, folder / "errors.svg", bbox_inches="tight", facecolor="white")
    return Figure(
        "errors.svg",
        "Mean and standard deviation over repeats: natural fusion in blue, pooled data in green, the paper's own "
        "figures on its data as open diamonds.",
    )
