"""`fuse(sites)` and other defences against bad sites, and how near each leaves the honest values to the truth.

The others need matched values: a k-means of all values that is told the number of honest atoms has to match them (its
best of ten starts), or `fuse`. Within a cluster, the coordinate median and Krum (told how many members are bad at most)
stand for the mean. Trimmed k-means is told the number of atoms and the share of values that are bad.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from attacks import ATOMS, NOISE_SD, Array, Draw, Index
from sklearn.cluster import KMeans, kmeans_plusplus
from sklearn.metrics import adjusted_rand_score

import modelweld

BARE, OWN_MEDIAN, OWN_KRUM = "fuse(sites)", "median of fuse's groups", "Krum of fuse's groups"
TOLD, MEDIAN, KRUM = "k-means told K", "median of k-means' groups", "Krum of k-means' groups"
TRIMMED = "trimmed k-means told K and share"
METHODS = (BARE, OWN_MEDIAN, OWN_KRUM, TOLD, MEDIAN, KRUM, TRIMMED)
"""In the order of rows."""

STARTS, MOST_ROUNDS = 10, 100
"""Of every k-means."""


class Answer(NamedTuple):
    """Labels of all values, one below the other, -1 for those left out; a place for each label; sites named."""

    labels: Index
    places: Array
    named: tuple[str, ...] = ()


def fused(draw: Draw) -> Answer:
    """Everything by default, and what it says of sites: warnings, reasons and `diagnose`."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fusion = modelweld.fuse(draw.sent)
        said = [d.warning for d in fusion.diagnosis.sites()]
    texts = "\n".join([*(str(w.message) for w in caught), *fusion.matching.reasons, *said])
    named = tuple(site.site for site in draw.sent if repr(site.site) in texts)
    labels = np.concatenate(fusion.labels)
    return Answer(np.where(labels < fusion.K, labels, -1), fusion.atoms, named)


def kmeans(draw: Draw) -> Answer:
    """Clusters of all values, bad ones among them."""
    found = KMeans(ATOMS, n_init=STARTS, random_state=0).fit(np.concatenate(draw.values))
    return Answer(found.labels_.astype(np.int64), found.cluster_centers_)


def trimmed_kmeans(draw: Draw) -> Answer:
    """K-means that leaves out, in every round, as many of the farthest values as are bad."""
    values = np.concatenate(draw.values)
    kept = sum(map(len, draw.truth))
    best, least = None, np.inf
    for start in range(STARTS):
        centres, _ = kmeans_plusplus(values, ATOMS, random_state=start)
        for _ in range(MOST_ROUNDS):
            squares = ((values[:, None] - centres) ** 2).sum(2)
            near, off = squares.argmin(1), squares.min(1)
            rows = np.argsort(off, kind="stable")[:kept]
            sums = np.zeros_like(centres)
            np.add.at(sums, near[rows], values[rows])
            number = np.bincount(near[rows], minlength=ATOMS)[:, None]
            moved = np.where(number > 0, sums / np.maximum(number, 1), centres)
            if np.array_equal(moved, centres):
                break
            centres = moved
        if off[rows].sum() < least:
            labels = np.full(len(values), -1)
            labels[rows] = near[rows]
            best, least = Answer(labels, centres), off[rows].sum()
    assert best is not None
    return best


def placed_anew(answer: Answer, draw: Draw, place: Callable[[Array, int], Array]) -> Answer:
    """The same labels, each group's place made by another rule from its members and how many may be bad."""
    values, places = np.concatenate(draw.values), answer.places.copy()
    for label in np.unique(answer.labels[answer.labels >= 0]):  # what was set aside has no place
        places[label] = place(values[answer.labels == label], draw.bad)
    return answer._replace(places=places)


def median(members: Array, bad: int) -> Array:
    """Coordinate by coordinate."""
    return np.median(members, axis=0)


def krum(members: Array, bad: int) -> Array:
    """The member nearest to its n - f - 2 nearest others; of too few members f is what Krum bears."""
    n = len(members)
    f = min(bad, max((n - 3) // 2, 0))
    squares = np.sort(((members[:, None] - members) ** 2).sum(2), axis=1)[:, 1:]
    return members[squares[:, : max(n - f - 2, 1)].sum(1).argmin()] if n > 1 else members[0]


def answers(draw: Draw) -> dict[str, tuple[Answer | str, float]]:
    """Of every method, or why there is none, and CPU seconds."""
    found: dict[str, tuple[Answer | str, float]] = {}

    def ask(name: str, call: Callable[[], Answer]) -> None:
        start = time.process_time()
        try:
            answer: Answer | str = call()
        except (ArithmeticError, ValueError, np.linalg.LinAlgError, modelweld.ModelweldError) as error:
            answer = f"{type(error).__name__}: {error}"
        found[name] = answer, time.process_time() - start

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, call in ((BARE, fused), (TOLD, kmeans), (TRIMMED, trimmed_kmeans)):
            ask(name, lambda call=call: call(draw))
        for name, of, rule in (
            (OWN_MEDIAN, BARE, median), (OWN_KRUM, BARE, krum), (MEDIAN, TOLD, median), (KRUM, TOLD, krum)
        ):  # fmt: skip
            if isinstance(found[of][0], Answer):
                ask(name, lambda of=of, rule=rule: placed_anew(found[of][0], draw, rule))
            else:
                found[name] = found[of]
    return found


def judged(answer: Answer | str, draw: Draw, cpu: float) -> dict[str, Any]:
    """ARI of honest values, root mean square error of honest atoms in deviations of noise, K, and who is named.

    An atom is where most of its honest values are matched to; values left out are groups of their own.
    """
    row: dict[str, Any] = {"cpu": cpu}
    if isinstance(answer, str):
        return row | {"failed": answer, "ari": 0.0, "error": None, "K": None, "surplus": None}
    truth = np.concatenate(draw.truth)
    labels, others = answer.labels[: len(truth)], answer.labels[len(truth) :]
    apart = np.where(labels < 0, len(answer.places) + np.arange(len(labels)), labels)
    squares = []
    for atom in np.unique(truth):
        held = labels[(truth == atom) & (labels >= 0)]
        if len(held):
            place = answer.places[np.bincount(held).argmax()]
            squares.append(np.minimum(((place - draw.atoms[atom]) / NOISE_SD) ** 2, 1e12).mean())
    names = [site.site for site in draw.sent]
    return row | {
        "ari": float(adjusted_rand_score(truth, apart)),
        "error": float(np.sqrt(np.mean(squares))) if squares else None,
        "K": len(np.unique(labels[labels >= 0])) - len(np.unique(truth)),
        "surplus": len(set(others[others >= 0].tolist()) - set(labels.tolist())),
        "bad named": sum(name in answer.named for name in names[len(draw.truth) :]),
        "honest named": sum(name in answer.named for name in names[: len(draw.truth)]),
    }


def measured(draw: Draw) -> dict[str, dict[str, Any]]:
    """Every method's row."""
    found = answers(draw)
    return {name: judged(found[name][0], draw, found[name][1]) for name in METHODS}
