"""
Cells of four donors, one set of names
======================================

Each donor's cells are clustered at home: cluster 3 here is cluster 0 there. ``fuse_cells`` compares means, spreads and
sizes of clusters alone, corrects the batch effect of each donor, and writes common names into every AnnData.
"""

import warnings

import anndata
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.cluster import AgglomerativeClustering
from sklearn.decomposition import PCA

import modelweld

rng = np.random.default_rng(0)
types = ["B cell", "CD4 T", "CD8 T", "monocyte", "NK"]
genes = [f"gene {g}" for g in range(60)]
programmes = rng.normal(0, 1.0, (5, 60))
donors = {}
for j in range(4):
    kind = rng.choice(5, 400, p=rng.dirichlet([2.0] * 5))
    batch = rng.normal(0, 0.6, 60)  # one shift of all its cells
    X = programmes[kind] + batch + rng.normal(0, 1.0, (400, 60))
    obs = pd.DataFrame({"truth": np.array(types)[kind]}, index=[f"donor {j} cell {i}" for i in range(400)])
    donors[f"donor {j}"] = anndata.AnnData(X, obs=obs, var=pd.DataFrame(index=genes))
pca = PCA(10, random_state=0).fit(donors["donor 0"].X)  # fitted once, sent to all
for cells in donors.values():
    cells.obsm["X_pca"] = pca.transform(cells.X)
    cells.obs["cluster"] = AgglomerativeClustering(6).fit_predict(cells.obsm["X_pca"]).astype(str)
with warnings.catch_warnings():
    warnings.simplefilter("ignore", modelweld.SiteEffectWarning)  # the batch effects: corrected
    fusion = modelweld.fuse_cells(donors, key="cluster", use_rep="X_pca")
print(fusion)
everyone = pd.concat(cells.obs for cells in donors.values())
print(pd.crosstab(everyone["truth"], everyone["modelweld"]))

# %%
# On top the donors' own clusters, below the common ones: every donor's cells lie elsewhere, by its batch effect.
fig, axes = plt.subplots(2, 4, figsize=(10, 5), sharex=True, sharey=True, layout="constrained")
for column, (name, cells) in zip(axes.T, donors.items(), strict=True):
    for ax, key in zip(column, ("cluster", "modelweld"), strict=True):
        codes = cells.obs[key].astype(int)
        ax.scatter(*cells.obsm["X_pca"][:, :2].T, c=codes, cmap="tab10", vmin=0, vmax=9, s=4)
    column[0].set_title(name)
axes[0, 0].set_ylabel("own clusters")
axes[1, 0].set_ylabel("common names")
plt.show()

# %%
# How sure each match is stands beside it.
print(donors["donor 1"].obs.groupby("modelweld", observed=True)["modelweld_confidence"].first().round(3))
