"""After the fit: how well the others predict each site (leave-one-out), its influence, its shift, and a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from modelweld.core.board import Board
from modelweld.core.values import Array, Flags
from modelweld.errors import InputError, sites_named
from modelweld.fit.screening.distances import FEWEST_SITES_TO_COMPARE, MAD_TO_DEVIATION
from modelweld.fit.search.leave_one_out import Without, leave_out
from modelweld.fit.search.parts import Parts
from modelweld.inputs.sets import columns_of
from modelweld.progress import track
from modelweld.results.diagnostics.merge_value import MergeVerdict, SiteVerdict, worth_merging
from modelweld.results.diagnostics.shifts import Shift, Shiftable, shiftable_arrays, shifts_of
from modelweld.results.diagnostics.site_warnings import Measured, warn_of_sites
from modelweld.results.without_sites import sources_of

if TYPE_CHECKING:
    from modelweld.results.fit_result import FitResult

__all__ = ["MergeVerdict", "SiteDiagnostics", "SiteVerdict", "diagnose", "worth_merging"]

FALSE_ALARMS = 0.02
"""Share of fusions of honest sites that may have a warning about any of their sites, in any dimension, half of it for
shifts and half for unshared atoms: a warning costs an owner's time, and one fusion in fifty is rare enough to be looked
at. (At 1e-3 shifts of two noise deviations were found in 6 of 20 fusions of five sites instead of 14.)"""

TOO_FEW = "with fewer than four sites there is no majority that could say who is off: sites are not judged."
"""What is said instead of warnings."""


@dataclass(frozen=True, eq=False)
class SiteDiagnostics:
    """How one site gets on with the others.

    A noise deviation is that of a typical value about its atom, standard errors included where they are sent.

    Attributes
    ----------
    site : str
        Its name.
    parameters : int
        Local parameters it sent.
    unshared : int
        How many of them have an atom that no other site holds.
    score : float
        Mean over its values of the log predictive density given the others' values at the same atom, minus that of a
        new atom; zero for an atom that is not shared. In nats.
    surprise : float
        The score's robust z-score among sites (median, and median absolute deviation, at least what a score of so
        many values varies by anyway); negative if it fits worse.
    shift : array (D,)
        Mean offset of its values from the atoms as the others see them, in noise deviations, arrays one after the
        other. If it shares little, but would share most after a common shift, that shift. NaN if unknown.
    shift_z : array (D,)
        The same over its standard error.
    influence : float
        Root mean square move of the others' atoms when it is left out, in noise deviations.
    warning : str
        One sentence for people; empty if there is nothing to say.
    findings : tuple of str
        All that is said of it: what was found before and during the fit, as it was warned of, and the warning.
    judged : bool
        Whether there are enough sites to warn of any: no warning says nothing if not.
    """

    site: str
    parameters: int
    unshared: int
    score: float
    surprise: float
    shift: Array
    shift_z: Array
    influence: float
    warning: str
    judged: bool
    findings: tuple[str, ...] = ()

    def __repr__(self) -> str:
        said = " ".join(self.findings) or ("nothing stands out" if self.judged else "too few sites to judge")
        shared = f"{self.parameters - self.unshared} of {self.parameters} shared"
        return f"<SiteDiagnostics of {self.site!r}: {shared}; {said}>"

    def rename(self, site: str) -> SiteDiagnostics:
        """The same of a site that repeats this one."""
        return replace(self, site=site, warning=self.warning.replace(repr(self.site), repr(site), 1))


def diagnose(fit: FitResult, set_name: str | None = None, *, rate: float = FALSE_ALARMS) -> list[SiteDiagnostics]:
    """How each site gets on with the others, at fixed labels and hyperparameters.

    Parameters
    ----------
    fit : FitResult
        Of all sites.
    set_name : str, optional
        Which set; needed when there are several.
    rate : float
        Share of fusions of honest sites in which any site may be warned of by chance.

    Returns
    -------
    list of SiteDiagnostics
        In the order of ``fusion.sites``. With fewer than four sites there are no warnings (`judged` is False). Sites
        that repeat another are no evidence of their own: they get its answer.

    Examples
    --------
    >>> import numpy as np, modelweld
    >>> rng = np.random.default_rng(0)
    >>> atoms = rng.normal(0, 5, (8, 6))
    >>> sites = [atoms + rng.normal(0, 0.2, atoms.shape) for _ in range(6)]
    >>> sites[2] = sites[2] + 0.5
    >>> [d.site for d in modelweld.fuse(sites, site_effects=False).diagnosis.sites() if d.warning]
    ['2']
    """
    if not 0 < rate < 1:
        raise InputError(f"rate, the share of false alarms, must lie between 0 and 1; found {rate}.")
    name, _ = fit.find_set(set_name)
    once = fit.drop_duplicates()
    if once is not fit:
        found, of = diagnose(once, name, rate=rate), sources_of(fit, once, name).sites
        return _add_findings(fit, name, [found[i].rename(site) for site, i in zip(fit.sites, of.tolist(), strict=True)])
    parts = fit.parts(name)
    measured = _measure(parts, len(fit.sites))
    D, n = sum(stack.values.shape[1] for stack in parts.stacks), np.maximum(measured.parameters, 1)
    surprise = _robust_z(measured.score, measured.parameters > 0, np.sqrt(D / (2 * n)))
    judged = bool(np.count_nonzero(measured.parameters) >= FEWEST_SITES_TO_COMPARE)
    warnings = [""] * len(fit.sites)
    if judged:
        dimensions = _dimensions(fit, name, shiftable_arrays(parts))
        warnings = warn_of_sites(measured, surprise, fit.sites, dimensions, rate)
    found = [
        SiteDiagnostics(
            site=site,
            parameters=int(measured.parameters[j]),
            unshared=int(measured.unshared[j]),
            score=float(measured.score[j]),
            surprise=float(surprise[j]),
            shift=measured.shifts[j].mean,
            shift_z=measured.shifts[j].z,
            influence=float(measured.influence[j]),
            warning=f"site {site!r} {warnings[j]}" if warnings[j] else "",
            judged=judged,
        )
        for j, site in enumerate(fit.sites)
    ]
    return _add_findings(fit, name, found)


def _add_findings(fit: FitResult, name: str, found: Sequence[SiteDiagnostics]) -> list[SiteDiagnostics]:
    """What the matching has to say of each site, before its warning."""
    quoted = {repr(site): site for site in fit.sites}
    said: dict[str, list[str]] = {site: [] for site in fit.sites}
    for reason in fit.matchings[name].reasons:
        for site in sites_named(reason, quoted):
            said[site].append(reason)
    return [replace(d, findings=(*said[d.site], *filter(None, [d.warning]))) for d in found]


def _measure(parts: Parts, J: int) -> Measured:
    """What each of J sites is without itself, a few sites at a time."""
    places = shiftable_arrays(parts)
    units = _units(parts, places)
    parameters, unshared = np.zeros((2, J), dtype=np.int64)
    score, influence = np.zeros((2, J))
    shifts: list[Shift] = []
    for first, last, board in track(parts, "comparing sites", len(parts)):
        out, own = leave_out(board, 0, last - first), slice(first, last)
        parameters[own] = np.bincount(out.site, minlength=last - first)
        unshared[own] = parameters[own] - np.bincount(out.site[out.shared], minlength=last - first)
        score[own] = scores_of(board, out)
        left = [family.estimate(rest) for family, rest in zip(board.families, out.rest, strict=True)]
        influence[own] = influences_of(board, out, left, units)
        shifts += shifts_of(board, places, out, left)
    return Measured(int(np.count_nonzero(parts.counts > 1)), parameters, unshared, score, influence, shifts)


def _dimensions(fit: FitResult, name: str, places: Sequence[Shiftable]) -> list[str]:
    """Dimensions of all arrays in words."""
    arrays = list(fit.matchings[name].families)
    return [
        (f"array {arrays[x.number]!r}, " if len(arrays) > 1 and isinstance(arrays[x.number], str) else "") + column
        for x in places
        for column in columns_of(fit.first_model, arrays[x.number], name, fit.matchings, in_words=True)
    ]


def scores_of(board: Board, out: Without) -> Array:
    """Mean log predictive density (J,) of each site's values given the others, minus that of new atoms."""
    J = len(board.sizes)
    gain = -board.singletons[out.values]
    for family, rows, sums, rest in zip(board.families, board.rows, board.sums, out.rest, strict=True):
        if out.in_fragments:
            gain += family.log_evidence(rest[out.where] + rows[out.values])
        else:
            gain += family.log_evidence(sums)[board.labels[out.values]]
        gain -= family.log_evidence(rest)[out.where]
    n = np.bincount(out.site, minlength=J)
    return np.bincount(out.site, np.where(out.shared, gain, 0.0), minlength=J) / np.maximum(n, 1)


def influences_of(board: Board, out: Without, left: Sequence[Array], units: Sequence[Array]) -> Array:
    """Root mean square move (J,) of all atoms that others hold, over atoms and dimensions, when a site is left out.

    `left` is where the atoms are without it.
    """
    J, stay = len(board.sizes), out.holders > 0
    atoms = len(board.counts) - np.bincount(out.sites[~stay], minlength=J)
    squares, entries = np.zeros(J), np.zeros(J)
    for family, sums, without, unit in zip(board.families, board.sums, left, units, strict=True):
        move = (family.estimate(sums)[out.atoms] - without) / unit
        squares += np.bincount(out.sites, np.where(stay, np.square(move).sum(1), 0.0), minlength=J)
        entries += atoms * move.shape[1]
    return np.sqrt(squares / np.maximum(entries, 1))


def _units(fit: Parts, places: Sequence[Shiftable]) -> list[Array]:
    """What moves are measured in: the noise deviation, or for families without one the atoms' own deviation."""
    units = [family.estimate(sums).std(0) for family, sums in zip(fit.families, fit.sums, strict=True)]
    for x in places:
        units[x.number] = x.deviation
    return [np.where(unit > 0, unit, 1.0) for unit in units]


def _robust_z(x: Array, counted: Flags, anyway: Array) -> Array:
    """Distance from the median in robust deviations; zero where there is no majority to compare with.

    Few sites may agree by chance. `anyway` (J,) is the deviation of a mean of n log densities in D dimensions, each of
    which is minus half a chi-square of D degrees of freedom, and a constant.
    """
    if counted.sum() < FEWEST_SITES_TO_COMPARE:
        return np.zeros(len(x))
    off = x - np.median(x[counted])
    deviation = MAD_TO_DEVIATION * float(np.median(np.abs(off[counted])))
    return np.where(counted, off / np.maximum(deviation, anyway), 0.0)
