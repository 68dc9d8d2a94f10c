"""Definitions that tests compare with."""

import numpy as np

from modelweld.matching.algorithm1 import NEW


def assignment_score(scores, choice, surcharge):
    """What an assignment scores against opening a new atom for every value."""
    matched = choice != NEW
    return float(scores[matched, choice[matched]].sum() - surcharge[: np.count_nonzero(~matched)].sum())
