"""BERTopic models of six sites of 20 newsgroups, merged by its own `merge_models` and by modelweld.

    python experiments/directions/merging.py --data newsgroups20.npz --out experiments/directions/results
    python experiments/directions/merging.py --smoke          # a tiny made-up corpus, seconds

Needs BERTopic (extra `bertopic`) with umap-learn and hdbscan, and torch, by which `merge_models` saves. Nothing is
downloaded: documents are embedded by tf-idf and a truncated SVD. Choices were made on seeds 0 to 4, after a look
at 100 to 109; the record is of seeds from 200 on.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import argparse
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.preprocessing import normalize

sys.path.insert(0, str(Path(__file__).parents[1]))

import modelweld
from paired import paired
from provenance import keep

FIRST_SEED, SEEDS = 200, 10
SITES, GROUPS, DIMENSIONS = 6, 12, 100
"""Sites, newsgroups that each of them has, and dimensions of the embedding."""
ORDERS = 3
"""Orders of sites in which models are merged, besides the one given."""
THRESHOLDS = (0.7, 0.8, 0.9)
"""Of `merge_models`; the first is its default."""
Row = dict[str, Any]


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


def corpus(path: Path | None) -> Corpus:
    """Of newsgroups20.npz, or made up."""
    if path is None:
        rng = np.random.default_rng(0)
        groups = rng.integers(0, 20, 1500)
        themes = rng.dirichlet(np.full(200, 0.05), 20)
        counts, words, test = csr_matrix(np.array([rng.multinomial(40, themes[g]) for g in groups])), None, 300
    else:
        z = np.load(path)
        parts = [
            csr_matrix(
                (z[f"{part}_counts"].astype(float), z[f"{part}_indices"], z[f"{part}_indptr"]),
                shape=(len(z[f"{part}_indptr"]) - 1, len(z["words"])),
            )
            for part in ("train", "test")
        ]
        from scipy.sparse import vstack

        counts, words, test = csr_matrix(vstack(parts)), z["words"], parts[1].shape[0]
        groups = np.concatenate([np.asarray(z[f"{part}_labels"]).ravel() for part in ("train", "test")])
    there = np.diff(counts.indptr) > 0  # a document without any of the words says nothing
    test = int(there[len(there) - test :].sum())
    counts, groups = counts[there], groups[there]
    names = [f"word{v}" for v in range(counts.shape[1])] if words is None else [str(w) for w in words]
    rows = [
        " ".join(" ".join([names[v]] * int(n)) for v, n in zip(row.indices, row.data, strict=True)) for row in counts
    ]
    scores = TfidfTransformer(sublinear_tf=True).fit_transform(counts)
    svd = TruncatedSVD(min(DIMENSIONS, counts.shape[1] - 1), random_state=0)
    return Corpus(rows, normalize(svd.fit_transform(scores)), groups, test)


def planted(data: Corpus, rows: np.ndarray, seed: int) -> Any:
    """A model whose topics are the newsgroups of its documents: what should be merged is known."""
    from bertopic import BERTopic
    from bertopic.cluster import BaseCluster
    from bertopic.dimensionality import BaseDimensionalityReduction

    model = BERTopic(umap_model=BaseDimensionalityReduction(), hdbscan_model=BaseCluster())
    return model.fit([data.documents[i] for i in rows], data.embeddings[rows], y=data.groups[rows])


def found(data: Corpus, rows: np.ndarray, seed: int) -> Any:
    """A model as BERTopic makes it by default: UMAP and HDBSCAN."""
    from bertopic import BERTopic
    from umap import UMAP

    umap = UMAP(n_neighbors=15, n_components=5, min_dist=0.0, metric="cosine", random_state=seed, n_jobs=1)
    model = BERTopic(umap_model=umap, min_topic_size=15)
    return model.fit([data.documents[i] for i in rows], data.embeddings[rows])


def sites(data: Corpus, make: Any, seed: int, smoke: bool) -> list[Site]:
    """Every newsgroup is shared out among the sites that have it."""
    rng = np.random.default_rng(seed)
    number = 3 if smoke else SITES
    holds = [rng.permutation(20)[:GROUPS] for _ in range(number)]
    owner = np.full(len(data.groups) - data.test, -1)
    for group in range(20):
        owners = [j for j in range(number) if group in holds[j]]
        rows = np.flatnonzero(data.groups[: len(owner)] == group)
        if owners:
            owner[rows] = rng.choice(owners, len(rows), p=rng.dirichlet(np.ones(len(owners))))
    shares = [np.flatnonzero(owner == j) for j in range(number)]
    return [Site(make(data, rows, seed), rows) for rows in shares]


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


def judged(data: Corpus, held: Sequence[Site], model: Any, topics: np.ndarray) -> tuple[Row, np.ndarray]:
    """How good, and the topics of the documents to ask, in the order given."""
    rows = np.concatenate([site.rows for site in held])
    asked = slice(len(data.groups) - data.test, None)
    answers, _ = model.transform(data.documents[asked], data.embeddings[asked])
    own = data.embeddings[rows]
    vectors = np.asarray(model.topic_embeddings_)
    kept = sorted(set(topics[topics >= 0].tolist()))
    means = normalize(np.stack([own[topics == t].mean(axis=0) for t in kept]))
    vectors = normalize(vectors[np.array(kept) + model._outliers])
    known = topics >= 0
    local = np.concatenate([1000 * j + np.array(site.model.topics_) for j, site in enumerate(held)])[known]
    _, first = np.unique(local, return_index=True)
    truth = _majority(local, data.groups[rows][known])
    row = {
        "K": len(kept),
        "true_K": len(np.unique(data.groups[rows])),
        "ari of local topics": float(adjusted_rand_score(truth, topics[known][first])),
        "nmi of test documents": float(normalized_mutual_info_score(data.groups[asked], answers)),
        "least cosine of embeddings": float((means * vectors).sum(axis=1).min()),
    }
    return row, np.array(answers)


def _majority(local: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """The newsgroup most of whose documents each local topic has, in their order."""
    return np.array([np.bincount(groups[local == t].astype(int)).argmax() for t in np.unique(local)])


def compared(data: Corpus, make: Any, seed: int, smoke: bool) -> Iterator[tuple[str, Row]]:
    """Every method in several orders: means, and how much depends on the order."""
    held, rng = sites(data, make, seed, smoke), np.random.default_rng(seed)
    orders = [np.arange(len(held)), *(rng.permutation(len(held)) for _ in range(ORDERS))]
    methods = {"modelweld.fuse(models).model()": fused}
    methods["the same, topics weighed alike"] = lambda own: fused(own, weigh=False)
    methods |= {f"merge_models, {t}": (lambda own, t=t: merged(own, t)) for t in THRESHOLDS}
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
        mean["local topics"] = float(sum(len(site.model.topic_sizes_) - site.model._outliers for site in held))
        yield name, mean


def table(rows: list[Row]) -> str:
    """Means over seeds."""
    names = [name for name in rows[0] if name not in ("cell", "method", "seed")]
    lines = [f"| | | seeds | {' | '.join(names)} |", "|---" * (len(names) + 3) + "|"]
    for cell, method in dict.fromkeys((row["cell"], row["method"]) for row in rows):
        own = [row for row in rows if (row["cell"], row["method"]) == (cell, method)]
        cells = [f"{np.mean([row[name] for row in own]):.3f}" for name in names]
        lines.append(f"| {cell} | {method} | {len(own)} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def differences(rows: list[Row]) -> str:
    """Of the first method less each of the others, on the same draws."""
    measures = ("ari of local topics", "nmi of test documents")
    lines = ["", f"| the first method less | {' | '.join(measures)} |", "|---|---|---|"]
    methods = list(dict.fromkeys(row["method"] for row in rows))
    found = {(row["method"], row["seed"]): row for row in rows}
    seeds = sorted({row["seed"] for row in rows})
    for other in methods[1:]:
        each = [[[found[method, seed][m] for seed in seeds] for method in (methods[0], other)] for m in measures]
        lines.append(f"| {other} | {' | '.join(str(paired(*both)) for both in each)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="newsgroups20.npz; without one, made up")
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--only", nargs="+", choices=("planted", "found"), default=("planted", "found"))
    parser.add_argument("--out", type=Path, default=Path("reproduced", "directions"))
    parser.add_argument("--smoke", action="store_true", help="everything small, one seed")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    data = corpus(None if asked.smoke else asked.data)
    asked.out.mkdir(parents=True, exist_ok=True)
    others = {name: metadata.version(name) for name in ("bertopic", "umap-learn", "hdbscan", "torch")}
    about = {"data": asked.data.name if asked.data else "made up", "sites": SITES, "groups of each": GROUPS}
    about |= {"dimensions": DIMENSIONS, "orders": 1 + ORDERS, "first_seed": asked.first_seed, **others}
    for name in asked.only:
        rows: list[Row] = []
        for seed in range(asked.first_seed, asked.first_seed + (1 if asked.smoke else asked.seeds)):
            for method, row in compared(data, {"planted": planted, "found": found}[name], seed, asked.smoke):
                rows.append({"cell": name, "method": method, "seed": seed, **row})
            keep(asked.out / f"merging_{name}.json", {"rows": rows}, {**about, "seeds": seed - asked.first_seed + 1})
            (asked.out / f"merging_{name}.md").write_text(table(rows) + differences(rows))
        print(table(rows) + differences(rows), flush=True)


if __name__ == "__main__":
    main()
