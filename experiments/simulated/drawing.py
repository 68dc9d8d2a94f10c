"""The paper's three figures redrawn with what Hausdorff does not show."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from contenders import AUTHORS, ERRORS, KMEANS, OURS, PAPER, POOLED
from repeats import KINDS, Repeats, Setting, standard_error

from study import Figure, Results
from style import plain, written

# Okabe and Ito's palette: told apart by everyone, and by marker on paper.
LOOKS = {
    AUTHORS: ("#D55E00", "s", "-"),
    PAPER: ("#E69F00", "D", ":"),
    OURS: ("#0072B2", "o", "-"),
    ERRORS: ("#009E73", "^", "-"),
    KMEANS: ("#999999", "P", "--"),
    POOLED: ("#000000", "X", "--"),
}
HYPERPARAMETERS = {"mu0": r"$\mu_0$", "sigma": r"$\sigma$", "sigma0": r"$\sigma_0$", "K off": "K"}
LABELS = {"hausdorff": "Hausdorff distance", "ari": "ARI", "error in K": "error in K"}
SIGMA, SITES = r"noise $\sigma$", "sites J"


def draw(results: Results, folder: Path) -> list[Figure]:
    """All figures."""
    plain("simulated", grid=True)
    repeats = Repeats(results)
    told = "Mean and standard error over repeats; methods that agree lie on one another. The k-means are told L. "
    return [
        figure(folder / "over_sigma.svg", lambda: curves(repeats, "sigma", SIGMA), f"Over noise, 20 sites. {told}"
               "Hausdorff is the error of the worst atom, which only one site holds: all SPAHM forms are alike up to "
               "5, and at 10 only ARI and K tell them apart."),
        figure(folder / "over_sites.svg", lambda: curves(repeats, "J", SITES), f"Over sites, noise 1. {told}"),
        figure(folder / "hyperparameters.svg", lambda: errors(repeats), "Relative error of hyperparameters and of the "
               "number of atoms over noise, from k-means local atoms, 20 sites. Dotted: read off the true atoms."),
    ]  # fmt: skip


def figure(path: Path, drawn: Callable[[], Any], caption: str) -> Figure:
    """Write one figure."""
    written(drawn(), path, bbox_inches="tight")
    return Figure(path.name, caption)


def curves(repeats: Repeats, axis: str, label: str) -> Any:
    """Hausdorff, ARI and error in K over sigma or J; true local atoms on the left, k-means on the right."""
    import matplotlib.pyplot as plt

    page, axes = plt.subplots(3, 2, figsize=(8.2, 7.6), sharex=True, sharey="row", layout="constrained")
    over = {"J": 20} if axis == "sigma" else {"sigma": 1.0}
    for column, (kind, title) in enumerate(KINDS.items()):
        settings = repeats.settings(kind, **over)
        for row, measure in enumerate(LABELS):
            ax = axes[row, column]
            for name in repeats.contenders(kind):
                line(ax, [getattr(s, axis) for s in settings], repeats, settings, name, measure)
            if column == 0:
                ax.set_ylabel(LABELS[measure])
        axes[0, column].set_title(f"from {title}")
        axes[2, column].set_xlabel(label)
        axes[2, column].axhline(0, color="#555555", linewidth=0.8, zorder=0)
    logarithmic(axes[2, 0], sorted({getattr(s, axis) for kind in KINDS for s in repeats.settings(kind, **over)}))
    legend(page, axes.ravel())
    return page


def line(ax: Any, x: list[float], repeats: Repeats, settings: list[Setting], name: str, measure: str) -> None:
    """Means with standard errors."""
    values = [repeats.values(s, name, measure) for s in settings]
    if not values or np.isnan(values[0]).all():
        return
    colour, marker, style = LOOKS[name]
    means, spread = [v.mean() for v in values], [standard_error(v) for v in values]
    ax.errorbar(x, means, spread, color=colour, marker=marker, linestyle=style, markersize=4.5, linewidth=1.4,
                elinewidth=0.9, label=name, alpha=0.9)  # fmt: skip


def errors(repeats: Repeats) -> Any:
    """Relative errors over sigma, k-means local atoms (what a quick run has, where that is not there)."""
    import matplotlib.pyplot as plt

    page, axes = plt.subplots(1, 4, figsize=(10.5, 3.1), sharex=True, layout="constrained")
    settings = repeats.settings("kmeans", J=20)
    x = [s.sigma for s in settings]
    for ax, (measure, title) in zip(axes, HYPERPARAMETERS.items(), strict=True):
        for name in (AUTHORS, OURS, ERRORS):
            line(ax, x, repeats, settings, name, measure)
        true = repeats.settings("true", J=20)
        if measure in ("mu0", "sigma0"):
            ax.plot([s.sigma for s in true], [repeats.told(s, measure).mean() for s in true], ":", color="#555555",
                    label="true atoms")  # fmt: skip
        ax.set_title(title)
        ax.set_xlabel(SIGMA)
        ax.set_ylim(bottom=0)
        logarithmic(ax, x)
    axes[0].set_ylabel("relative error")
    legend(page, axes)
    return page


def logarithmic(ax: Any, ticks: list[float]) -> None:
    """A logarithmic axis that names the values there are."""
    ax.set_xscale("log")
    ax.set_xticks(ticks, [f"{t:g}" for t in ticks])
    ax.minorticks_off()


def legend(page: Any, axes: Any) -> None:
    """One legend for all panels, below."""
    handles = {name: handle for ax in axes for handle, name in zip(*ax.get_legend_handles_labels(), strict=True)}
    page.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=4, frameon=False)
