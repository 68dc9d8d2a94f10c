"""
Names from a catalogue
======================

Eight cohorts factorise their counts of mutations; factors are fused. Which of them are in the catalogue, and which are
new? Usually a cosine threshold decides, .8 or .9. ``name_groups`` asks how noisy the cohorts' factors are and how near
the catalogue's entries lie to each other, and gives every group a name, or "new", with a probability.
"""

import matplotlib.pyplot as plt
import numpy as np

import modelweld
from modelweld.kinds.components import components

rng = np.random.default_rng(0)
themes = rng.dirichlet([0.1] * 96, 12)  # entries have peaks in common: some are alike
signatures = 0.5 * themes[rng.integers(12, size=60)] + 0.5 * rng.dirichlet([0.1] * 96, 60)
used, new = np.arange(10), np.arange(6, 10)  # four of the ten that cohorts have are in no catalogue
cohorts = []
for _ in range(8):
    held = rng.permutation(used)[: rng.integers(4, 8)]
    cohorts.append(components(rng.poisson(1500 * signatures[held]) + 0.01, signed=True))
fusion = modelweld.fuse(cohorts)
catalogue = {f"SBS{i}": signatures[i] for i in range(60) if i not in new}
found = modelweld.name_groups(fusion, catalogue)
print(found)

# %%
# The cosine of every group with its nearest entry, beside two usual thresholds, and the name that it got. Red ones are
# in no catalogue: how far is far depends on the noise and on the catalogue.
entries = np.array(list(catalogue.values()))
entries /= np.linalg.norm(entries, axis=1, keepdims=True)
nearest = (fusion.atoms[: fusion.K] @ entries.T).max(axis=1)
truth = (fusion.atoms[: fusion.K] @ (signatures / np.linalg.norm(signatures, axis=1, keepdims=True)).T).argmax(axis=1)
colours = ["tab:red" if k in new else "tab:blue" for k in truth]
fig, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
ax.bar(range(fusion.K), nearest, color=colours)
for k, (name, probability) in enumerate(zip(found.names, found.probability, strict=True)):
    ax.annotate(f"{name}\n{probability:.2f}", (k, nearest[k]), ha="center", va="bottom", fontsize=8)
for threshold in (0.8, 0.9):
    ax.axhline(threshold, color="grey", linewidth=0.8, linestyle="--")
ax.set(ylim=(0, 1.2), xlabel="group (red: in no catalogue)", ylabel="cosine with the nearest entry")
plt.show()
