"""
Five networks into one
======================

Five sites train a small network each on their own share of scikit-learn's digits, with classes spread unevenly.
Averaging weights fails, as units stand in another order at every site. ``fuse`` finds which units are the same;
with class counts sent along (``read(net, y=y)``) one
network does about as well as an ensemble of three times its size. (On most draws of the study the ensemble is
somewhat ahead.)
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

import modelweld

warnings.simplefilter("ignore", ConvergenceWarning)
X, y = load_digits(return_X_y=True)
X, X_test, y, y_test = train_test_split(X / 16, y, test_size=500, random_state=0)
rng = np.random.default_rng(0)
shares = rng.dirichlet(np.full(5, 0.5), 10)
site_of = np.array([rng.choice(5, p=shares[label]) for label in y])
nets, facts = [], []
for j in range(5):
    mine = site_of == j
    seen = np.concatenate([np.flatnonzero(mine), [np.flatnonzero(y == c)[0] for c in range(10)]])  # one of each class
    nets.append(MLPClassifier((50,), max_iter=150, random_state=j).fit(X[seen], y[seen]))
    facts.append(y[seen])

fusion = modelweld.fuse([modelweld.read(net, y=labels) for net, labels in zip(nets, facts, strict=True)])
fused = fusion.model()

# %%
# The same on the same 500 images that no site has trained on.
average = MLPClassifier((50,), max_iter=1).fit(X, y)
average.coefs_ = [np.mean([net.coefs_[i] for net in nets], axis=0) for i in (0, 1)]
average.intercepts_ = [np.mean([net.intercepts_[i] for net in nets], axis=0) for i in (0, 1)]
ensemble = np.mean([net.predict_proba(X_test) for net in nets], axis=0).argmax(1)
pooled = MLPClassifier((50,), max_iter=150, random_state=0).fit(X, y)
local = [net.score(X_test, y_test) for net in nets]
rows = {
    "mean local": np.mean(local),
    "best local": max(local),
    "average of weights": average.score(X_test, y_test),
    f"fused, {fused.coefs_[0].shape[1]} units": fused.score(X_test, y_test),
    "ensemble, 250 units": (ensemble == y_test).mean(),
    "pooled data": pooled.score(X_test, y_test),
}
fig, ax = plt.subplots(figsize=(6.5, 3.2), layout="constrained")
bars = ax.barh(list(rows), list(rows.values()), color=["#9bb"] * 3 + ["#c2410c"] + ["#9bb"] * 2)
ax.bar_label(bars, fmt="%.3f", padding=3)
ax.set(xlim=(0, 1.08), xlabel="accuracy on 500 held-out images")
ax.invert_yaxis()
ax.spines[["top", "right"]].set_visible(False)
plt.show()
