"""
When a site holds a group in fragments
======================================

Estimated models split what is one. A quarter of the values here are fragments of a group that the site holds already
(simulated, so that the truth is known). With ``splits`` off, every fragment becomes a group of its own; by default
they are joined where that is evident.
"""

import matplotlib.pyplot as plt
import numpy as np

import modelweld
from modelweld import simulate

settings = {
    "default": {},
    "splits=False": {"search": modelweld.Search(splits=False)},
    "paper's setting": {"preset": "paper"},
}
shares = (0.0, 0.1, 0.25, 0.4)
error = {name: [] for name in settings}
ari = {name: [] for name in settings}
for share in shares:
    for name, options in settings.items():
        drawn = [simulate.over_segmented(share, seed=seed) for seed in range(100, 104)]
        fused = [modelweld.fuse(one.values, **options) for one in drawn]
        error[name].append(np.mean([f.K - d.K for f, d in zip(fused, drawn, strict=True)]))
        ari[name].append(
            np.mean([modelweld.metrics.adjusted_rand(d.truth, f.labels) for f, d in zip(fused, drawn, strict=True)])
        )

# %%
fig, axes = plt.subplots(1, 2, figsize=(8.5, 3.4), layout="constrained")
for name in settings:
    axes[0].plot(shares, error[name], "o-", label=name)
    axes[1].plot(shares, ari[name], "o-", label=name)
axes[0].axhline(0, color="grey", lw=0.8)
axes[0].set(xlabel="share of values in fragments", ylabel="groups found - true")
axes[1].set(xlabel="share of values in fragments", ylabel="ARI")
axes[0].legend(frameon=False)
for ax in axes:
    ax.spines[["top", "right"]].set_visible(False)
plt.show()
