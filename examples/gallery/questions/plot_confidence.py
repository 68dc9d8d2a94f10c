"""
How sure is a match?
====================

Is a confidence of .9 right nine times in ten? Eight schools send the mean of four images of each digit that they have
(scikit-learn's images, in four principal components, in which digits overlap); which digit it was does not travel.
Draws of matching and hyperparameters say how sure each match is, the digits how often that is right.
"""

from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

import modelweld

images, digit = load_digits(return_X_y=True)
X = PCA(4, random_state=0).fit_transform(images)
stated, right = [], []
for seed in range(8):
    rng = np.random.default_rng(seed)
    held = [rng.permutation(10)[:6] for _ in range(8)]
    means = [np.array([X[rng.choice(np.flatnonzero(digit == d), 4)].mean(axis=0) for d in h]) for h in held]
    fusion = modelweld.fuse(means)
    labels, truth = np.concatenate(fusion.labels), np.concatenate(held)
    sure = np.concatenate(fusion.confidence())
    for k in range(fusion.K):  # an atom is the digit that most of its values come from
        members = labels == k
        stated += sure[members].tolist()
        right += (truth[members] == np.bincount(truth[members]).argmax()).tolist()
stated, right = np.array(stated), np.array(right)
print(f"{len(stated)} matches, stated {stated.mean():.3f}, right {right.mean():.3f}")

# %%
# Above the line matches are right more often than is stated: here the fusion errs on the careful side.
fig, ax = plt.subplots(figsize=(4.6, 4.2), layout="constrained")
edges = np.array([0, 0.5, 0.7, 0.8, 0.9, 0.97, 1.0001])
ax.plot([0, 1], [0, 1], color="grey", lw=1)
for low, high in pairwise(edges):
    inside = (stated >= low) & (stated < high)
    if inside.sum() > 4:
        share, n = right[inside].mean(), inside.sum()
        error = 2 * np.sqrt(share * (1 - share) / n + 1e-4)
        ax.errorbar(stated[inside].mean(), share, error, fmt="o", color="steelblue", ms=4 + np.sqrt(n) / 2, capsize=3)
        ax.annotate(f"{n}", (stated[inside].mean(), share), xytext=(8, -12), textcoords="offset points", fontsize=8)
ax.set(xlabel="stated confidence", ylabel="share that is right", xlim=(0.2, 1.02), ylim=(0.2, 1.05))
ax.spines[["top", "right"]].set_visible(False)
plt.show()
