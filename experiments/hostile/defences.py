"""`fuse(sites)` and medians of matched values, and how near each leaves the honest values to the truth.

Medians need matched values: `fuse` matches them, or the truth, to which every site's values are assigned at the least
sum of squares (the Hungarian algorithm). Within a group, the coordinate median stands for the mean.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from attacks import NOISE_SD, Array, Draw, Index
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from sklearn.metrics import adjusted_rand_score

import modelweld

BARE = "fuse(sites)"
MEDIANS = ("median of fuse's groups", "median of values assigned to the truth")


class Answer(NamedTuple):
    """Labels of all values, one below the other, -1 for those left out; a place for each label; sites named."""

    labels: Index
    places: Array
    named: tuple[str, ...] = ()


def fused(draw: Draw) -> Answer:
    """Everything by default, and what it says of sites: warnings, reasons and `diagnose`."""
    with warnings.catch_warnings(record=True, action="always") as caught:
        fusion = modelweld.fuse(draw.sent)
        said = [d.warning for d in fusion.diagnosis.sites()]
    texts = "\n".join([*(str(w.message) for w in caught), *fusion.matching.reasons, *said])
    named = tuple(site.site for site in draw.sent if repr(site.site) in texts)
    labels = np.concatenate(fusion.labels)
    return Answer(np.where(labels < fusion.K, labels, -1), fusion.atoms, named)


def assigned(draw: Draw) -> Answer:
    """Every site's values at the true atoms, one at each."""
    labels = np.full(sum(map(len, draw.values)), -1)
    first = 0
    for values in draw.values:
        own, atoms = linear_sum_assignment(cdist(values, draw.atoms, "sqeuclidean"))
        labels[first + own], first = atoms, first + len(values)
    return Answer(labels, draw.atoms.copy())


def medians(answer: Answer, draw: Draw) -> Answer:
    """The same labels, each group's place the coordinate median of its members."""
    values, places = np.concatenate(draw.values), answer.places.copy()
    for label in np.unique(answer.labels[answer.labels >= 0]):  # what was set aside has no place
        places[label] = np.median(values[answer.labels == label], axis=0)
    return answer._replace(places=places)


def judged(answer: Answer, draw: Draw) -> dict[str, Any]:
    """ARI of honest values, root mean square error of honest atoms in deviations of noise, K, and who is named.

    An atom is where most of its honest values are matched to; values left out are groups of their own.
    """
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
    return {
        "ari": float(adjusted_rand_score(truth, apart)),
        "error": float(np.sqrt(np.mean(squares))) if squares else None,
        "K": len(np.unique(labels[labels >= 0])) - len(np.unique(truth)),
        "surplus": len(set(others[others >= 0].tolist()) - set(labels.tolist())),
        "bad named": sum(name in answer.named for name in names[len(draw.truth) :]),
        "honest named": sum(name in answer.named for name in names[: len(draw.truth)]),
    }


def measured(draw: Draw) -> dict[str, dict[str, Any]]:
    """Every method's row."""
    own = fused(draw)
    found = {BARE: own, **dict(zip(MEDIANS, (medians(own, draw), medians(assigned(draw), draw)), strict=True))}
    return {name: judged(answer, draw) for name, answer in found.items()}
