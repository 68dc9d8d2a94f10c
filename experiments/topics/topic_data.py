"""The 40 books as bags of words, vectors of their words, and counts of pairs in other books to score topics by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise
from pathlib import Path

import numpy as np
from coherence import Table
from scipy.sparse import csr_matrix

from shared.stored import DATA, stored


@dataclass(frozen=True)
class Book:
    """A site's data: which words a book has, by number, and how often."""

    words: np.ndarray
    counts: np.ndarray


@dataclass(frozen=True)
class Corpus:
    """What the study works on. Words go by falling number of tokens; the first `len(table)` of them can be scored.

    `raw` are the vectors with their lengths, as Gaussian LDA takes them; all others take `vectors`, of length one.
    """

    words: np.ndarray
    raw: np.ndarray
    books: Sequence[Book]
    titles: Sequence[str]
    table: Table

    @cached_property
    def vectors(self) -> np.ndarray:
        """Vectors of length one."""
        return unit(self.raw)

    @property
    def tokens(self) -> int:
        """Tokens of all books."""
        return int(sum(book.counts.sum() for book in self.books))


def unit(vectors: np.ndarray) -> np.ndarray:
    """Rows divided by their lengths."""
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@cache
def load() -> Corpus:
    """The study's corpus."""
    (bag, rows), glove = stored("gutenberg", "bag.npz", "books.csv"), np.load(DATA / "glove" / "vectors.npz")
    indices, counts = bag["indices"].astype(np.int64), bag["counts"].astype(np.int64)
    return Corpus(
        words=bag["words"].astype(str),
        raw=glove["vectors"] * glove["scale"],
        books=[Book(indices[a:b], counts[a:b]) for a, b in pairwise(bag["indptr"])],
        titles=[f"{row['title']} ({row['gutenberg_id']})" for row in rows],
        table=load_table(DATA / "gutenberg" / "pairs.npz"),
    )


@cache
def load_pages(path: Path = DATA / "gutenberg" / "pages.npz") -> tuple[csr_matrix, np.ndarray]:
    """Pages x the first words, and the book of every page."""
    stored = np.load(path)
    ends, gaps = stored["indptr"], stored["gaps"].astype(np.int64)
    steps = np.cumsum(gaps)
    indices = steps - np.repeat(np.concatenate([[0], steps])[ends[:-1]], np.diff(ends))
    shape = (len(ends) - 1, int(stored["words"]))
    return csr_matrix((stored["counts"].astype(float), indices, ends), shape=shape), stored["book"].astype(np.int64)


def load_table(path: Path) -> Table:
    """Counts of pairs from their levels."""
    stored = np.load(path)
    order = stored["order"].astype(np.int64)
    n = len(order)
    windows, pairs = np.zeros(n), np.zeros((n, n), np.float32)
    windows[order] = stored["windows"]
    a, b = (order[side] for side in np.triu_indices(n, 1))
    pairs[a, b] = pairs[b, a] = stored["values"][stored["levels"]]
    return Table(windows, pairs, float(stored["n_windows"]))
