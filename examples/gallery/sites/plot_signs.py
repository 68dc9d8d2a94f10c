"""
Principal components without signs
==================================

Five sites each compute ten principal components of their own images of digits. A component may come out upside
down, and in another order: ``Directions(axial=True)`` matches them up to their sign, and ``fusion.parameters.signs``
turns them round.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

import modelweld
from modelweld import Directions

X = load_digits().data
site_of = np.random.default_rng(0).integers(5, size=len(X))
sites = [PCA(10, random_state=0).fit(X[site_of == j]).components_ for j in range(5)]
rng = np.random.default_rng(1)
sites = [site[rng.permutation(10)] * rng.choice([-1, 1], (10, 1)) for site in sites]  # as it happens in practice
fusion = modelweld.fuse(sites, Directions(axial=True))
print(fusion, "held by", fusion.counts)

# %%
# Every row a site, every column a component that was found to be the same, turned the same way. Gaps: the site has
# none like it.
shown = [k for k in range(fusion.K) if fusion.counts[k] > 1]
fig, axes = plt.subplots(5, len(shown), figsize=(0.75 * len(shown), 4))
for ax in axes.flat:
    ax.axis("off")
for j, (labels, signs) in enumerate(zip(fusion.labels, fusion.parameters.signs, strict=True)):
    for value, k, sign in zip(sites[j], labels, signs, strict=True):
        if k in shown:
            axes[j, shown.index(k)].imshow((sign * value).reshape(8, 8), cmap="RdBu", vmin=-0.4, vmax=0.4)
fig.suptitle("components of five sites, matched and turned", fontsize=10)
plt.show()
