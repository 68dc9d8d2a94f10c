"""Names for groups, from a catalogue of known ones: every group gets a name or is new, with a probability.

An entry of the catalogue is one more look at a true value, e times as exact as a site's. The values of a group and an
entry are of one true value, or of two, by their evidence p(values, entry) / (p(values) p(entry)) at that e.

- *Named*: the entry is another look at the group's own value. How exact it is, is not known: all e are as probable at
  which few entries of the catalogue lie so near to another.
- *New*: groups that are not in the catalogue lie near its entries as these do near each other: shares of e are learned
  from every entry, given the others.

How many groups the catalogue names is learned from all of them. No threshold is set, and entries that no site has
cost nothing but that a group may be any of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import logsumexp

from modelweld.core.family import gather, log_predictive
from modelweld.core.values import Array
from modelweld.errors import InputError, some
from modelweld.families import Directions, Family, Gaussian
from modelweld.fusion import Fusion
from modelweld.inputs.local_model import check_values
from modelweld.inputs.plain_tables import table_of
from modelweld.results.posterior.conditional import pool_board

NEW = "new"
"""What a group is called that is in no catalogue."""

EXACTNESS = 2.0 ** np.arange(-14, 9)
"""How many times as exact as a site's value an entry may be."""

EM_STEPS = 100
"""Of shares of a few parts, which then no longer change in the third digit."""

NEIGHBOURS = 0.05
"""Share of the catalogue's entries that may lie as near to another as an entry does to the group that it names; and
odds below which a typical entry is no other."""

LOOSEST = 2.0**-6
"""How exact an entry is at least that names a group: its error may be eight times that of a site's value."""


@dataclass(frozen=True, eq=False, repr=False)
class Names:
    """Names of a fusion's groups; ``print`` it.

    Attributes
    ----------
    names : list of str
        Of each group the most probable name, or "new".
    probability : array (K,)
        Of that name, if the group is one: mistakes of the matching are not in it.
    table : array (K, M + 1)
        Of all entries, and last of "new".
    entries : list of str
        Names of the catalogue, as columns of the table.

    Examples
    --------
    >>> print(Names(["T cell"], np.array([0.97]), np.array([[0.97, 0.03]]), ["T cell"]))
    group 0: T cell (0.97)
    """

    names: list[str]
    probability: Array
    table: Array
    entries: list[str]

    def __repr__(self) -> str:
        named = enumerate(zip(self.names, self.probability, strict=True))
        return "\n".join(f"group {k}: {name} ({probability:.2f})" for k, (name, probability) in named)


def name_groups(fusion: Fusion, catalogue: Any) -> Names:
    """Name every group of a fusion by a catalogue, or call it new.

    Parameters
    ----------
    fusion : Fusion
        Of real values or directions: means of clusters, components, signatures, maps.
    catalogue : mapping of str to vector, or table
        Named rows, in the features of the sites; of a table, by its index and columns, in any order. Lengths of
        directions do not matter.

    Returns
    -------
    Names
        One per group, by the numbers of ``fusion.table()``.

    Examples
    --------
    >>> import modelweld, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> types = rng.normal(0, 5, (4, 6))
    >>> fusion = modelweld.fuse([types + rng.normal(0, 0.3, (4, 6)) for _ in range(5)])
    >>> known = {"T cell": types[0], "B cell": types[1], **{f"unused {i}": rng.normal(0, 5, 6) for i in range(9)}}
    >>> sorted(name_groups(fusion, known).names)
    ['B cell', 'T cell', 'new', 'new']
    """
    board, _ = pool_board(fusion._fit.board())
    entries, values = _read_catalogue(fusion, catalogue)
    if len(board.families) != 1 or not isinstance(board.families[0], (Gaussian, Directions)):
        raise InputError("name_groups names real values and directions, matched by one array.")
    family, stack, K, M = board.families[0], board.stacks[0], fusion.K, len(entries)
    if isinstance(family, Directions):
        values = values / np.maximum(np.linalg.norm(values, axis=1, keepdims=True), np.finfo(float).tiny)
        family = replace(family, own=False, diversity=None)  # a group of one site may not be as loose as it likes
    rows = family.rows(stack.values, stack.variance, stack.weight)
    groups = _log_odds(family, values, gather(family, rows, board.labels, len(board.counts))[1][:K])
    entry = family.rows(values, None, np.full(values.shape, EXACTNESS[-1]))
    others = _log_odds(family, values, entry)
    others[:, np.arange(M), np.arange(M)] = -np.inf
    between = logsumexp(others, axis=2) - np.log(max(M - 1, 1))  # (E, M)
    shares = _learn_shares(np.vstack([np.zeros(M), between]), NEIGHBOURS)
    nearest = (np.cumsum(shares[:0:-1])[::-1] <= NEIGHBOURS) & (np.median(between, axis=1) <= np.log(NEIGHBOURS))
    nearest &= EXACTNESS >= LOOSEST
    nearest[-1] = True
    near = logsumexp(groups[nearest], axis=0) - np.log(M * nearest.sum())  # (K, M)
    new = logsumexp(np.vstack([np.zeros(K), logsumexp(groups, axis=2) - np.log(M)]) + np.log(shares)[:, None], axis=0)
    named, unnamed = _learn_shares(np.stack([logsumexp(near, axis=1), new]), 1.0)
    table = np.column_stack([near + np.log(named), new + np.log(unnamed)])
    table = np.exp(table - logsumexp(table, axis=1, keepdims=True))
    best = table.argmax(axis=1)
    return Names([[*entries, NEW][b] for b in best], table[np.arange(K), best], table, entries)


def _log_odds(family: Family, values: Array, sums: Array) -> Array:
    """Log p(values, entry) / (p(values) p(entry)) of sums (K,) of values and entries, at all exactnesses: (E, K, M)."""
    found = []
    for exactness in EXACTNESS:
        own = family.rows(values, None, np.full(values.shape, exactness))
        found.append((log_predictive(family, own, sums) - family.log_evidence(own)[:, None]).T)
    return np.stack(found)


def _learn_shares(log_density: Array, begin: float) -> Array:
    """Shares of the parts of a mixture, by expectation-maximisation; they begin with so many observations in all."""
    shares = np.full(len(log_density), 1 / len(log_density))
    for _ in range(EM_STEPS):
        log_part = np.log(shares)[:, None] + log_density
        shares = np.exp(log_part - logsumexp(log_part, axis=0)).sum(axis=1) + begin / len(log_density)
        shares /= shares.sum()
    return shares


def _read_catalogue(fusion: Fusion, catalogue: Any) -> tuple[list[str], Array]:
    """Names of entries, and their values in the order of the sites' features."""
    features, table = fusion._fit.first_model.coordinates.get("feature"), table_of(catalogue)
    if table is not None:
        rows, columns = table.to_numpy(), list(map(str, table.columns))
        names = list(map(str, getattr(catalogue, "index", range(len(rows)))))
        if features is not None:
            if lacking := set(features) - set(columns):
                raise InputError(f"the catalogue lacks features of the sites: {some(lacking)}. Give all of them.")
            rows = rows[:, [columns.index(name) for name in features]]
        values = list(rows)
    elif isinstance(catalogue, Mapping):
        names, values = list(map(str, catalogue)), list(map(np.asarray, catalogue.values()))
    else:
        found = type(catalogue).__name__
        raise InputError(f"a catalogue has named rows, {{name: vector}} or a table; found a {found}.")
    shapes, wanted = {np.shape(row) for row in values}, fusion.atoms.shape[1:]
    if shapes != {wanted}:
        raise InputError(f"entries of the catalogue have the sites' features, {wanted}; found {shapes}.")
    return names, check_values(np.array(values), "the catalogue")
