"""Who is compared on sites that send hidden Markov models, and how an answer names frames.

A contender gives the global state of every local state; frames are then named through the local most likely paths. A
decoder (the fused model, or one fitted to the frames of all sites) names frames itself.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from modelweld import Fusion, LocalModel, fuse
from modelweld.demo.simulate import Simulated
from modelweld.kinds.hmm import hmm
from shared.baselines import kmeans_matching

STARTS, ITERATIONS, RIDGE = 3, 100, 0.01  # of the pooled model, as of the local ones
SHRINK = 0.1
"""Of the fused model that decodes: a state of one site and few frames has a singular covariance without."""

AUTHORS, PAPER, OURS, MEANS = "SPAHM, authors' form", "SPAHM, as printed", "ours", "ours, means only"
KMEANS, TRUE, DISJOINT = "k-means matching, told K", "true labels", "no matching"
DECODED, POOLED = "ours, fused model decodes", "pooled HMM, told K"


@dataclass(frozen=True, eq=False)
class Answer:
    """How many states there are, and the state of every frame of every site; of every local state where there are."""

    K: int
    frames: list[np.ndarray]
    states: np.ndarray | None = None


def first_sites(drawn: Simulated, J: int) -> Simulated:
    """The first J sites."""
    lists = ("values", "truth", "counts", "covariances", "points", "origin", "assigned")
    return Simulated(atoms=drawn.atoms, **{name: getattr(drawn, name)[:J] for name in lists})


def sites(drawn: Simulated) -> list[LocalModel]:
    """What a site sends: means, covariances and, counted along its most likely path, transitions."""
    found = []
    for means, counts, covariances, path in zip(
        *told(drawn, "values", "counts", "covariances", "assigned"), strict=True
    ):
        K = len(means)
        moves = np.zeros((K, K))
        np.add.at(moves, (path[:-1], path[1:]), 1.0)
        emissions = {"means": means, "covariances": covariances}
        found.append(hmm(moves, np.eye(K)[path[0]], counts, emissions, counted=True))
    return found


def told(drawn: Simulated, *names: str) -> list[Any]:
    """Lists of a draw that estimated sites have."""
    return [getattr(drawn, name) for name in names]


def by_matching(drawn: Simulated, labels: Sequence[np.ndarray], atoms: np.ndarray | None = None) -> Answer:
    """Frames named through local paths; local states beyond the K `atoms` count with the nearest of these."""
    states = np.concatenate(labels)
    if atoms is not None and (states >= len(atoms)).any():
        aside = states >= len(atoms)
        states = states.copy()
        states[aside] = cdist(np.concatenate(drawn.values)[aside], atoms).argmin(axis=1)
    K = len(np.unique(states)) if atoms is None else len(atoms)
    of_site = np.split(states, np.cumsum([len(v) for v in drawn.values])[:-1])
    assert drawn.assigned is not None
    return Answer(K, [own[path] for own, path in zip(of_site, drawn.assigned, strict=True)], states)


def by_fusion(drawn: Simulated, fusion: Fusion) -> Answer:
    """The answer of a fusion."""
    return by_matching(drawn, fusion.labels, fusion.atoms[: fusion.K])


def true_K(drawn: Simulated) -> int:
    """Number of true states that some site was in."""
    return len(np.unique(np.concatenate(told(drawn, "origin")[0])))


def no_matching(drawn: Simulated) -> Answer:
    """Every local state is a state of its own."""
    return by_matching(
        drawn, np.split(np.arange(len(drawn.stacked_truth)), np.cumsum(list(map(len, drawn.truth)))[:-1])
    )


def decoded(drawn: Simulated) -> Answer:
    """The most likely paths of all sites under the fused model; states that are set aside stay in it, and in K."""
    model = fuse(sites(drawn)).model(like="GaussianHMM", shrink=SHRINK)
    paths = [model.predict(points) for points in told(drawn, "points")[0]]
    return Answer(len(np.unique(np.concatenate(paths))), paths)


def pooled(drawn: Simulated) -> Answer:
    """One model of the frames of all sites, told the number of states: the most likely of three starts."""
    from hmmlearn.hmm import GaussianHMM

    (points,), K = told(drawn, "points"), true_K(drawn)
    frames, lengths = np.concatenate(points), [len(p) for p in points]
    prior = 1 + 5 * np.eye(K)
    fitted = []
    for start in range(STARTS):
        model = GaussianHMM(K, "full", min_covar=RIDGE, transmat_prior=prior, n_iter=ITERATIONS, random_state=start)
        with quiet():
            try:
                fitted.append((model.fit(frames, lengths).score(frames, lengths), start, model))
            except ValueError:  # hmmlearn's word for a state that lost its frames
                continue
    best = max(fitted)[2]
    return Answer(K, [best.predict(p) for p in points])


@contextmanager
def quiet() -> Iterator[None]:
    """Say nothing of fits that did not converge: sites have such models, too."""
    logger = logging.getLogger("hmmlearn")
    level = logger.level
    logger.setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    logger.setLevel(level)


CONTENDERS: Mapping[str, Callable[[Simulated], Answer]] = {
    AUTHORS: lambda drawn: by_fusion(drawn, fuse(drawn.values, preset="authors")),
    PAPER: lambda drawn: by_fusion(drawn, fuse(drawn.values, preset="paper")),
    MEANS: lambda drawn: by_fusion(drawn, fuse(drawn.values)),
    OURS: lambda drawn: by_fusion(drawn, fuse(sites(drawn))),
    DECODED: decoded,
    KMEANS: lambda drawn: by_fusion(drawn, kmeans_matching(drawn.values, true_K(drawn))),
    POOLED: pooled,
    TRUE: lambda drawn: by_matching(drawn, drawn.truth),
    DISJOINT: no_matching,
}
