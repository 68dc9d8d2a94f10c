"""Sites that send far more values than others: a crowd decides nothing, and costs nothing.

One site's ten thousand values are as many chances to lie near something by accident, and matching them takes minutes;
pieces of atoms by the dozen bring the noise down for all. What most sites send says how many there can be.
"""

from __future__ import annotations

import numpy as np

from modelweld.inputs.stack import Index
from modelweld.screening.site_medians import FEWEST_SITES_TO_COMPARE

CROWD = 30.0
"""Times the number of values of the median site from which a site is set aside. A layer of 512 units beside layers of
32 is sixteen times as wide; pieces of up to thirteen times as many values are joined (`matching.piece_guard`)."""

FEWEST_OF_CROWD = 200
"""Values below which a site costs nothing, however few the others have."""


def find_crowds(sizes: Index) -> Index:
    """Sites whose numbers of values no minority of sites can make look usual.

    Examples
    --------
    >>> find_crowds(np.array([7, 9, 0, 6, 10_000])).tolist()
    [4]
    >>> find_crowds(np.array([7, 9, 10_000])).tolist()
    []
    """
    filled = sizes[sizes > 0]
    if len(filled) < FEWEST_SITES_TO_COMPARE:
        return np.zeros(0, dtype=np.int64)
    return np.flatnonzero(sizes >= max(CROWD * float(np.median(filled)), FEWEST_OF_CROWD))
