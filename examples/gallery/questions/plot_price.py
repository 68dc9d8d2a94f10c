"""
How many components does a density need?
========================================

K is the number of groups, not of components that a density needs. Six wine cellars send mixtures; ``reduction``
goes down from the union of all their components to one, and says at each K what that costs.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.mixture import GaussianMixture

import modelweld

X, y = load_wine(return_X_y=True)
X = (X - X.mean(0)) / X.std(0)
X = X[:, [0, 6, 9, 12]]
site_of = np.random.default_rng(0).integers(6, size=len(X))
sites = []
for j in range(6):
    mine = X[site_of == j]
    mixture = GaussianMixture(3, covariance_type="diag", n_init=5, random_state=0).fit(mine)
    sites.append(modelweld.read(mixture, X=mine))
fusion = modelweld.fuse(sites)
print(fusion, f"price at that K: {fusion.density.loss():.3f} nats per point")

# %%
losses = np.asarray(fusion.density.reduction().losses)
K = np.arange(len(losses), 0, -1) if losses[0] <= losses[-1] else np.arange(1, len(losses) + 1)
fig, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
ax.plot(K, losses, "o-", color="steelblue", ms=4)
ax.axvline(fusion.K, color="#c2410c", lw=1)
ax.annotate(f"groups found: {fusion.K}", (fusion.K, losses.max() * 0.8), xytext=(8, 0), textcoords="offset points")
ax.set(xlabel="components kept", ylabel="loss on the way down")
ax.spines[["top", "right"]].set_visible(False)
plt.show()
