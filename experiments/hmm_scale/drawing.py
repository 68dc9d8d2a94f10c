"""Number of states and share of wrong frames over the number of sites."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from contenders import AUTHORS, DECODED, KMEANS, MEANS, OURS, PAPER, POOLED, TRUE
from telling import Repeats

from study import Figure, Results
from style import plain, written

# Okabe and Ito's palette: told apart by everyone, and by marker on paper.
LOOKS = {
    AUTHORS: ("#D55E00", "s", "-"),
    PAPER: ("#E69F00", "D", ":"),
    MEANS: ("#56B4E9", "v", "-"),
    OURS: ("#0072B2", "o", "-"),
    DECODED: ("#009E73", "^", "-"),
    KMEANS: ("#999999", "P", "--"),
    POOLED: ("#000000", "X", "--"),
    TRUE: ("#555555", "", ":"),
}


def draw(results: Results, folder: Path) -> list[Figure]:
    """The one figure."""
    plain("hmm_scale", grid=True)
    import matplotlib.pyplot as plt

    repeats = Repeats(results)
    page, axes = plt.subplots(1, 2, figsize=(8.4, 3.9), layout="constrained")
    for ax, measure, title in zip(axes, ("K", "hamming"), ("states found", "share of wrong frames"), strict=True):
        for name, (colour, marker, style) in LOOKS.items():
            J = [j for j in sorted(repeats.by_sites) if name in repeats.contenders(j)]
            values = [repeats.values(j, name, measure) for j in J]
            spread = [v.std(ddof=1) / np.sqrt(len(v)) if len(v) > 1 else 0.0 for v in values]
            ax.errorbar(J, [v.mean() for v in values], spread, color=colour, marker=marker, linestyle=style, label=name,
                        markersize=4.5, linewidth=1.4, elinewidth=0.9, capsize=2)  # fmt: skip
        ax.set_title(title)
        ax.set_xlabel("sites J")
        ax.set_xticks(sorted(repeats.by_sites))
        ax.set_ylim(bottom=0)
    page.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
    written(page, folder / "over_sites.svg", bbox_inches="tight")
    caption = (
        "Twenty states, of which every site saw eight. Mean and standard error over seeds. K-means and the pooled "
        "model are told the number of states; 'true labels' is the best any matching of these local models can do."
    )
    return [Figure("over_sites.svg", caption)]
