"""Algorithm 1 of the paper for Gaussian parameters, written as the paper prints it.

This is the yardstick: plain numpy, one group after the other, no stopping rule, no search beyond the sweeps. The
paper's Gaussian cost is read as it must be meant: it is a score, so it is maximised; in D dimensions its data terms are
summed and its (doubled) prior term is added once. The spread is that of the supplement, with 1/L before both sums.
`noise` and `spread` are variances, as in the paper.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from modelweld.core.beta_bernoulli import AUTHORS_LARGEST_COUNT, AUTHORS_MOST_ATOMS, BetaBernoulli
from modelweld.core.family import sum_by_atom
from modelweld.core.values import Array, Index, Key
from modelweld.families import Family, Gaussian
from modelweld.fusion import Fusion
from shared.baselines import check_groups, fusion_of

FLOOR = 1e-10
"""The closed forms can give a variance of zero (coinciding values) or below (spread)."""


class Hyperparameters(NamedTuple):
    """Mean of the atoms, variance of local parameters about their atom, variance of the atoms; per dimension."""

    mean: Array
    noise: Array
    spread: Array


class Atoms(NamedTuple):
    """The atoms there are: sums (K, D) and numbers (K,) of their local parameters, and names (K,).

    An atom keeps its name for life, so that deleting another one leaves every label as it is; names only grow, so that
    the row of a name is found by bisection.
    """

    sums: Array
    counts: Index
    names: Index


def textbook(
    groups: Sequence[ArrayLike],
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
) -> Fusion:
    """Match groups of local parameters by the paper's Algorithm 1.

    A first pass matches the groups one after the other, then `sweeps` sweeps match every group again; both in random
    order. The hyperparameters follow in closed form after every pass.

    Parameters
    ----------
    groups : sequence of arrays (L_j, D)
        Local parameters of every group; a group may be empty.
    alpha, gamma0 : float
        Concentration and mass of the Beta process.
    noise, spread, mean : float or array (D,)
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
    Fusion
        The objective is that of `fuse`, so that the two can be compared. The algorithm has no stopping rule:
        `converged` only says that its sweeps are over.

    Examples
    --------
    Two groups that share one of three atoms:

    >>> fusion = textbook([np.array([[0.0, 0.0], [8.0, 8.0]]), np.array([[8.2, 7.9], [-9.0, 5.0]])])
    >>> fusion.labels
    [array([2, 0]), array([0, 1])]
    >>> fusion.K, fusion.counts
    (3, array([2, 1, 1]))
    """
    arrays, offsets = check_groups(groups)
    D = arrays[0].shape[1]
    start = Hyperparameters(*(np.broadcast_to(np.asarray(x, np.float64), D) for x in (mean, noise, spread)))
    scores = partial(score_matrix, J=len(arrays), alpha=alpha, gamma0=gamma0, cut=cut, cap=cap)
    atoms, labels, found = _sweep(arrays, scores, start, sweeps, np.random.default_rng(seed))
    values = found.mean * found.noise + found.spread * atoms.sums
    values /= found.noise + atoms.counts[:, None] * found.spread
    as_authors = cut == AUTHORS_LARGEST_COUNT and cap == AUTHORS_MOST_ATOMS
    prior = BetaBernoulli(alpha, gamma0, "authors" if as_authors else "paper")
    family = Gaussian(found.mean, found.noise, found.spread, learning="moments")
    sums = sum_by_atom(family.rows(np.concatenate(arrays)), labels, len(atoms.counts))
    objective = prior.log_prob(atoms.counts, np.diff(offsets)) + float(family.log_evidence(sums).sum())
    families: dict[Key, Family] = {"values": family}
    return fusion_of(groups, offsets, labels, values, "textbook", prior=prior, families=families, objective=objective)


def _sweep(
    groups: Sequence[Array],
    scores: Callable[..., Array],
    hyper: Hyperparameters,
    sweeps: int,
    rng: np.random.Generator,
) -> tuple[Atoms, Index, Hyperparameters]:
    """The first pass and the sweeps: atoms, the atom of every local parameter, hyperparameters."""
    J, D = len(groups), groups[0].shape[1]
    N = sum(len(group) for group in groups)
    squares = np.sum([(group**2).sum(axis=0) for group in groups], axis=0)
    atoms = Atoms(np.empty((0, D)), np.empty(0, np.int64), np.empty(0, np.int64))
    labels, born = [np.empty(0, np.int64)] * J, 0
    for sweep in range(1 + sweeps):
        for j in rng.permutation(J):
            if sweep > 0:
                atoms = _without(atoms, np.searchsorted(atoms.names, labels[j]), groups[j])
            own, opened = _match(scores(groups[j], atoms.sums, atoms.counts, **hyper._asdict()), len(atoms.counts))
            atoms = Atoms(
                np.vstack([atoms.sums, np.zeros((opened, D))]),
                np.append(atoms.counts, np.zeros(opened, np.int64)),
                np.append(atoms.names, born + np.arange(opened)),
            )
            atoms.sums[own] += groups[j]
            atoms.counts[own] += 1
            labels[j] = atoms.names[own]
            born += opened
        if len(atoms.counts) < N:  # else nothing is matched, and the variance within atoms is 0/0
            hyper = _closed_form(atoms, squares)
    return atoms, np.concatenate([np.searchsorted(atoms.names, label) for label in labels]), hyper


def _without(atoms: Atoms, own: Index, values: Array) -> Atoms:
    """The atoms after a group's values were taken out."""
    atoms.sums[own] -= values
    atoms.counts[own] -= 1
    held = atoms.counts > 0
    return Atoms(atoms.sums[held], atoms.counts[held], atoms.names[held])


def _match(scores: Array, K: int) -> tuple[Index, int]:
    """Columns of the best assignment, new ones renumbered from K on without gaps, and how many are new."""
    from scipy.optimize import linear_sum_assignment

    columns = linear_sum_assignment(scores, maximize=True)[1]
    new = columns >= K
    columns[new] = K + np.arange(new.sum())
    return columns, int(new.sum())


def _closed_form(atoms: Atoms, squares: Array) -> Hyperparameters:
    """Hyperparameters of a matching: the paper's closed forms, per dimension."""
    m = atoms.counts[:, None]
    mean = (atoms.sums / m).mean(axis=0)
    noise = np.maximum((squares - (atoms.sums**2 / m).sum(axis=0)) / (atoms.counts.sum() - len(atoms.counts)), FLOOR)
    spread = np.maximum(((atoms.sums / m - mean) ** 2 - noise / m).mean(axis=0), FLOOR)
    return Hyperparameters(mean, noise, spread)


def score_matrix(
    values: Array,
    sums: Array,
    counts: Index,
    *,
    J: int,
    alpha: float,
    gamma0: float,
    noise: Array,
    spread: Array,
    mean: Array,
    cut: int | None = None,
    cap: int | None = None,
) -> Array:
    """The paper's Gaussian cost (a score: larger is better) of matching one group, given all others.

    Parameters
    ----------
    values : array (L_j, D)
        The group's local parameters.
    sums : array (K, D)
        Sums of the other groups' local parameters, per atom.
    counts : int array (K,)
        How many of the other groups hold each atom.
    J : int
        Number of groups, this one included.
    alpha, gamma0, noise, spread, mean, cut, cap
        As in `textbook`, per dimension.

    Returns
    -------
    array (L_j, K + L_j)
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
