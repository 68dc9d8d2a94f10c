"""In how many sites each atom is, and how sure that is: rates of sharing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from modelweld.core.values import Array, Index, group_of_values
from modelweld.errors import load_extra
from modelweld.inputs.notebook import MOST_ROWS, html_table
from modelweld.results.posterior.confidence import MEANING, NO_PARTNER, How, partners
from modelweld.results.posterior.draws import Posterior

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True, eq=False)
class Sharing:
    """In how many sites each atom is. One row per atom, numbered as labels are.

    Attributes
    ----------
    sites : int array (K,)
        Sites that hold the atom in the fusion's matching.
    expected : array (K,)
        Sites that hold it on average over what is probable.
    low, high : int arrays (K,)
        Ends of an interval that holds their number with probability `level` at least.
    level : float
        That probability.
    how : {"drawn", "fixed", "conditional"}
        "drawn" and "fixed": from draws of matchings, as in `Fusion.confidence`; a site that the fusion does not have at
        an atom may be there in some. "conditional", where draws would take too long: of the sites that hold the atom,
        each taken to be right with its confidence, apart from the others. Too sure, and never more than `sites`.
    """

    sites: Index
    expected: Array
    low: Index
    high: Index
    level: float
    how: How

    @property
    def meaning(self) -> str:
        """What they rest on, in plain words."""
        return MEANING[self.how]

    def first(self, K: int) -> Sharing:
        """Of the first K atoms: those that are not excluded."""
        return replace(self, **{name: getattr(self, name)[:K] for name in ("sites", "expected", "low", "high")})

    def as_dict(self) -> dict[str, object]:
        """All of it in lists, numbers and words."""
        return {name: x.tolist() if isinstance(x, np.ndarray) else x for name, x in vars(self).items()}

    def to_pandas(self) -> DataFrame:
        """All of it as a DataFrame; needs pandas, which modelweld does not bring."""
        pandas = load_extra("pandas", "a DataFrame needs", "pandas")
        names = ("sites", "expected", "low", "high")
        return pandas.DataFrame({name: getattr(self, name) for name in names})

    def _rows(self) -> list[list[str]]:
        each = zip(self.sites.tolist(), self.expected, self.low.tolist(), self.high.tolist(), strict=True)
        return [[str(k), str(n), f"{mean:.1f}", f"{low} to {high}"] for k, (n, mean, low, high) in enumerate(each)]

    def _titles(self) -> list[str]:
        return ["atom", "sites", "expected", f"{self.level:.0%} interval"]

    def __str__(self) -> str:
        lines = [self._titles(), *self._rows()[:MOST_ROWS]]
        widths = [max(len(line[c]) for line in lines) for c in range(4)]
        spelt = ["  ".join(x.rjust(w) for x, w in zip(line, widths, strict=True)) for line in lines]
        left = len(self.sites) - MOST_ROWS
        return "\n".join([*spelt, f"... and {left} more"] if left > 0 else spelt)

    def __repr__(self) -> str:
        return f"<Sharing of {len(self.sites)} atoms: {self.how}, intervals of probability {self.level:g}>"

    def _repr_html_(self) -> str:
        return html_table(repr(self), self._titles(), self._rows())


def draw_sharing(posterior: Posterior, fitted: Index, offsets: Index, level: float, how: How) -> Sharing:
    """From draws: the sites of each fitted atom's partner in every draw, none where it has no partner."""
    group, rng = group_of_values(offsets), np.random.default_rng(0)
    J, K = len(offsets) - 1, int(fitted.max(initial=-1)) + 1
    numbers = []
    for draw in posterior.labels.reshape(-1, posterior.labels.shape[-1]):
        names, at = np.unique(draw, return_inverse=True)
        holders = np.bincount(np.unique(at.ravel() * J + group) // max(J, 1), minlength=len(names))
        partner = partners(fitted, draw, rng)
        numbers.append(np.where(partner == NO_PARTNER, 0, holders[np.searchsorted(names, partner)]))
    found = np.array(numbers).reshape(-1, K)
    low, high = np.quantile(found, [(1 - level) / 2, (1 + level) / 2], axis=0)
    ends = np.floor(low).astype(np.int64), np.ceil(high).astype(np.int64)
    return Sharing(held_by(fitted, offsets), found.mean(0), *ends, level, how)


def conditional_sharing(stated: Sequence[Array], fitted: Index, offsets: Index, level: float) -> Sharing:
    """From confidences in matches, each taken apart from the others; a site has an atom if any of its fragments is
    right.

    Examples
    --------
    >>> stated = [np.array([0.9]), np.array([0.5]), np.array([1.0, 0.2])]
    >>> print(conditional_sharing(stated, np.array([0, 0, 0, 1]), np.array([0, 1, 2, 4]), 0.9))
    atom  sites  expected  90% interval
       0      3       2.4        1 to 3
       1      1       0.2        0 to 1
    """
    J, K = len(offsets) - 1, int(fitted.max(initial=-1)) + 1
    pairs, where = np.unique(fitted * max(J, 1) + group_of_values(offsets), return_inverse=True)
    wrong = np.ones(len(pairs))
    np.multiply.at(wrong, where.ravel(), 1.0 - np.concatenate([np.zeros(0), *stated]))
    atom, right = pairs // max(J, 1), 1.0 - wrong
    low, high = np.zeros(K, dtype=np.int64), np.zeros(K, dtype=np.int64)
    for k, own in enumerate(np.split(right, np.cumsum(np.bincount(atom, minlength=K))[:-1])):
        below = np.cumsum(chances(own))
        low[k] = np.searchsorted(below, (1 - level) / 2)
        high[k] = np.searchsorted(below, (1 + level) / 2 - 1e-12)
    expected = np.bincount(atom, right, K).astype(np.float64)
    return Sharing(held_by(fitted, offsets), expected, low, high, level, "conditional")


def chances(probabilities: Array) -> Array:
    """Probability of 0, 1, ..., n successes of n trials of these probabilities.

    Examples
    --------
    >>> chances(np.array([0.5, 0.5])).tolist()
    [0.25, 0.5, 0.25]
    """
    found = np.ones(1)
    for p in probabilities:
        found = np.convolve(found, [1.0 - p, p])
    return found


def held_by(labels: Index, offsets: Index) -> Index:
    """Number of sites at each atom."""
    J, K = max(len(offsets) - 1, 1), int(labels.max(initial=-1)) + 1
    return np.bincount(np.unique(labels * J + group_of_values(offsets)) // J, minlength=K)
