"""Topics: scikit-learn's LatentDirichletAllocation, gensim's LdaModel, tomotopy's LDAModel and HDPModel, BERTopic.

Models of tomotopy cannot be made from parameters, and are written as scikit-learn's. A BERTopic has topics as places in
an embedding, and is written as a model that finds the topics of documents by cosines.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy
import sklearn
from numpy.typing import ArrayLike

from modelweld.core.values import Array
from modelweld.errors import InputError
from modelweld.inputs.local_model import LocalModel
from modelweld.kinds.topics import c_tf_idf, topic_vectors, topics


def read_lda(
    model: Any, *, tokens: float | None = None, X: ArrayLike | None = None, features: Sequence[str] | None = None
) -> LocalModel:
    """Expected numbers of each word in each topic: `components_` without the prior's pseudo-counts.

    Parameters
    ----------
    model : fitted LatentDirichletAllocation
        After `fit`, its numbers are those of the site's documents.
    tokens : float, optional
        Number of words in the site's documents, all occurrences. Needed after `partial_fit` alone, which scales numbers
        up to `total_samples` documents.
    X : array or sparse matrix, optional
        The site's documents, to count their words here.
    features : sequence of str, optional
        The words, one per column: ``vectorizer.get_feature_names_out()``. Without them, all sites must have the same
        words in the same order.
    """
    sklearn.utils.validation.check_is_fitted(model, "components_")
    if not hasattr(model, "bound_") and tokens is None and X is None:
        what = "a LatentDirichletAllocation after partial_fit does not know how many words it saw"
        raise InputError(f"{what}: read(model, tokens=X.sum()), with X all its documents.")
    prior = float(model.topic_word_prior_)
    words = np.maximum(np.asarray(model.components_, dtype=np.float64) - prior, 0.0)
    total = float(np.sum(X)) if tokens is None and X is not None else tokens
    if total is not None:
        words = words * (total / max(float(words.sum()), np.finfo(float).tiny))
    facts = {"named_columns": hasattr(model, "feature_names_in_")}
    return topics(words, features, alpha=float(model.doc_topic_prior_), eta=prior, facts=facts)


def write_lda(local: LocalModel, like: str) -> Any:
    """A LatentDirichletAllocation with these topics; `vocabulary_`, for a CountVectorizer, says what its columns are.

    It has one pseudo-count for all topics and one for all words: the averages. `bound_`, the perplexity of training
    documents, is not known (NaN).
    """
    words, alpha, eta = (np.asarray(local.arrays[name]) for name in ("words", "alpha", "eta"))
    model = sklearn.decomposition.LatentDirichletAllocation(
        len(words), doc_topic_prior=float(alpha.mean()), topic_word_prior=float(eta.mean())
    )
    model.doc_topic_prior_, model.topic_word_prior_ = model.doc_topic_prior, model.topic_word_prior
    model.components_ = words + model.topic_word_prior_
    total = model.components_.sum(axis=1, keepdims=True)
    model.exp_dirichlet_component_ = np.exp(scipy.special.digamma(model.components_) - scipy.special.digamma(total))
    model.n_features_in_ = words.shape[1]
    model.n_batch_iter_, model.n_iter_, model.bound_ = 1, 0, np.nan
    model.random_state_ = np.random.RandomState(0)  # of the kind that the class itself keeps
    if "word" in local.coordinates:
        names = local.coordinates["word"]
        model.vocabulary_ = {name: column for column, name in enumerate(names)}
        if local.facts.get("named_columns"):
            model.feature_names_in_ = np.array(names, dtype=object)
    return model


def read_gensim(model: Any, *, features: Sequence[str] | None = None) -> LocalModel:
    """Expected numbers of each word in each topic, and both priors.

    Parameters
    ----------
    model : trained LdaModel
        Words are those of its `id2word`. If it was trained without one, all sites must have the same words in the same
        order, or say `features`.
    features : sequence of str, optional
        The words by their numbers, instead of `id2word`.
    """
    import gensim

    words = np.asarray(model.state.sstats, dtype=np.float64)
    if features is None and not isinstance(model.id2word, gensim.utils.FakeDict):
        features = [str(model.id2word.get(i, i)) for i in range(words.shape[1])]
    eta = np.asarray(model.state.eta, dtype=np.float64)  # what its topics are made with; model.eta may have moved on
    eta = eta.mean(axis=0) if eta.ndim == 2 else eta
    facts = {"dtype": np.dtype(model.dtype).name}
    return topics(words, features, alpha=model.alpha, eta=eta, documents=int(model.state.numdocs), facts=facts)


def write_gensim(local: LocalModel, like: str) -> Any:
    """An LdaModel with these topics and a Dictionary of all words."""
    import gensim

    words, alpha, eta = (np.asarray(local.arrays[name]) for name in ("words", "alpha", "eta"))
    id2word: Any = {i: str(i) for i in range(words.shape[1])}
    if "word" in local.coordinates:
        id2word = gensim.corpora.Dictionary()
        id2word.token2id = {word: i for i, word in enumerate(local.coordinates["word"])}
    dtype = np.dtype(local.facts.get("dtype", "float64")).type
    model = getattr(gensim.models, like)(
        num_topics=len(words), id2word=id2word, alpha=alpha, eta=eta, dtype=dtype, random_state=0
    )
    model.state.sstats[...] = words
    model.state.numdocs = model.num_updates = int(local.facts.get("documents", 0))
    model.sync_state()
    return model


TOMOTOPY_READ = ("LDAModel", "HDPModel")
"""Others inherit from LDAModel, but their topics are not plain distributions over words with one prior."""


def read_tomotopy(model: Any, *, features: Sequence[str] | None = None) -> LocalModel:
    """Numbers of each word in each topic, as the sampler last had them, and both priors.

    Parameters
    ----------
    model : trained LDAModel or HDPModel
        Words are those it used (`used_vocabs`). Of an HDPModel, topics that are alive.
    features : sequence of str, optional
        Other names for these words.
    """
    own = next(cls.__name__ for cls in type(model).__mro__ if cls.__module__.startswith("tomotopy"))
    if own not in TOMOTOPY_READ:
        read = " and ".join(TOMOTOPY_READ)
        raise InputError(f"of tomotopy's models {read} are read; found {own}. Use modelweld.kinds.topics.topics(...).")
    raw = [model.get_topic_word_dist(k, normalize=False) for k in range(model.k)]
    alive = [k for k in range(model.k) if own == "LDAModel" or model.is_live_topic(k)]
    words = np.maximum(np.asarray(raw, dtype=np.float64)[alive] - model.eta, 0.0)
    if int(model.tw) == 0:  # every word weighs one: numbers, but for the rounding of float32
        words = np.rint(words)
    # a Dirichlet process spreads its concentration over topics as they are used
    alpha = model.alpha if own == "LDAModel" else model.alpha * words.sum(axis=1) / words.sum()
    names = list(model.used_vocabs) if features is None else features
    return topics(words, names, alpha=alpha, eta=float(model.eta), documents=len(model.docs))


MOST_WORDS = 10_000
"""Words that leave a site unless more are asked for: of 100 topics, 8 megabytes."""

VECTORIZER = ("lowercase", "ngram_range", "stop_words", "strip_accents", "token_pattern")
"""Of the CountVectorizer, what says how documents become words."""


def read_bertopic(model: Any, *, most: int = MOST_WORDS) -> LocalModel:
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
        raise InputError("BERTopic: this model has no topic_embeddings_: fit it on documents and their embeddings.")
    vectors = np.asarray(model.topic_embeddings_, dtype=np.float64)
    sizes = np.array([float(model.topic_sizes_[topic]) for topic in sorted(model.topic_sizes_)])
    if len(sizes) != len(vectors):
        raise InputError(f"BERTopic: {len(sizes)} topics have sizes, but {len(vectors)} have embeddings.")
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


def _words(model: Any, sizes: Array) -> tuple[Array, list[str]]:
    """Numbers of words (topics, words), of a site as many as it has documents, and the words."""
    scores = getattr(model, "c_tf_idf_", None)
    rarity = getattr(model.ctfidf_model, "_idf_diag", None)
    if scores is None or rarity is None:
        return _words_of_representations(model, sizes)
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
    known = rare > 0
    found, _ = scipy.optimize.nnls(shares[:, known].T, 1 / np.expm1(rare[known]))
    return np.asarray(found * sizes.sum() / found.sum() if (found > 0).all() else sizes)


def _words_of_representations(model: Any, sizes: Array) -> tuple[Array, list[str]]:
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


def write_bertopic(local: LocalModel, like: str) -> Any:
    """A BERTopic whose `transform` finds topics by cosines to `topic_embeddings_`, as one that was loaded does.

    Topics are numbered as atoms are: ``fusion.labels[j][t]`` is what topic t of site j has become. It has no embedding
    model: give ``transform(documents, embeddings)`` embeddings, or set `embedding_model`. `topics_` has every topic as
    often as it has documents; which document is which, the sites know.
    """
    import bertopic

    settings = local.facts["settings"]
    how = {**settings.get("vectorizer", {})}
    how["ngram_range"] = tuple(how.get("ngram_range", (1, 1)))
    bm25, rooted = bool(settings.get("bm25")), bool(settings.get("rooted"))
    model = bertopic.BERTopic(
        embedding_model=bertopic.backend.BaseEmbedder(),
        umap_model=bertopic.dimensionality.BaseDimensionalityReduction(),
        hdbscan_model=bertopic.cluster.BaseCluster(),
        vectorizer_model=sklearn.feature_extraction.text.CountVectorizer(**how),
        ctfidf_model=bertopic.vectorizers.ClassTfidfTransformer(bm25_weighting=bm25, reduce_frequent_words=rooted),
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
        topic: [(vocabulary[v], float(row[v])) for v in np.argsort(-row, kind="stable")[: model.top_n_words]]
        for topic, row in zip(topics, scores, strict=True)
    }
    model.c_tf_idf_ = scipy.sparse.csr_matrix(scores)
    model.vectorizer_model.vocabulary_ = {word: v for v, word in enumerate(vocabulary)}
    model.ctfidf_model._idf_diag = scipy.sparse.diags(rarity, format="csr")
    model.topics_ = [topic for topic, size in model.topic_sizes_.items() for _ in range(size)]
    model.topic_mapper_ = bertopic._bertopic.TopicMapper(topics)
    if local.facts.get("labels"):
        model.custom_labels_ = [*([model.topic_labels_[-1]] if first else []), *local.facts["labels"]]
    return model
