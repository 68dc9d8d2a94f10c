"""Topics of documents on ten seeds that were stated before they were run (plan.md): 20 newsgroups, pages of 40 books.

python experiments/planned_topics/run.py --data FOLDER    # with newsgroups20.npz in it; ten CPU minutes
python experiments/planned_topics/run.py --only pages     # pages alone, whose data are in the repository
python experiments/planned_topics/run.py --smoke          # a tiny made-up corpus: seconds
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "topics"))

from study import Claim, Result, Results, Study, Summary, Table, Task, by_cell, main, not_behind, outside  # isort: skip; first: it sets the threads

import warnings
from collections.abc import Sequence
from typing import Any

import coherence
import numpy as np
import silos
from sklearn.decomposition import LatentDirichletAllocation
from topic_data import load, load_pages

from modelweld import fuse
from paired import paired
from shared.baselines import kmeans_matching
from shared.first_wins import added, first_wins, first_wins_told

SEEDS = range(3000, 3010)
OURS = "fuse(models)"
HELD_OUT = 10
"""One page of so many is held out."""
LESS_IS_BETTER = ("perplexity",)
SETS = {"newsgroups": "20 newsgroups", "pages": "40 books, pages"}


def newsgroups(seed: int) -> Result:
    """Silos of documents, classes in shares of their own."""
    path, rng = outside("newsgroups20.npz"), np.random.default_rng(seed)
    corpus = silos.made_up(seed) if path is None else silos.load(path)
    halves = silos.halves_of(corpus.test, rng)
    held = [corpus.train[d] for d in silos.silos_of(corpus, rng) if len(d) >= silos.LOCAL_TOPICS]
    return of_silos(held, corpus.train, halves, documents_table(corpus.test), seed)


def pages(seed: int) -> Result:
    """Books cut into pages, each book a silo: coherence by other books."""
    X, book = load_pages()
    rng = np.random.default_rng(seed)
    out = np.zeros(len(book), dtype=bool)
    for b in np.unique(book):
        own = np.flatnonzero(book == b)
        out[rng.choice(own, max(1, len(own) // HELD_OUT), replace=False)] = True
    held = [X[~out & (book == b)] for b in np.unique(book)]
    return of_silos(held, X[~out], silos.halves_of(X[out], rng), load().table, seed)


def of_silos(held: Sequence[Any], everything: Any, halves: Any, table: coherence.Table, seed: int) -> Result:
    """Perplexity, NPMI and UCI of every method for one seed, given the documents of every silo and all together."""
    warnings.simplefilter("ignore")

    def fitted(x: Any, K: int) -> LatentDirichletAllocation:
        return LatentDirichletAllocation(K, random_state=seed, max_iter=silos.PASSES).fit(x)

    models = [fitted(x, silos.LOCAL_TOPICS) for x in held]
    ours, counts = words_of(fuse(models).model()), [words_of(m) for m in models]
    rows, roots = np.vstack(counts), [np.sqrt(c / c.sum(1, keepdims=True)) for c in counts]
    K, prior = len(ours), float(models[0].topic_word_prior_)
    topics = {
        OURS: ours,
        "k-means told K": added(rows, np.concatenate(kmeans_matching(roots, K, seed=seed).labels)),
        "merged one by one, told K": added(rows, first_wins_told(counts, K)),
        "merged one by one, .7": added(rows, first_wins(counts)),
        "stacking": rows,
        "pooled LDA told K": words_of(fitted(everything, K)),
    }
    found = {}
    for name, values in topics.items():
        measured = coherence.coherence(coherence.top_words(values), table)
        own = {"K": len(values), "perplexity": silos.perplexity(values + prior, halves)}
        found[name] = {**own, "npmi": measured["npmi"], "uci": measured["uci"]}
    alone = float(np.mean([silos.perplexity(c + prior, halves) for c in counts]))
    found["one silo"] = {**found["stacking"], "K": silos.LOCAL_TOPICS, "perplexity": alone}
    return {"methods": found}


def words_of(model: LatentDirichletAllocation) -> np.ndarray:
    """Expected words of the topics that have any, without the prior's pseudo-counts: for all methods alike."""
    words = np.maximum(model.components_ - model.topic_word_prior_, 0.0)
    return np.asarray(words[words.sum(1) >= 1])


def documents_table(documents: Any) -> coherence.Table:
    """In how many documents words, and pairs of words, are."""
    seen = (documents > 0).astype(np.float32)
    pairs = np.asarray((seen.T @ seen).todense())
    windows = pairs.diagonal().copy()
    return coherence.Table(np.maximum(windows, 1.0), pairs, float(documents.shape[0]))


def tasks(quick: bool) -> list[Task]:
    """One per set and seed."""
    if quick:
        return [Task(f"newsgroups/{seed}", newsgroups, (seed,)) for seed in (0, 1)]
    there = {"newsgroups": newsgroups, "pages": pages} if outside("newsgroups20.npz") else {"pages": pages}
    return [Task(f"{name}/{seed}", run, (seed,)) for name, run in there.items() for seed in SEEDS]


def summary(results: Results) -> Summary:
    """Means of every set, differences of ours from every rival, and claims against rivals that are told K."""
    tables, claims = [], list[Claim]()
    for name, found in by_cell(results).items():
        draws = [r["methods"] for r in found]
        measures, rows = [m for m in draws[0][OURS] if m != "K"], []
        for method in draws[0]:
            row = [method, f"{np.mean([d[method]['K'] for d in draws]):.1f}"]
            for measure in measures:
                ours, theirs = ([d[m][measure] for d in draws] for m in (OURS, method))
                row += [f"{np.mean(theirs):.{1 if measure in LESS_IS_BETTER else 3}f}", str(paired(ours, theirs))]
                if method == OURS:
                    row[-1] = ""
                elif "told K" in method:
                    good = paired(theirs, ours) if measure in LESS_IS_BETTER else paired(ours, theirs)
                    text = f"{SETS[name]}, {measure}: {OURS} beside {method}."
                    claim = not_behind(text, good, f"{len(draws)} seeds stated before", told=True)
                    claims.append(Claim(text, str(paired(ours, theirs)), claim.holds, claim.n))
            rows.append(row)
        columns = ["method", "K", *(c for m in measures for c in (m, "ours less it"))]
        note = "Means over seeds; differences seed by seed with 95 % intervals. Less perplexity is better."
        tables.append(Table(f"{SETS[name]}, {len(draws)} seeds", columns, rows, note))
    return Summary(tables, claims)


TITLE = "Topics of documents on seeds stated before"
QUESTION = "Is the bare call better than rivals that are told its number of topics?"

if __name__ == "__main__":
    main(Study("planned_topics", TITLE, QUESTION, tasks, summary))
