"""Features of handwritten digits, learned at several sites: one dictionary of all, from dictionaries alone.

    python examples/digit_features.py

Each of five sites has its own digits (scikit-learn's, 8 x 8 pixels), some of the ten more than others, and learns a
dictionary of strokes. Dictionaries are fused; no digit leaves its site. How well digits that no site has seen are
rebuilt from six strokes is compared with the sites' own dictionaries, and with one learned from all digits.
"""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import MiniBatchDictionaryLearning

import modelweld

SITES, WORDS, STROKES = 5, 16, 6


def learn(X: np.ndarray, words: int, seed: int) -> MiniBatchDictionaryLearning:
    """A dictionary, by which digits are written as sums of few words."""
    model = MiniBatchDictionaryLearning(
        words,
        alpha=0.5,
        max_iter=10,
        batch_size=32,
        fit_algorithm="cd",
        transform_algorithm="omp",
        transform_n_nonzero_coefs=STROKES,
        random_state=seed,
    )
    return model.fit(X)


def explained(model: MiniBatchDictionaryLearning, X: np.ndarray) -> float:
    """Share of the digits' variance that sums of few words have."""
    return float(1 - ((X - model.transform(X) @ model.components_) ** 2).sum() / ((X - X.mean(0)) ** 2).sum())


def main(seed: int = 0) -> modelweld.Fusion:
    """Learn at every site, fuse, compare."""
    rng = np.random.default_rng(seed)
    digits = load_digits()
    X, written = digits.data / 16.0, digits.target
    order = rng.permutation(len(X))
    unseen, rest = order[:300], order[300:]
    habits = rng.dirichlet(np.full(SITES, 2.0), 10)  # which site writes which digit how often
    site = np.array([rng.choice(SITES, p=habits[digit]) for digit in written[rest]])
    own = [X[rest[site == j]] for j in range(SITES)]
    models = [learn(rows, WORDS, seed) for rows in own]
    fusion = modelweld.fuse([modelweld.read(model, X=rows) for model, rows in zip(models, own, strict=True)])
    print(fusion, "held by", np.bincount(fusion.counts)[1:].tolist(), "1, 2, ... sites")
    fused = fusion.model()
    print(f"digits that no site has seen, from {STROKES} words each: share of their variance explained")
    print("  sites' own:", [round(explained(model, X[unseen]), 3) for model in models])
    print(f"  fused, {fusion.K} words: {explained(fused, X[unseen]):.3f}")
    pooled = learn(X[rest], fusion.K, seed)
    print(f"  learned from all digits, {fusion.K} words: {explained(pooled, X[unseen]):.3f}")
    return fusion


if __name__ == "__main__":
    main()
