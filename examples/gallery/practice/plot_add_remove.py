"""
Sites that come and go
======================

A consortium grows: eight sites with scikit-learn's digits (k-means centres of the first six principal components)
join one by one. Each ``add`` starts from what there is; ``fuse`` from nothing says whether the same is found. Then
the first site asks to be forgotten.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

import modelweld

X = PCA(6, random_state=0).fit_transform(load_digits().data)
site_of = np.random.default_rng(0).integers(8, size=len(X))
centres = [KMeans(8, n_init=3, random_state=0).fit(X[site_of == j]).cluster_centers_ for j in range(8)]

fusion = modelweld.fuse(centres[:2])
grown, from_scratch, agree = [fusion.K], [fusion.K], [1.0]
for j in range(2, 8):
    fusion = fusion.add(centres[j], site=str(j))
    fresh = modelweld.fuse(centres[: j + 1])
    grown.append(fusion.K)
    from_scratch.append(fresh.K)
    agree.append(modelweld.metrics.adjusted_rand(fresh.labels, fusion.labels))
without = fusion.remove(0, from_scratch=True)
print(fusion, "->", without, "without the first, as if it had never been there")

# %%
fig, axes = plt.subplots(1, 2, figsize=(8.5, 3.3), layout="constrained")
axes[0].plot(range(2, 9), from_scratch, "o-", label="fused from nothing")
axes[0].plot(range(2, 9), grown, "x--", label="added one by one")
axes[0].set(xlabel="sites", ylabel="groups", ylim=(0, None))
axes[0].legend(frameon=False)
axes[1].plot(range(2, 9), agree, "o-", color="#c2410c")
axes[1].set(xlabel="sites", ylabel="agreement of the two (ARI)", ylim=(0, 1.05))
for ax in axes:
    ax.spines[["top", "right"]].set_visible(False)
plt.show()
