"""`fuse(sites)` and other defences against bad sites, and how near each leaves the honest values to the truth.

The others need matched values: a k-means of all values that is told the number of honest atoms has to match them (its
best of ten starts), or `fuse`. Within a cluster, the coordinate median stands for the mean.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from attacks import ATOMS, NOISE_SD, Array, Draw, Index
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

import modelweld

BARE, OWN_MEDIAN = "fuse(sites)", "median of fuse's groups"
TOLD, MEDIAN = "k-means told K", "median of k-means' groups"
METHODS = (BARE, OWN_MEDIAN, TOLD, MEDIAN)
"""In the order of rows."""

STARTS = 10
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


def medians(answer: Answer, draw: Draw) -> Answer:
    """The same labels, each group's place the coordinate median of its members."""
    values, places = np.concatenate(draw.values), answer.places.copy()
    for label in np.unique(answer.labels[answer.labels >= 0]):  # what was set aside has no place
        places[label] = np.median(values[answer.labels == label], axis=0)
    return answer._replace(places=places)


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
        for name, call in ((BARE, fused), (TOLD, kmeans)):
            ask(name, lambda call=call: call(draw))
        for name, of in ((OWN_MEDIAN, BARE), (MEDIAN, TOLD)):
            if isinstance(found[of][0], Answer):
                ask(name, lambda of=of: medians(found[of][0], draw))
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
