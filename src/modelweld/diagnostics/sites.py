"""After the fit: how well the others predict each site (leave-one-out), its influence, its shift, and a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from modelweld.diagnostics.counted_once import sources_of
from modelweld.diagnostics.merge_value import MergeVerdict, SiteVerdict, worth_merging
from modelweld.errors import InputError
from modelweld.inputs.local_model import Array
from modelweld.inputs.stack import Index
from modelweld.matching.board import Board
from modelweld.matching.leave_one_out import Without, leave_out
from modelweld.matching.sets import columns_of
from modelweld.progress import track
from modelweld.screening.outliers import FEWEST_SITES_TO_COMPARE, MAD_TO_DEVIATION, Flags
from modelweld.screening.shift_estimate import Shift, Shiftable, shift_of, shiftable_arrays

if TYPE_CHECKING:
    from modelweld.diagnostics.questions import Questions

__all__ = ["MergeVerdict", "SiteDiagnostics", "SiteVerdict", "diagnose", "worth_merging"]

FALSE_ALARMS = 0.02
"""Share of fusions of honest sites that may have a warning about any of their sites, in any dimension, half of it for
shifts and half for unshared atoms: a warning costs an owner's time, and one fusion in fifty is rare enough to be looked
at. (At 1e-3 shifts of two noise deviations were found in 6 of 20 fusions of five sites instead of 14.)"""

FEWEST_TO_SCALE, LARGEST_SCATTER = 6, 1.3
"""Honest sites may have shifts of their own (a cold station is cold everywhere): where that many others' z-scores have
a robust deviation above this, a site's is divided by it. Six give it to a third, and one below 1.3 may be chance."""

TOO_FEW = "with fewer than four sites there is no majority that could say who is off: sites are not judged."
"""What is said instead of warnings."""

SMALLEST_SHIFT = 0.5
"""Noise deviations from which a shift is worth a warning: with many values smaller ones are certain, but harmless."""

LARGEST_SURPRISE, SMALLEST_SCORE = 6.0, 0.5
"""A site fits badly if its score is six robust deviations below the others' median (a robust deviation of ten sites is
uncertain by a third, so this is four true ones) and less than half of it (else it fits well, only less so)."""

LARGEST_INFLUENCE = 5.0
"""Times the median site's influence: a typical site at an atom of five or more has at most a fifth of the weight, so
this one has nearly all."""


INFLUENCE_SCATTER = 5.0
"""Robust deviations of the sites' log influence as well: sites that are unlike in size are unlike in influence."""


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
        How many of them have an atom that nobody else holds.
    score : float
        Mean over its values of the log predictive density given the others' values at the same atom, minus that of a
        new atom; zero for an atom nobody shares. In nats.
    surprise : float
        The score's robust z-score among sites (median, median absolute deviation); negative if it fits worse.
    shift : array (D,)
        Mean offset of its values from the atoms as the others see them, in noise deviations, arrays one after the
        other. If it shares little, but would share most after a common shift, that shift. NaN if unknown.
    shift_z : array (D,)
        The same over its standard error.
    influence : float
        Root mean square move of the others' atoms when it is left out, in noise deviations.
    warning : str
        One sentence for people; empty if there is nothing to say.
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

    def __repr__(self) -> str:
        said = self.warning or ("nothing stands out" if self.judged else "too few sites to judge")
        shared = f"{self.parameters - self.unshared} of {self.parameters} shared"
        return f"<SiteDiagnostics of {self.site!r}: {shared}; {said}>"

    def named(self, site: str) -> SiteDiagnostics:
        """The same of a site that repeats this one."""
        return replace(self, site=site, warning=self.warning.replace(repr(self.site), repr(site), 1))

    @property
    def unshared_share(self) -> float:
        """Share of its parameters that nobody else holds."""
        return self.unshared / self.parameters if self.parameters else 0.0


def diagnose(fusion: Questions, set_name: str | None = None, *, rate: float = FALSE_ALARMS) -> list[SiteDiagnostics]:
    """How each site gets on with the others, at fixed labels and hyperparameters.

    Parameters
    ----------
    fusion : Fusion
        A fit.
    set_name : str, optional
        Which set; needed when there are several.
    rate : float
        Share of fusions of honest sites in which any site may be warned of by chance.

    Returns
    -------
    list of SiteDiagnostics
        In the order of ``fusion.sites``. With fewer than four sites nobody is warned of (`judged` is False). Sites
        that repeat another are no evidence of their own: they get its answer.

    Examples
    --------
    >>> import numpy as np, modelweld
    >>> rng = np.random.default_rng(0)
    >>> atoms = rng.normal(0, 5, (8, 6))
    >>> sites = [atoms + rng.normal(0, 0.2, atoms.shape) for _ in range(6)]
    >>> sites[2] = sites[2] + 0.5
    >>> [d.site for d in diagnose(modelweld.fuse(sites)) if d.warning]
    ['2']
    """
    if not 0 < rate < 1:
        raise InputError(f"rate, the share of false alarms, must lie between 0 and 1; found {rate}.")
    name, _ = fusion.named_set(set_name)
    once = fusion.once()
    if once is not fusion:
        found, of = diagnose(once, name, rate=rate), sources_of(fusion, once, name).sites
        return [found[i].named(site) for site, i in zip(fusion.sites, of.tolist(), strict=True)]
    board = fusion.board(name)
    places = shiftable_arrays(board)
    units = _units(board, places)
    J = len(fusion.sites)
    outs = [leave_out(board, j) for j in track(range(J), "comparing sites", J)]
    parameters = np.array([len(out.values) for out in outs])
    unshared = np.array([int((~out.shared).sum()) for out in outs])
    score = np.array([score_of(board, out) for out in outs])
    surprise = _robust_z(score, parameters > 0)
    influence = np.array([influence_of(board, out, units) for out in outs])
    shifts = [shift_of(board, places, out) for out in outs]
    judged = bool(np.count_nonzero(parameters) >= FEWEST_SITES_TO_COMPARE)
    dimensions = _dimensions(fusion, name, places)

    def warning(j: int) -> str:
        return (
            _about_explaining_shift(shifts[j], int(parameters[j]))
            or _about_unshared(unshared, parameters, j, rate / 2)
            or _about_shift(shifts, j, dimensions, rate / 2)
            or _about_score(score[parameters > 0], float(score[j]), float(surprise[j]))
            or _about_influence(influence, j, fusion.sites[j])
        )

    warnings = [warning(j) if judged else "" for j in range(J)]
    return [
        SiteDiagnostics(
            site=site,
            parameters=int(parameters[j]),
            unshared=int(unshared[j]),
            score=float(score[j]),
            surprise=float(surprise[j]),
            shift=shifts[j].mean,
            shift_z=shifts[j].z,
            influence=float(influence[j]),
            warning=f"site {site!r} {warnings[j]}" if warnings[j] else "",
            judged=judged,
        )
        for j, site in enumerate(fusion.sites)
    ]


def _dimensions(fusion: Questions, name: str, places: Sequence[Shiftable]) -> list[str]:
    """Dimensions of all arrays in words."""
    arrays = list(fusion.matchings[name].families)
    return [
        (f"array {arrays[x.number]!r}, " if len(arrays) > 1 and isinstance(arrays[x.number], str) else "") + column
        for x in places
        for column in columns_of(fusion.models[0], arrays[x.number], name, fusion.matchings, in_words=True)
    ]


def score_of(board: Board, out: Without) -> float:
    """Mean log predictive density of a site's values given the others, minus that of new atoms."""
    if len(out.values) == 0:
        return 0.0
    gain = np.zeros(len(out.values))
    for family, rows, rest in zip(board.families, board.rows, out.rest, strict=True):
        own, others = rows[out.values], rest[out.where]
        gain += family.log_evidence(others + own) - family.log_evidence(others) - family.log_evidence(own)
    return float(np.where(out.shared, gain, 0.0).mean())


def influence_of(board: Board, out: Without, units: Sequence[Array]) -> float:
    """Root mean square move of all atoms that others hold, over atoms and dimensions, when a site is left out."""
    stay = out.holders > 0
    atoms = len(board.counts) - int((~stay).sum())
    squares, entries = 0.0, 0
    for family, sums, rest, unit in zip(board.families, board.sums, out.rest, units, strict=True):
        move = (family.estimate(sums[out.atoms[stay]]) - family.estimate(rest[stay])) / unit
        squares += float(np.square(move).sum())
        entries += atoms * move.shape[1]
    return float(np.sqrt(squares / entries)) if entries else 0.0


def _units(board: Board, places: Sequence[Shiftable]) -> list[Array]:
    """What moves are measured in: the noise deviation, or for families without one the atoms' own deviation."""
    units = [family.estimate(sums).std(0) for family, sums in zip(board.families, board.sums, strict=True)]
    for x in places:
        units[x.number] = x.deviation
    return [np.where(unit > 0, unit, 1.0) for unit in units]


def _median(x: Array) -> Array:
    """Of every column, over what is known of it; zero where nothing is."""
    return np.array([float(np.median(known)) if len(known := c[np.isfinite(c)]) else 0.0 for c in x.T])


def _robust_z(x: Array, counted: Flags) -> Array:
    """Distance from the median in robust deviations; zero where there is no majority to compare with."""
    if counted.sum() < FEWEST_SITES_TO_COMPARE:
        return np.zeros(len(x))
    off = x - np.median(x[counted])
    deviation = MAD_TO_DEVIATION * float(np.median(np.abs(off[counted])))
    return np.where(counted, off / deviation, 0.0) if deviation > 0 else np.zeros(len(x))


def _about_explaining_shift(shift: Shift, parameters: int) -> str:
    if shift.matched == 0:
        return ""
    size = np.sqrt(np.nanmean(np.square(shift.mean)))
    return (
        f"seems to be shifted as a whole: moved back by {size:.1f} noise deviations per dimension, {shift.matched} of "
        f"its {parameters} values would match atoms of the others. Ask for its units and calibration, or leave it out."
    )


def _about_unshared(unshared: Index, parameters: Index, j: int, rate: float) -> str:
    """Whether more of its atoms are unshared than chance gives at the other sites' share."""
    from scipy.special import bdtrc

    n, u = int(parameters[j]), int(unshared[j])
    others, others_unshared = int(parameters.sum()) - n, int(unshared.sum()) - u
    if u == 0 or bdtrc(u - 1, n, (others_unshared + 1) / (others + 2)) >= rate / len(parameters):
        return ""
    return (
        f"holds {u} of its {n} atoms alone; at the other sites that is {100 * others_unshared / others:.0f} %. Ask "
        "whether it measures the same things of the same population."
    )


def _scatter(shifts: Sequence[Shift], j: int) -> Array:
    """By how much the other sites' z-scores scatter more than chance, per dimension; one if it may be chance."""
    others = np.array([shift.z for i, shift in enumerate(shifts) if i != j and np.isfinite(shift.z).any()])
    if len(others) < FEWEST_TO_SCALE:
        return np.ones(len(shifts[j].z))
    known = np.isfinite(others).sum(0)
    off = np.abs(others - _median(others))
    deviation = MAD_TO_DEVIATION * _median(off)
    return np.where((known >= FEWEST_TO_SCALE) & (deviation > LARGEST_SCATTER), deviation, 1.0)


def _about_shift(shifts: Sequence[Shift], j: int, dimensions: Sequence[str], rate: float) -> str:
    from scipy.special import chdtri

    shift = shifts[j]
    z = np.where(np.abs(shift.mean) >= SMALLEST_SHIFT, np.abs(shift.z), 0.0) / _scatter(shifts, j)  # NaN counts as zero
    if z.size == 0 or z.max() ** 2 <= chdtri(1, rate / (len(shifts) * z.size)):
        return ""
    d = int(z.argmax())
    side = "above" if shift.mean[d] > 0 else "below"
    return (
        f"sends values that lie {abs(shift.mean[d]):.1f} noise deviations {side} the others' in {dimensions[d]} "
        f"(z = {shift.z[d]:.1f}). Ask how that is measured there."
    )


def _about_score(scores: Array, score: float, surprise: float) -> str:
    if surprise > -LARGEST_SURPRISE or score >= SMALLEST_SCORE * np.median(scores):
        return ""
    return (
        f"fits the others badly: sharing their atoms explains its values by {score:.1f} nats each better than new ones "
        f"would, against {np.median(scores):.1f} at the typical site. Look at what "
        "it sent before using the fused model there."
    )


def _about_influence(influence: Array, j: int, site: str) -> str:
    typical = float(np.median(influence))
    if len(influence) < FEWEST_SITES_TO_COMPARE or typical == 0:
        return ""
    ratio = np.log(np.maximum(influence, np.finfo(float).tiny) / typical)
    usual = MAD_TO_DEVIATION * float(np.median(np.abs(ratio)))  # sites that differ in size differ in influence
    if ratio[j] <= max(np.log(LARGEST_INFLUENCE), INFLUENCE_SCATTER * usual):
        return ""
    return (
        f"moves the fused atoms {influence[j] / typical:.0f} times as much as a typical site: without it they would "
        f"lie {influence[j]:.2f} noise deviations elsewhere. Compare with fusion.remove({site!r})."
    )
