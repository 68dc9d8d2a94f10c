"""
Images drawn at the centre
==========================

Networks of sites that saw different classes are fused by teaching one network to answer as all of them do together
(``how="distil"``). That takes images, and images stay where they were taken. So they are drawn at the centre. What is
drawn matters: a network is looked at where its first layers look, and white noise is where no image is. Sites may send
the mean and the deviation of every pixel (``read(net, y=y, X=X)``): numbers about all of their
images at once. Where nobody sends anything, images have something smooth in their middle.
"""

import json
from pathlib import Path
from unittest.mock import patch

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from modelweld import LocalModel
from modelweld.kinds import drawn_inputs
from modelweld.kinds.drawn_inputs import describe, draw

X = load_digits().images[:, None] / 16
sent = describe(X)
print({name: values.shape for name, values in sent.items()})

# %%
# Digits, and what is drawn instead of them: with their moments, by default, and white noise.


def drawn(**arrays):
    """Six images as a site describes them."""
    return draw(
        [LocalModel(arrays, {name: (None,) * x.ndim for name, x in arrays.items()})],
        X.shape[1:],
        6,
        np.random.default_rng(0),
    )


rows = {"digits": X[:6], "moments sent": drawn(**sent), "nothing sent": drawn()}
with patch.object(drawn_inputs, "BLURS", (0.0,)):
    rows["white noise"] = drawn(**sent)
fig, axes = plt.subplots(4, 6, figsize=(5.2, 3.6), layout="constrained")
for line, (name, images) in zip(axes, rows.items(), strict=True):
    line[0].set_ylabel(name, rotation=0, ha="right", va="center")
    for ax, image in zip(line, images, strict=True):
        ax.imshow(image[0], cmap="gray_r", vmin=0, vmax=1)
        ax.set(xticks=[], yticks=[])
plt.show()

# %%
# Accuracies that the study of images has recorded, means over its runs with 5 sites, most of which have two or three
# classes: fused networks, what they were taught by, and the sites' best.
here = Path.cwd()
while not (here / "experiments").is_dir():
    here = here.parent
record = json.loads((here / "experiments" / "images" / "results.json").read_text())
cells = {name: list(cell.values()) for name, cell in record.get("cells", record).items() if " J=5 Dir 0.1" in name}
shown = {
    "best local": "#9bb",
    "Git Re-Basin": "#9bb",
    "ours, mean": "#e9a178",
    "ours, distil, white noise": "#e9a178",
    "ours, distil": "#c2410c",
    "ours, distil, moments sent": "#c2410c",
    "class-weighted ensemble, probabilities": "#9bb",
    "pooled (sees the data)": "#9bb",
}
fig, axes = plt.subplots(1, len(cells), figsize=(2.6 * len(cells) + 2.5, 3), sharey=True, layout="constrained")
for ax, (name, runs) in zip(axes, cells.items(), strict=True):
    there = [method for method in shown if method in runs[0]["accuracy"]]
    means = [np.mean([run["accuracy"][method] for run in runs]) for method in there]
    bars = ax.barh(there, means, color=[shown[method] for method in there])
    ax.bar_label(bars, fmt="%.3f", padding=2)
    ax.set(xlim=(0, 1.2), xlabel="accuracy", title=name.removesuffix(", plain"))
    ax.spines[["top", "right"]].set_visible(False)
axes[0].invert_yaxis()
plt.show()
