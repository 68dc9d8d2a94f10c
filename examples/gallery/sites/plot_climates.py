"""
Weather of fifty-six states
===========================

Every state and territory of the US fits four components to the highs and lows of its own days (NOAA, 2015 to 2017)
and sends them. Fused, a component is a kind of day, and a state's climate is how many of its days are of which kind.
Days are a continuum: there is no true number of kinds, so ask what it costs to tell so many apart and no more.
"""

import csv
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.mixture import GaussianMixture

import modelweld

here = Path.cwd()
folder = next(p for p in (d / "experiments/data/weather" for d in (here, *here.parents)) if p.exists())
days = np.load(folder / "ghcnd_daily.npz")
with open(folder / "ghcnd_stations.csv", encoding="utf-8") as file:
    state = np.array([row["state"] for row in csv.DictReader(file)])[days["station_index"]]
X = np.stack([days["tmax_dC"], days["tmin_dC"]], 1) / 10
rng = np.random.default_rng(0)
sites = {}
for name in np.unique(state):
    mine = X[rng.choice(np.flatnonzero(state == name), 400)]
    sites[name] = modelweld.read(GaussianMixture(4, random_state=0).fit(mine), X=mine, features=["high", "low"])
fusion = modelweld.fuse(sites)
print(fusion)
print(f"price of telling no more apart: {fusion.density.loss():.3f} nats per day")

# %%
# One bar per state, from the coldest to the warmest: the share of its days of each kind.
K = len(fusion.atoms)
order = np.argsort(fusion.atoms[:, 0])
shares = np.zeros((len(sites), K))
for row, (model, labels) in enumerate(zip(fusion._fit.models, fusion.labels, strict=True)):
    np.add.at(shares[row], labels, model.arrays["counts"] / model.arrays["counts"].sum())
rows = np.argsort(shares @ fusion.atoms[:, 0])
fig, ax = plt.subplots(figsize=(9, 3.6), layout="constrained")
bottom = np.zeros(len(sites))
for i, k in enumerate(order):
    high, low = fusion.atoms[k]
    colour = plt.get_cmap("RdYlBu_r")(i / max(K - 1, 1))
    ax.bar(range(len(sites)), shares[rows, k], 0.9, bottom, color=colour, label=f"{high:.0f} / {low:.0f} °C")
    bottom += shares[rows, k]
ax.set_xticks(range(len(sites)), np.array(fusion.sites)[rows], rotation=90, fontsize=8)
ax.set(ylabel="share of days", xlim=(-0.6, len(sites) - 0.4), ylim=(0, 1))
ax.legend(title="high / low", frameon=False, loc="center left", bbox_to_anchor=(1, 0.5), reverse=True)
ax.spines[["top", "right"]].set_visible(False)
plt.show()
