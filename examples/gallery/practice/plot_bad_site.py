"""
A site that does not belong
===========================

Nine gardens measure irises and send mixtures; one has a ruler that adds two centimetres to every length. The fit
goes through, and the number of groups is no longer right: so ask ``diagnosis.sites``, which names the garden and says
in which feature it is off.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris
from sklearn.mixture import GaussianMixture

import modelweld

X, y = load_iris(return_X_y=True)
rng = np.random.default_rng(1)
sites = {}
for j in range(9):
    mine = X[rng.choice(len(X), 90, replace=False)][:, [0, 2]]
    if j == 8:
        mine = mine + 2.0
    sites[f"garden {j}"] = modelweld.read(GaussianMixture(3, n_init=5, random_state=0).fit(mine), X=mine)

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    fusion = modelweld.fuse(sites)
print(fusion)
for warning in caught:
    print(f"{warning.category.__name__}: {warning.message}")

# %%
# The last garden stands apart as a whole.
fig, ax = plt.subplots(figsize=(6, 4), layout="constrained")
for j, model in enumerate(fusion._fit.models):
    means = model.arrays["means"]
    style = dict(marker="X", s=110, color="crimson", zorder=3) if j == 8 else dict(s=45, color="steelblue", alpha=0.6)
    ax.scatter(*means.T, **style, label={0: "gardens 0 to 7", 8: "garden 8"}.get(j))
ax.scatter(*fusion.atoms[: fusion.K].T, s=320, facecolors="none", edgecolors="black", label="fused")
ax.set(xlabel="sepal length, cm", ylabel="petal length, cm")
ax.legend(frameon=False)
ax.spines[["top", "right"]].set_visible(False)

# %%
# What is said of each, in a line.
for site in fusion.diagnosis.sites():
    print(f"{site.site:10s} {site.warning or 'fits'}")
plt.show()
