"""BERTopic models of six sites of 20 newsgroups, whose topics are known, merged by `merge_models` and by modelweld.

Needs BERTopic (extra `bertopic`) and torch, by which `merge_models` saves. Nothing is downloaded: documents are
embedded by tf-idf and a truncated SVD. Choices were made on seeds 0 to 4, after a look at 100 to 109.

python experiments/merging/run.py --data FOLDER    # with newsgroups20.npz in it
python experiments/merging/run.py --smoke          # one seed
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

from study import Claim, Result, Results, Study, Summary, Table, Task, main, outside  # isort: skip; first: it sets the threads

import time
import warnings
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix, vstack
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.preprocessing import normalize

import modelweld
from paired import paired

SEEDS = range(200, 210)
SITES, GROUPS, DIMENSIONS = 6, 12, 100
"""Sites, newsgroups that each of them has, and dimensions of the embedding."""
ORDERS = 3
"""Orders of sites in which models are merged, besides the one given."""
THRESHOLDS = (0.7, 0.8, 0.9)
"""Of `merge_models`; the first is its default."""
RIVALS = [f"merge_models, {threshold}" for threshold in THRESHOLDS]


class Corpus(NamedTuple):
    """Documents as words, their embeddings and newsgroups; the last `test` of them are for asking."""

    documents: list[str]
    embeddings: np.ndarray
    groups: np.ndarray
    test: int


class Site(NamedTuple):
    """A model, and the rows of the corpus it was fitted to."""

    model: Any
    rows: np.ndarray


@cache
def corpus(path: Path) -> Corpus:
    """Of newsgroups20.npz."""
    z, parts = np.load(path), []
    for part in ("train", "test"):
        arrays = (z[f"{part}_counts"].astype(float), z[f"{part}_indices"], z[f"{part}_indptr"])
        parts.append(csr_matrix(arrays, shape=(len(z[f"{part}_indptr"]) - 1, len(z["words"]))))
    counts, test = csr_matrix(vstack(parts)), parts[1].shape[0]
    groups = np.concatenate([np.asarray(z[f"{part}_labels"]).ravel() for part in ("train", "test")])
    there = np.diff(counts.indptr) > 0  # a document without any of the words says nothing
    counts, groups, test = counts[there], groups[there], int(there[-test:].sum())
    names = [str(w) for w in z["words"]]
    rows = [
        " ".join(" ".join([names[v]] * int(n)) for v, n in zip(row.indices, row.data, strict=True)) for row in counts
    ]
    scores = TfidfTransformer(sublinear_tf=True).fit_transform(counts)
    return Corpus(rows, normalize(TruncatedSVD(DIMENSIONS, random_state=0).fit_transform(scores)), groups, test)


def planted(data: Corpus, rows: np.ndarray) -> Any:
    """A model whose topics are the newsgroups of its documents: what should be merged is known."""
    from bertopic import BERTopic
    from bertopic.cluster import BaseCluster
    from bertopic.dimensionality import BaseDimensionalityReduction

    model = BERTopic(umap_model=BaseDimensionalityReduction(), hdbscan_model=BaseCluster())
    return model.fit([data.documents[i] for i in rows], data.embeddings[rows], y=data.groups[rows])


def sites(data: Corpus, seed: int) -> list[Site]:
    """Every newsgroup is shared out among the sites that have it."""
    rng = np.random.default_rng(seed)
    holds = [rng.permutation(20)[:GROUPS] for _ in range(SITES)]
    owner = np.full(len(data.groups) - data.test, -1)
    for group in range(20):
        owners = [j for j in range(SITES) if group in holds[j]]
        rows = np.flatnonzero(data.groups[: len(owner)] == group)
        if owners:
            owner[rows] = rng.choice(owners, len(rows), p=rng.dirichlet(np.ones(len(owners))))
    return [Site(planted(data, rows), rows) for rows in (np.flatnonzero(owner == j) for j in range(SITES))]


def merged(held: Sequence[Site], threshold: float) -> tuple[Any, np.ndarray]:
    """By `merge_models`, and the topic that every document of these sites then has."""
    from bertopic import BERTopic

    model = BERTopic.merge_models([site.model for site in held], min_similarity=threshold)
    return model, np.array(model.topics_)


def fused(held: Sequence[Site], weigh: bool = True) -> tuple[Any, np.ndarray]:
    """By modelweld; without `weigh`, topics of few documents count as much as others."""
    sent = [modelweld.read(site.model) for site in held]
    fusion = modelweld.fuse(sent if weigh else [local.with_(weight={}) for local in sent])
    held_by = zip(held, fusion.labels, strict=True)
    parts = [np.append(labels, -1)[np.array(site.model.topics_)] for site, labels in held_by]  # -1 stays -1
    return fusion.model(), np.concatenate(parts)


def judged(data: Corpus, held: Sequence[Site], model: Any, topics: np.ndarray) -> tuple[dict[str, float], np.ndarray]:
    """How good, and the topics of the documents to ask, in the order given."""
    rows, known = np.concatenate([site.rows for site in held]), topics >= 0
    asked = slice(len(data.groups) - data.test, None)
    answers, _ = model.transform(data.documents[asked], data.embeddings[asked])
    kept = sorted(set(topics[known].tolist()))
    means = normalize(np.stack([data.embeddings[rows][topics == t].mean(axis=0) for t in kept]))
    vectors = normalize(np.asarray(model.topic_embeddings_)[np.array(kept) + model._outliers])
    local = np.concatenate([1000 * j + np.array(site.model.topics_) for j, site in enumerate(held)])[known]
    names, first = np.unique(local, return_index=True)
    truth = [np.bincount(data.groups[rows][known][local == t].astype(int)).argmax() for t in names]
    found = {
        "K": len(kept),
        "true_K": len(np.unique(data.groups[rows])),
        "ari": float(adjusted_rand_score(truth, topics[known][first])),
        "nmi of test documents": float(normalized_mutual_info_score(data.groups[asked], answers)),
        "least cosine of embeddings": float((means * vectors).sum(axis=1).min()),
    }
    return found, np.array(answers)


def compared(path: Path, seed: int) -> Iterator[tuple[str, dict[str, float]]]:
    """Every method in several orders: means, and how much depends on the order."""
    data = corpus(path)
    held, rng = sites(data, seed), np.random.default_rng(seed)
    orders = [np.arange(len(held)), *(rng.permutation(len(held)) for _ in range(ORDERS))]
    methods: dict[str, Any] = {"modelweld.fuse(models).model()": fused}
    methods["the same, topics weighed alike"] = lambda own: fused(own, weigh=False)
    methods |= {r: (lambda own, t=t: merged(own, t)) for r, t in zip(RIVALS, THRESHOLDS, strict=True)}
    for name, method in methods.items():
        rows, answers, seconds = [], [], time.process_time()
        for order in orders:
            own = [held[j] for j in order]
            row, said = judged(data, own, *method(own))
            rows.append(row)
            answers.append(said)
        mean = {key: float(np.mean([row[key] for row in rows])) for key in rows[0]}
        mean["range of K over orders"] = float(np.ptp([row["K"] for row in rows]))
        mean["ari between orders"] = float(np.mean([adjusted_rand_score(answers[0], other) for other in answers[1:]]))
        mean["cpu"] = (time.process_time() - seconds) / len(orders)
        yield name, mean


def measured(seed: int) -> Result:
    """All methods on one draw."""
    warnings.simplefilter("ignore")
    path = outside("newsgroups20.npz")
    if path is None:
        sys.exit("error: this study needs newsgroups20.npz in the folder that --data names.")
    return {"methods": dict(compared(path, seed))}


def tasks(quick: bool) -> list[Task]:
    """One per seed."""
    return [Task(f"planted/{seed}", measured, (seed,)) for seed in SEEDS[: 1 if quick else None]]


def summary(results: Results) -> Summary:
    """Means over seeds, and the first method less the others."""
    draws = [r["methods"] for r in results.values()]
    first, measures = next(iter(draws[0])), list(next(iter(draws[0].values())))
    rows = []
    for method in draws[0]:
        less = "" if method == first else str(paired(*([d[m]["ari"] for d in draws] for m in (first, method))))
        rows.append([method, *(f"{np.mean([d[method][m] for d in draws]):.3f}" for m in measures), less])
    note = "Means over draws and orders of the sites; ari: of the local topics, by the newsgroup of each."
    gain = paired(*([max(d[m]["ari"] for m in some) for d in draws] for some in ([first], RIVALS)))
    text = f"topics of 20 newsgroups, ARI: `{first}` ahead of `merge_models` at its best of three thresholds."
    claim = Claim(text, str(gain), gain.verdict == "ahead", f"{len(draws)} draws, {1 + ORDERS} orders")
    return Summary([Table(f"{len(draws)} draws", ["", *measures, "ARI of the first less this"], rows, note)], [claim])


TITLE = "BERTopic models of six sites, merged"
QUESTION = "Six sites hold 12 of 20 newsgroups each, their topics: are they merged right, whatever the order?"

if __name__ == "__main__":
    main(Study("merging", TITLE, QUESTION, tasks, summary, needs={"bertopic": "bertopic", "torch": "torch"}))
