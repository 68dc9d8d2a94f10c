"""
Movements in three recordings
=============================

Exercises of one person (CMU motion capture, twelve joint angles). A hidden Markov model that finds its own number of
states is fitted to each recording; fused, states of different recordings that are the same movement have one colour.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import modelweld
from modelweld.hmm import StickyHDPHMM

here = Path.cwd()
file = next(p for p in (d / "experiments/data/mocap6/mocap6.npz" for d in (here, *here.parents)) if p.exists())
data = np.load(file)
bounds = data["seq_start"]
models, paths = {}, []
for j, name in enumerate(data["seq_name"][:3]):
    X = data["X"][bounds[j] : bounds[j + 1]]
    hmm = StickyHDPHMM(random_state=0).fit(X)
    models[str(name)] = modelweld.read(hmm)
    paths.append(hmm.predict(X))
fusion = modelweld.fuse(models)
print(fusion)

# %%
# Above: fused states over time. Below: what a person who watched the film wrote down.
fig, axes = plt.subplots(3, 1, figsize=(8, 3.4), layout="constrained", sharex=True)
for j, ax in enumerate(axes):
    shown = np.vstack([fusion.labels[j][paths[j]] % 20, data["labels"][bounds[j] : bounds[j + 1]] % 20])
    ax.imshow(shown, aspect="auto", cmap="tab20", vmin=0, vmax=19, interpolation="nearest")
    ax.set_yticks([0, 1], ["fused", "seen"], fontsize=7)
    ax.set_title(fusion.sites[j], fontsize=8, loc="left", pad=1)
axes[-1].set_xlabel("frame (tenth of a second)")

found = np.concatenate([fusion.labels[j][path] for j, path in enumerate(paths)])
print("agreement of frames (ARI):", round(modelweld.metrics.adjusted_rand([data["labels"][: bounds[3]]], [found]), 3))
plt.show()
