"""Topics of 40 books: clusters of each book's word vectors, fused; and what pooled data or k-means make instead."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from gaussian_lda import Tokens, authors_prior, gaussian_lda, matched_prior
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import pairwise_distances_argmin
from topic_data import Corpus, unit

from modelweld import Fusion, Search, fuse
from shared.baselines import kmeans_matching

TOPICS_PER_BOOK = 25
"""The paper's."""

HELD = 0.005
"""Share of a book's tokens from which on the book holds a topic."""

SHARED_BY = 3
"""Books that must hold a topic for it to be shared."""


@dataclass(frozen=True)
class Topics:
    """Topics of the whole corpus, however they were found.

    Attributes
    ----------
    centres : array (K, D)
        A point among the word vectors for each topic.
    tokens : array (K, V)
        Tokens of each word that belong to each topic.
    shares : array (J, K)
        Which part of each book's tokens belongs to each topic.
    seconds : float
        CPU time, local models included.
    """

    centres: np.ndarray
    tokens: np.ndarray
    shares: np.ndarray
    seconds: float = float("nan")

    @property
    def support(self) -> np.ndarray:
        """Books that hold each topic; below the point, the mean of its shares, for an order without ties."""
        return (self.shares >= HELD).sum(0) + self.shares.mean(0)

    @property
    def shared(self) -> int:
        """Topics that several books hold."""
        return int((self.support >= SHARED_BY).sum())


@contextmanager
def quiet() -> Iterator[None]:
    """Without k-means' notes on short books and the fusion's on outliers: both are in the tables."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", UserWarning)
        yield


# ---------------------------------------------------------------- local topics


@dataclass(frozen=True)
class Local:
    """K-means of every book, and the CPU time it took."""

    models: Sequence[KMeans]
    seconds: float

    @property
    def centres(self) -> list[np.ndarray]:
        """Centres of each book's topics."""
        return [model.cluster_centers_.astype(float) for model in self.models]


def local_topics(corpus: Corpus, seed: int) -> Local:
    """K-means of the vectors of each book's words, each word once."""
    begun = time.process_time()
    with quiet():
        models = [
            KMeans(min(TOPICS_PER_BOOK, len(book.words)), n_init=1, random_state=seed).fit(corpus.vectors[book.words])
            for book in corpus.books
        ]
    return Local(models, time.process_time() - begun)


# ---------------------------------------------------------------- fused


def with_errors(local: Local) -> Fusion:
    """Centres with standard errors (variance within clusters / words), one topic per book and atom: ours."""
    return fuse(local.models, search=Search("plain", splits=False))


def paper(local: Local) -> Fusion:
    """The paper's setting, on directions."""
    return fuse([unit(centres) for centres in local.centres], preset="paper")


OURS, PAPER = "fused, standard errors", "SPAHM, paper's setting"
FUSED: Mapping[str, Callable[[Local], Fusion]] = {OURS: with_errors, PAPER: paper}


def fused(corpus: Corpus, local: Local, name: str) -> tuple[Fusion, Topics]:
    """A fusion of the books' topics, and its global topics."""
    begun = time.process_time()
    with quiet():
        fusion = FUSED[name](local)
    seconds = local.seconds + time.process_time() - begun
    return fusion, assigned(corpus, next(iter(fusion.matching.values.values())), seconds)


def assigned(corpus: Corpus, centres: np.ndarray, seconds: float) -> Topics:
    """Topics of these centres: every word belongs to the closest one, as with any k-means."""
    centres = np.asarray(centres, dtype=float)
    topic = pairwise_distances_argmin(corpus.vectors, centres.astype(corpus.vectors.dtype))
    tokens, shares = np.zeros((len(centres), len(corpus.words))), np.zeros((len(corpus.books), len(centres)))
    for book, share in zip(corpus.books, shares, strict=True):
        tokens[topic[book.words], book.words] += book.counts
        np.add.at(share, topic[book.words], book.counts / book.counts.sum())
    return Topics(centres, tokens, shares, seconds)


# ---------------------------------------------------------------- rivals, told K


def kmeans_of_centres(corpus: Corpus, local: Local, K: int, seed: int) -> Topics:
    """K-means of all local centres, best of ten starts."""
    begun = time.process_time()
    centres = kmeans_matching(local.centres, K, seed=seed).atoms
    return assigned(corpus, centres, local.seconds + time.process_time() - begun)


def pooled_kmeans(corpus: Corpus, K: int, seed: int) -> Topics:
    """K-means of the vectors of all books' words: a word once for each book that has it."""
    begun = time.process_time()
    with quiet():
        model = KMeans(K, n_init=1, random_state=seed).fit(np.vstack([corpus.vectors[b.words] for b in corpus.books]))
    return assigned(corpus, model.cluster_centers_, time.process_time() - begun)


PRIORS = {"authors' prior": authors_prior, "scaled prior": matched_prior}


@dataclass(frozen=True)
class Sampled:
    """Topics of Gaussian LDA on some of the tokens, and CPU time for an iteration over one token."""

    topics: Topics
    per_token: float


def pooled_gaussian_lda(corpus: Corpus, K: int, prior: str, seed: int, per_book: int, iterations: int) -> Sampled:
    """Gaussian LDA on the same number of tokens of every book, drawn once for all seeds."""
    rng = np.random.default_rng(0)
    drawn = [rng.choice(np.repeat(b.words, b.counts), per_book, replace=False) for b in corpus.books]
    tokens = Tokens(np.concatenate(drawn), np.repeat(np.arange(len(drawn)), per_book))
    known = PRIORS[prior](corpus.raw)
    gaussian_lda(tokens, corpus.raw, 2, known, iterations=1, seed=seed)  # compiles
    begun = time.process_time()
    topic, means = gaussian_lda(tokens, corpus.raw, K, known, iterations=iterations, seed=seed)
    seconds = time.process_time() - begun
    counts, shares = np.zeros((K, len(corpus.words))), np.zeros((len(drawn), K))
    np.add.at(counts, (topic, tokens.words), 1)
    np.add.at(shares, (tokens.documents, topic), 1 / per_book)
    return Sampled(Topics(means, counts, shares, seconds), seconds / (iterations * len(topic)))
