"""
What the right family is worth
==============================

Rates, counts, proportions, directions and covariances scatter about their global value in ways of their own. Drawn
from the record of a study (``experiments/families/tables.md``): agreement with the truth for the family that fits,
for Gaussian values in its place, and for k-means that is given the number of groups.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

here = Path.cwd()
file = next(p for p in (d / "experiments/families/tables.md" for d in (here, *here.parents)) if p.exists())
lines = [line for line in file.read_text(encoding="utf-8").splitlines() if line.startswith("| ") and "±" in line]
rows = [line.strip("| ").split(" | ") for line in lines]
names = [row[0] for row in rows]
scores = np.array([[float(cell.split()[0]) for cell in (row[1], row[2], row[4])] for row in rows])

# %%
order = np.argsort(scores[:, 0] - scores[:, 1])
fig, ax = plt.subplots(figsize=(7.5, 4.4), layout="constrained")
for column, (label, marker, colour) in enumerate(
    [("family that fits", "o", "#c2410c"), ("Gaussian", "s", "steelblue"), ("k-means, given K", "x", "grey")]
):
    ax.scatter(scores[order, column], range(len(order)), marker=marker, color=colour, label=label, s=45, zorder=3)
ax.hlines(range(len(order)), scores[order].min(1), scores[order].max(1), color="#ddd", lw=4, zorder=1)
ax.set_yticks(range(len(order)), [names[i] for i in order])
ax.set(xlabel="ARI with the truth (mean over seeds)")
ax.legend(frameon=False, loc="lower left")
ax.spines[["top", "right"]].set_visible(False)
plt.show()
