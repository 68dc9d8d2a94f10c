"""Gibbs moves of a pair: an assignment of one group's values to atoms, redrawn two values at a time.

One value at a time would not do: where two values sit at each other's atoms, both must move at once.
"""

from __future__ import annotations

import numpy as np

from modelweld.inputs.local_model import Array
from modelweld.inputs.stack import Index

UNLIKELY_PARTNER = 1e-6
"""Least weight of a partner, so that the weights still add up to something for a row that wants what no other does."""


def redraw(scores: Array, choice: Index, rng: np.random.Generator) -> Index:
    """Move an assignment of rows to columns (the last, a new atom, for any number) by pairs of rows.

    Each row in turn is redrawn together with a partner, from the exact conditional given the other rows. Partners are
    rows that want the same columns; that depends on the scores alone, so the law of the assignment stays what it is.

    Examples
    --------
    >>> import numpy as np
    >>> scores = np.array([[9.0, 50.0, 0.0], [9.0, 99.0, 0.0]])  # both want column 1, the second more
    >>> redraw(scores, np.array([1, 0]), np.random.default_rng(0))
    array([0, 1])
    """
    L, new = scores.shape[0], scores.shape[1] - 1
    choice = choice.copy()
    if L == 1:
        choice[0] = draw_log(scores[0], rng)
        return choice
    wants = np.exp(scores - scores.max(1, keepdims=True))
    wants /= wants.sum(1, keepdims=True)
    alike = wants[:, :new] @ wants[:, :new].T + UNLIKELY_PARTNER
    np.fill_diagonal(alike, 0.0)
    open_to = np.zeros(new + 1)  # minus infinity where another row sits
    open_to[choice] = -np.inf
    open_to[new] = 0.0
    for row in rng.permutation(L).tolist():
        partner = draw(alike[row], rng)
        open_to[choice[[row, partner]]] = 0.0
        choice[row], choice[partner] = draw_pair(scores[row] + open_to, scores[partner] + open_to, rng)
        open_to[choice[[row, partner]]] = -np.inf
        open_to[new] = 0.0
    return choice


def draw_pair(x: Array, y: Array, rng: np.random.Generator) -> tuple[int, int]:
    """(a, b) with probability ∝ exp(x[a] + y[b]), a and b different unless both are the last."""
    new = len(x) - 1
    top = int(y.argmax())
    share = np.exp(y - y[top])
    others = share.sum() - share
    others[new] += share[new]
    if top != new:  # what is left without the largest is not had by subtraction
        rest = y.copy()
        rest[top] = -np.inf
        second = rest.max()
        others[top] = 1.0
        log_others = y[top] + np.log(others)
        log_others[top] = second + np.log(np.exp(rest - second).sum())
    else:
        log_others = y[top] + np.log(others)
    a = draw_log(x + log_others, rng)
    if a != new:
        y = y.copy()
        y[a] = -np.inf
    return a, draw_log(y, rng)


def draw_log(log_weights: Array, rng: np.random.Generator) -> int:
    """An index, with probability in proportion to the exponential of its weight."""
    return draw(np.exp(log_weights - log_weights.max()), rng)


def draw(weights: Array, rng: np.random.Generator) -> int:
    """An index, with probability in proportion to its weight."""
    cumulative = weights.cumsum()
    return int(cumulative.searchsorted(rng.random() * cumulative[-1], side="right"))
