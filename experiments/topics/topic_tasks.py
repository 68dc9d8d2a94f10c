"""The pieces of work of this study: one seed of one method or of several."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
from coherence import coherence, nearest, scores
from topic_data import Corpus, load, unit
from topic_models import (
    FUSED,
    OURS,
    PRIORS,
    Local,
    Topics,
    fused,
    kmeans_of_centres,
    local_topics,
    pooled_gaussian_lda,
    pooled_kmeans,
)

from modelweld import Fusion

Result = dict[str, Any]

ANCHOR = ("war", "army", "troops", "military")
"""Words of the topic in the paper's picture."""

SHOWN, SHOWN_BOOKS = 15, 5
"""Words and local topics in the paper's picture."""

RIVALS = ("k-means of centres", "pooled k-means")


@cache
def ours_of(seed: int) -> tuple[Local, Fusion, Topics]:
    """Local topics, our fusion of them and its topics: several tasks of a seed ask for them."""
    local = local_topics(load(), seed)
    return local, *fused(load(), local, OURS)


def on_vectors(seed: int) -> Result:
    """Everything that clusters word vectors: fusions, and rivals told the K of ours."""
    books = load()
    local, _, ours = ours_of(seed)
    separate = coherence(nearest(np.vstack(local.centres), books), books.table)
    result: Result = {"local": {name: float(values.mean()) for name, values in separate.items()}, "methods": {}}
    for name in FUSED:
        topics = ours if name == OURS else fused(books, local, name)[1]
        result["methods"][name] = {**scores(topics, books), "seconds": topics.seconds}
    K, kept = (result["methods"][OURS][what] for what in ("K", "kept"))
    told = kmeans_of_centres(books, local, K, seed), pooled_kmeans(books, K, seed)
    for rival, theirs in zip(RIVALS, told, strict=True):
        result["methods"][f"{rival}, as {OURS}"] = {**scores(theirs, books, kept), "seconds": theirs.seconds}
    return result


def sampled(prior: str, seed: int, per_book: int, iterations: int) -> Result:
    """Gaussian LDA, told the K of ours, and its topic of war."""
    books = load()
    _, _, ours = ours_of(seed)
    K = len(ours.centres)
    found = pooled_gaussian_lda(books, K, prior, seed, per_book, iterations)
    topics = found.topics
    lists, first = np.unique(np.sort(nearest(topics.centres, books), axis=1), axis=0, return_index=True)
    return {
        **scores(topics, books, ours.shared),
        "seconds": topics.seconds,
        "distinct topics": len(lists),
        "used topics": int((topics.tokens.sum(1) > 0).sum()),
        "distinct uci": float(coherence(nearest(topics.centres[first], books), books.table)["uci"].mean()),
        "tokens": per_book * len(books.books),
        "iterations": iterations,
        "iteration on all tokens, s": found.per_token * books.tokens,
        "war": shown(books, topics.centres, about_war(books, topics.centres)),
    }


def war_topic(seed: int) -> Result:
    """The fused topic that is closest to words of war, and the local topics in it that have most words."""
    books = load()
    local, fusion, topics = ours_of(seed)
    atom = about_war(books, topics.centres)
    members = []
    for j, (labels, model) in enumerate(zip(fusion.labels, local.models, strict=True)):
        for k in np.flatnonzero(labels == atom):
            words = shown(books, model.cluster_centers_, int(k), books.books[j].words)
            members.append((int((model.labels_ == k).sum()), books.titles[j], words))
    members.sort(key=lambda member: -member[0])
    parts = [{"title": title, "words": words} for _, title, words in members[:SHOWN_BOOKS]]
    return {"fused": shown(books, topics.centres, atom), "books": len(members), "parts": parts}


def about_war(books: Corpus, centres: np.ndarray) -> int:
    """The topic whose centre is closest to the anchor's words."""
    anchor = unit(books.vectors[np.isin(books.words, ANCHOR)].mean(0, keepdims=True))
    return int(np.argmax(unit(centres) @ anchor[0]))


def shown(books: Corpus, centres: np.ndarray, topic: int, within: np.ndarray | None = None) -> list[str]:
    """Words closest to a topic's centre; of a local topic, words of its book."""
    words = np.arange(len(books.table)) if within is None else within[within < len(books.table)]
    order = np.argsort(-(books.vectors[words] @ centres[topic]), kind="stable")
    return books.words[words[order[:SHOWN]]].tolist()


def rows_by_method(results: Mapping[str, Result]) -> dict[str, list[Result]]:
    """Results of every method, seed by seed."""
    found: dict[str, list[Result]] = {}
    for name, result in results.items():
        if name.startswith("vectors/"):
            for method, row in result["methods"].items():
                found.setdefault(method, []).append(row)
        elif name.startswith("gaussian_lda/"):
            found.setdefault(f"Gaussian LDA, {[*PRIORS][int(name.split('/')[1])]}", []).append(result)
    return found
