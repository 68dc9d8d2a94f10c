"""Anybody's groups beside what people use today: cells, reruns, catalogues, scalp maps.

    python experiments/groups/run.py --out experiments/groups --pbmc FOLDER --cosmic FILE     # a few CPU minutes
    python experiments/groups/run.py --seeds 1 --parts cells kmeans                            # one seed of two parts

README.md says what is drawn and compared. `--pbmc` is the folder `data` of harmonypy's repository (cells of three
donors), `--cosmic` is COSMIC_v3.6_SBS_GRCh37.txt of the package SigProfilerAssignment; parts whose data or libraries
(harmonypy, leidenalg, gensim, mne) are not there are left out.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy: seconds should mean one core

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # where provenance.py is

import argparse
import logging
import time
import warnings
from importlib.util import find_spec

import numpy as np
import scenes
from sklearn.cluster import AgglomerativeClustering, KMeans
from sklearn.metrics import silhouette_score

import modelweld
from modelweld.demo.metrics import adjusted_rand
from modelweld.groups.reruns import _frequencies
from paired import paired
from provenance import keep

FIRST_SEED = 8600
"""Seeds below were used to choose; those from here on were looked at once."""

Row = dict[str, float]


def spread(labels: list[np.ndarray], fusion: modelweld.Fusion) -> np.ndarray:
    """Fused groups of all rows, of sites one below the other."""
    return np.concatenate([np.asarray(atoms)[own] for atoms, own in zip(fusion.labels, labels, strict=True)])


def cells(seed: int, strength: float) -> Row:
    """Cells of four donors with batch effects, clustered at home."""
    drawn = scenes.draw_cells(seed, strength)
    sent = [modelweld.read(X=X, labels=labels) for X, labels in drawn.sites]
    found = {"fuse": spread(drawn.labels, modelweld.fuse(sent))}
    found["fuse, site effects off"] = spread(drawn.labels, modelweld.fuse(sent, site_effects=False))
    found["Hungarian to the first donor"] = scenes.assign_to_first(drawn.sites)
    pooled = np.concatenate([X for X, _ in drawn.sites])
    found["k-means of pooled cells, given K"] = KMeans(scenes.TYPES, n_init=5, random_state=0).fit_predict(pooled)
    if find_spec("harmonypy"):
        corrected = scenes.harmonise(pooled, np.repeat(np.arange(len(drawn.sites)), [len(X) for X, _ in drawn.sites]))
        told = KMeans(scenes.TYPES, n_init=5, random_state=0)
        found["Harmony of pooled cells, k-means given K"] = told.fit_predict(corrected)
    return {name: adjusted_rand(labels, drawn.truth) for name, labels in found.items()}


def pbmc(folder: Path, resolution: float) -> Row:
    """Cells of three donors, Leiden at home; agreement with Leiden of pooled cells that Harmony has corrected."""
    X, donor = scenes.read_pbmc(folder)
    truth, sites = scenes.leiden(scenes.harmonise(X, donor), resolution), []
    ceiling, order = np.empty(len(X), dtype=int), np.concatenate([np.flatnonzero(donor == d) for d in np.unique(donor)])
    for d in np.unique(donor):
        own = scenes.leiden(X[donor == d], resolution)
        sites.append((X[donor == d], own))
        ceiling[donor == d] = np.array(
            [np.bincount(truth[donor == d][own == k]).argmax() for k in range(own.max() + 1)]
        )[own]
    sent, labels = [modelweld.read(X=x, labels=own) for x, own in sites], [own for _, own in sites]
    means = [np.asarray(site.arrays["means"]) for site in sent]
    found = {
        "fuse": spread(labels, modelweld.fuse(sent)),
        "fuse, site effects off": spread(labels, modelweld.fuse(sent, site_effects=False)),
        "fuse, means alone": spread(labels, modelweld.fuse(means)),
        "Hungarian to the first donor": scenes.assign_to_first(sites),
        "Leiden of pooled cells, not corrected": scenes.leiden(X, resolution)[order],
        "every cluster right (ceiling)": ceiling[order],
    }
    return {name: adjusted_rand(labels, truth[order]) for name, labels in found.items()}


def kmeans(seed: int, told: bool) -> Row:
    """Twenty runs of k-means from random starts; with other numbers of clusters each, or told the true one."""
    X, truth = scenes.draw_clusters(seed)
    rng = np.random.default_rng([seed, 1])

    def run() -> KMeans:
        k = scenes.CLUSTERS if told else int(rng.integers(9, 17))
        return KMeans(k, n_init=1, init="random", random_state=int(rng.integers(2**31))).fit(X)

    runs, fresh = [run() for _ in range(20)], [run() for _ in range(10)]
    together = np.mean([r.labels_[:, None] == r.labels_ for r in runs], axis=0)
    linked = AgglomerativeClustering(None, metric="precomputed", linkage="average", distance_threshold=0.5)
    begin = time.process_time()
    ours = modelweld.consensus(runs, X)
    seconds = time.process_time() - begin
    found = {
        "consensus": ours.labels,
        "consensus, labels alone": modelweld.consensus([r.labels_ for r in runs]).labels,
        "co-association, average linkage": linked.fit_predict(1 - together),
        "silhouette's pick": max(runs, key=lambda r: silhouette_score(X, r.labels_)).labels_,
        "least inertia": min(runs, key=lambda r: r.inertia_).labels_,
    }
    again = [ours.fusion.add(modelweld.read(X=X, labels=r.labels_), refit=False).labels[-1] for r in fresh]
    return {
        **{name: adjusted_rand(labels, truth) for name, labels in found.items()},
        "a run": float(np.mean([adjusted_rand(r.labels_, truth) for r in runs])),
        "K": len(ours.frequency),
        "stated": float(ours.frequency.mean()),
        "found again": float(np.mean([np.isin(ours.atoms, labels).mean() for labels in again])),
        "CPU s": seconds,
    }


def parts(seed: int, kind: str) -> Row:
    """Twenty runs of NMF or LDA with 6 to 11 components: cosines with the true eight, and calibration."""
    truth, X, run = scenes.draw_parts(seed, kind)
    runs, fresh = [run() for _ in range(20)], [run() for _ in range(10)]
    ours = modelweld.consensus(runs)
    chances = _frequencies(ours.fusion)
    again = np.mean(
        [np.isin(np.arange(len(chances)), ours.fusion.add(r, refit=False).labels[-1]) for r in fresh], axis=0
    )
    found = {
        "consensus": scenes.both_ways(ours.model().components_, truth),
        "a run": float(np.mean([scenes.both_ways(r.components_, truth) for r in runs])),
        "K": len(ours.frequency),
        "stated": float(chances.mean()),
        "found again": float(again.mean()),
    }
    if kind == "LDA" and find_spec("gensim"):
        topics = scenes.ensemble_lda(X, seed)
        found["gensim's EnsembleLda"] = scenes.both_ways(topics, truth) if len(topics) else 0.0
        found["EnsembleLda, K"] = len(topics)
    return found


def catalogue(seed: int, file: Path, mutations: int) -> Row:
    """Signatures of eight cohorts, of which five of fifteen are in no catalogue: share of signatures named right."""
    drawn = scenes.draw_cohorts(seed, file, mutations)
    fusion = modelweld.fuse(drawn.sites)
    named = modelweld.name_groups(fusion, drawn.catalogue)
    labels, entries = np.concatenate(fusion.labels), np.array([*drawn.catalogue, "new"])
    names = np.array([*named.names, *["new"] * (len(fusion.counts) - fusion.K)])
    found = {"name_groups": float(np.mean(names[labels] == drawn.truth)), "stated": float(named.probability.mean())}
    values = scenes.unit(np.array(list(drawn.catalogue.values())))
    for what, vectors in {"fused": fusion.atoms[labels], "single": drawn.directions}.items():
        cosines = vectors @ values.T
        for threshold in (0.8, 0.85, 0.9, 0.95):
            best = np.where(cosines.max(axis=1) >= threshold, cosines.argmax(axis=1), -1)
            found[f"cosine {threshold}, {what}"] = float(np.mean(entries[best] == drawn.truth))
    return found


def maps(seed: int) -> Row:
    """Components of six subjects with nine dipoles among them; corrmap with all of the first subject's as templates."""
    icas, truth = scenes.draw_subjects(seed)
    fusion = modelweld.fuse(icas)
    theirs = scenes.corrmap_all(icas)
    kept = np.concatenate(truth) >= 0
    right = np.concatenate(truth)[kept]
    return {
        "fuse": adjusted_rand(np.concatenate(fusion.labels)[kept], right),
        "corrmap": adjusted_rand(theirs[kept], right),
        "shared groups, fuse": fusion.shared,
        "true": scenes.DIPOLES,
    }


def measure(args: argparse.Namespace) -> dict[str, list[Row]]:
    """All parts, seed by seed."""
    seeds = range(FIRST_SEED, FIRST_SEED + args.seeds)
    tasks = {
        "cells, mild batches": lambda: [cells(seed, 0.3) for seed in seeds],
        "cells, strong batches": lambda: [cells(seed, 1.0) for seed in seeds],
        "kmeans, K unknown": lambda: [kmeans(seed, False) for seed in seeds],
        "kmeans, K given": lambda: [kmeans(seed, True) for seed in seeds],
        "NMF": lambda: [parts(seed, "NMF") for seed in seeds[: args.seeds // 2 or 1]],
        "LDA": lambda: [parts(seed, "LDA") for seed in seeds[: args.seeds // 4 or 1]],
    }
    if args.pbmc is not None:
        for resolution in (0.5, 1.0):
            tasks[f"pbmc, resolution {resolution}"] = lambda r=resolution: [pbmc(args.pbmc, r)]
    if args.cosmic is not None:
        for mutations in (2000, 400):
            tasks[f"catalogue, {mutations} mutations"] = lambda m=mutations: [
                catalogue(s, args.cosmic, m) for s in seeds
            ]
    if find_spec("mne"):
        tasks["maps"] = lambda: [maps(seed) for seed in seeds[: args.seeds // 2 or 1]]
    results = {}
    for name, task in tasks.items():
        if not args.parts or name.split(",")[0] in args.parts:
            begin = time.process_time()
            results[name] = task()
            print(f"{name}: {time.process_time() - begin:.0f} CPU s", flush=True)
    return results


def tables(results: dict[str, list[Row]]) -> list[str]:
    """One table per part: means, and ours less each, draw by draw."""
    lines = ["# Groups", ""]
    for part, rows in results.items():
        first = next(iter(rows[0]))
        lines += [f"## {part}", "", f"| | mean | {first} less this |", "|---|---|---|"]
        for name in rows[0]:
            own = [row[name] for row in rows]
            rival = name != first and name not in scenes.FACTS
            less = str(paired([row[first] for row in rows], own)) if rival and len(rows) > 1 else ""
            lines.append(f"| {name} | {np.mean(own):.3f} | {less} |")
        lines.append("")
    return lines


def main() -> None:
    """Measure, print and keep."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=12)
    parser.add_argument("--parts", nargs="*", default=[])
    parser.add_argument("--pbmc", type=Path, default=None)
    parser.add_argument("--cosmic", type=Path, default=None)
    parser.add_argument("--out", type=Path, default=None)
    args = parser.parse_args()
    logging.getLogger("harmonypy").setLevel(logging.WARNING)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = measure(args)
    lines = tables(results)
    print("\n".join(lines))
    if args.out is not None:
        keep(args.out / "results.json", {"parts": results}, {"seeds": args.seeds, "first_seed": FIRST_SEED})
        (args.out / "tables.md").write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
