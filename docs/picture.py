"""Draw docs/picture.png: what sites send, and what it is fused to.

Four sites see some of seven groups of points in the plane, a little displaced at each site, and each fits a
Gaussian mixture of its own. The right half is what `modelweld.fuse` makes of the mixtures' means and their
standard errors.
"""

from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Ellipse, FancyArrowPatch
from PIL import Image
from sklearn.mixture import GaussianMixture

import modelweld

TARGET = Path(__file__).parent / "picture.png"

# Okabe and Ito's colours, distinguishable with any kind of colour vision; grey is for what is not shared
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9")
ALONE, INK, FRAME, POINT = "#8A8A8A", "#2B2B2B", "#D5D5D5", "#C4C4C4"
MARKERS = {"A": "o", "B": "s", "C": "^", "D": "D"}

GROUPS = np.array([[-4.4, 2.8], [0.0, 3.9], [4.4, 2.6], [-3.8, -2.4], [0.5, 0.0], [4.5, -2.3], [0.3, -3.6]])
HELD = ([0, 1, 4, 3], [2, 1, 0], [5, 4, 0, 2, 1], [3, 2, 4, 6])
SHIFT, FEWEST, MOST = 0.5, 30, 90
SEED = 12


def sites() -> tuple[list[np.ndarray], list[GaussianMixture]]:
    """Points and fitted mixture of every site."""
    rng = np.random.default_rng(SEED)
    angles, lengths = rng.uniform(0, np.pi, len(GROUPS)), rng.uniform(0.42, 0.85, (len(GROUPS), 2))
    turns = np.moveaxis(np.array([[np.cos(angles), -np.sin(angles)], [np.sin(angles), np.cos(angles)]]), 2, 0)
    roots = turns * lengths[:, None, :]
    points, mixtures = [], []
    for held in HELD:
        means = GROUPS[held] + rng.normal(0, SHIFT, (len(held), 2))
        origin = np.repeat(np.arange(len(held)), rng.integers(FEWEST, MOST, len(held)))
        scatter = roots[np.array(held)[origin]] @ rng.standard_normal((len(origin), 2, 1))
        points.append(means[origin] + scatter[:, :, 0])
        mixtures.append(GaussianMixture(len(held), n_init=5, random_state=SEED).fit(points[-1]))
    return points, mixtures


def as_sent(site: str, points: np.ndarray, mixture: GaussianMixture) -> modelweld.LocalModel:
    """Means with their squared standard errors."""
    counts = mixture.weights_ * len(points)
    errors = np.array([np.diag(covariance) for covariance in mixture.covariances_]) / counts[:, None]
    axes = {"means": ("component", None)}
    return modelweld.LocalModel({"means": mixture.means_}, axes, variance={"means": errors}, site=site)


def draw_ellipse(axes: Axes, mean: np.ndarray, covariance: np.ndarray, **style: Any) -> None:
    """The points at 1.7 standard deviations."""
    variances, directions = np.linalg.eigh(covariance)
    width, height = 2 * 1.7 * np.sqrt(variances)
    angle = np.degrees(np.arctan2(directions[1, 0], directions[0, 0]))
    axes.add_patch(Ellipse(mean, width, height, angle=angle, **style))


def set_up(axes: Axes) -> None:
    """A frame without scales: only places matter here."""
    axes.set(xlim=(-6.9, 6.9), ylim=(-5.9, 5.9), xticks=[], yticks=[])
    axes.spines[:].set_color(FRAME)


def draw_site(axes: Axes, site: str, points: np.ndarray, mixture: GaussianMixture) -> None:
    """One site's points and components, numbered as it happens to number them."""
    set_up(axes)
    number = mixture.n_components
    axes.set_title(f"site {site}: {number} components", fontsize=8, color=INK, loc="left", pad=3)
    axes.scatter(*points.T, s=2, color=POINT, linewidths=0)
    for i, (mean, covariance) in enumerate(zip(mixture.means_, mixture.covariances_, strict=True)):
        draw_ellipse(axes, mean, covariance, facecolor="none", edgecolor=INK, linewidth=0.9)
        axes.plot(
            *mean,
            MARKERS[site],
            color=INK,
            markersize=9.5 if MARKERS[site] != "^" else 11.5,
            markeredgecolor="white",
            markeredgewidth=0.8,
        )
        low = 0.2 if MARKERS[site] == "^" else 0.0  # a triangle has its middle below
        axes.annotate(
            str(i + 1),
            mean - [0, low],
            color="white",
            fontsize=6,
            weight="bold",
            ha="center",
            va="center_baseline",
        )


def draw_fusion(axes: Axes, fusion: modelweld.Fusion, mixtures: list[GaussianMixture]) -> None:
    """All components in the colour of the atom they were matched to, and the atoms that are shared."""
    set_up(axes)
    colours = [COLOURS[k] if count > 1 else ALONE for k, count in enumerate(fusion.counts)]
    for site, mixture, labels in zip(fusion.sites, mixtures, fusion.labels, strict=True):
        for mean, covariance, k in zip(mixture.means_, mixture.covariances_, labels, strict=True):
            draw_ellipse(axes, mean, covariance, facecolor=colours[k], alpha=0.13, edgecolor="none")
            draw_ellipse(axes, mean, covariance, facecolor="none", edgecolor=colours[k], linewidth=1.1)
            axes.plot(*mean, MARKERS[site], color=colours[k], markersize=6.5, markeredgecolor="white", zorder=3)
    for atom, colour, count in zip(fusion.atoms, colours, fusion.counts, strict=True):
        if count > 1:
            axes.plot(*atom, "*", color=colour, markersize=15, markeredgecolor=INK, markeredgewidth=0.9, zorder=4)


def draw_words(figure: Figure, fusion: modelweld.Fusion) -> None:
    """Headings, the arrow between the halves, and the key."""
    shared = int((fusion.counts > 1).sum())
    heading: dict[str, Any] = {"fontsize": 10.5, "weight": "bold", "color": INK, "va": "center"}
    figure.text(0.010, 0.955, "Each site fits a model of its own", **heading)
    figure.text(0.520, 0.955, f"Fused: {shared} shared groups, {fusion.K - shared} found at one site", **heading)
    arrow = {"arrowstyle": "simple,head_length=7,head_width=9,tail_width=2.5", "color": INK}
    figure.add_artist(FancyArrowPatch((0.452, 0.5), (0.508, 0.5), **arrow))
    figure.text(0.479, 0.545, "fuse", fontsize=9, family="monospace", color=INK, ha="center")
    small: dict[str, Any] = {"fontsize": 8, "color": INK, "va": "center"}
    figure.text(0.010, 0.035, "It sends parameters only, in any order and number.", **small)
    key = [Line2D([], [], marker=m, color=INK, ls="", ms=5, label=site) for site, m in MARKERS.items()]
    key.append(Line2D([], [], marker="*", color="white", mec=INK, ls="", ms=11, label="global value"))
    key.append(Line2D([], [], marker="o", color=ALONE, ls="", ms=6, label="at one site only"))
    figure.legend(
        handles=key, ncols=len(key), loc="center right", bbox_to_anchor=(0.996, 0.035), frameon=False,
        fontsize=8, handletextpad=0.1, columnspacing=1.0, labelcolor=INK, borderpad=0,
    )  # fmt: skip


def main() -> None:
    """Simulate, fuse, draw and save."""
    points, mixtures = sites()
    models = [as_sent(*site) for site in zip(MARKERS, points, mixtures, strict=True)]
    fusion = modelweld.fuse(models)

    figure = plt.figure(figsize=(8, 3.8), dpi=150, facecolor="white")
    left = figure.add_gridspec(2, 2, left=0.01, right=0.447, top=0.855, bottom=0.08, wspace=0.05, hspace=0.17)
    for cell, *site in zip(left, MARKERS, points, mixtures, strict=True):
        draw_site(figure.add_subplot(cell), *site)
    right = figure.add_gridspec(1, 1, left=0.52, right=0.99, top=0.905, bottom=0.08)
    draw_fusion(figure.add_subplot(right[0]), fusion, mixtures)
    draw_words(figure, fusion)
    drawn = BytesIO()
    figure.savefig(drawn)
    # few colours are in use: a palette keeps the file small
    Image.open(drawn).convert("RGB").quantize(128, dither=Image.Dither.NONE).save(TARGET, optimize=True)


if __name__ == "__main__":
    main()
