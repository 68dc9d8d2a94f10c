"""
Past one machine
================

Where one machine does not hold all sites, each shard fuses its own and only sums per group travel. Is anything
lost? Paper-like sites, fused flat and in shards.
"""

import matplotlib.pyplot as plt
import numpy as np

import modelweld
from modelweld import simulate
from modelweld.shards import fuse_shards, group_sites

sizes, true, flat, sharded, sent = (32, 64, 128), [], [], [], []
for J in sizes:
    drawn = simulate.paper_figure(J, 2.0, seed=0)
    true.append(drawn.K)
    flat.append(modelweld.fuse(drawn.values).K)
    fused = fuse_shards(group_sites(drawn.values))
    sharded.append(fused.K)
    values = np.concatenate(drawn.values)
    sent.append((values.size, fused.K * values.shape[1]))
    print(f"{J} sites: {len(values):,} values, {drawn.K} true atoms; flat {flat[-1]}, shards {sharded[-1]}")

# %%
fig, axes = plt.subplots(1, 2, figsize=(8.5, 3.3), layout="constrained")
at = np.arange(len(sizes))
for shift, found, label in ((-0.27, true, "true"), (0, flat, "flat"), (0.27, sharded, "in shards")):
    axes[0].bar_label(axes[0].bar(at + shift, found, 0.26, label=label), fontsize=8)
axes[0].set_xticks(at, sizes)
axes[0].set(xlabel="sites", ylabel="groups", ylim=(0, 72))
axes[0].legend(frameon=False, ncols=3)
axes[1].bar(at - 0.18, [a for a, _ in sent], 0.36, label="numbers held by sites")
axes[1].bar(at + 0.18, [b for _, b in sent], 0.36, label="numbers in the result")
axes[1].set_xticks(at, sizes)
axes[1].set(xlabel="sites", yscale="log", ylim=(1e3, 1e7))
axes[1].legend(frameon=False)
for ax in axes:
    ax.spines[["top", "right"]].set_visible(False)
plt.show()
