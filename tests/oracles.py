"""Definitions that tests compare with."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np

from modelweld.core.algorithm1 import NEW
from modelweld.core.board import Board
from modelweld.families.capabilities import name_hyperparameters


def assignment_score(scores, choice, surcharge):
    """What an assignment scores against opening a new atom for every value."""
    matched = choice != NEW
    return float(scores[matched, choice[matched]].sum() - surcharge[: np.count_nonzero(~matched)].sum())


def believing(one, other):
    """What the other fusion's matching comes to, if noise and spread were believed to be what the one believes."""
    board, [family] = other._fit.board(), one.matching.families.values()
    families = [replace(f, **family.noise_prior._asdict()) for f in board.families]
    again = Board(board.stacks, families, other.matching.prior, board.fragments, board.labels)
    again.learn()
    learned = name_hyperparameters(again.families[0])
    return SimpleNamespace(
        K=other.K,
        objective=again.objective(),
        atoms=again.estimates()[0],
        counts=again.counts,
        hyperparameters={name: value for name, value in learned.items() if name in other.diagnosis.hyperparameters},
    )
