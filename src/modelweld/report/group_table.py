"""A table of groups that prints, shows itself in notebooks and becomes a DataFrame."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from modelweld.core.values import Array, Index
from modelweld.errors import load_extra
from modelweld.inputs.notebook import decimals_of, spell
from modelweld.report.text import FEW, FEW_SAID, LISTED, NAMED, align_cells, are_few, hide, several

if TYPE_CHECKING:
    from pandas import DataFrame

    from modelweld.results.posterior.sharing_rates import Sharing


@dataclass(frozen=True, eq=False)
class GroupTable:
    """One row per fused group: who has it, how many points it has, and what these are like.

    Attributes
    ----------
    word : str
        What a row is: "group", "state", "topic", "unit", ... Rows are numbered from 0, as labels are.
    counted : str
        What `points` are numbers of: "points", "frames", "words", or what sites' fact `points` says ("patients");
        empty if sites did not say how many.
    are_shares : bool
        Whether they are shares of a site's points instead, so that they do not add up over sites.
    sites, features, units : tuples of str
        Names of the sites, of the columns of `means`, and these columns' units, empty where not stated.
    held_by : int array (K,)
        Number of sites that have each group.
    held : bool array (K, J) or None
        Which ones; None if there are too many to list.
    counts : array (K, J) or None
        Points at each site, expected numbers rounded so that those of a site add up: NaN where it does not have the
        group, or did not say.
    points : array (K,) or None
        Points in all; of sites that repeat another, once.
    aside : float or None
        Points of what is excluded, which is in no row.
    means, errors : arrays (K, D)
        What sites sent, averaged with points as weights, and the standard error of that average: by the sites' stated
        errors and the learned noise between sites.
    fused : array (K, D)
        The fused values (atoms): what a further site is expected to have. They lean towards the mean of all groups,
        and are printed with means that they differ from by more than the standard error.
    confidence : array (K,) or None
        In the least certain match of each group.
    words : tuple of tuples of str
        The most probable words of each topic, symbols of each state, or features with the largest entries in a
        component (those that enter with the other sign after a minus); empty for others.
    shared : Sharing or None
        With confidences, in how many sites each group is expected to be (``fusion.posterior.sharing()``).
    at_several : int
        How many groups several sites have; sites that repeat another do not count.
    allow_small : bool
        Whether numbers below five, and values of groups of so few points, are printed and put into a DataFrame.

    Examples
    --------
    >>> import modelweld
    >>> from modelweld.kinds.mixture import mixture
    >>> ones = [[1.0], [1.0]]
    >>> sites = [
    ...     mixture(means, ones, [30, 10], counted=True, features=["age"], site=site)
    ...     for site, means in {"north": [[0.0], [9.0]], "south": [[1.0], [9.0]]}.items()
    ... ]
    >>> print(modelweld.fuse(sites).table())
    group  sites  points  north  south  age
    ---------------------------------------
        0      2      60     30     30  0.5
        1      2      20     10     10  9.0
    2 groups, 2 of them shared by several sites
    """

    word: str
    counted: str
    are_shares: bool
    sites: tuple[str, ...]
    features: tuple[str, ...]
    units: tuple[str, ...]
    held_by: Index
    held: NDArray[np.bool_] | None
    counts: Array | None
    points: Array | None
    aside: float | None
    means: Array
    errors: Array
    fused: Array
    confidence: Array | None
    words: tuple[tuple[str, ...], ...]
    shared: Sharing | None = None
    at_several: int = 0
    allow_small: bool = False

    def __len__(self) -> int:
        return len(self.held_by)

    @property
    def differs(self) -> NDArray[np.bool_]:
        """Where fused values lie farther from the groups' own means than these means' standard errors (K, D)."""
        with np.errstate(invalid="ignore"):
            return np.asarray(np.abs(self.means - self.fused) > self.errors)

    @property
    def small(self) -> NDArray[np.bool_]:
        """Groups of so few points (K,) that they describe persons; none where that may be shown, or is not known."""
        if self.points is None or self.are_shares or self.allow_small:
            return np.zeros(len(self), dtype=bool)
        return are_few(self.points)

    @property
    def decimals(self) -> tuple[int, ...]:
        """Digits after the point that each feature's means deserve (`inputs.notebook`)."""
        return tuple(decimals_of(column, error) for column, error in zip(self.means.T, self.errors.T, strict=True))

    def titles(self) -> list[str]:
        """Features with their units."""
        return [f"{name} ({unit})" if unit else name for name, unit in zip(self.features, self.units, strict=True)]

    def to_pandas(self) -> DataFrame:
        """All of it as a DataFrame; needs pandas, which modelweld does not bring."""
        pandas = load_extra("pandas", "a DataFrame needs", "pandas")
        columns: dict[str, object] = {"sites": self.held_by}
        what = f"share of {self.counted}" if self.are_shares else self.counted
        if self.points is not None and not self.are_shares:
            columns[self.counted] = self._shown(self.points)
        if self.confidence is not None:
            columns["confidence"] = self.confidence
        if self.shared is not None:
            of = self.shared
            columns |= {"sites expected": of.expected, "sites at least": of.low, "sites at most": of.high}
        for d, title in enumerate(self.titles()):
            of_feature = {title: self.means, f"{title} ±": self.errors, f"{title} fused": self.fused}
            columns |= {name: np.where(self.small, np.nan, own[:, d]) for name, own in of_feature.items()}
        if self.words:
            columns["words"] = hide([", ".join(words) for words in self.words], self.small)
        if self.counts is not None:
            own = self._shown(self.counts)
            columns |= {f"{what} at {site}": own[:, j] for j, site in enumerate(self.sites)}
        return pandas.DataFrame(columns, index=pandas.RangeIndex(len(self), name=self.word))

    def cells(self) -> tuple[list[str], list[list[str]]]:
        """Heads and rows as text, so many as can be printed."""
        columns = list(self._columns())
        rows = [list(row) for row in zip(*(cells for _, cells in columns), strict=True)]
        return [head for head, _ in columns], rows[:NAMED]

    def _columns(self) -> Iterator[tuple[str, list[str]]]:
        yield self.word, [str(k) for k in range(len(self))]
        yield "sites", [str(n) for n in self.held_by.tolist()]
        if self.points is not None and not self.are_shares:
            yield self.counted, self._numbers(self.points)
        if self.counts is not None and len(self.sites) <= LISTED:
            for site, own in zip(self.sites, self.counts.T, strict=True):
                yield (f"{site} %", self._numbers(100 * own)) if self.are_shares else (site, self._numbers(own))
        if self.confidence is not None:
            yield "confidence", [f"{c:.2f}" for c in self.confidence]
        if self.shared is not None:
            each = zip(self.shared.expected, self.shared.low, self.shared.high, strict=True)
            yield "sites expected", [f"{mean:.1f} ({low} to {high})" for mean, low, high in each]
        if self.words:
            known_by = {"topic": "words", "pattern": "largest entries", "group": "called"}.get(self.word, "symbols")
            yield known_by, hide([", ".join(words[:LISTED]) for words in self.words], self.small, FEW)
        differs, decimals = self.differs, self.decimals
        for d, title in list(enumerate(self.titles()))[:LISTED]:
            entries = zip(self.means[:, d], self.fused[:, d], differs[:, d], strict=True)
            spelt = [
                spell(x, decimals[d]) + (f" (fused {spell(fused, decimals[d])})" if other else "")
                for x, fused, other in entries
            ]
            yield title, hide(spelt, self.small, FEW)

    def _shown(self, points: Array) -> Array:
        """Numbers of points, NaN where they are too few to be shown."""
        return points if self.allow_small or self.are_shares else np.where(are_few(points), np.nan, points)

    def _numbers(self, points: Array) -> list[str]:
        """The same as text."""
        few = np.isnan(self._shown(points)) & ~np.isnan(points)
        return hide([spell(float(n), 0) for n in points], few, FEW)

    @property
    def title(self) -> str:
        """How many groups there are, and how many of them are shared."""
        return f"{several(len(self), self.word)}, {self.at_several:,} of them shared by several sites"

    def notes(self) -> list[str]:
        """What is not printed, and what numbers mean, in a few lines."""
        lines = []
        if len(self) > NAMED:
            lines.append(f"{len(self) - NAMED} more {self.word}s")
        if len(self.features) > LISTED:
            lines.append(f"{len(self.features) - LISTED} more columns")
        if self.aside is not None and self.aside >= 0.5 and not self.are_shares:
            lines.append(f"{self.aside:,.0f} {self.counted} are in none of these: excluded")
        if self.small.any():
            lines.append(f"{FEW}: {FEW_SAID}")
        if self.differs.any():
            lines.append("fused: what a further site is expected to have, where it is not the mean of what sites sent")
        return lines

    def __str__(self) -> str:
        heads, rows = self.cells()
        head, *lines = align_cells([heads, *rows])
        return "\n".join([head, "-" * len(head), *lines, self.title, *self.notes()])

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return self.html()

    def html(self, caption: str = "") -> str:
        """The printed table for notebooks, under a caption; without one, under its title."""
        heads, rows = self.cells()
        head = "".join(f"<th>{escape(cell)}</th>" for cell in heads)
        body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
        notes = "".join(f"<p>{escape(note)}</p>" for note in self.notes())
        above = f"<caption>{escape(caption or self.title)}</caption>"
        return f"<table>{above}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{notes}"


def whole_numbers(counts: Array) -> Array:
    """Expected numbers as whole ones that add up: the largest remainders are rounded up; NaN stays.

    Examples
    --------
    >>> whole_numbers(np.array([10.4, 20.3, 30.3])).tolist()
    [11.0, 20.0, 30.0]
    """
    known = np.isfinite(counts)
    found = np.where(known, np.floor(np.where(known, counts, 0.0)), np.nan)
    left = int(np.rint(np.nansum(counts) - np.nansum(found)))
    found[np.argsort(np.where(known, found - counts, np.inf), kind="stable")[:left]] += 1
    return found
