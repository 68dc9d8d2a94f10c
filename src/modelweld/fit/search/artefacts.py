"""Atoms that no site has: fragments and mixtures of true atoms, made alike by several estimated models.

A local model with a component too many splits a true one; if that one's scatter is long, fragments of different sites
lie at the same two places. A model with a component too few sends a place between two atoms. Fragments near their atom
are those of `core.prior`. Those farther off gather into atoms of their own, and there is nothing wrong with their
support or scatter. What gives them away is where they are and who holds them:

- a *shadow* of atom p lies near p, and most of its holders hold p as well;
- a *blend* of p and q is a value on the line from p to q, at a site that holds neither.

Either is compared with being an atom. An atom s of m groups scores R(m) + log evidence: any groups, and a place
anywhere within the spread. As a shadow of p, held by n of the n_p holders of p and o of the J - n_p others, it scores

    log delta + log B(1 + n, 3 + n_p - n) / B(1, 3) + log B(1 + o, 19 + J - n_p - o) / B(1, 19)
              + log evidence with place ~ N(place of p, tau),   tau: mean square difference of fragments of one group,

and as blends, each value v for itself, over the Q pairs (p, q) that its group of L values does not hold,

    sum over v of log(delta L / Q) + log sum over (p, q) of int_0^1 N(v; u p + (1 - u) q, v's own variance) du.

Both rates are those of fragments, whose share delta is learned: shadows are such fragments, and a site that was told
its number of components and glues two has one to spare, which splits a third, so that there are as many blends.

A shadow then joins its atom, as nearer fragments do, without teaching the noise how far fragments lie: hyperparameters
stay those of the fit, the objective is that of the answer. A blend is excluded, that is, numbered after the K others.
"""

from __future__ import annotations

import numpy as np
import scipy
from numpy.typing import NDArray

from modelweld.core.board import Board
from modelweld.core.matching import Artefact
from modelweld.core.values import Array, Index
from modelweld.families.capabilities import Location, locate
from modelweld.fit.search.split_rules import falls_together
from modelweld.progress import track

HELD_BY_HOLDERS, HELD_BY_OTHERS = (1.0, 3.0), (1.0, 19.0)
"""Beta priors of the share of groups that hold a shadow: a quarter of those that hold its atom, a twentieth of the
others (a site may send one fragment of two)."""

PRIOR_PAIRS, FRAGMENTS_APART = 2.0, 4.0
"""The mean square difference of fragments is learned as if two pairs had been seen before, at four times the noise: any
two values of one atom differ by twice the noise, fragments by more."""

MOST_BLENDS = 5
"""Groups of an atom up to which it may be blends: each lies at a place of its own on the line, so few fall together."""


def artefacts(board: Board) -> list[Artefact]:
    """Atoms that are more probably shadows or blends of others, the least supported first.

    None where no group has an atom in fragments, or where values of some array lie nowhere.
    """
    if board.fragments is None or (board.fragments_held() == 1).all():
        return []
    parts = zip(board.families, board.rows, board.sums, strict=True)
    arrays = [x for x in (locate(family, rows, sums) for family, rows, sums in parts) if x is not None]
    if len(arrays) < len(board.families):
        return []
    K = len(board.counts)
    held = np.zeros((K, len(board.sizes)), dtype=bool)
    held[board.labels, board.group] = True
    as_shadow = _as_shadows(board, arrays, held)
    log_rate = np.concatenate([[0.0], np.cumsum(board.increments)])
    as_atom = log_rate[board.counts] + np.sum(
        [f.log_evidence(sums) for f, sums in zip(board.families, board.sums, strict=True)], axis=0
    )
    found: list[Artefact] = []
    left = np.ones(K, dtype=bool)
    for s in track(np.argsort(board.counts, kind="stable").tolist(), "looking for fragments and mixtures", K):
        others = left & (board.counts >= board.counts[s])
        others[s] = False
        best = _best_shadow(s, as_shadow, others)
        if board.counts[s] <= MOST_BLENDS:
            best = max(best, _blend(board, arrays, s, others, held), key=lambda a: a.log_odds)
        best = best._replace(log_odds=best.log_odds - float(as_atom[s]))
        if best.log_odds > 0:
            found.append(best)
            left[s] = False
    return found


def join_fragments_apart(board: Board) -> tuple[Board, list[Artefact]]:
    """The board with shadows joined, and the artefacts that are left on it."""
    found = artefacts(board)
    if any(artefact.is_fragment for artefact in found):
        joined, left = join_shadows(board, found)
        if not falls_together(joined):
            return joined, left  # else neighbours in a continuum, each at most sites, are no fragments of each other
    return board, [artefact for artefact in found if not artefact.is_fragment]


def join_shadows(board: Board, found: list[Artefact]) -> tuple[Board, list[Artefact]]:
    """The board with every shadow's values at its atom, and the artefacts that are left."""
    atom = np.arange(len(board.counts))
    for artefact in reversed(found):  # what a shadow is a shadow of may be one itself, and is then found later
        if artefact.is_fragment:
            atom[artefact.atom] = atom[artefact.made_of[0]]
    left, labels = np.unique(atom[board.labels], return_inverse=True)
    number = np.searchsorted(left, atom)
    return board.at(labels.ravel()), [artefact.renumber(number) for artefact in found if not artefact.is_fragment]


def _as_shadows(board: Board, arrays: list[Location], held: NDArray[np.bool_]) -> Array:
    """Log score of every atom as a shadow of every other: (K, K)."""
    assert board.fragments is not None
    K, J = held.shape
    both = held.astype(np.float64) @ held.T
    n_p = board.counts.astype(np.float64)
    others = board.counts[:, None] - both
    score = np.log(board.fragments.delta) * np.ones((K, K))
    for (a, b), number, of in ((HELD_BY_HOLDERS, both, n_p), (HELD_BY_OTHERS, others, J - n_p)):
        score += scipy.special.betaln(a + number, b + of - number) - scipy.special.betaln(a, b)
    for x, sums in zip(arrays, board.sums, strict=True):
        apart = _fragments_apart(board, x)
        for p in track(range(K), "looking for fragments", K):
            score[:, p] += x.about(x.places[p], apart + x.uncertain[p]).log_evidence(sums)
    return np.asarray(score)


def _fragments_apart(board: Board, x: Location) -> Array:
    """Mean square difference (D,) of fragments that one group has of one atom, counted where both are seen."""
    seen, y = x.seen, x.values
    _, at, number = np.unique(np.stack([board.labels, board.group]), axis=1, return_inverse=True, return_counts=True)
    at = at.ravel()
    # the squares of all differences among r values add up to r times the sum of squares about their mean
    n, S, Q = (np.zeros((len(number), y.shape[1])) for _ in range(3))
    for total, terms in ((n, seen), (S, seen * y), (Q, seen * y * y)):
        np.add.at(total, at, terms)
    squares = np.maximum(n * Q - S * S, 0.0).sum(0)
    pairs = (n * (n - 1) / 2).sum(0)
    return np.asarray((squares + PRIOR_PAIRS * FRAGMENTS_APART * x.noise) / (pairs + PRIOR_PAIRS))


def _best_shadow(s: int, as_shadow: Array, others: NDArray[np.bool_]) -> Artefact:
    if not others.any():
        return Artefact(s, (), -np.inf)
    scores = np.where(others, as_shadow[s], -np.inf)
    p = int(np.argmax(scores))
    return Artefact(s, (p,), float(scores[p]))


def _blend(
    board: Board, arrays: list[Location], s: int, others: NDArray[np.bool_], held: NDArray[np.bool_]
) -> Artefact:
    """Log score of an atom's values as blends, and the pair that explains most of them best."""
    assert board.fragments is not None
    total = 0.0
    by_pair: dict[tuple[int, ...], float] = {}
    for i in np.flatnonzero(board.labels == s):
        j = board.group[i]
        atoms = np.flatnonzero(others & ~held[:, j])
        if len(atoms) < 2:
            return Artefact(s, (), -np.inf)
        density = _between(arrays, int(i), atoms)
        Q = len(atoms) * (len(atoms) - 1) / 2
        best = float(density.max())
        if best == -np.inf:
            return Artefact(s, (), -np.inf)
        total += float(np.log(board.fragments.delta * board.sizes[j] / Q) + best + np.log(np.exp(density - best).sum()))
        a, b = np.unravel_index(int(np.argmax(density)), density.shape)
        pair = (int(atoms[a]), int(atoms[b]))
        by_pair[pair] = by_pair.get(pair, 0.0) + 1
    return Artefact(s, max(by_pair, key=lambda pair: by_pair[pair]), total)


def _between(arrays: list[Location], i: int, atoms: Index) -> Array:
    """Log of the integral over u from 0 to 1 of N(v; u p + (1 - u) q, own variance), for all pairs p < q; else -inf.

    With the squared distance A u^2 - 2 B u + C, A = |p - q|^2, B = (v - q)(p - q), C = |v - q|^2 in units of the
    value's deviations and m = B / A, it is that of v at its peak times

        exp(-(C - B m) / 2) sqrt(2 pi / A) [Phi((1 - m) sqrt A) - Phi(-m sqrt A)].
    """
    K = len(atoms)
    A, B, C, peak = np.zeros((K, K)), np.zeros((K, K)), np.zeros(K), 0.0
    for x in arrays:
        off = x.places[atoms] - x.values[i]
        gram = (off * x.precision[i]) @ off.T
        square = np.diagonal(gram)
        A += square[:, None] + square - 2 * gram
        B += square - gram  # (v - q)(p - q) at [p, q]
        C += square
        peak += float(x.peak[i])
    A = np.where(A > 0, A, 1.0)  # an atom and itself
    root, middle = np.sqrt(A), B / A
    low, high = -middle * root, (1 - middle) * root
    inside = np.where(
        low > 0,
        scipy.special.ndtr(-low) - scipy.special.ndtr(-high),
        scipy.special.ndtr(high) - scipy.special.ndtr(low),
    )  # the tail that does not cancel
    with np.errstate(divide="ignore"):
        density = peak - 0.5 * (C - B * middle) + 0.5 * np.log(2 * np.pi / A) + np.log(inside)
    return np.where(np.triu(np.ones((K, K), dtype=bool), 1), density, -np.inf)
