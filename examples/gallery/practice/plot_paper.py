"""
The paper's first figure, small
===============================

Twenty sites hold noisy copies of fifty atoms in fifty dimensions. The distance of what is found from what is true,
over the noise, as in the paper's Figure 1: its setting, ours, and k-means of all centres, which is given the number
of atoms.
"""

from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans

import modelweld
from modelweld import metrics, simulate


def kmeans(drawn):
    """K-means of all centres, in the form of a fusion."""
    fitted = KMeans(drawn.K, n_init=10, random_state=0).fit(np.concatenate(drawn.values))
    ends = np.cumsum([len(values) for values in drawn.values])[:-1]
    return SimpleNamespace(labels=np.split(fitted.labels_, ends), atoms=fitted.cluster_centers_)


noises = (0.5, 2.0, 5.0, 10.0)
methods = {
    "SPAHM, paper's setting": lambda drawn: modelweld.fuse(drawn.values, preset="paper"),
    "fuse(sites)": lambda drawn: modelweld.fuse(drawn.values),
    "k-means, given K": kmeans,
}
scores = {name: np.zeros((len(noises), 2)) for name in methods}
for i, sd in enumerate(noises):
    for seed in range(2):
        drawn = simulate.paper_figure(20, sd, seed=seed)
        for name, method in methods.items():
            fusion = method(drawn)
            found = metrics.adjusted_rand(drawn.truth, fusion.labels), metrics.hausdorff(drawn.atoms, fusion.atoms)
            scores[name][i] += np.array(found) / 2

# %%
fig, axes = plt.subplots(1, 2, figsize=(8.5, 3.4), layout="constrained")
for name, values in scores.items():
    axes[0].plot(noises, values[:, 0], "o-", label=name)
    axes[1].plot(noises, values[:, 1], "o-", label=name)
axes[0].set(xlabel="noise", ylabel="ARI")
axes[1].set(xlabel="noise", ylabel="Hausdorff distance to the true atoms")
axes[0].legend(frameon=False)
for ax in axes:
    ax.spines[["top", "right"]].set_visible(False)
plt.show()
