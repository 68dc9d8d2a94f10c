"""Figures: a map of errors before and after fusion, errors of all methods, and whether spreads are honest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scores import LEVELS
from telling import METHODS, PAPER, column, gathered, held

from data import ISLANDS, OFFSET, UNIT, stations
from study import Figure

FRAMES = {"": (-126, -66, 24, 50.5), "AK": (-170, -130, 54, 72), "HI": (-161, -154, 18.5, 22.7)}
"""West, east, south, north: the contiguous states, and two insets."""
INSETS = {"AK": (0.005, 0.01, 0.19, 0.25), "HI": (0.2, 0.01, 0.13, 0.17)}
STEPS = (3.0, 3.5, 4.0, 4.5, 5.0, 5.5, 6.0, 7.0, 8.0, 10.0)  # F of error, between colours
STYLE = {
    "svg.fonttype": "none",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.hashsalt": "temperatures",
}
INK, OURS, POOLED, OTHER, POINTS = (
    "#333333",
    "#0072b2",
    "#009e73",
    "#999999",
    "#d55e00",
)  # Okabe and Ito's, safe for the colour-blind


def draw(results: Mapping[str, Mapping[str, Any]], folder: Path) -> Sequence[Figure]:
    """All figures."""
    import matplotlib

    matplotlib.use("Agg")
    whole = {name: r for name, r in results.items() if name.startswith("repeat/")}
    with matplotlib.rc_context(STYLE):
        return [
            draw_map(list(whole.values()), folder),
            draw_errors(gathered(results), folder),
            draw_honesty(gathered(results), folder),
        ]


def saved(figure: Any, folder: Path, name: str) -> str:
    """Written as SVG, without a date, so that the same results give the same file."""
    from matplotlib import pyplot

    figure.savefig(folder / name, metadata={"Date": None}, bbox_inches="tight", facecolor="white", dpi=150)
    pyplot.close(figure)
    return name


def station_errors(whole: Sequence[Mapping[str, Any]]) -> dict[int, tuple[float, float]]:
    """Root mean squared errors of every station's test rows in all repeats, before and after."""
    sums: dict[int, np.ndarray] = {}
    for result in whole:
        for line in result["stations"].split(";"):
            station, n, before, after = line.split()
            found = int(n) * np.array([1.0, float(before), float(after)])
            sums[int(station)] = sums.get(int(station), np.zeros(3)) + found
    return {k: (float(np.sqrt(b / n)), float(np.sqrt(a / n))) for k, (n, b, a) in sums.items()}


def draw_map(whole: Sequence[Mapping[str, Any]], folder: Path) -> Figure:
    """Stations, coloured by error before and after fusion; labels of states; fused points."""
    from matplotlib import pyplot
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import BoundaryNorm

    places, found = stations(), station_errors(whole)
    at = np.array([[places[k].longitude, places[k].latitude] for k in found])
    values = np.array(list(found.values()))
    points = np.array(whole[0]["points"].split(), dtype=float).reshape(-1, 2) * UNIT[3:5] + OFFSET[3:5]
    points = points[:, ::-1]  # longitude first
    homes = {
        s: np.mean([(p.longitude, p.latitude) for p in places if p.state == s], axis=0)
        for s in sorted({p.state for p in places} - set(ISLANDS))
    }
    colours = pyplot.get_cmap("viridis_r", len(STEPS) + 1)
    scale = ScalarMappable(BoundaryNorm(STEPS, len(STEPS) + 1, extend="both"), colours)
    figure, panels = pyplot.subplots(1, 2, figsize=(13, 4.6), layout="constrained")
    titles = (
        f"before: the three nearest other states' processes, {np.sqrt(np.mean(values[:, 0] ** 2)):.1f} F",
        f"after: the fused process, {np.sqrt(np.mean(values[:, 1] ** 2)):.1f} F",
    )
    for k, (panel, title) in enumerate(zip(panels, titles, strict=True)):
        panel.set_title(title, loc="left")
        for code, frame in FRAMES.items():
            axes = panel.inset_axes(INSETS[code]) if code else panel
            framed(axes, frame, visible=bool(code))
            here, step = within(at, frame), np.searchsorted(STEPS, values[:, k])
            for colour in np.unique(step[here]):
                axes.plot(*at[here & (step == colour)].T, "o", color=colours(colour), markersize=5, markeredgewidth=0)
            if k == 1:
                axes.plot(*points[within(points, frame)].T, "+", color=POINTS, markersize=4, markeredgewidth=0.7)
                continue
            for state, home in homes.items():
                if within(home[None], frame)[0] and (state in FRAMES) == bool(code):
                    axes.text(*home, state, ha="center", va="center", fontsize=7, color=INK)
    bar = figure.colorbar(scale, ax=panels, shrink=0.75, pad=0.01, label="error at a station, RMSE in F")
    bar.set_ticks(STEPS, labels=[f"{step:g}" for step in STEPS])
    return Figure(
        saved(figure, folder, "map.svg"),
        "Error at every station before and after fusion, all repeats together; + are the fused points of the first "
        "repeat (of seven coordinates, two are shown). Alaska and Hawaii are insets of their own scale.",
    )


def framed(axes: Any, frame: Sequence[float], *, visible: bool) -> None:
    """A piece of the map, in which a mile is as long in both directions at its middle."""
    west, east, south, north = frame
    aspect = 1 / np.cos(np.radians((south + north) / 2))
    axes.set(xlim=(west, east), ylim=(south, north), xticks=[], yticks=[], aspect=aspect)
    for side in axes.spines.values():
        side.set(visible=visible, color="#cccccc")


def within(at: np.ndarray, frame: Sequence[float]) -> np.ndarray:
    """Which places lie in a frame."""
    return (at[:, 0] > frame[0]) & (at[:, 0] < frame[1]) & (at[:, 1] > frame[2]) & (at[:, 1] < frame[3])


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
    return Figure(
        saved(figure, folder, "errors.svg"),
        "Mean and standard deviation over repeats: natural fusion in blue, pooled data in green, the paper's own "
        "figures on its data as open diamonds.",
    )


def draw_honesty(scores: Mapping[str, Any], folder: Path) -> Figure:
    """Share of temperatures within intervals, less what the intervals promise."""
    from matplotlib import pyplot

    shown = {
        "local": ("a state's own process", OTHER, "s"),
        "passed back": ("SPAHM, passed back", "#cc79a7", "v"),
        "rbcm": ("robust committee", "#e69f00", "^"),
        "natural": ("natural fusion", OURS, "o"),
        "pooled": ("pooled data", POOLED, "D"),
    }
    figure, panels = pyplot.subplots(1, 2, figsize=(8.5, 3.2), sharey=True, layout="constrained")
    for panel, part, title in zip(panels, ("held", "held_across"), ("own state", "across all states"), strict=True):
        panel.axhline(0, color=INK, linewidth=0.8)
        for name, (label, colour, marker) in shown.items():
            off = [held(scores, name, part, level).mean() - level for level in LEVELS]
            panel.plot(range(len(LEVELS)), 100 * np.array(off), marker=marker, color=colour, label=label, linewidth=1)
        panel.set_xticks(range(len(LEVELS)), [f"{level:.0%}" for level in LEVELS])
        panel.set(title=title, xlabel="interval")
        panel.grid(axis="y", color="#eeeeee")
    panels[0].set_ylabel("temperatures within, less promised, %")
    panels[1].legend(frameon=False, fontsize=8)
    return Figure(
        saved(figure, folder, "honesty.svg"),
        "How many more temperatures than promised lie within the predicted intervals. Residuals have heavier "
        "tails than a Gaussian: narrow intervals hold more, wide ones fewer.",
    )
