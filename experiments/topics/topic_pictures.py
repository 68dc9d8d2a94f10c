"""The paper's picture of a topic of war, and coherence method by method."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from study import Figure, Results

BLUE, ORANGE, GREY, GREEN = "#0072b2", "#d55e00", "#777777", "#009e73"  # told apart by the colour-blind
STYLE = {"svg.fonttype": "none", "svg.hashsalt": "topics", "font.size": 9, "font.family": "sans-serif"}
NO_DATE = {"Date": None}


def draw(results: Results, folder: Path) -> Sequence[Figure]:
    """Both figures."""
    import matplotlib as mpl

    from study import Figure

    mpl.use("Agg")
    with mpl.rc_context(STYLE):
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
    samplers = sorted(name for name in results if name.startswith("gaussian_lda/"))
    heads = {"0": "Gaussian LDA, authors' prior", "1": "Gaussian LDA, scaled prior"}
    for k, name in enumerate({name.split("/")[1]: name for name in reversed(samplers)}[key] for key in sorted(heads)):
        box(axes, 82 * k, 5, 37, 14, heads[name.split("/")[1]], results[name]["war"], ORANGE)
    figure.savefig(path, metadata=NO_DATE, bbox_inches="tight")
    plt.close(figure)
