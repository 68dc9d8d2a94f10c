"""What the study of groups draws, and rivals that are no library's own call."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.optimize
from sklearn.cluster import AgglomerativeClustering
from sklearn.decomposition import NMF, PCA, LatentDirichletAllocation
from sklearn.neighbors import kneighbors_graph

import modelweld
from modelweld.kinds.components import components

FACTS = ("K", "stated", "found again", "CPU s", "EnsembleLda, K", "shared groups, fuse", "true")
"""Figures that are no rivals."""

TYPES, DONORS, GENES, CELLS = 8, 4, 200, 250
CLUSTERS, DIPOLES = 12, 9


def unit(values: np.ndarray) -> np.ndarray:
    """Rows of length one."""
    return values / np.linalg.norm(values, axis=1, keepdims=True)


class Cells(NamedTuple):
    """Principal components and clusters of every donor's cells; true types of all."""

    sites: list[tuple[np.ndarray, np.ndarray]]
    truth: np.ndarray

    @property
    def labels(self) -> list[np.ndarray]:
        """Clusters, donor by donor."""
        return [labels for _, labels in self.sites]


def draw_cells(seed: int, strength: float) -> Cells:
    """Counts of genes, batch effects of this deviation in their logarithms; a PCA of the first donor; Ward at home."""
    rng = np.random.default_rng(seed)
    base = rng.normal(0, 1, GENES)
    programmes = base + rng.normal(0, 0.8, (TYPES, GENES)) * (rng.random((TYPES, GENES)) < 0.3)
    logs, truth = [], []
    for _ in range(DONORS):
        kind = rng.choice(TYPES, CELLS, p=rng.dirichlet([2.0] * TYPES))
        rate = np.exp(programmes[kind] + rng.normal(0, strength, GENES))
        depth = 1500 * rng.lognormal(0, 0.3, (CELLS, 1))
        counts = rng.poisson(depth * rate / rate.sum(axis=1, keepdims=True))
        logs.append(np.log1p(1e4 * counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)))
        truth.append(kind)
    pca = PCA(20, random_state=0).fit(logs[0])
    projected = [pca.transform(x) for x in logs]
    return Cells(
        [(x, AgglomerativeClustering(int(rng.integers(7, 11))).fit_predict(x)) for x in projected],
        np.concatenate(truth),
    )


def assign_to_first(sites: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Clusters of every donor assigned one to one to the first donor's by their means; those left over are new."""
    means = [np.array([X[labels == k].mean(axis=0) for k in range(labels.max() + 1)]) for X, labels in sites]
    found, new = [sites[0][1]], len(means[0])
    for (_, labels), own in zip(sites[1:], means[1:], strict=True):
        rows, columns = scipy.optimize.linear_sum_assignment(((own[:, None] - means[0]) ** 2).sum(-1))
        names = np.arange(new, new + len(own))
        names[rows] = columns
        new += len(own)
        found.append(names[labels])
    return np.concatenate(found)


def harmonise(X: np.ndarray, donor: np.ndarray) -> np.ndarray:
    """Principal components that Harmony has corrected, at its defaults."""
    import harmonypy
    import pandas as pd

    corrected = np.asarray(harmonypy.run_harmony(X, pd.DataFrame({"donor": donor.astype(str)}), ["donor"]).Z_corr)
    return corrected if len(corrected) == len(X) else corrected.T


def leiden(X: np.ndarray, resolution: float) -> np.ndarray:
    """Leiden clusters of the graph of 15 nearest neighbours."""
    import igraph
    import leidenalg

    graph = kneighbors_graph(X, 15)
    graph = scipy.sparse.triu(graph.maximum(graph.T)).tocoo()
    made = igraph.Graph(n=len(X), edges=list(zip(graph.row.tolist(), graph.col.tolist(), strict=True)))
    how = leidenalg.RBConfigurationVertexPartition
    return np.array(leidenalg.find_partition(made, how, resolution_parameter=resolution, seed=0).membership)


def read_pbmc(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Principal components of 3,500 cells of three donors, and the donor of each."""
    import pandas as pd

    X = pd.read_csv(folder / "pbmc_3500_pcs.tsv.gz", sep="\t").select_dtypes("number").to_numpy()
    return X, pd.read_csv(folder / "pbmc_3500_meta.tsv.gz", sep="\t")["donor"].to_numpy()


def draw_clusters(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of twelve groups of unlike sizes in six dimensions, and their groups."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(0, 3.2, (CLUSTERS, 6))
    truth = rng.choice(CLUSTERS, 1200, p=rng.dirichlet([5.0] * CLUSTERS))
    return centres[truth] + rng.normal(size=(1200, 6)), truth


def draw_parts(seed: int, kind: str) -> tuple[np.ndarray, np.ndarray, Callable[[], Any]]:
    """True factors or topics (8), rows made of them, and a function that fits a model with 6 to 11 of them."""
    rng = np.random.default_rng(seed)
    if kind == "NMF":
        truth = rng.gamma(0.2, 1, (8, 60))
        X = rng.poisson(4 * rng.gamma(0.4, 1, (200, 8)) @ truth).astype(float)
        settings: dict[str, Any] = {"init": "random", "max_iter": 300, "tol": 1e-3}
    else:
        truth = rng.dirichlet([0.08] * 120, 8)
        X = np.array([rng.multinomial(80, share @ truth) for share in rng.dirichlet([0.2] * 8, 250)])
        settings = {"max_iter": 15}
    cls = NMF if kind == "NMF" else LatentDirichletAllocation

    def run() -> Any:
        return cls(int(rng.integers(6, 12)), random_state=int(rng.integers(2**31)), **settings).fit(X)

    return truth, X, run


def both_ways(found: np.ndarray, truth: np.ndarray) -> float:
    """Mean cosine of true ones with the nearest found and of found ones with the nearest true."""
    cosines = unit(truth) @ unit(found).T
    return float((cosines.max(axis=1).mean() + cosines.max(axis=0).mean()) / 2)


def ensemble_lda(X: np.ndarray, seed: int) -> np.ndarray:
    """Stable topics of gensim's EnsembleLda: twenty models of nine topics."""
    from gensim.matutils import Dense2Corpus
    from gensim.models import EnsembleLda

    words = {v: str(v) for v in range(X.shape[1])}
    corpus = [[(int(v), int(n)) for v, n in row] for row in Dense2Corpus(X, documents_columns=False)]
    settings = {"num_models": 20, "num_topics": 9, "passes": 4, "iterations": 50, "random_state": seed}
    return EnsembleLda(
        corpus=corpus, id2word=words, topic_model_class="lda", ensemble_workers=1, **settings
    ).get_topics()


class Cohorts(NamedTuple):
    """Signatures that cohorts send, their directions, true names ("new": in no catalogue), and the catalogue."""

    sites: list[modelweld.LocalModel]
    directions: np.ndarray
    truth: np.ndarray
    catalogue: dict[str, np.ndarray]


def draw_cohorts(seed: int, file: Path, mutations: int) -> Cohorts:
    """Eight cohorts of 60 samples with 4 to 7 of fifteen signatures, of which five are left out of the catalogue."""
    head, *lines = [line.split("\t") for line in file.read_text(encoding="utf-8").splitlines()]
    known = np.array([line[1:] for line in lines], dtype=float).T
    known /= known.sum(axis=1, keepdims=True)
    names, rng = np.array(head[1:]), np.random.default_rng(seed)
    pool = rng.permutation(len(known))[:15]
    sites, truth = [], []
    for _ in range(8):
        held = rng.permutation(pool)[: rng.integers(4, 8)]
        active = rng.gamma(0.5, 1.0, (60, len(held))) + 1e-3
        shares = active / active.sum(axis=1, keepdims=True) @ known[held]
        counts = rng.poisson(mutations * rng.lognormal(0, 0.5, (60, 1)) * shares)
        nmf = NMF(len(held), init="nndsvda", solver="mu", beta_loss="kullback-leibler", max_iter=400, tol=1e-5)
        found = nmf.fit(counts).components_
        rows, columns = scipy.optimize.linear_sum_assignment(-unit(found) @ unit(known[held]).T)
        own = np.empty(len(held), dtype=int)
        own[rows] = held[columns]
        sites.append(components(found, signed=True, rows=60))
        truth.append(own)
    new, stacked = set(pool[:5].tolist()), np.concatenate(truth)
    called = np.array(["new" if k in new else names[k] for k in stacked])
    directions = np.concatenate([np.asarray(site.arrays["directions"]) for site in sites])
    return Cohorts(sites, directions, called, {names[k]: known[k] for k in range(len(known)) if k not in new})


def draw_subjects(seed: int) -> tuple[dict[str, Any], list[np.ndarray]]:
    """ICAs of six subjects: seven of nine dipoles each, moved by 4 mm and turned, two of their own, and noise.

    And which dipole each component is; -1: one of the subject's own, or no source (cosine below .8).
    """
    import mne

    rng = np.random.default_rng(seed)
    info = mne.create_info(mne.channels.make_standard_montage("biosemi32").ch_names, 100.0, "eeg")
    info.set_montage("biosemi32", verbose="ERROR")
    sphere = mne.make_sphere_model(r0=(0, 0, 0.04), head_radius=0.095, verbose="ERROR")

    def fields(places: np.ndarray, turned: np.ndarray) -> np.ndarray:
        n = len(places)
        dipoles = mne.Dipole(np.zeros(n), places, np.full(n, 1e-8), turned, np.ones(n))
        raw = mne.io.RawArray(np.zeros((32, 2)), info, verbose="ERROR")
        raw.set_eeg_reference(projection=True, verbose="ERROR")
        forward = mne.make_forward_dipole(dipoles, sphere, raw.info, verbose="ERROR")[0]
        maps = np.asarray(mne.convert_forward_solution(forward, force_fixed=True, verbose="ERROR")["sol"]["data"]).T
        return unit(maps - maps.mean(axis=1, keepdims=True))

    def place(n: int) -> tuple[np.ndarray, np.ndarray]:
        return np.array([0, 0, 0.04]) + 0.055 * unit(
            np.abs(rng.normal(size=(n, 3))) * rng.choice([-1, 1], (n, 3)) * [1, 1, 0.7]
        ), unit(rng.normal(size=(n, 3)))

    places, turned = place(DIPOLES)
    icas, truth = {}, []
    for j in range(6):
        held = rng.permutation(DIPOLES)[:7]
        own = place(2)
        at = np.vstack([places[held] + rng.normal(0, 0.004, (7, 3)), own[0]])
        maps = fields(at, unit(np.vstack([turned[held] + rng.normal(0, 0.1, (7, 3)), own[1]])))
        sources = rng.laplace(size=(9, 4000)) * rng.uniform(0.7, 1.5, (9, 1))
        data = maps.T @ sources + 0.03 * rng.normal(size=(32, 4000))
        raw = mne.io.RawArray(1e-5 * data, info, verbose="ERROR")
        ica = mne.preprocessing.ICA(9, random_state=seed, max_iter=500, verbose="ERROR").fit(raw, verbose="ERROR")
        cosines = np.abs(unit(ica.get_components().T) @ unit(maps).T)
        best = cosines.argmax(axis=1)
        known = np.where(best < 7, np.append(held, [-1, -1])[best], -1)
        truth.append(np.where(cosines.max(axis=1) >= 0.8, known, -1))
        icas[f"subject {j}"] = ica
    return icas, truth


def corrmap_all(icas: dict[str, Any]) -> np.ndarray:
    """Groups by mne's corrmap, every component of the first subject a template in turn; the others are alone."""
    from mne.preprocessing import corrmap

    everyone = list(icas.values())
    for ica in everyone:
        ica.labels_ = {}
    for k in range(everyone[0].n_components_):
        corrmap(everyone, (0, k), label=str(k), plot=False, verbose="ERROR")
    found, alone = [], 1000
    for ica in everyone:
        own = np.arange(alone, alone + ica.n_components_)
        alone += ica.n_components_
        for name, members in ica.labels_.items():
            own[members] = int(name)
        found.append(own)
    return np.concatenate(found)
