"""
Site effects: offsets and units
===============================

Six wine growers (scikit-learn's wine data) measure. One sends proline in grams where the others send milligrams,
another's colorimeter reads four units too high. Both batch effects are estimated with the matching, corrected
and named.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.mixture import GaussianMixture

import modelweld

data = load_wine()
names = ["proline", "color_intensity", "flavanoids", "alcohol"]
X = data.data[:, [data.feature_names.index(name) for name in names]]
site_of = np.random.default_rng(0).integers(6, size=len(X))
sites = {}
for j in range(6):
    mine = X[site_of == j].copy()
    mine[:, 0] *= 0.001 if j == 5 else 1.0
    mine[:, 1] += 4.0 if j == 4 else 0.0
    scale = mine.std(0)
    mixture = GaussianMixture(3, covariance_type="diag", n_init=5, random_state=0).fit(mine / scale)
    mixture.means_, mixture.covariances_ = mixture.means_ * scale, mixture.covariances_ * scale**2
    mixture.precisions_cholesky_ = 1 / np.sqrt(mixture.covariances_)
    sites[f"grower {j}"] = modelweld.read(mixture, X=mine, features=names)
with warnings.catch_warnings():
    warnings.simplefilter("ignore", modelweld.SiteEffectWarning)  # printed below
    fusion = modelweld.fuse(sites)
print(fusion)
for effect in fusion.site_effects:
    print(effect.site, "|", effect.words)

# %%
# Before and after: proline against colour, as the growers sent them and on the common scale. Colours are fused groups.
fig, axes = plt.subplots(1, 2, figsize=(8, 3.6), layout="constrained", sharey=True)
for ax, models, title in zip(axes, (sites.values(), fusion._fit.models), ("as sent", "corrected"), strict=True):
    for model, labels in zip(models, fusion.labels, strict=True):
        means, counts = model.arrays["means"], model.arrays["counts"]
        ax.scatter(means[:, 0], means[:, 1], s=6 * counts, c=labels, cmap="tab10", vmin=0, vmax=9, alpha=0.6)
    ax.set(xscale="log", xlabel="proline", title=title)
axes[0].set_ylabel("colour intensity")
plt.show()
