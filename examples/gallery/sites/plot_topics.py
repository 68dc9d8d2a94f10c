"""
Topics of forty books in four libraries
=======================================

Four libraries hold ten books each (Project Gutenberg) and fit topics to their own. Topics of different libraries
that are the same are found from their words' counts; what only one library has stays its own.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from scipy.sparse import csr_matrix
from sklearn.decomposition import LatentDirichletAllocation

import modelweld

here = Path.cwd()
file = next(p for p in (d / "experiments/data/gutenberg/bag.npz" for d in (here, *here.parents)) if p.exists())
bag = np.load(file)
books = csr_matrix((bag["counts"], bag["indices"], bag["indptr"]), shape=(40, len(bag["words"])))
often = np.argsort(-np.asarray(books.sum(0)).ravel())[100:700]  # neither the commonest nor the rare words
X, words = books[:, often], [bag["words"][i].decode() for i in often]
order = np.random.default_rng(0).permutation(40)
sites = {}
for j, name in enumerate(("north", "east", "south", "west")):
    mine = X[order[10 * j : 10 * j + 10]]
    lda = LatentDirichletAllocation(5, max_iter=15, random_state=0).fit(mine)
    sites[name] = modelweld.read(lda, features=words)
fusion = modelweld.fuse(sites)
print(fusion)

# %%
# Fused topics by their most telling words (darker: more so), and which libraries hold them.
topics = np.nan_to_num(fusion.parameters.estimate("words")) + 1e-9
topics = topics / topics.sum(1, keepdims=True)
telling = topics * np.log(topics / topics.mean(0))
best = np.argsort(-telling, axis=1)[:, :6]
fig, ax = plt.subplots(figsize=(8, 0.42 * len(topics) + 0.8), layout="constrained")
ax.imshow(np.sqrt(np.take_along_axis(telling, best, 1)), aspect="auto", cmap="Blues", vmin=0)
for k, row in enumerate(best):
    for i, w in enumerate(row):
        ax.text(i, k, words[w], ha="center", va="center", fontsize=8)
held = [
    [name for name, labels in zip(fusion.sites, fusion.labels, strict=True) if k in labels] for k in range(len(topics))
]
ax.set_yticks(range(len(topics)), [", ".join(names) for names in held], fontsize=8)
ax.set_xticks([])
plt.show()
