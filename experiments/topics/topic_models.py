"""Topics of 40 books: clusters of each book's word vectors, fused; and what others make of them or of pooled data."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
from coherence import coherence, nearest
from gaussian_lda import Tokens, authors_prior, gaussian_lda, matched_prior
from sklearn.cluster import KMeans
from topic_data import Corpus, load, unit

from modelweld import Fusion, fuse
from shared.baselines import kmeans_matching
from shared.first_wins import added, first_wins_told
from study import timed

TOPICS_PER_BOOK = 25
"""The paper's."""

OURS, PAPER = "fuse(models)", "SPAHM, paper's setting"
TOLD = ("k-means told K", "merged one by one, told K", "pooled k-means told K")
PRIORS = {"authors' prior": authors_prior, "scaled prior": matched_prior}

ANCHOR, SHOWN, SHOWN_BOOKS = ("war", "army", "troops", "military"), 15, 5
"""Words of the topic in the paper's picture; words and local topics in it."""


@cache
def local_topics(seed: int) -> list[KMeans]:
    """K-means of the vectors of each book's words, each word once."""
    warnings.simplefilter("ignore")
    corpus, models = load(), []
    for book in corpus.books:
        K = min(TOPICS_PER_BOOK, len(book.words))
        models.append(KMeans(K, n_init=1, random_state=seed).fit(corpus.vectors[book.words]))
    return models


@cache
def ours_of(seed: int) -> Fusion:
    """The bare call: several tasks of a seed ask for it."""
    return fuse(local_topics(seed))


def atoms(fusion: Fusion) -> np.ndarray:
    """Places of all groups among the word vectors."""
    return np.asarray(next(iter(fusion.matching.values.values())), dtype=float)


def on_vectors(seed: int) -> dict[str, Any]:
    """Coherence of fusions, and of rivals told the K of the bare call; CPU seconds, local models included."""
    corpus, (models, local) = load(), timed(local_topics, seed)
    centres = [model.cluster_centers_.astype(float) for model in models]
    sizes = np.concatenate([np.bincount(m.labels_) for m in models])[:, None].astype(float)

    def merged(K: int) -> np.ndarray:
        labels = first_wins_told(centres, K)
        return added(np.vstack(centres) * sizes, labels) / added(sizes, labels)

    def pooled(K: int) -> np.ndarray:
        rows = np.vstack([corpus.vectors[book.words] for book in corpus.books])
        return np.asarray(KMeans(K, n_init=1, random_state=seed).fit(rows).cluster_centers_)

    K = len(atoms(ours_of(seed)))
    methods: dict[str, Callable[[], np.ndarray]] = {
        OURS: lambda: atoms(fuse(models)),
        PAPER: lambda: atoms(fuse([unit(c) for c in centres], preset="paper")),
        TOLD[0]: lambda: kmeans_matching(centres, K, seed=seed).atoms,
        TOLD[1]: lambda: merged(K),
        TOLD[2]: lambda: pooled(K),
        "stacking": lambda: np.vstack(centres),
    }
    found = {}
    for name, method in methods.items():
        topics, seconds = timed(method)
        seconds += 0.0 if "pooled" in name else local
        found[name] = {"K": len(topics), **coherence(nearest(topics, corpus), corpus.table), "seconds": seconds}
    return {"methods": found}


def sampled(prior: str, seed: int, per_book: int, iterations: int) -> dict[str, Any]:
    """Gaussian LDA on the same number of tokens of every book, told the K of the bare call, and its topic of war."""
    corpus, rng = load(), np.random.default_rng(0)
    K = len(atoms(ours_of(seed)))
    drawn = [rng.choice(np.repeat(b.words, b.counts), per_book, replace=False) for b in corpus.books]
    tokens = Tokens(np.concatenate(drawn), np.repeat(np.arange(len(drawn)), per_book))
    known = PRIORS[prior](corpus.raw)
    gaussian_lda(tokens, corpus.raw, 2, known, iterations=1, seed=seed)  # compiles
    sampler = partial(gaussian_lda, iterations=iterations, seed=seed)
    (topic, means), seconds = timed(sampler, tokens, corpus.raw, K, known)
    tops = nearest(means, corpus)
    return {
        "K": K,
        **coherence(tops, corpus.table),
        "used topics": len(np.unique(topic)),
        "distinct topics": len(np.unique(np.sort(tops, axis=1), axis=0)),
        "tokens": len(topic),
        "iterations": iterations,
        "seconds": seconds,
        "iteration on all tokens, s": seconds / (iterations * len(topic)) * corpus.tokens,
        "war": shown(corpus, means, about_war(corpus, means)),
    }


def war_topic(seed: int) -> dict[str, Any]:
    """The fused topic that is closest to words of war, and the local topics in it that have most words."""
    corpus, fusion = load(), ours_of(seed)
    atom, members = about_war(corpus, atoms(fusion)), []
    for labels, model, book, title in zip(fusion.labels, local_topics(seed), corpus.books, corpus.titles, strict=True):
        for k in np.flatnonzero(labels == atom):
            words = shown(corpus, model.cluster_centers_, int(k), book.words)
            members.append((int((model.labels_ == k).sum()), title, words))
    members.sort(key=lambda member: -member[0])
    parts = [{"title": title, "words": words} for _, title, words in members[:SHOWN_BOOKS]]
    return {"fused": shown(corpus, atoms(fusion), atom), "books": len(members), "parts": parts}


def about_war(corpus: Corpus, centres: np.ndarray) -> int:
    """The topic whose centre is closest to the anchor's words."""
    anchor = unit(corpus.vectors[np.isin(corpus.words, ANCHOR)].mean(0, keepdims=True))
    return int(np.argmax(unit(centres) @ anchor[0]))


def shown(corpus: Corpus, centres: np.ndarray, topic: int, within: np.ndarray | None = None) -> list[str]:
    """Words closest to a topic's centre; of a local topic, words of its book."""
    words = np.arange(len(corpus.table)) if within is None else within[within < len(corpus.table)]
    order = np.argsort(-(corpus.vectors[words] @ centres[topic]), kind="stable")
    return [str(word) for word in corpus.words[words[order[:SHOWN]]]]
