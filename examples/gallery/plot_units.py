"""
One site in other units
=======================

The commonest accident of a consortium: six wine growers (scikit-learn's wine data) measure, and one
sends proline in grams where the others send milligrams. It is named, with the factor; nothing is converted behind
anybody's back.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.mixture import GaussianMixture

import modelweld

data = load_wine()
columns = [data.feature_names.index(name) for name in ("proline", "color_intensity", "flavanoids", "alcohol")]
names = ["proline", "colour", "flavanoids", "alcohol"]
X = data.data[:, columns]
site_of = np.random.default_rng(0).integers(6, size=len(X))


def fused(factor):
    """Six growers, the last with proline in other units; the fusion and what it warned of."""
    sites = {}
    for j in range(6):
        mine = X[site_of == j].copy()
        mine[:, 0] *= factor if j == 5 else 1.0
        scale = mine.std(0)
        mixture = GaussianMixture(2, covariance_type="diag", n_init=5, random_state=0).fit(mine / scale)
        mixture.means_, mixture.covariances_ = mixture.means_ * scale, mixture.covariances_ * scale**2
        mixture.precisions_cholesky_ = 1 / np.sqrt(mixture.covariances_)
        sites[f"grower {j}"] = modelweld.read(mixture, X=mine, features=names)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fusion = modelweld.fuse(sites)
    return fusion, [str(w.message) for w in caught if issubclass(w.category, modelweld.UnitsWarning)]


fine, nothing = fused(1.0)
wrong, said = fused(0.001)
print("all in milligrams:", nothing)
print("one in grams:", *said)

# %%
# What came: proline against colour, one colour per grower. The red one cannot be overlooked here; in a table of
# forty columns it is.
fig, axes = plt.subplots(1, 2, figsize=(8, 3.6), layout="constrained", sharey=True)
for ax, fusion, title in zip(axes, (fine, wrong), ("as agreed", "one grower in grams"), strict=True):
    for j, model in enumerate(fusion._fit.models):
        means, counts = model.arrays["means"], model.arrays["counts"]
        ax.scatter(means[:, 0], means[:, 1], s=6 * counts, color="crimson" if j == 5 else "steelblue", alpha=0.6)
    ax.set(xscale="log", xlabel="proline", title=title)
axes[0].set_ylabel("colour intensity")
plt.show()
