"""
Does the prior matter?
======================

The paper's prior has a number to choose, gamma0: how many groups a site is expected to hold. The default learns its
spectrum of supports instead. Scikit-learn's breast cancer table, split over nine sites, four components each:
K and how many sites hold a group.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.mixture import GaussianMixture

import modelweld
from modelweld import BetaBernoulli, Spectrum

X = load_breast_cancer().data[:, [0, 1, 4, 9]]
X = (X - X.mean(0)) / X.std(0)
site_of = np.random.default_rng(0).integers(9, size=len(X))
sites = []
for j in range(9):
    mine = X[site_of == j]
    mixture = GaussianMixture(4, covariance_type="diag", n_init=3, random_state=0).fit(mine)
    sites.append(modelweld.read(mixture, X=mine))

priors = {f"gamma0 = {g:g}": BetaBernoulli(1.0, g) for g in (0.1, 1.0, 10.0, 100.0)} | {"learned (default)": Spectrum()}
fusions = {name: modelweld.fuse(sites, prior=prior) for name, prior in priors.items()}

# %%
# Each dot is a group; its height is the number of sites that hold it. Above: how many groups there are.
fig, ax = plt.subplots(figsize=(7.5, 3.6), layout="constrained")
for i, (name, fusion) in enumerate(fusions.items()):
    counts = np.sort(fusion.counts[: fusion.K])
    ax.scatter(i + np.linspace(-0.25, 0.25, len(counts)), counts, color="#c2410c" if "default" in name else "steelblue")
    ax.text(i, 9.6, f"K = {fusion.K}", ha="center")
ax.set_xticks(range(len(fusions)), list(fusions))
ax.set(ylabel="sites that hold the group", ylim=(0, 10.4))
ax.spines[["top", "right"]].set_visible(False)
plt.show()
