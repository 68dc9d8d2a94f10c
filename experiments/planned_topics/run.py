"""Topics on ten seeds that were stated before they were run (plan.md): 20 newsgroups and 40 books.

python experiments/planned_topics/run.py --data newsgroups20.npz    # both sets; 30 CPU minutes; resumes
python experiments/planned_topics/run.py --only books               # 40 books, or --only pages: data in the repository
python experiments/planned_topics/run.py --smoke                    # a tiny made-up corpus: seconds
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "topics"))

from study import Claim, Result, Table, Task, asdict, carried_out, done_with, finished, markdown  # isort: skip; first: it sets the threads

import argparse
import hashlib
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import coherence
import numpy as np
import silos
from rivals import added, merged, merged_to
from sklearn.decomposition import LatentDirichletAllocation

from modelweld import fuse
from paired import paired
from provenance import keep
from shared.baselines import kmeans_matching

HERE = Path(__file__).parent
SEEDS = range(3000, 3010)
OURS = "fuse(models)"
TOP = coherence.TOP
HELD_OUT = 10
"""One page of so many is held out."""


# ---------------------------------------------------------------- 20 newsgroups


def newsgroups(data: Path | None, seed: int) -> Result:
    """Silos of documents, classes in shares of their own."""
    corpus = silos.made_up(seed) if data is None else silos.load(data)
    rng = np.random.default_rng(seed)
    halves = silos.halves_of(corpus.test, rng)
    held = [corpus.train[d] for d in silos.silos_of(corpus, rng) if len(d) >= silos.LOCAL_TOPICS]
    return of_silos(held, corpus.train, halves, documents_table(corpus.test), seed)


def of_silos(held: Sequence[Any], everything: Any, halves: Any, table: coherence.Table, seed: int) -> Result:
    """Perplexity, NPMI and UCI of every method for one seed, given the documents of every silo and all together."""

    def fitted(x: Any, K: int) -> LatentDirichletAllocation:
        return LatentDirichletAllocation(K, random_state=seed, max_iter=silos.PASSES).fit(x)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        models = [fitted(x, silos.LOCAL_TOPICS) for x in held]
        model = fuse(models).model()
    ours, counts = words_of(model), [words_of(m) for m in models]
    rows, roots = np.vstack(counts), [np.sqrt(c / c.sum(1, keepdims=True)) for c in counts]
    K, prior = len(ours), float(models[0].topic_word_prior_)
    told = np.concatenate(kmeans_matching(roots, K, seed=seed).labels)
    topics: dict[str, np.ndarray] = {
        OURS: ours,
        "k-means told K": added(rows, told),
        "merged one by one, told K": added(rows, merged_to(counts, K)),
        "merged one by one, .7": added(rows, merged(counts)),
        "stacking": rows,
        "pooled LDA told K": words_of(fitted(everything, K)),
    }
    found = {}
    for name, values in topics.items():
        measured = coherence.coherence(coherence.top_words(np.asarray(values), TOP), table)
        found[name] = {
            "K": len(values),
            "perplexity": silos.perplexity(values + prior, halves),
            **{m: float(measured[m].mean()) for m in ("npmi", "uci")},
        }
    found["one silo"] = {
        "K": silos.LOCAL_TOPICS,
        "perplexity": float(np.mean([silos.perplexity(c + prior, halves) for c in counts])),
        **{m: found["stacking"][m] for m in ("npmi", "uci")},
    }
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


# ---------------------------------------------------------------- 40 books


def books(seed: int) -> Result:
    """NPMI and UCI of every method for one seed."""
    from topic_data import load
    from topic_models import kmeans_of_centres, pooled_kmeans

    corpus = load()
    local, ours = fused_books(seed)
    K = len(ours.centres)
    centres, sizes = np.vstack(local.centres), np.concatenate([np.bincount(m.labels_) for m in local.models])

    def means(labels: np.ndarray) -> np.ndarray:
        return added(centres * sizes[:, None], labels) / added(sizes[:, None].astype(float), labels)

    topics = {
        OURS: ours.centres,
        "k-means told K": kmeans_of_centres(corpus, local, K, seed).centres,
        "merged one by one, told K": means(merged_to(local.centres, K)),
        "merged one by one, .7": means(merged(local.centres)),
        "stacking": centres,
        "pooled k-means told K": pooled_kmeans(corpus, K, seed).centres,
    }
    return {"methods": {name: coherent(coherence.nearest(values, corpus)) for name, values in topics.items()}}


def pages(seed: int) -> Result:
    """The same books cut into pages, each book a silo: as newsgroups, coherence by other books."""
    from topic_data import load, load_pages

    X, book = load_pages()
    rng = np.random.default_rng(seed)
    out = np.zeros(len(book), dtype=bool)
    for b in np.unique(book):
        own = np.flatnonzero(book == b)
        out[rng.choice(own, max(1, len(own) // HELD_OUT), replace=False)] = True
    halves = silos.halves_of(X[out], rng)
    held = [X[~out & (book == b)] for b in np.unique(book)]
    return of_silos(held, X[~out], halves, load().table, seed)


def fused_books(seed: int) -> Any:
    """Local topics of the books, and those of the bare call."""
    from topic_data import load
    from topic_models import assigned, local_topics, quiet

    local = local_topics(load(), seed)
    with quiet():
        fusion = fuse(local.models)
    return local, assigned(load(), next(iter(fusion.matching.values.values())), 0.0)


def coherent(tops: np.ndarray) -> dict[str, float]:
    """Of lists of words, in other books."""
    from topic_data import load

    measured = coherence.coherence(tops, load().table)
    return {"K": len(tops), **{m: float(measured[m].mean()) for m in ("npmi", "uci")}}


# ---------------------------------------------------------------- what they say

MORE_IS_BETTER = {"perplexity": False, "npmi": True, "uci": True}
SETS = {"newsgroups": "20 newsgroups", "books": "40 books", "pages": "40 books, pages"}


def told(name: str, results: Mapping[str, Result]) -> tuple[Table, list[Claim]]:
    """Means of a set, and differences of ours from every rival; claims where all seeds that were stated are run."""
    draws = [r["methods"] for task, r in results.items() if task.startswith(name)]
    rows, claims = [], []
    ours = next(iter(draws[0]))
    measures = [m for m in MORE_IS_BETTER if m in draws[0][ours]]
    for method in draws[0]:
        row: list[Any] = [method, f"{np.mean([d[method]['K'] for d in draws]):.1f}"]
        for measure in measures:
            digits = 1 if measure == "perplexity" else 3
            row.append(f"{np.mean([d[method][measure] for d in draws]):.{digits}f}")
            if method == ours:
                row.append("")
                continue
            difference = paired([d[ours][measure] for d in draws], [d[method][measure] for d in draws])
            row.append(str(difference))
            if "told K" in method and len(draws) == len(SEEDS):
                good = difference if MORE_IS_BETTER[measure] else paired([0] * len(draws), lost(draws, ours, method))
                text = f"{SETS[name]}, {measure}: {ours} beside {method}: {good.verdict}."
                claims.append(Claim(text, str(difference), good.verdict != "behind"))
        rows.append(row)
    columns = ["method", "K", *(c for m in measures for c in (m, "ours less it"))]
    note = "Means over seeds; differences seed by seed with 95 % intervals. Less perplexity is better."
    return Table(f"{SETS[name]}, {len(draws)} seeds", columns, rows, note), claims


def lost(draws: list[Any], ours: str, method: str) -> list[float]:
    """How much more perplexity ours has."""
    return [d[ours]["perplexity"] - d[method]["perplexity"] for d in draws]


def summary(results: Mapping[str, Result]) -> dict[str, Any]:
    """Tables and claims of what there is."""
    parts = [told(name, results) for name in SETS if any(task.startswith(name) for task in results)]
    claims = [asdict(c) for _, own in parts for c in own]
    return {"title": "Topics on seeds stated before", "tables": [asdict(t) for t, _ in parts], "claims": claims}


def main() -> None:
    """Run, and write results.json and tables.md."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="newsgroups20.npz: README.md")
    parser.add_argument("--only", choices=[*SETS])
    parser.add_argument("--first", type=int, default=len(SEEDS), help="so many of the seeds, from the first")
    parser.add_argument("--done", action="store_true", help="tell of the tasks that are done, run no other")
    parser.add_argument("--out", type=Path, default=Path("reproduced/planned_topics"))
    parser.add_argument("--smoke", action="store_true")
    options = parser.parse_args()
    runs: dict[str, Callable[[int], Task]] = {
        "newsgroups": lambda s: Task(f"newsgroups/{s}", newsgroups, (options.data, s)),
        "books": lambda s: Task(f"books/{s}", books, (s,)),
        "pages": lambda s: Task(f"pages/{s}", pages, (s,)),
    }
    if options.smoke:
        tasks = [runs["newsgroups"](seed) for seed in (0, 1)]
    else:
        if options.data is None and not options.done and options.only in (None, "newsgroups"):
            parser.error("give --data newsgroups20.npz, or --only books, --only pages, or --smoke")
        tasks = [run(s) for name, run in runs.items() if options.only in (None, name) for s in SEEDS[: options.first]]
    folder = options.out / "tasks"
    results = carried_out(finished(tasks, folder) if options.done else tasks, folder, 1)
    record = summary(results)
    settings: dict[str, Any] = {"seeds": sorted({int(name.split("/")[1]) for name in results})}
    if options.data:
        settings["data sha256"] = hashlib.sha256(options.data.read_bytes()).hexdigest()
    keep(options.out / "results.json", {**record, "results": results}, settings, done_with=done_with(folder))
    (options.out / "tables.md").write_text(markdown(record), encoding="utf-8")
    print(markdown(record))


if __name__ == "__main__":
    main()
