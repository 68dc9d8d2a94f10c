"""
Noise for privacy, and its price
================================

Before centres leave, a site may add noise, which travels along as a variance so that the fusion trusts them less.
How much is left of the matching? Ten schools send the mean image of six of the ten digits each (scikit-learn's
images, in eight principal components); every other school adds noise, and says so or does not. Noise of this kind is
not differential privacy: see the page on privacy for a release with a stated epsilon.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

import modelweld
from modelweld import LocalModel

images, digit = load_digits(return_X_y=True)
X = PCA(8, random_state=0).fit_transform(images)
spread = np.std([X[digit == d].mean(axis=0) for d in range(10)], axis=0)


def schools(rng):
    """Digits that each of ten schools has, and the mean of ten images of each."""
    held = [np.sort(rng.permutation(10)[:6]) for _ in range(10)]
    return held, [np.array([X[rng.choice(np.flatnonzero(digit == d), 10)].mean(axis=0) for d in h]) for h in held]


levels, stated, unstated = (0.0, 0.5, 1.0, 1.5, 2.0), [], []
for level in levels:
    scores = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        truth, means = schools(rng)
        sds = [level * spread * (j % 2) for j in range(10)]  # every other school adds noise
        noisy = [v + rng.normal(0, 1, v.shape) * own for v, own in zip(means, sds, strict=True)]
        errors = [{"means": np.tile(own**2 + 1e-9, (len(v), 1))} for v, own in zip(noisy, sds, strict=True)]
        axes = {"means": ("digit", None)}
        sites = [LocalModel({"means": v}, axes, variance=error) for v, error in zip(noisy, errors, strict=True)]
        fused = [modelweld.fuse(sent, search=modelweld.Search(splits=False)) for sent in (sites, noisy)]
        scores.append([modelweld.metrics.adjusted_rand(truth, one.labels) for one in fused])
    stated.append(np.mean(scores, axis=0)[0])
    unstated.append(np.mean(scores, axis=0)[1])
    print(f"noise {level:.1f}: ARI {stated[-1]:.3f} where it is stated, {unstated[-1]:.3f} where it is not")

# %%
fig, ax = plt.subplots(figsize=(5.5, 3.4), layout="constrained")
ax.plot(levels, stated, "o-", label="noise stated")
ax.plot(levels, unstated, "x--", label="noise not stated")
ax.set(xlabel="noise added, in deviations between digits", ylabel="ARI with the digits", ylim=(0, 1.05))
ax.legend(frameon=False)
ax.spines[["top", "right"]].set_visible(False)
plt.show()
