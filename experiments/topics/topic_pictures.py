"""The paper's picture of a topic of war."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from study import Figure, Results
from style import plain, written

BLUE, ORANGE, GREY = "#0072b2", "#d55e00", "#777777"  # told apart by the colour-blind


def draw(results: Results, folder: Path) -> Sequence[Figure]:
    """The figure of the paper."""
    plain("topics")
    war(results, folder / "war.svg")
    return [
        Figure(
            "war.svg",
            "A topic of war, as in the paper's figure: five of the local topics that were fused, with the words of"
            " their book nearest to their centre; the fused topic; and Gaussian LDA's nearest to the same words.",
        ),
    ]


def box(
    axes: Any, x: float, y: float, width: float, height: float, head: str, words: Sequence[str], colour: str
) -> None:
    """A topic: a coloured head and its words."""
    from matplotlib.patches import FancyBboxPatch

    axes.add_patch(
        FancyBboxPatch(
            (x, y), width, height, boxstyle="round,pad=0,rounding_size=.8", facecolor="white", edgecolor=colour, lw=1.4
        )
    )
    title = textwrap.fill(head, int(width))
    lines = title.count("\n") + 1
    axes.text(x + width / 2, y + height - 1.3, title, ha="center", va="top", fontsize=8, weight="bold", color=colour)
    text = textwrap.fill(", ".join(words), int(width * 1.27))
    axes.text(x + width / 2, y + height - 2.4 - 2.3 * lines, text, ha="center", va="top", fontsize=8)


def war(results: Results, path: Path) -> None:
    """Local topics above, the fused one below them, Gaussian LDA's beside it."""
    import matplotlib.pyplot as plt

    found = results["war"]
    figure, axes = plt.subplots(figsize=(11.5, 5.2))
    axes.set(xlim=(-0.5, 120.5), ylim=(4, 54))
    axes.axis("off")
    axes.text(0, 53.5, "Five local topics of war, and what became of them", va="top", fontsize=12, weight="bold")
    width, gap = 23.0, 1.25
    for k, part in enumerate(found["parts"]):
        left = k * (width + gap)
        title, number = part["title"].rsplit(" (", 1)
        box(
            axes,
            left,
            30,
            width,
            19,
            f"{textwrap.shorten(title, 36, placeholder=' ...')} ({number}",
            part["words"],
            GREY,
        )
        axes.annotate(
            "",
            xy=(60 + 6 * (k - 2), 19.3),
            xytext=(left + width / 2, 29.6),
            arrowprops={"arrowstyle": "-|>", "color": BLUE, "lw": 1.1},
        )
    box(axes, 42, 5, 36, 14, f"Fused from {found['books']} books", found["fused"], BLUE)
    heads = ("Gaussian LDA, authors' prior", "Gaussian LDA, scaled prior")
    for k, head in enumerate(heads):
        box(axes, 82 * k, 5, 37, 14, head, results[f"gaussian_lda/{k}"]["war"], ORANGE)
    written(figure, path, bbox_inches="tight")
