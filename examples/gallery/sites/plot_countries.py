"""
Countries over decades
======================

In each of twelve years from 1952 to 2007 k-means finds four clusters of countries by life expectancy and income per
head. With the years given, ``fuse`` follows the clusters: they move, and one may end. No country leaves its year.
"""

import csv
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans

import modelweld

here = Path.cwd()
file = next(p for p in (d / "experiments/data/gapminder/gapminder.csv" for d in (here, *here.parents)) if p.exists())
rows = list(csv.DictReader(file.read_text(encoding="utf-8").splitlines()))
models = {}
for year in sorted({int(row["year"]) for row in rows}):
    X = [[float(r["lifeExp"]) / 10, np.log10(float(r["gdpPercap"]))] for r in rows if int(r["year"]) == year]
    models[year] = modelweld.read(KMeans(4, n_init=10, random_state=0).fit(X), X=np.array(X))
fusion = modelweld.fuse(list(models.values()), times=list(models))
print(fusion.timeline.lifetimes())

# %%
# Life expectancy of each cluster, with 90 % intervals, as long as it is more likely alive than not; dots are what
# years sent.
fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
colours = plt.get_cmap("tab10").colors
for k in range(fusion.K):
    path = fusion.timeline.path(k)
    alive = np.asarray(path.alive) > 0.5
    ax.plot(np.asarray(path.times)[alive], 10 * path.values[alive, 0], color=colours[k], lw=2)
    ax.fill_between(path.times, 10 * path.low[:, 0], 10 * path.high[:, 0], where=alive, color=colours[k], alpha=0.15)
for year, model, labels in zip(models, fusion._fit.models, fusion.labels, strict=True):
    ax.scatter([year] * len(labels), 10 * model.arrays["means"][:, 0], color=[colours[k] for k in labels], s=18)
ax.set(xlabel="year", ylabel="life expectancy, years")
ax.spines[["top", "right"]].set_visible(False)
plt.show()
