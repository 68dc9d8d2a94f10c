"""Columns of a mixture that are no measurements: codes for missing values or of two classes, and running numbers.

A fit of mixtures keeps the mean and the variance of all points, and gives values that many points share a component
without any width. So both can be seen in what a site sends, without its rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from modelweld.core.values import Array, Flags
from modelweld.errors import DataWarning, Finding
from modelweld.inputs.local_model import LocalModel
from modelweld.kinds.mixture_components import diagonals, parameters, seen_counts

NARROW = 1e-3
"""Share of a typical component's variance below which one has no width there, but what a fit adds to be invertible."""

FEWEST = 5.0
"""Points that such a component stands for: two rows may be alike by chance."""

OUTSIDE = 3.0
"""Deviations of every other component, here and elsewhere, beyond which a value is none that was measured."""

CLOSE = 0.01
"""Share of its deviation, and of its number of rows, by which a column's moments may differ from those they ought to
have: counts of a fit are expected ones."""

CODE = (
    ": {} is {:.6g} for about {:.0f} points, and nothing else comes near: a code for missing values? Fit again without "
    "those rows, or without the column and with read(model, lacks=[...])."
)
NUMBERED = ": {} has the mean and the deviation of a running number of rows, 1 to {:.0f}. Leave it out."
CODED = ": {} is coded {:.0f} or {:.0f}, and {:.0f} or {:.0f} at most sites. Code it alike, and fit again."


class Columns(NamedTuple):
    """Components of a site (K, D), their numbers of points where seen, and mean and deviation (D,) of all points."""

    means: Array
    variances: Array
    counts: Array
    mean: Array
    deviation: Array

    def narrow(self, d: int, typical: float) -> Flags:
        """Which components (K,) hold one value, compared with what is typical."""
        flat: Flags = (self.variances[:, d] <= NARROW * typical) & (self.counts[:, d] >= FEWEST)
        return flat


def name_columns(models: Sequence[LocalModel]) -> Iterator[Finding]:
    """What is odd about columns of sites, arranged alike, that say how many points they have."""
    sites = {j: found for j, model in enumerate(models) if (found := _columns(model)) is not None}
    features = models[0].coordinates.get("feature")
    typical = np.median(np.concatenate([site.variances for site in sites.values()]), axis=0) if sites else []
    for d in range(len(typical)):
        name = f"dimension {d}" if features is None else repr(features[d])
        numbered = [j for j, site in sites.items() if _is_running_number(site, d)]
        if numbered:
            n = sites[numbered[0]].counts[:, d].sum()
            yield Finding(NUMBERED.format(name, n), DataWarning, [models[j].site or str(j) for j in numbered])
        codes = [_code_of_two(site, d) for site in sites.values()]
        most = float(np.median(codes))  # NaN if one site has others
        for j, code in zip(sites, codes, strict=True):
            if abs(code - most) >= 1:
                yield Finding(
                    CODED.format(name, code, code + 1, most, most + 1), DataWarning, [models[j].site or str(j)]
                )
        for j, site in sites.items():
            for k in np.flatnonzero(site.narrow(d, typical[d])) if j not in numbered else ():
                value, n = site.means[k, d], site.counts[k, d]
                if not any(_comes_near(other, d, value, int(k) if i == j else None) for i, other in sites.items()):
                    yield Finding(CODE.format(name, value, n), DataWarning, [models[j].site or str(j)])
                    break


def _columns(model: LocalModel) -> Columns | None:
    means, spreads, counts = parameters(model)
    weight, points = seen_counts(model, counts)
    if points is None or len(means) < 2:
        return None
    share = weight / np.maximum(weight.sum(0), np.finfo(float).tiny)
    mean = (share * means).sum(0)
    variances = diagonals(spreads)
    return Columns(means, variances, weight, mean, np.sqrt((share * (variances + (means - mean) ** 2)).sum(0)))


def _comes_near(site: Columns, d: int, value: float, own: int | None) -> bool:
    """Whether some component of a site, but for the value's own, has such a value."""
    seen = site.counts[:, d] > 0
    if own is not None:
        seen[own] = False
    reach = OUTSIDE * np.sqrt(site.variances[seen, d])
    return bool((np.abs(site.means[seen, d] - value) <= reach).any())


def _code_of_two(site: Columns, d: int) -> float:
    """The lower of two codes, c and c + 1, if the moments of a column are those of such; else NaN."""
    share, code = np.modf(site.mean[d])
    variance = share * (1 - share)
    return float(code) if abs(site.deviation[d] ** 2 - variance) < CLOSE * variance else np.nan


def _is_running_number(site: Columns, d: int) -> bool:
    """Whether the moments of a column are those of 1, 2, ..., n."""
    n = float(site.counts[:, d].sum())
    expected = np.sqrt(max(n**2 - 1, 1.0) / 12)
    near = abs(site.mean[d] - n / 2) <= 0.5 + CLOSE * n
    return bool(near and abs(site.deviation[d] / expected - 1) <= CLOSE and n >= FEWEST)
