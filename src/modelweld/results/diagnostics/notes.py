"""How the run went, and what owners of sites want to know: fragments (over-segmentation) and excluded parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from modelweld.core.family import Family
from modelweld.families.capabilities import name_hyperparameters, variances_of
from modelweld.results.diagnostics.sites import FALSE_ALARMS, SiteDiagnostics, diagnose
from modelweld.results.fit_result import FitResult
from modelweld.threads import on_one_thread

if TYPE_CHECKING:
    from modelweld.fusion import Fusion


@dataclass(frozen=True)
class Fragments:
    """Parameters of one site that are fragments of the same atom.

    Examples
    --------
    >>> print(Fragments("north", 3, (0, 2)).sentence)
    site 'north': parameters 0 and 2 look like fragments of one (atom 3): more restarts there.
    """

    site: str
    atom: int
    rows: tuple[int, ...]

    @property
    def sentence(self) -> str:
        """In plain words."""
        rows = " and ".join(map(str, self.rows))
        return (
            f"site {self.site!r}: parameters {rows} look like fragments of one (atom {self.atom}): more restarts there."
        )


@dataclass(frozen=True)
class Excluded:
    """A parameter that was not fitted.

    Examples
    --------
    >>> print(Excluded("north", 1, 3).sentence)
    site 'north': parameter 1 was not fitted; the nearest atom is 3. It is kept, but not counted.
    """

    site: str
    row: int
    nearest: int | None

    @property
    def sentence(self) -> str:
        """In plain words."""
        near = "" if self.nearest is None else f"; the nearest atom is {self.nearest}"
        return f"site {self.site!r}: parameter {self.row} was not fitted{near}. It is kept, but not counted."


def fragments(fusion: Fusion | FitResult, set_name: str | None = None) -> list[Fragments]:
    """Every case of one site holding one atom in several fragments.

    Examples
    --------
    >>> import modelweld
    >>> fragments(modelweld.fuse([[[0.0, 0.1], [9.0, 9.1]], [[9.1, 8.9]]]))
    []
    """
    matching = fusion.matching if set_name is None else fusion.matchings[set_name]
    found = []
    for site, labels in zip(fusion.sites, matching.labels, strict=True):
        atoms, counts = np.unique(labels, return_counts=True)
        for atom in atoms[counts > 1]:
            found.append(Fragments(site, int(atom), tuple(np.flatnonzero(labels == atom).tolist())))
    return found


def excluded(fusion: Fusion | FitResult, set_name: str | None = None) -> list[Excluded]:
    """Every parameter that is excluded, with the atom whose values (over all arrays of the set) are nearest.

    Distances are in noise deviations where the family has a noise.

    Examples
    --------
    >>> import modelweld
    >>> excluded(modelweld.fuse([[[0.0], [9.0]], [[9.1]], [[0.1]]]))
    []
    """
    matching = fusion.matching if set_name is None else fusion.matchings[set_name]
    K, found = matching.K, []
    for row in matching.excluded:
        j = int(np.searchsorted(matching.offsets, row, side="right")) - 1
        atom = matching.stacked_labels[row]
        distance = np.zeros(K)
        for name, values in matching.values.items():
            own = variances_of(matching.families[name])
            distance += ((values[:K] - values[atom]) ** 2 / (1.0 if own is None else own.noise)).sum(1)
        nearest = int(np.argmin(distance)) if K else None
        found.append(Excluded(fusion.sites[j], int(row - matching.offsets[j]), nearest))
    return found


class Diagnosis:
    """Which sites do not fit, what was learned, and how the run went: ``fusion.diagnosis``.

    Examples
    --------
    >>> import modelweld
    >>> fusion = modelweld.fuse([[[0.0], [9.0]], [[9.1]], [[0.1]]])
    >>> fusion.diagnosis.converged, sorted(fusion.diagnosis.hyperparameters)
    (True, ['a', 'b', 'c', 'mean', 'noise', 'spread'])
    """

    def __init__(self, fit: FitResult) -> None:
        self._fit = fit

    @property
    def family(self) -> Family:
        """The family, with learned hyperparameters, of the one array that was matched."""
        return self._fit.family

    @property
    def hyperparameters(self) -> dict[str, Any]:
        """Learned hyperparameters of the one array that was matched, and the prior's."""
        prior = self._fit.matching.prior
        return {**name_hyperparameters(self.family), **({} if prior is None else prior.parameters())}

    @property
    def converged(self) -> bool:
        """Whether every set's last sweep changed nothing."""
        return all(m.converged for m in self._fit.matchings.values())

    @property
    def history(self) -> tuple[float, ...]:
        """The objective after every sweep and every update."""
        return self._fit.matching.history

    @property
    def sweeps(self) -> int:
        """Number of sweeps, the idle last one included."""
        return self._fit.matching.sweeps

    @property
    def settings(self) -> dict[str, Any]:
        """What `fuse` was asked for, in words and plain values; empty where another method made the fusion.

        `revised` counts the sites added or removed since; `restored`: see `Fusion.remove`.
        """
        return self._fit.settings

    @on_one_thread
    def sites(self, set_name: str | None = None, *, rate: float = FALSE_ALARMS) -> list[SiteDiagnostics]:
        """Per site: what it shares, how well the others predict it, its shift and its influence, and a warning.

        A fusion of honest sites has any warning with probability `rate`. Below four sites there are no warnings, as
        there is no majority to compare with (`judged` is False). `modelweld.results.diagnostics.sites.diagnose` has the
        rest.
        """
        return diagnose(self._fit, set_name, rate=rate)

    def fragments(self, set_name: str | None = None) -> list[Fragments]:
        """Every case of one site holding one atom in several fragments."""
        return fragments(self._fit, set_name)

    def excluded(self, set_name: str | None = None) -> list[Excluded]:
        """Every parameter that is excluded, with the nearest atom."""
        return excluded(self._fit, set_name)
