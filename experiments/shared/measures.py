"""How far labels are from the truth, beside `modelweld.metrics`."""

from __future__ import annotations

import numpy as np

from modelweld.demo.metrics import Labels, as_names


def hamming(truth: Labels, labels: Labels) -> float:
    """Share of wrong labels, after the one-to-one alignment of names that makes it smallest.

    Examples
    --------
    The name 5 means 0; the surplus name 7 can mean nothing.

    >>> hamming([0, 0, 0, 1], [5, 5, 7, 6])
    0.25
    """
    from scipy.optimize import linear_sum_assignment

    true, estimated = as_names(truth, labels)
    table = np.zeros((true.max() + 1, estimated.max() + 1), np.int64)
    np.add.at(table, (true, estimated), 1)
    return float(1 - table[linear_sum_assignment(table, maximize=True)].sum() / len(true))
