"""Algorithm 1 of the paper for Gaussian parameters, written as the paper prints it.

This is the yardstick: plain numpy, one group after the other, no stopping rule, no search beyond the sweeps.
The paper's Gaussian cost is read as it must be meant: it is a score, so it is maximised; in D dimensions its
data terms are summed and its (doubled) prior term is added once. The spread is that of the supplement, with
1/L before both sums. `noise` and `spread` are variances here, as in the paper.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["TextbookResult", "score_matrix", "textbook"]

FLOOR = 1e-10  # the closed forms can give a variance of zero (coinciding values) or below (spread)


@dataclass(frozen=True, eq=False)
class TextbookResult:
    """A matching and what follows from it.

    Attributes
    ----------
    labels : list of (L_j,) arrays
        The atom of every local parameter.
    atoms : (K, D) array
        Global atoms.
    counts : (K,) array
        How many groups hold each atom.
    mean, noise, spread : (D,) arrays
        Mean of the atoms, variance of local parameters about their atom, variance of the atoms.

    Examples
    --------
    >>> textbook([np.array([[0.0], [9.0]]), np.array([[9.1], [0.1]])]).counts
    array([2, 2])
    """

    labels: list[NDArray[np.int64]]
    atoms: NDArray[np.float64]
    counts: NDArray[np.int64]
    mean: NDArray[np.float64]
    noise: NDArray[np.float64]
    spread: NDArray[np.float64]


def textbook(
    groups: list[NDArray[np.float64]],
    *,
    alpha: float = 1.0,
    gamma0: float = 1.0,
    noise: ArrayLike = 1.0,
    spread: ArrayLike = 1.0,
    mean: ArrayLike = 0.0,
    sweeps: int = 10,
    cut: int | None = None,
    cap: int | None = None,
    seed: int = 0,
) -> TextbookResult:
    """Match groups of local parameters by the paper's Algorithm 1.

    A first pass matches the groups one after the other, then `sweeps` sweeps match every group again; both in
    random order. The hyperparameters follow in closed form after every pass.

    Parameters
    ----------
    groups : list of (L_j, D) arrays
        Local parameters of every group; a group may be empty.
    alpha, gamma0 : float
        Concentration and mass of the Beta process.
    noise, spread, mean : float or (D,) array
        First variance within atoms, first variance of atoms, first mean of atoms.
    sweeps : int
        Sweeps after the first pass.
    cut : int, optional
        Largest count that the prior term sees. The authors' program has 10.
    cap : int, optional
        A group opens at most ``max(cap - K, 1)`` atoms beside the K there are. The authors' program has 700.
    seed : int
        Decides the order of groups.

    Returns
    -------
    TextbookResult

    Examples
    --------
    Two groups that share one of three atoms:

    >>> result = textbook([np.array([[0.0, 0.0], [8.0, 8.0]]), np.array([[8.2, 7.9], [-9.0, 5.0]])])
    >>> result.labels
    [array([2, 0]), array([0, 1])]
    >>> result.counts
    array([2, 1, 1])
    """
    if not groups or any(np.ndim(group) != 2 or group.shape[1] != groups[0].shape[1] for group in groups):
        raise ValueError(
            "groups must be one or more arrays of shape (L_j, D) with one D, but got shapes "
            f"{[np.shape(group) for group in groups]}; write an empty group as np.empty((0, D))"
        )
    rng = np.random.default_rng(seed)
    J, D = len(groups), groups[0].shape[1]
    start = {"mean": mean, "noise": noise, "spread": spread}
    hyper = {name: np.broadcast_to(np.asarray(value, np.float64), D) for name, value in start.items()}
    N = sum(len(group) for group in groups)
    squares = np.sum([(group**2).sum(axis=0) for group in groups], axis=0)

    # An atom keeps its name for life, so deleting another one leaves every label as it is; names only grow,
    # so the row of a name is found by bisection.
    names, labels = np.empty(0, np.int64), [np.empty(0, np.int64)] * J
    sums, counts, born = np.empty((0, D)), np.empty(0, np.int64), 0

    for sweep in range(1 + sweeps):
        for j in rng.permutation(J):
            if sweep > 0:
                own = np.searchsorted(names, labels[j])
                sums[own] -= groups[j]
                counts[own] -= 1
                held = counts > 0
                names, sums, counts = names[held], sums[held], counts[held]

            scores = score_matrix(groups[j], sums, counts, J=J, alpha=alpha, gamma0=gamma0, cut=cut, cap=cap, **hyper)
            own, opened = _match(scores, len(counts))
            names = np.append(names, born + np.arange(opened))
            sums = np.vstack([sums, np.zeros((opened, D))])
            counts = np.append(counts, np.zeros(opened, np.int64))
            sums[own] += groups[j]
            counts[own] += 1
            labels[j] = names[own]
            born += opened

        if len(counts) < N:  # else nothing is matched, and the variance within atoms is 0/0
            hyper = _closed_form(sums, counts, squares)

    atoms = hyper["mean"] * hyper["noise"] + hyper["spread"] * sums
    atoms /= hyper["noise"] + counts[:, None] * hyper["spread"]
    return TextbookResult([np.searchsorted(names, label) for label in labels], atoms, counts, **hyper)


def _match(scores: NDArray[np.float64], K: int) -> tuple[NDArray[np.int64], int]:
    """Columns of the best assignment, new ones renumbered from K on without gaps, and how many are new."""
    from scipy.optimize import linear_sum_assignment

    columns = linear_sum_assignment(scores, maximize=True)[1]
    new = columns >= K
    columns[new] = K + np.arange(new.sum())
    return columns, int(new.sum())


def _closed_form(
    sums: NDArray[np.float64], counts: NDArray[np.int64], squares: NDArray[np.float64]
) -> dict[str, NDArray[np.float64]]:
    """Hyperparameters of a matching: the paper's closed forms, per dimension."""
    m = counts[:, None]
    mean = (sums / m).mean(axis=0)
    noise = np.maximum((squares - (sums**2 / m).sum(axis=0)) / (counts.sum() - len(counts)), FLOOR)
    spread = np.maximum(((sums / m - mean) ** 2 - noise / m).mean(axis=0), FLOOR)
    return {"mean": mean, "noise": noise, "spread": spread}


def score_matrix(
    values: NDArray[np.float64],
    sums: NDArray[np.float64],
    counts: NDArray[np.int64],
    *,
    J: int,
    alpha: float,
    gamma0: float,
    noise: NDArray[np.float64],
    spread: NDArray[np.float64],
    mean: NDArray[np.float64],
    cut: int | None = None,
    cap: int | None = None,
) -> NDArray[np.float64]:
    """The paper's Gaussian cost (a score: larger is better) of matching one group, given all others.

    Parameters
    ----------
    values : (L_j, D) array
        The group's local parameters.
    sums : (K, D) array
        Sums of the other groups' local parameters, per atom.
    counts : (K,) array
        How many of the other groups hold each atom.
    J : int
        Number of groups, this one included.
    alpha, gamma0, noise, spread, mean, cut, cap
        As in `textbook`, per dimension.

    Returns
    -------
    (L_j, K + L_j) array
        K columns for the atoms there are, then one column for the first, second, ... new atom of the group
        (fewer with `cap`).

    Examples
    --------
    >>> one = np.ones(1)
    >>> scores = score_matrix(np.array([[2.0]]), np.array([[2.0]]), np.array([1]), J=2, alpha=1, gamma0=1,
    ...                       noise=one, spread=one, mean=0 * one)
    >>> np.round(scores, 3)  # log(2/3) + 16/3 - 4/2 and 2 log(1/2) + log(1/2) + 4/2
    array([[ 2.928, -0.079]])
    """
    held = counts[:, None] + noise / spread
    pull = mean / spread + sums / noise
    seen = counts if cut is None else np.minimum(counts, cut)
    prior = 2 * np.log(seen / (alpha + J - 1 - seen)) + np.log(held / (1 + held)).sum(axis=1)
    match = np.empty((len(values), len(counts)))
    for i, value in enumerate(values):
        terms = (pull + value / noise) ** 2 * noise / (1 + held) - pull**2 * noise / held
        match[i] = prior + terms.sum(axis=1)

    alone = np.log(noise / (spread + noise)) - mean**2 / spread
    alone = (alone + (mean / spread + values / noise) ** 2 * noise / (1 + noise / spread)).sum(axis=1)
    opened = len(values) if cap is None else min(len(values), max(cap - len(counts), 1))
    opened = max(opened, len(values) - len(counts))  # every local parameter needs a column
    prior_new = 2 * np.log(alpha * gamma0 / ((alpha + J - 1) * np.arange(1, opened + 1)))
    return np.hstack([match, alone[:, None] + prior_new])
