"""
Which digit is it? No labels given
==================================

Six schools each see some of the ten digits (scikit-learn's 1,797 images) and cluster their own with k-means. No
labels and no images travel: only centres. Fused, centres of one column are taken for the same digit.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits

import modelweld

X, y = load_digits(return_X_y=True)
seen = [[0, 1, 2, 3], [3, 4, 5, 6], [6, 7, 8, 9], [0, 4, 8, 9], [1, 2, 5, 7], [0, 3, 6, 7]]
rng = np.random.default_rng(0)
site_of = rng.integers(6, size=len(X))
pixels = [f"pixel {i}" for i in range(64)]
sites, true = {}, []
for j, held in enumerate(seen):
    mine = (site_of == j) & np.isin(y, held) | ((site_of == (j + 1) % 6) & np.isin(y, held))
    kmeans = KMeans(len(held), n_init=10, random_state=0).fit(X[mine])
    sites[f"school {j}"] = modelweld.read(kmeans, X=X[mine], features=pixels, units=dict.fromkeys(pixels, "ink"))
    true.append([np.bincount(y[mine][kmeans.labels_ == k]).argmax() for k in range(len(held))])

fusion = modelweld.fuse(sites)
print(fusion)

# %%
# One row per school, one column per fused group, its mean below. A column of one digit is right; titles say what
# the images were.
columns = [k for k in range(len(fusion.atoms)) if any((labels == k).any() for labels in fusion.labels)]
fig, axes = plt.subplots(len(seen) + 1, len(columns), figsize=(0.7 * len(columns), 5.4))
for ax in axes.flat:
    ax.axis("off")
for row, labels in enumerate(fusion.labels):
    for centre, k, digit in zip(fusion._fit.models[row].arrays["means"], labels, true[row], strict=True):
        ax = axes[row, columns.index(k)]
        ax.imshow(centre.reshape(8, 8), cmap="Greys")
        ax.set_title(digit, fontsize=7, pad=1)
for column, k in enumerate(columns):
    axes[-1, column].imshow(fusion.atoms[k].reshape(8, 8), cmap="Blues")
fig.suptitle("rows: schools; last row: fused", fontsize=10)

print("agreement with the true digits (ARI):", round(modelweld.metrics.adjusted_rand(true, fusion.labels), 3))
plt.show()
