"""
Noise for privacy, and its price
================================

Before centres leave, a site may add noise, which travels along as a variance so that the fusion trusts them less.
How much is left of the matching? Ten sites of simulated atoms, of which every other one adds noise, and says so or
does not. (Where all sites add the same noise, stating it made no visible difference in the same draws: it is learned
either way. Noise of this kind is not differential privacy: see the page on privacy for a release with a stated
epsilon.)
"""

import matplotlib.pyplot as plt
import numpy as np

import modelweld
from modelweld import LocalModel, simulate

levels = (0.0, 0.5, 1.0, 2.0, 3.0)
told, untold = [], []
for level in levels:
    scores = []
    for seed in range(100, 106):
        drawn = simulate.low_dimensional("J10 D5", seed=seed)
        rng = np.random.default_rng(seed)
        sd = level * 0.3 * np.std(drawn.atoms, axis=0)
        sds = [sd * (j % 2) for j in range(len(drawn.values))]  # every other site adds noise
        noisy = [v + rng.normal(0, 1, v.shape) * own for v, own in zip(drawn.values, sds, strict=True)]
        errors = [{"means": np.tile(own**2 + 1e-9, (len(v), 1))} for v, own in zip(noisy, sds, strict=True)]
        axes = {"means": ("group", None)}
        stated = [LocalModel({"means": v}, axes, variance=error) for v, error in zip(noisy, errors, strict=True)]
        fused = [modelweld.fuse(sites, copies=False) for sites in (stated, noisy)]
        scores.append([modelweld.metrics.adjusted_rand(drawn.truth, one.labels) for one in fused])
    told.append(np.mean(scores, axis=0)[0])
    untold.append(np.mean(scores, axis=0)[1])

# %%
fig, ax = plt.subplots(figsize=(5.5, 3.4), layout="constrained")
ax.plot(0.3 * np.array(levels), told, "o-", label="noise stated")
ax.plot(0.3 * np.array(levels), untold, "x--", label="noise not stated")
ax.set(xlabel="noise added, in deviations of the atoms", ylabel="ARI with the truth", ylim=(0, 1.05))
ax.legend(frameon=False)
ax.spines[["top", "right"]].set_visible(False)
plt.show()
