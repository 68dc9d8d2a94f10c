"""After a fusion no learned number is better elsewhere: families and priors, by the default call, by shards, in time."""

from dataclasses import replace

import numpy as np
import pytest

import modelweld
from modelweld import BetaBernoulli, Factors, Gaussian, LocalModel, Moments, Scatter
from modelweld.families.directions import Directions
from modelweld.inputs.stack import stack_arrays
from modelweld.matching.board import Board
from modelweld.matching.sets import stack_of
from modelweld.shards import fuse_shards, grouped
from sharded import TABLE, held

STEPS = (0.01, 0.05, 0.5)
"""Shares of a number by which it is moved, either way."""

NATS = 1e-3
"""By how much the objective may rise."""


def board_of(fusion, families=None, prior=None, pieces=None):
    """The reference board of a fusion's values at its labels."""
    [(name, matching)] = fusion.matchings.items()
    plain = not isinstance(fusion.given[0], LocalModel)
    stacks = [stack_arrays(fusion.given) if plain else stack_of(fusion.given, array, name, {}) for array in matching.families]
    families = list(matching.families.values()) if families is None else families
    labels = matching.stacked_labels.copy()
    return Board(stacks, families, prior or matching.prior, pieces or matching.copies, labels)


def moved(x):
    """A number or an array, all of it and each entry, by every step either way."""
    x = np.asarray(x, dtype=float)
    for step in STEPS:
        for factor in (1 + step, 1 / (1 + step)):
            yield x * factor
            for i in np.ndindex(x.shape if x.size > 1 else ()):
                if i:
                    one = x.copy()
                    one[i] *= factor
                    yield one


def neighbours(family):
    """The family with one of its learned numbers elsewhere."""
    for name, x in family.learned().items():
        if x is None or name == "reference" or not np.isfinite(x).all():
            continue
        for there in moved(x):
            if name == "mean" and isinstance(family, Directions):
                there = there / np.linalg.norm(there)
            if name == "noise" and (there < np.asarray(getattr(family, "floor", 0.0))).any():
                continue
            yield name, replace(family, **{name: float(there) if there.ndim == 0 else there})


def short(fusion):
    """By how many nats the objective of a fusion rises at most, and with what."""
    board = board_of(fusion)
    at = board.objective()
    found = [(0.0, "nothing")]
    for i, family in enumerate(board.families):
        for name, other in neighbours(family):
            families = [*board.families[:i], other, *board.families[i + 1 :]]
            found.append((board_of(fusion, families).objective() - at, name))
    return max(found)
