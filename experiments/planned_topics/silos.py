"""Silos of documents, and how well topics predict the second half of documents that no silo has seen.

Document-completion perplexity: half of the words of each test document (at random) give its proportions of topics, by a
fixed point with pseudo-counts for each topic; the other half is scored.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

SILOS, LOCAL_TOPICS = 10, 8
CLASS_MIX = 0.3  # Dirichlet parameter of a class's shares over silos: most classes are at two or three silos
TEST_DOCUMENTS = 1000
PROPORTIONS = 0.1  # pseudo-count of each topic in a document, for all methods
PASSES = 10  # of the program that fits topics, local or pooled
STEPS = 50  # of the fixed point for a document's proportions


class Corpus(NamedTuple):
    """Documents x words, classes of the training documents, documents to predict."""

    train: csr_matrix
    labels: np.ndarray
    test: csr_matrix


def load(path: Path) -> Corpus:
    """Read newsgroups20.npz."""
    z = np.load(path)
    parts = {}
    for name in ("train", "test"):
        arrays = (z[f"{name}_counts"].astype(float), z[f"{name}_indices"], z[f"{name}_indptr"])
        parts[name] = csr_matrix(arrays, shape=(len(z[f"{name}_indptr"]) - 1, len(z["words"])))
    return Corpus(parts["train"], np.asarray(z["train_labels"]).ravel(), parts["test"])


def made_up(seed: int = 0) -> Corpus:
    """A corpus of 12 topics over 60 words: 300 documents of 6 classes to learn from."""
    rng = np.random.default_rng(seed)
    topics, labels = rng.dirichlet(np.full(60, 0.1), 12), rng.integers(0, 6, 350)
    mix = np.array([rng.dirichlet(np.where(np.arange(12) // 2 == c, 2.0, 0.05)) for c in labels])
    x = csr_matrix(np.array([rng.multinomial(60, p) for p in mix @ topics], dtype=float))
    return Corpus(x[:300], labels[:300], x[300:])


def silos_of(corpus: Corpus, rng: np.random.Generator) -> list[np.ndarray]:
    """Documents of every silo: each class in shares of its own."""
    where = np.empty(len(corpus.labels), dtype=int)
    for c in np.unique(corpus.labels):
        of_class = np.flatnonzero(corpus.labels == c)
        where[of_class] = rng.choice(SILOS, len(of_class), p=rng.dirichlet(np.full(SILOS, CLASS_MIX)))
    return [np.flatnonzero(where == j) for j in range(SILOS)]


class Halves(NamedTuple):
    """The words of test documents, one half to look at and one to predict: entries (document, word, count)."""

    look: tuple[np.ndarray, np.ndarray, np.ndarray]
    predict: tuple[np.ndarray, np.ndarray, np.ndarray]
    documents: int


def halves_of(test: csr_matrix, rng: np.random.Generator) -> Halves:
    """Split each document's words at random."""
    x = test[rng.permutation(test.shape[0])[:TEST_DOCUMENTS]].tocoo()
    first = rng.binomial(x.data.astype(int), 0.5)
    sides = []
    for counts in (first, x.data - first):
        there = counts > 0
        sides.append((x.row[there], x.col[there], counts[there].astype(float)))
    return Halves(sides[0], sides[1], x.shape[0])


def perplexity(topics: np.ndarray, halves: Halves) -> float:
    """Of second halves, given proportions from first halves."""
    phi = np.maximum(topics, 1e-12)
    phi = (phi / phi.sum(1, keepdims=True)).T
    document, word, count = halves.look
    likely, K = phi[word], phi.shape[1]
    members = csr_matrix((count, (document, np.arange(len(word)))), shape=(halves.documents, len(word)))
    theta = np.full((halves.documents, K), 1 / K)
    for _ in range(STEPS):
        share = likely * theta[document]
        theta = PROPORTIONS + members @ (share / share.sum(1, keepdims=True))
        theta /= theta.sum(1, keepdims=True)
    document, word, count = halves.predict
    return float(np.exp(-(count @ np.log((phi[word] * theta[document]).sum(1))) / count.sum()))
