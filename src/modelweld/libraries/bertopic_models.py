"""BERTopic: topics as places in an embedding, written as a model that finds the topics of documents by cosines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from modelweld.core.values import Array
from modelweld.errors import InputError
from modelweld.inputs.local_model import LocalModel
from modelweld.kinds.topic_vectors import c_tf_idf, topic_vectors

if TYPE_CHECKING:
    from bertopic import BERTopic

MOST_WORDS = 10_000
"""Words that leave a site unless more are asked for: of 100 topics, 8 megabytes."""

VECTORIZER = ("lowercase", "ngram_range", "stop_words", "strip_accents", "token_pattern")
"""Of the CountVectorizer, what says how documents become words."""


def read(model: BERTopic, *, most: int = MOST_WORDS) -> LocalModel:
    """Topic embeddings, sizes, words, and labels where people gave them; no document leaves.

    Numbers of words are those behind the c-TF-IDF, in which they can be found up to a factor. A model that has none
    (merged, or saved without) is known by the words of its representations alone.

    Parameters
    ----------
    model : fitted BERTopic
        With `topic_embeddings_`, whose dimensions are those of the embedding that all sites must share. Topic -1,
        documents that are in none, is not matched; it is put together from that of all sites.
    most : int
        How many words at most, the most frequent ones.
    """
    if model.topic_embeddings_ is None:
        raise InputError(
            "BERTopic: this model has no topic_embeddings_, by which topics are matched. Fit it on documents and their "
            "embeddings."
        )
    vectors = np.asarray(model.topic_embeddings_, dtype=np.float64)
    sizes = np.array([float(model.topic_sizes_[topic]) for topic in sorted(model.topic_sizes_)])
    if len(sizes) != len(vectors):
        raise InputError(
            f"BERTopic: {len(sizes)} topics have sizes and {len(vectors)} embeddings: it is not consistent."
        )
    words, vocabulary = _words(model, sizes)
    chosen = np.sort(np.argsort(-words.sum(axis=0), kind="stable")[:most])
    words, vocabulary = np.ascontiguousarray(words[:, chosen]), [vocabulary[v] for v in chosen]
    first = model._outliers
    custom = getattr(model, "custom_labels_", None)
    vectorizer = model.vectorizer_model.get_params(deep=False)
    settings = {name: vectorizer[name] for name in VECTORIZER if isinstance(vectorizer[name], (bool, str, type(None)))}
    settings["ngram_range"] = list(vectorizer["ngram_range"])
    return topic_vectors(
        vectors[first:],
        sizes[first:],
        words[first:],
        vocabulary,
        outlier=(vectors[0], words[0], int(sizes[0])) if first else None,
        labels=list(custom)[first:] if custom else None,
        settings={
            "vectorizer": settings,
            "top_n_words": int(model.top_n_words),
            "bm25": bool(model.ctfidf_model.bm25_weighting),
            "rooted": bool(model.ctfidf_model.reduce_frequent_words),
        },
    )


def _words(model: BERTopic, sizes: Array) -> tuple[Array, list[str]]:
    """Numbers of words (topics, words), of a site as many as it has documents, and the words."""
    scores = getattr(model, "c_tf_idf_", None)
    rarity = getattr(model.ctfidf_model, "_idf_diag", None)
    if scores is None or rarity is None:
        return _shown_words(model, sizes)
    rare = np.asarray(rarity.diagonal(), dtype=np.float64)
    shares = np.asarray(scores.todense(), dtype=np.float64) / np.where(rare > 0, rare, 1.0)
    shares = shares**2 if model.ctfidf_model.reduce_frequent_words else shares
    shares = shares / np.maximum(shares.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    number = sizes
    if not model.ctfidf_model.bm25_weighting:
        number = _numbers(shares, rare, sizes)
    return shares * number[:, None], list(map(str, model.vectorizer_model.get_feature_names_out()))


def _numbers(shares: Array, rare: Array, sizes: Array) -> Array:
    """Words of each topic: those whose sums are as rare as said, mean / sum = exp(rare) - 1; if none, `sizes`."""
    from scipy.optimize import nnls

    known = rare > 0
    found, _ = nnls(shares[:, known].T, 1 / np.expm1(rare[known]))
    return np.asarray(found * sizes.sum() / found.sum() if (found > 0).all() else sizes)


def _shown_words(model: BERTopic, sizes: Array) -> tuple[Array, list[str]]:
    """What the representations say."""
    shown = [model.topic_representations_[topic] for topic in sorted(model.topic_sizes_)]
    vocabulary = sorted({str(word) for pairs in shown for word, _ in pairs if word})
    column = {word: v for v, word in enumerate(vocabulary)}
    words = np.zeros((len(shown), len(vocabulary)))
    for row, pairs in zip(words, shown, strict=True):
        for word, score in pairs:
            if word:
                row[column[str(word)]] = max(float(score), 0.0)
    return words / np.maximum(words.sum(axis=1, keepdims=True), np.finfo(float).tiny) * sizes[:, None], vocabulary


def write(local: LocalModel, like: str) -> Any:
    """A BERTopic whose `transform` finds topics by cosines to `topic_embeddings_`, as one that was loaded does.

    Topics are numbered as atoms are: ``fusion.labels[j][t]`` is what topic t of site j has become. It has no embedding
    model: give ``transform(documents, embeddings)`` embeddings, or set `embedding_model`. `topics_` has every topic as
    often as it has documents; which document is which, the sites know.
    """
    from bertopic import BERTopic
    from bertopic._bertopic import TopicMapper
    from bertopic.backend import BaseEmbedder
    from bertopic.cluster import BaseCluster
    from bertopic.dimensionality import BaseDimensionalityReduction
    from bertopic.vectorizers import ClassTfidfTransformer
    from scipy.sparse import csr_matrix, diags
    from sklearn.feature_extraction.text import CountVectorizer

    settings = local.facts["settings"]
    how = {**settings.get("vectorizer", {})}
    how["ngram_range"] = tuple(how.get("ngram_range", (1, 1)))
    bm25, rooted = bool(settings.get("bm25")), bool(settings.get("rooted"))
    model = BERTopic(
        embedding_model=BaseEmbedder(),
        umap_model=BaseDimensionalityReduction(),
        hdbscan_model=BaseCluster(),
        vectorizer_model=CountVectorizer(**how),
        ctfidf_model=ClassTfidfTransformer(bm25_weighting=bm25, reduce_frequent_words=rooted),
        top_n_words=int(settings.get("top_n_words", 10)),
    )
    directions, lengths, sizes, words = (
        np.asarray(local.arrays[name]) for name in ("directions", "lengths", "counts", "words")
    )
    vectors, first = directions * lengths[:, None], 0
    if local.facts["outliers"]:
        first = 1
        vectors = np.vstack([np.asarray(local.arrays["outlier"]), vectors])
        words = np.vstack([np.asarray(local.arrays["outlier_words"]), words])
        sizes = np.append(float(local.facts["outliers"]), sizes)
    scores, rarity = c_tf_idf(words, bm25=bm25, rooted=rooted)
    topics, vocabulary = [int(t) for t in range(-first, len(sizes) - first)], local.coordinates["word"]
    model.topic_embeddings_ = vectors
    model.topic_sizes_ = {topic: round(float(size)) for topic, size in zip(topics, sizes, strict=True)}
    model.topic_representations_ = {
        topic: _best(row, vocabulary, model.top_n_words) for topic, row in zip(topics, scores, strict=True)
    }
    model.c_tf_idf_ = csr_matrix(scores)
    model.vectorizer_model.vocabulary_ = {word: v for v, word in enumerate(vocabulary)}
    model.ctfidf_model._idf_diag = diags(rarity, format="csr")
    model.topics_ = [topic for topic, size in model.topic_sizes_.items() for _ in range(size)]
    model.topic_mapper_ = TopicMapper(topics)
    if local.facts.get("labels"):
        model.custom_labels_ = [*([model.topic_labels_[-1]] if first else []), *local.facts["labels"]]
    return model


def _best(scores: Array, vocabulary: Sequence[str], number: int) -> list[tuple[str, float]]:
    """The words with the highest scores."""
    order = np.argsort(-scores, kind="stable")[:number]
    return [(vocabulary[v], float(scores[v])) for v in order]
