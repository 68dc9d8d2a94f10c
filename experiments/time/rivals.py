"""What one does without modelweld: groups matched to those before them, and SDDM's rule."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import adjusted_rand_score

from modelweld.core.values import Array, Index

THRESHOLDS = np.exp(np.linspace(np.log(0.1), np.log(10.0), 41))
"""Distances, in units of sqrt(dimensions) x (noise + drift), among which the chain's threshold is chosen."""

LARGEST_COUNT = 10
"""SDDM's program cuts the number of times that a topic was seen here."""


class Tracks(NamedTuple):
    """Labels of every group's values, and where each track was last."""

    labels: list[Index]
    places: Array


def chain(groups: list[Array], threshold: float) -> Tracks:
    """Each group is matched to where tracks were last seen, by the least sum of distances up to a threshold."""
    D = groups[0].shape[1]
    places, labels = np.zeros((0, D)), []
    for values in groups:
        distance = np.linalg.norm(values[:, None] - places, axis=2)
        rows, columns = linear_sum_assignment(np.minimum(distance, threshold))
        own = np.full(len(values), -1)
        near = distance[rows, columns] < threshold
        own[rows[near]] = columns[near]
        places, own = _opened(places, own, values)
        places[own] = values
        labels.append(own)
    return Tracks(labels, places)


def chain_seen(groups: list[Array], truth: list[Index], unit: float) -> Tracks:
    """The chain whose threshold does best on the truth."""
    found = [chain(groups, float(t * unit * np.sqrt(groups[0].shape[1]))) for t in THRESHOLDS]
    whole = np.concatenate(truth)
    return max(found, key=lambda tracks: adjusted_rand_score(whole, np.concatenate(tracks.labels)))


def sddm(groups: list[Array], noise: float, step: float, spread: float, gamma0: float = 1.0) -> Tracks:
    """SDDM's rule (Yurochkin et al., NeurIPS 2019) for real values instead of directions, told noise, step and spread.

    A forward pass: a group's values are matched to the present places of topics by log density and log((1 + m) / (t -
    m)), m being how often a topic was seen, cut at ten; a new topic scores its prior density and log(gamma0 / t). The
    place of a topic becomes the mean of place and value, weighed by their precisions, `step` and `noise`. What was not
    seen stays where it was; nothing dies, nothing is smoothed, nothing is learned.
    """
    D = groups[0].shape[1]
    places, seen, labels = np.zeros((0, D)), np.zeros(0), []
    for t, values in enumerate(groups, start=1):
        count = np.minimum(seen, LARGEST_COUNT)
        squares = np.square(values[:, None] - places).sum(2)
        match = -0.5 * (squares / (noise + step) + D * np.log(2 * np.pi * (noise + step)))
        match = match + np.log((1 + count) / np.maximum(t - count, 0.5))
        both = noise + spread
        new = -0.5 * (np.square(values).sum(1) / both + D * np.log(2 * np.pi * both)) + np.log(gamma0 / t)
        gain = np.maximum(match - new[:, None], 0.0)
        rows, columns = linear_sum_assignment(gain, maximize=True)
        own = np.full(len(values), -1)
        better = gain[rows, columns] > 0
        own[rows[better]] = columns[better]
        old = own >= 0
        weight = (1 / noise) / (1 / noise + 1 / max(step, 1e-12))
        places[own[old]] += weight * (values[old] - places[own[old]])
        places, own = _opened(places, own, values)
        seen = np.append(seen, np.zeros(len(places) - len(seen)))
        seen[own] += 1
        labels.append(own)
    return Tracks(labels, places)


def _opened(places: Array, own: Index, values: Array) -> tuple[Array, Index]:
    """Tracks with one more for each value that has none."""
    new = own < 0
    own[new] = len(places) + np.arange(new.sum())
    return np.concatenate([places, values[new]]), own
