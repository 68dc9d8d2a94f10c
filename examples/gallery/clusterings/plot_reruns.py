"""
Twenty runs, one answer
=======================

K-means from random starts, the number of clusters unknown: every run says something else. ``consensus`` matches the
groups of all runs, lets the runs vote on every row, and says how probably a fresh run would find each group again.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

import modelweld

rng = np.random.default_rng(3)
centres = rng.uniform(-14, 14, (12, 2))
truth = rng.choice(12, 900)
X = centres[truth] + rng.normal(0, 1.0, (900, 2))
runs = [KMeans(rng.integers(8, 17), n_init=1, init="random", random_state=j).fit(X) for j in range(20)]
found = modelweld.consensus(runs, X)
print(found)

# %%
# Agreement with the truth (adjusted Rand index; 1 is perfect), which no method was shown.
agreement = [adjusted_rand_score(run.labels_, truth) for run in runs]
print(f"runs: {np.mean(agreement):.2f} on average, {max(agreement):.2f} the best")
print(f"consensus: {adjusted_rand_score(found.labels, truth):.2f}")

# %%
# Left two of the runs. Right the consensus: small dots are rows on which the runs disagree.
fig, axes = plt.subplots(1, 3, figsize=(11, 3.6), sharex=True, sharey=True, layout="constrained")
for ax, run in zip(axes, runs, strict=False):
    ax.scatter(*X.T, c=run.labels_, cmap="tab20", s=5)
    ax.set_title(f"a run with {run.n_clusters} clusters")
axes[2].scatter(*X.T, c=found.labels, cmap="tab20", s=8 * found.votes**2)
axes[2].set_title(f"consensus: {len(found.frequency)} groups")
for k, probability in enumerate(found.frequency):
    axes[2].annotate(f"{probability:.2f}", X[found.labels == k].mean(axis=0), fontsize=8, weight="bold")
plt.show()

# %%
# One fitted model comes back, of the runs' own class.
print(found.model())
