"""Topics of words in an embedding that all sites share: which are the same, and what is each about?

    python examples/topics_in_an_embedding.py

Six sites have vocabularies of their own, drawn from GloVe vectors (experiments/data/glove), and cluster them, as
BERTopic and Top2Vec cluster documents. What leaves a site: mean vectors, sizes and words of its topics. BERTopic's own
models are fused just so: docs/bertopic.md.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from sklearn.cluster import KMeans

import modelweld
from modelweld.kinds.topics import topic_vectors

HOME = Path(__file__).parents[1] / "experiments" / "data"
SITES, WORDS, TOPICS, AT_EACH, THEMES = (
    6,
    300,
    8,
    5,
    ["ship", "music", "doctor", "war", "bread", "church", "money", "horse"],
)


def embedding() -> tuple[list[str], np.ndarray]:
    """Words, and their vectors at length one."""
    with np.load(HOME / "glove" / "vectors.npz") as z:
        vectors = z["vectors"] * z["scale"]
    with np.load(HOME / "gutenberg" / "bag.npz", allow_pickle=False) as z:
        words = z["words"].astype(str).tolist()
    return words, vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)


def site(mine: np.ndarray, words: list[str], vectors: np.ndarray, seed: int) -> modelweld.LocalModel:
    """What a site sends of its topics."""
    found = KMeans(AT_EACH, n_init=5, random_state=seed).fit(vectors[mine]).labels_
    means = np.array([vectors[mine[found == t]].mean(axis=0) for t in range(AT_EACH)])
    near = np.maximum(means @ vectors[mine].T, 0.0) ** 4 * (found == np.arange(AT_EACH)[:, None])
    return topic_vectors(
        means, np.bincount(found, minlength=AT_EACH), near, [words[i] for i in mine], facts={"points": "words"}
    )


def main(seed: int = 0) -> modelweld.Fusion:
    """Every site reads about some of the themes; fuse what it sends."""
    words, vectors = embedding()
    rng = np.random.default_rng(seed)
    about = [np.argsort(-(vectors @ vectors[words.index(theme)]))[: WORDS // 4] for theme in THEMES]
    sites = []
    for j in range(SITES):
        themes = rng.permutation(TOPICS)[:AT_EACH]
        mine = np.unique(np.concatenate([rng.permutation(about[t])[:40] for t in themes]))
        sites.append(site(mine, words, vectors, seed).with_(site=f"site {j}"))
    fusion = modelweld.fuse(sites)
    print(fusion.table())
    return fusion


if __name__ == "__main__":
    main()
