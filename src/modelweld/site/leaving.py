"""What leaves a site, to be looked at by whoever answers for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from modelweld.files.limits import spell_bytes
from modelweld.inputs.local_model import Array, LocalModel

FACTS = {
    "time": "when it was trained",
    "counted": "whether counts are numbers of points, or shares",
    "undone": "which scalers were undone",
    "units": "units of the features",
    "noisy": "which arrays have noise",
    "dropped": "which tables lost small cells",
    "labels": "labels of the classes",
    "activation": "the activation between layers",
    "documents": "the number of documents",
    "n_trials": "the number of trials",
    "named_columns": "whether its columns had names",
    "named_symbols": "whether its codes had names",
    "correlation_time": "over how many frames they resemble each other",
    "end": "what follows the last layer",
    "dtype": "the type of its numbers",
    "kernel": "the kernel's name",
}
"""What else leaves, in words."""


@dataclass(frozen=True)
class Leaving:
    """One array that leaves."""

    name: str
    axes: tuple[str, ...]
    shape: tuple[int, ...]
    beside: tuple[str, ...]
    noise: str


@dataclass(frozen=True)
class Report:
    """What leaves a site; ``print`` it.

    Attributes
    ----------
    site, kind, source : str
        Name of the site, kind of model, and class and version of the model that was read.
    arrays : tuple of Leaving
        Name, axes, shape, what stands beside it (variance, weight), noise.
    names : dict of str to int
        How many names of features, words or classes leave.
    facts : tuple of str
        What else does.
    smallest : float or None
        Points behind the smallest component; None if the site has not said.
    bytes : int
        Of the numbers.
    concerns : tuple of str
        What may give away too much.
    path : Path or None
        The file that was written.

    Examples
    --------
    >>> import modelweld
    >>> from sklearn.cluster import KMeans
    >>> X = [[0.0], [0.1], [0.2], [0.3], [0.5], [9.0], [9.1], [9.2], [9.3], [9.5]]
    >>> report = modelweld.export(KMeans(2, n_init=1, random_state=0).fit(X), None, X=X, site="north")
    >>> report.kind, report.smallest, [leaving.name for leaving in report.arrays]
    ('mixture', 5.0, ['means', 'variances', 'counts'])
    """

    site: str
    kind: str
    source: str
    arrays: tuple[Leaving, ...]
    names: Mapping[str, int]
    facts: tuple[str, ...]
    smallest: float | None
    bytes: int
    concerns: tuple[str, ...]
    path: Path | None

    def __str__(self) -> str:
        rows = [("array", "axes", "shape", "beside", "noise"), *map(_cells, self.arrays)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  " + "  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in rows]
        return "\n".join([self._title, *lines, *self._sentences])

    @property
    def _title(self) -> str:
        what = f"{self.kind or 'parameters'}{f' ({self.source})' if self.source else ''}"
        return f"What leaves {self.site or 'the site'}: {what}, {spell_bytes(self.bytes)}"

    @property
    def _sentences(self) -> list[str]:
        found = [f"names of {number} {coordinate}s" for coordinate, number in self.names.items()]
        points = "not said" if self.smallest is None else f"{self.smallest:.0f}"
        return [
            f"Beside them: {'; '.join([*found, *(FACTS.get(fact, fact) for fact in self.facts)]) or 'nothing'}.",
            f"Points behind the smallest component: {points}.",
            *(f"Take care: {concern}" for concern in self.concerns),
            f"Written: {self.path}" if self.path is not None else "Nothing was written.",
        ]


def _cells(array: Leaving) -> tuple[str, ...]:
    shape = " x ".join(map(str, array.shape)) or "1"
    return array.name, ", ".join(array.axes), shape, ", ".join(array.beside), array.noise


def describe_array(local: LocalModel, name: str, scales: Mapping[str, Array]) -> Leaving:
    """One array, with the standard deviations of the noise that was added."""
    axes = tuple(c or a or "·" for c, a in zip(local.along[name], local.axes[name], strict=True))
    beside = tuple(role for role, of in (("variance", local.variance), ("weight", local.weight)) if name in of)
    noise = ""
    if name in scales and scales[name].size:
        low, high = float(scales[name].min()), float(scales[name].max())
        noise = f"{low:g}" if low == high else f"{low:g} to {high:g}"
    return Leaving(name, axes, np.shape(local.arrays[name]), beside, noise)
