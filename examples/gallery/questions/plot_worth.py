"""
Should they be fused at all?
============================

``worth_merging`` asks whether values of different sites lie closer together than chance explains: sites are turned
at random, and the statistic is counted again. Left, sites that share groups; right, the same with every site's
values turned on their own: the search finds matches there, too, and they are worth nothing.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

import modelweld

X = PCA(6, random_state=0).fit_transform(load_digits().data)
site_of = np.random.default_rng(0).integers(6, size=len(X))
sharing = [KMeans(8, n_init=3, random_state=0).fit(X[site_of == j]).cluster_centers_ for j in range(6)]
rng = np.random.default_rng(1)
turned = [centres @ np.linalg.qr(rng.normal(size=(6, 6)))[0] for centres in sharing]

fig, axes = plt.subplots(1, 2, figsize=(8.5, 4), layout="constrained")
for ax, sites, title in zip(axes, (sharing, turned), ("as they are", "each turned by itself"), strict=True):
    fusion = modelweld.fuse(sites)
    verdict = fusion.worth_merging()
    print(f"{title}: {verdict}")
    for j, site in enumerate(sites):
        ax.scatter(site[:, 0], site[:, 1], color=plt.get_cmap("tab10").colors[j], s=40)
    shared = sum(fusion.counts[: fusion.K] > 1)
    answer = {True: "yes", False: "no", None: "no verdict"}[verdict.worth]
    ax.set_title(f"{title}: {shared} of {fusion.K} matched\nworth merging: {answer}")
    ax.set(xlabel="component 0", ylabel="component 1")
    ax.spines[["top", "right"]].set_visible(False)
plt.show()
