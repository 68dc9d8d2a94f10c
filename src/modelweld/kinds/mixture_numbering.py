"""Components of `how="density"` under the numbers of the groups whose points they take.

The nearest density of K components knows of the groups only their number. So that `predict` and `fusion.labels` speak
of the same groups, each component has the number of the group with which it shares most points, and where a group's
points go elsewhere that is said.
"""

from __future__ import annotations

import numpy as np

from modelweld.core.values import Index
from modelweld.errors import DensityWarning, warn_user
from modelweld.inputs.local_model import Array
from modelweld.inputs.names import SHOWN
from modelweld.kinds.mixture_components import Components, merge_components
from modelweld.kinds.mixture_density import draw_points, responsibilities


def number_by_groups(mixture: Components, parts: Components, labels: Index) -> Components:
    """The same components, in the order of the groups `labels` of the parts with which they share most points.

    Components that take no group's points come last, with the numbers that are left.

    Examples
    --------
    >>> parts = np.array([[0.0], [9.0]]), np.ones((2, 1)), np.ones(2)
    >>> mixture = np.array([[9.1], [0.1]]), np.ones((2, 1)), np.ones(2)
    >>> number_by_groups(mixture, parts, np.array([0, 1]))[0].tolist()
    [[0.1], [9.1]]
    """
    shared = _shared_points(mixture, parts, labels)
    if shared is None:
        return mixture
    order = order_like(shared)
    return mixture[0][order], mixture[1][order], mixture[2][order]


def order_like(shared: Array) -> Index:
    """Components in the order of the groups with which they share most points (groups, components), one to one."""
    from scipy.optimize import linear_sum_assignment

    place = np.full(shared.shape[1], shared.shape[0])
    groups, components = linear_sum_assignment(shared, maximize=True)
    place[components] = groups
    return np.asarray(np.argsort(place, kind="stable"))


def warn_of_moved(mixture: Components, parts: Components, labels: Index, K: int) -> None:
    """Say so if most points of some of the first K groups go to components of other numbers, and need not."""
    own, merged = (_shared_points(m, parts, labels) for m in (mixture, merge_components(*parts, labels)))
    if own is None or merged is None:
        return
    number = np.arange(len(own))
    moved = np.flatnonzero((own.argmax(1) != number) & (merged.argmax(1) == number) & (number < K))
    if len(moved):
        more = f" and {len(moved) - SHOWN} more" if len(moved) > SHOWN else ""
        warn_user(
            f"most points of group {', '.join(map(str, moved[:SHOWN]))}{more} go to another component of the fused "
            "mixture: how='density' puts components where the density needs them, not where groups are, so predict "
            "does not give fusion.labels' numbers there. For groups, say fusion.model(how='moments').",
            DensityWarning,
        )


def _shared_points(mixture: Components, parts: Components, labels: Index) -> Array | None:
    """Points (groups, components) that each component takes of each group; None for what is no density."""
    held = parts[2] > 0
    if not held.any():
        return None
    drawn = parts[0][held], parts[1][held], parts[2][held]
    shared = np.zeros((int(labels.max()) + 1, len(mixture[0])))
    try:
        points, weight = draw_points(drawn, np.random.default_rng(0))
        group = np.repeat(labels[held], len(points) // len(drawn[0]))
        for block, share in responsibilities(mixture, points):
            np.add.at(shared, group[block], (share * weight[block]).T)
    except np.linalg.LinAlgError:  # a component without volume
        return None
    return shared
