"""
Four hospitals, real patients
=============================

Cleveland, Budapest, Switzerland and Long Beach each fit a mixture to their own patients and send its parameters.
Fused, groups of patients that hospitals share have one colour; a bar is as long as its patients are many.
Switzerland never measured cholesterol and says so.
"""

# sphinx_gallery_thumbnail_number = 1
import matplotlib.pyplot as plt
import numpy as np

from modelweld.demo.hospitals import run

result = run()
fusion = result.fusion
print(fusion.table())

# %%
# Who has which group, and how many of its patients are ill (the darker part). Illness rode along and had no say in
# the matching.
fig, ax = plt.subplots(figsize=(7.5, 3.4), layout="constrained")
colours = plt.get_cmap("tab10").colors
for row, model in enumerate(fusion._fit.models):
    left = 0.0
    for k, n, ill in zip(fusion.labels[row], model.arrays["counts"], model.arrays["ill"], strict=True):
        ax.barh(row, n, left=left, color=colours[k], alpha=0.45, edgecolor="white", lw=2)
        ax.barh(row, ill, left=left, color=colours[k], edgecolor="white", lw=2)
        inside = {"xy": (left + n / 2, row), "ha": "center", "va": "center", "weight": "bold"}
        ax.annotate(f"{ill / n:.0%}", **inside, color="white" if ill > 0.6 * n else "#222")
        left += n
ax.set_yticks(range(len(fusion.sites)), fusion.sites)
ax.invert_yaxis()
ax.set_xlabel("patients; dark: ill")
ax.spines[["top", "right"]].set_visible(False)
handles = [plt.Rectangle((0, 0), 1, 1, color=colours[k]) for k in range(fusion.K)]
ax.legend(handles, [f"group {k}" for k in range(fusion.K)], frameon=False, loc="lower right")

# %%
# How sure is each match? Of those at .9, nine in ten are meant to be right.
for site, sure in zip(fusion.sites, fusion.confidence(), strict=True):
    print(f"{site:12s}", np.round(sure, 2))
plt.show()
