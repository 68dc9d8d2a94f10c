"""
Any clustering, from its labels
===============================

One site runs HDBSCAN, another Ward, a third spectral clustering: whatever gives every row a label makes a site. Means,
covariances and counts are computed where the rows lie; rows that are noise (-1) stay out; words for labels stay names.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import HDBSCAN, AgglomerativeClustering, SpectralClustering
from sklearn.datasets import load_iris

import modelweld

iris = load_iris()
names, X = ["sepal length", "sepal width", "petal length", "petal width"], iris.data
site_of = np.random.default_rng(1).integers(4, size=len(X))
rows = {name: X[site_of == j] for j, name in enumerate(["north", "east", "south", "west"])}
sites = {
    "north": modelweld.read(HDBSCAN(min_cluster_size=8, copy=True).fit(rows["north"]), X=rows["north"], features=names),
    "east": modelweld.read(AgglomerativeClustering(3).fit(rows["east"]), X=rows["east"], features=names),
    "south": modelweld.read(SpectralClustering(3, random_state=0).fit(rows["south"]), X=rows["south"], features=names),
    "west": modelweld.read(X=rows["west"], labels=iris.target_names[iris.target[site_of == 3]], features=names),
}
fusion = modelweld.fuse(sites)
print(fusion.table())

# %%
# Crosses are what sites sent, one colour per fused group; dots are their rows, which stayed at home.
fig, axes = plt.subplots(1, 4, figsize=(11, 3), sharex=True, sharey=True, layout="constrained")
for ax, (name, site), labels in zip(axes, sites.items(), fusion.labels, strict=True):
    ax.scatter(*rows[name][:, [2, 0]].T, s=6, color="lightgrey")
    means = site.arrays["means"]
    ax.scatter(*means[:, [2, 0]].T, c=labels, cmap="tab10", vmin=0, vmax=9, marker="x", s=80)
    ax.set(title=name, xlabel=names[2])
axes[0].set_ylabel(names[0])
plt.show()
