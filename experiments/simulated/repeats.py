"""The results of all repeats as numbers by setting, kind of local atoms, contender and measure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from study import Results

KINDS = {"true": "true local atoms", "kmeans": "k-means local atoms"}


@dataclass(frozen=True, order=True)
class Setting:
    """A number of sites and a noise, and whether sites send true local atoms or k-means centres."""

    kind: str
    J: int
    sigma: float


class Repeats:
    """Measures of every repeat; contenders in the order in which they ran."""

    def __init__(self, results: Results) -> None:
        self.by_setting: dict[Setting, list[Any]] = {}
        for name, result in sorted(results.items()):
            kind, J, sigma, _ = name.split("/")
            self.by_setting.setdefault(Setting(kind, int(J), float(sigma)), []).append(result)

    def settings(self, kind: str, *, J: int | None = None, sigma: float | None = None) -> list[Setting]:
        """Those there are, of a kind, with this J or this sigma."""
        return sorted(s for s in self.by_setting if s.kind == kind and J in (None, s.J) and sigma in (None, s.sigma))

    def contenders(self, kind: str) -> list[str]:
        """Who met this kind of local atoms."""
        return next((list(rows[0]["methods"]) for s, rows in self.by_setting.items() if s.kind == kind), [])

    def true_K(self, setting: Setting) -> np.ndarray:
        """True numbers of atoms."""
        return np.array([row["true K"] for row in self.by_setting[setting]], dtype=float)

    def values(self, setting: Setting, contender: str, measure: str) -> np.ndarray:
        """A measure of every repeat, NaN where there is none; "error in K" and "K off" (relative) are of K."""
        rows = [row["methods"][contender] for row in self.by_setting[setting]]
        if measure in ("error in K", "K off"):
            error = np.array([row["K"] for row in rows]) - self.true_K(setting)
            return error if measure == "error in K" else np.abs(error) / self.true_K(setting)
        return np.array([row.get(measure, np.nan) for row in rows], dtype=float)

    def told(self, setting: Setting, measure: str) -> np.ndarray:
        """What whoever is told the true atoms reaches."""
        return np.array([row["told the atoms"][measure] for row in self.by_setting[setting]])


def standard_error(values: Sequence[float] | np.ndarray) -> float:
    """Of the mean; zero for a single repeat."""
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0
