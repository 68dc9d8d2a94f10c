"""Make the small files of this study from the full ones: 26 MB of counts and vectors become 3.

python experiments/topics/reduce.py FOLDER           # FOLDER/gutenberg and FOLDER/glove hold the full files
python experiments/topics/reduce.py FOLDER --check   # do the small files order methods as they do? Kept in check.json

What is lost, and how much, is written in the README of each data folder.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # where provenance.py is

import argparse
import csv
import gzip
import re
import zipfile
from dataclasses import replace
from typing import Any

import numpy as np
from coherence import Table, scores
from topic_data import DATA, load

from paired import paired
from provenance import keep

HERE = Path(__file__).parent

COMPONENTS = 50
"""Dimensions that are kept, as many as the paper's vectors have."""

SCORED = 3000
"""Words that may stand for a topic, the most frequent ones: their table of pairs is most of what is shipped."""

RATIO = 1.5
"""Counts of pairs whose ratio is about this share a level: a count is known within a quarter."""

PAGE = 300
"""Tokens of a page."""

BYTE = 127
"""Largest number of a signed byte."""

SEEDS = (0, 1, 100, 101, 102, 103, 104)
"""For the check: on the first two settings were chosen."""

Files = dict[str, np.ndarray]


def full_files(folder: Path) -> tuple[Files, Files, Files]:
    """Bag of words, counts of pairs, vectors."""
    paths = ("gutenberg/books_bow.npz", "gutenberg/heldout_cooc.npz", "glove/glove6b_100d_books.npz")
    return tuple(dict(np.load(folder / path)) for path in paths)  # type: ignore[return-value]


def vocabulary(bag: Files, pairs: Files) -> np.ndarray:
    """Numbers in the bag of the words that the table of pairs knows, most frequent first (the bag's order)."""
    return np.flatnonzero(np.isin(bag["words"], pairs["words"]))


def reduced_bag(bag: Files, chosen: np.ndarray) -> Files:
    """The same books with these words alone."""
    number = np.full(len(bag["words"]), -1)
    number[chosen] = np.arange(len(chosen))
    there = number[bag["indices"]] >= 0
    books = np.repeat(np.arange(len(bag["indptr"]) - 1), np.diff(bag["indptr"]))[there]
    ends = np.cumsum(np.bincount(books, minlength=len(bag["indptr"]) - 1))
    return {
        "words": bag["words"][chosen].astype(bytes),
        "indptr": np.concatenate([[0], ends]).astype(np.int32),
        "indices": number[bag["indices"][there]].astype(np.uint16),
        "counts": bag["counts"][there],
        "gutenberg_id": bag["gutenberg_id"],
    }


def reduced_vectors(vectors: np.ndarray) -> Files:
    """Principal components as bytes, one scale per component.

    The mean is not taken off: topics are compared by their cosines, and those are about the origin.
    """
    full = vectors.astype(float)
    axes = np.linalg.svd(full - full.mean(0), full_matrices=False)[2][:COMPONENTS]
    components = full @ axes.T
    scale = np.abs(components).max(0) / BYTE
    return {"vectors": np.round(components / scale).astype(np.int8), "scale": scale.astype(np.float32)}


def dense_pairs(pairs: Files, words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Windows that hold each of these words, and each pair of them (symmetric)."""
    V, ends = len(pairs["words"]), pairs["indptr"]
    number = np.full(V, -1)
    known = {word: k for k, word in enumerate(pairs["words"])}
    here = np.array([known[word] for word in words])
    number[here] = np.arange(len(words))
    rows = np.repeat(np.arange(V), np.diff(ends))
    steps = np.cumsum(pairs["delta"].astype(np.int64))
    columns = steps - np.repeat(np.concatenate([[0], steps])[ends[:-1]], np.diff(ends)) + rows
    a, b = number[rows], number[columns]
    there = (a >= 0) & (b >= 0)
    table = np.zeros((len(words), len(words)), np.uint16)
    table[a[there], b[there]] = table[b[there], a[there]] = pairs["count"][there]
    return pairs["occ"][here], table


def reduced_pairs(pairs: Files, words: np.ndarray) -> Files:
    """Levels of the counts of pairs; words go by their number of windows, which makes like levels neighbours."""
    windows, table = dense_pairs(pairs, words)
    order = np.argsort(-windows, kind="stable")
    counts = table[np.ix_(order, order)][np.triu_indices(len(words), 1)]
    logs = np.log(np.maximum(counts, 1))
    levels = np.where(counts > 0, 1 + np.round(logs / np.log(RATIO)), 0).astype(np.uint8)
    levels = np.unique(levels, return_inverse=True)[1].astype(np.uint8)  # 0 stays 0: there are unseen pairs
    sizes = np.bincount(levels)
    values = np.exp(np.bincount(levels, logs) / sizes) * (np.arange(len(sizes)) > 0)
    error = (np.log(values[levels][levels > 0]) - logs[levels > 0]).std()
    print(f"{(levels > 0).mean():.3f} of {len(levels)} pairs seen; error of their logarithms {error:.3f} (rms)")
    return {
        "order": order.astype(np.uint16),
        "windows": windows[order].astype(np.int32),
        "levels": levels,
        "values": values.astype(np.float32),
        "n_windows": pairs["n_windows"],
    }


def reduced_pages(folder: Path, words: np.ndarray, ids: np.ndarray) -> Files:
    """Pages of so many tokens of these words, in the order of the text; a last half page or less is left out."""
    csv.field_size_limit(2**31 - 1)
    with gzip.open(folder / "gutenberg" / "books_text.csv.gz", "rt", encoding="utf8") as file:
        texts = {int(row["gutenberg_id"]): row["text"] for row in csv.DictReader(file)}
    number = {word: k for k, word in enumerate(words)}
    pages, book = [], []
    for b, key in enumerate(ids):
        tokens = [number[t] for t in re.findall(r"\b[a-z]+\b", texts[int(key)].lower()) if t in number]
        starts = range(0, len(tokens) - PAGE // 2, PAGE)
        pages += [np.unique(tokens[k : k + PAGE], return_counts=True) for k in starts]
        book += [b] * len(starts)
    return {
        "indptr": np.concatenate([[0], np.cumsum([len(found) for found, _ in pages])]).astype(np.int32),
        "gaps": np.concatenate([np.diff(found, prepend=0) for found, _ in pages]).astype(np.uint16),
        "counts": np.concatenate([counts for _, counts in pages]).astype(np.uint8),
        "book": np.array(book, np.uint8),
        "words": np.array(len(words)),
    }


def write(path: Path, files: Files) -> None:
    """An .npz that `np.load` reads, packed by LZMA, the same bytes every time."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        for name, array in files.items():
            info = zipfile.ZipInfo(f"{name}.npy")
            info.compress_type = zipfile.ZIP_LZMA
            with archive.open(info, "w") as file:
                np.lib.format.write_array(file, np.asarray(array, order="C"))
    print(f"{path.name}: {path.stat().st_size} bytes")


def check(folder: Path) -> None:
    """UCI by the paper's rule: methods on small and on full vectors, scored by the small and by the full table."""
    from topic_models import DEFAULT, OURS, fused, kmeans_of_centres, local_topics, pooled_kmeans

    small = load()
    bag, pairs, glove = full_files(folder)
    chosen = vocabulary(bag, pairs)
    windows, table = dense_pairs(pairs, bag["words"][chosen])
    exact = Table(windows.astype(float), table, float(pairs["n_windows"]))
    wide = replace(small, raw=glove["vectors"][chosen].astype(np.float32), table=exact)
    by_full_table = {"small files": small, "small vectors, full table": replace(small, table=exact)}
    rows = []
    for learned, scored in ((small, by_full_table), (wide, {"full vectors, full table": wide})):
        for seed in SEEDS:
            local = local_topics(learned, seed)
            found = {name: fused(learned, local, name)[1] for name in (DEFAULT, OURS)}
            K, kept = len(found[DEFAULT].centres), found[DEFAULT].shared
            found["k-means of centres told K"] = kmeans_of_centres(learned, local, K, seed)
            found["pooled k-means told K"] = pooled_kmeans(learned, K, seed)
            for name, topics in found.items():
                for files, corpus in scored.items():
                    measured = scores(topics, corpus, kept)
                    uci = [float(measured[f"nearest/{part}"]["uci"]) for part in ("all", "filtered")]
                    rows.append([files, seed, name, int(measured["K"]), kept, *uci])
                    print(rows[-1], flush=True)
    columns = ["files", "seed", "method", "K", "kept", "UCI, all", "UCI, kept"]
    keep(HERE / "check.json", {"columns": columns, "rows": rows}, {"seeds": list(SEEDS)})
    (HERE / "check.md").write_text("\n".join(told(rows)) + "\n", encoding="utf-8")


def told(rows: list[list[Any]]) -> list[str]:
    """A line per pair of files and method, means over seeds; and the bare call less another, seed by seed."""
    lines = [
        "# Do the small files decide?",
        "",
        "| | | K | UCI, all | UCI, kept | the bare call less it, all | kept |",
        "|---" * 7 + "|",
    ]
    for files, name in dict.fromkeys((row[0], row[2]) for row in rows):
        of = np.array([row[3:] for row in rows if (row[0], row[2]) == (files, name)], dtype=float)
        bare = np.array([row[3:] for row in rows if row[0] == files and "default" in row[2]], dtype=float)
        less = [""] * 2 if "default" in name else [str(paired(bare[:, k], of[:, k])) for k in (2, 3)]
        cells = [f"{of[:, 0].mean():.1f}", *(f"{of[:, k].mean():.3f}" for k in (2, 3)), *less]
        lines.append(f"| {' | '.join([files, name, *cells])} |")
    return lines


def main() -> None:
    """Write the small files, or compare with the full ones."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    if options.check:
        check(options.folder)
        return
    bag, pairs, glove = full_files(options.folder)
    chosen = vocabulary(bag, pairs)
    write(DATA / "gutenberg" / "bag.npz", reduced_bag(bag, chosen))
    write(DATA / "gutenberg" / "pairs.npz", reduced_pairs(pairs, bag["words"][chosen][:SCORED]))
    write(DATA / "glove" / "vectors.npz", reduced_vectors(glove["vectors"][chosen]))
    words = bag["words"][chosen][:SCORED]
    write(DATA / "gutenberg" / "pages.npz", reduced_pages(options.folder, words, bag["gutenberg_id"]))


if __name__ == "__main__":
    main()
