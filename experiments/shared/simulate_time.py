"""Groups in time from the model itself: atoms that move, are born and die."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from modelweld.core.values import Array, Index


class Moving(NamedTuple):
    """Values of every group, the true atom of each, when groups come, and where every atom is at every time.

    `paths` (K, T + ahead, D) are also those of times before birth and after death, and `ahead` steps beyond the last
    group; `alive` (K, T + ahead) says when an atom lives. `later` are the groups that come then.
    """

    groups: list[Array]
    labels: list[Index]
    times: Array
    paths: Array
    alive: np.ndarray[tuple[int, int], np.dtype[np.bool_]]
    later: list[tuple[Array, Index]]


def moving_groups(
    seed: int,
    *,
    T: int = 30,
    D: int = 8,
    alive: float = 12.0,
    held: float = 0.8,
    life: float = 20.0,
    noise: float = 0.1,
    drift: float = 1.0,
    ahead: int = 5,
) -> Moving:
    """T groups, one per unit of time: atoms of spread 1 that move by `drift` x `noise` in a step.

    Examples
    --------
    >>> drawn = moving_groups(0, T=6, alive=3.0)
    >>> len(drawn.groups), drawn.groups[0].shape[1]
    (6, 8)
    """
    rng = np.random.default_rng(seed)
    phi, end = float(np.sqrt(1 - (drift * noise) ** 2)), T + ahead
    stays = np.exp(-1 / life)
    born = np.concatenate(
        [np.zeros(rng.poisson(alive)), *(np.full(rng.poisson(alive * (1 - stays)), t) for t in range(1, end))]
    )
    K = len(born)
    lives = np.floor(rng.exponential(life, K)) + 1
    moments = np.arange(end)
    living = (moments >= born[:, None]) & (moments < (born + lives)[:, None])
    paths = np.empty((K, end, D))
    paths[:, 0] = rng.normal(size=(K, D))
    for t in range(1, end):
        paths[:, t] = phi * paths[:, t - 1] + np.sqrt(1 - phi * phi) * rng.normal(size=(K, D))
    drawn = []
    for t in range(end):
        own = rng.permutation(np.flatnonzero(living[:, t] & (rng.random(K) < held)))
        drawn.append((paths[own, t] + noise * rng.normal(size=(len(own), D)), own))
    values, labels = zip(*drawn[:T], strict=True)
    return Moving(list(values), list(labels), np.arange(float(T)), paths, living, drawn[T:])
