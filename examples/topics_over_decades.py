"""What State of the Union addresses speak of, 1900 to 2025: which topic of this decade is which of the last?

    python examples/topics_over_decades.py

In each decade a topic model of its own (scikit-learn's LatentDirichletAllocation) is fitted to fragments of that
decade's addresses (experiments/data/sotu). What is fused are thirteen fitted models and their decades, and no text.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy.sparse import csr_array
from sklearn.decomposition import LatentDirichletAllocation

import modelweld

DATA = Path(__file__).parents[1] / "experiments" / "data" / "sotu" / "sotu_words.npz"
TOPICS = 8


def decades() -> tuple[dict[int, csr_array], list[str]]:
    """Numbers of words in fragments of addresses, by decade, and the words."""
    data = np.load(DATA)
    words = [str(word) for word in data["vocabulary"]]
    shape = len(data["year"]), len(words)
    counts = csr_array((data["number"].astype(float), (data["document"], data["word"])), shape=shape)
    decade = data["year"] // 10 * 10
    return {int(d): counts[np.flatnonzero(decade == d)] for d in np.unique(decade)}, words


def main() -> None:
    """Fuse, and say what became of the topics."""
    tables, words = decades()
    models = {
        decade: modelweld.read(
            LatentDirichletAllocation(TOPICS, random_state=0, learning_method="batch", max_iter=20).fit(table),
            features=words,
        )
        for decade, table in tables.items()
    }
    fusion = modelweld.fuse(list(models.values()), times=list(models))
    print(fusion)
    print(f"what was seen of a topic is remembered for {fusion.diagnosis.hyperparameters['memory']:,.0f} years")
    lives = fusion.timeline.lifetimes()

    def top(share: np.ndarray) -> str:
        return " ".join(words[i] for i in np.argsort(-share)[:6])

    for k in range(fusion.K):
        if lives.counts[k] < 3:
            continue
        path = fusion.timeline.path(k)
        there = [i for i, when in enumerate(path.times) if when <= lives.last[k]]
        first, last = path.values[there[0]], path.values[there[-1]]
        print(f"topic {k}, {lives.first[k]:.0f} to {lives.last[k]:.0f}, in {lives.counts[k]} decades: {top(last)}")
        gained = int(np.argmax(last - first))
        low, high = path.low[there[-1], gained], path.high[there[-1], gained]
        print(
            f"  {words[gained]}: from {first[gained]:.1%} to {last[gained]:.1%} ({low:.1%} to {high:.1%}) of its words"
        )
    today = fusion.timeline.at(2020).model()
    print("a topic model of the 2020s:", type(today).__name__, today.components_.shape)


if __name__ == "__main__":
    main()
