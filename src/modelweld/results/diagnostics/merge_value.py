"""Was fusing worth it? Whether sites share anything at all, and what the matching gains in log posterior odds.

The first is asked of the values alone (`results.diagnostics.sharing`): no matching is judged by what was learned from
it. Gains are changes of the one objective, in nats, at the learned hyperparameters: they compare matchings, but cannot
say no, because hyperparameters were chosen for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from modelweld.core.board import Board
from modelweld.core.values import Array
from modelweld.errors import InputError
from modelweld.fit.search.leave_one_out import Without, leave_out
from modelweld.fit.search.parts import Parts
from modelweld.inputs.notebook import html_table
from modelweld.progress import track
from modelweld.results.diagnostics.sharing import FEWEST_OF_SITE, Sharing, judge_sharing
from modelweld.results.without_sites import sources_of

if TYPE_CHECKING:
    from modelweld.results.fit_result import FitResult


@dataclass(frozen=True)
class SiteVerdict:
    """What matching one site to the others is worth: `log_predictive` in nats, `shared` of its `parameters`, one
    sentence.

    `p_value` is that of having nothing in common with the others (NaN if it was not judged); it is `worth` it if that
    is at most the level and there is a gain (None: cannot be said).
    """

    site: str
    parameters: int
    shared: int
    gain: float
    sentence: str
    p_value: float
    worth: bool | None


@dataclass(frozen=True, repr=False)
class MergeVerdict:
    """Whether fusing is worth it, in one sentence, and the same per site.

    Attributes
    ----------
    gain : float
        The objective of the matching minus that of all values alone, in nats.
    sentence : str
        In plain words; ``str(verdict)`` is the same.
    sites : tuple of SiteVerdict
        In the order of ``fusion.sites``.
    p_value : float
        Probability that sites without anything in common come as close to each other as these; NaN: cannot be said.
    worth : bool or None
        Whether the p-value is at most `level` and there is a gain; None: cannot be said, or too few values for a no.
    level : float
        How often sites that share nothing may get a yes.
    """

    gain: float
    sentence: str
    sites: tuple[SiteVerdict, ...]
    p_value: float
    worth: bool | None
    level: float

    def __str__(self) -> str:
        return self.sentence

    def __repr__(self) -> str:
        answer = {True: "yes", False: "no", None: "cannot be said"}[self.worth]
        return f"<MergeVerdict: {answer}, p = {self.p_value:.2g}, {len(self.sites)} sites: {self.sentence}>"

    def _repr_html_(self) -> str:
        header = ["site", "parameters", "shared", "gain", "p-value", ""]
        rows = [[s.site, s.parameters, s.shared, s.gain, s.p_value, s.sentence] for s in self.sites]
        return html_table(self.sentence, header, rows)

    @property
    def strangers(self) -> tuple[SiteVerdict, ...]:
        """Sites of which nothing says that they share anything with the others."""
        return tuple(site for site in self.sites if site.worth is False)


def worth_merging(
    fit: FitResult, set_name: str | None = None, *, level: float = 0.05, draws: int = 199, seed: int = 0
) -> MergeVerdict:
    """Judge whether sites share anything, and compare the matching with keeping every site apart.

    Parameters
    ----------
    fit : FitResult
        Of all sites.
    set_name : str, optional
        Which set; default: all of them. Gains are then added, and the least p-value is multiplied by their number.
    level : float
        Share of fusions of sites that have nothing in common which may get a yes; for sites, of sites.
    draws : int
        Random rotations at most; the least p-value is one over one more than that.
    seed : int
        Source of the draws. The order of sites does not matter.

    Returns
    -------
    MergeVerdict
        `p_value`, `worth`, `log_predictive`, a `sentence`, and the same for each site: the objective minus that with
        this site's values alone and all others matched as they are. Sites' gains do not add up to the whole: what two
        sites share counts for both.

    Notes
    -----
    Pairs of values of different sites are counted within many distances and compared with sites turned at random
    (`modelweld.results.diagnostics.pair_scan`). A no means that nothing was found: with two sites, few values or one
    feature much can be shared unseen. A yes says that values of different sites lie close together more often than
    their distribution explains. **That is also so if all sites scatter about the same few centres**, or along the same
    curve: they then have these in common, but not single values. At most 1,000 values are looked at, 200 of a site.

    Examples
    --------
    >>> import modelweld, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> atoms = rng.normal(0, 5, (8, 3))
    >>> sites = [atoms + rng.normal(0, 0.2, (8, 3)) for _ in range(3)] + [rng.normal(0, 5, (6, 3))]
    >>> verdict = modelweld.fuse(sites).worth_merging()
    >>> verdict.worth, verdict.p_value, [site.worth for site in verdict.sites]
    (True, 0.005, [True, True, True, False])
    >>> print(modelweld.fuse([rng.normal(0, 5, (8, 3)) for _ in range(4)]).worth_merging().sentence[:60])
    no: values of different sites lie no closer together than ch
    """
    if not fit.matchings:
        raise InputError("nothing was matched: what these sites sent has names, by which it was put together.")
    if not 0 < level < 1 or draws < 1:
        raise InputError(f"level must lie between 0 and 1, and draws be at least 1; found {level} and {draws}.")
    names = list(fit.matchings) if set_name is None else [set_name]
    once = fit.drop_duplicates()
    if once is not fit:
        verdict, of = (
            worth_merging(once, set_name, level=level, draws=draws, seed=seed),
            sources_of(fit, once, names[0]),
        )
        return replace(
            verdict, sites=tuple(_copy_verdict(fit.sites, j, verdict.sites[i]) for j, i in enumerate(of.sites))
        )
    J = len(fit.sites)
    total, gains = 0.0, np.zeros(J)
    parameters, shared = np.zeros((2, J), dtype=np.int64)
    for name in names:
        parts, alone = fit.parts(name), 0.0
        for first, last, board in track(parts, "weighing sites", len(parts)):
            out, own = leave_out(board, 0, last - first), slice(first, last)
            gains[own] += gains_of_sites(board, out)
            parameters[own] += np.bincount(out.site, minlength=last - first)
            shared[own] += np.bincount(out.site[out.shared], minlength=last - first)
            alone += float(board.singletons.sum())
        total += gain_over_apart(parts, alone)
    found = _least([judge_sharing(fit, name, draws, seed) for name in names])
    verdicts, word = [], SENT.get(names[0], "values")
    for j, (site, p) in enumerate(zip(fit.sites, found.sites.tolist(), strict=True)):
        n, s, gain = int(parameters[j]), int(shared[j]), float(gains[j])
        worth = _is_worth(p, gain, level, few=bool(found.why_not) or n < FEWEST_OF_SITE)
        verdicts.append(SiteVerdict(site, n, s, gain, _site_sentence(site, n, s, gain, p, worth), p, worth))
    worth = _is_worth(found.p_value, total, level, few=bool(found.why_not))
    sentence = _overall_sentence(int(parameters.sum()), int(shared.sum()), total, found, worth, word)
    return MergeVerdict(total, sentence, tuple(verdicts), found.p_value, worth, level)


def _copy_verdict(sites: Sequence[str], j: int, first: SiteVerdict) -> SiteVerdict:
    """The verdict of site j, which is the `first` or repeats it."""
    if sites[j] == first.site:
        return first
    return replace(first, site=sites[j], sentence=f"site {sites[j]!r} repeats site {first.site!r}: it is counted once.")


def _least(found: list[Sharing]) -> Sharing:
    """Of several sets: least p-values times the number of sets that were judged."""

    def least(p: Array) -> Array:
        known = np.isfinite(p).sum(0)
        smallest = p.min(0, initial=np.inf, where=np.isfinite(p))
        return np.where(known > 0, np.minimum(1.0, smallest * np.maximum(known, 1)), np.nan)

    why = "; ".join(dict.fromkeys(one.why_not for one in found if one.why_not))
    p, sites = (least(np.array([getattr(one, name) for one in found])) for name in ("p_value", "sites"))
    return Sharing(float(p), sites, why, any(one.aligned for one in found))


def _is_worth(p: float, gain: float, level: float, *, few: bool) -> bool | None:
    """Whether there is more than chance, and a gain; None if that cannot be said, or values are too few for a no."""
    if np.isnan(p) or (few and p > level):
        return None
    return bool(p <= level and gain > 0)


def gain_over_apart(fit: Parts | Board, alone: float) -> float:
    """The objective minus that of all values alone, whose log evidence that is."""
    ones = np.ones(len(fit.labels), dtype=np.int64)
    gain = fit.prior.log_prob(fit.counts, fit.sizes) - fit.prior.log_prob(ones, fit.sizes) - alone
    for family, sums in zip(fit.families, fit.sums, strict=True):
        gain += float(family.log_evidence(sums).sum())
    if fit.fragments is not None:
        gain += fit.fragments.log_prob(fit.fragments_held()) - fit.fragments.log_prob(ones)
    return gain


def gains_of_sites(board: Board, out: Without) -> Array:
    """The objective minus that with one site's values alone, each an atom of its own; for every site (J,)."""
    J = len(board.sizes)
    gain = -board.singletons[out.values] - board.increments[0]
    of_atom = board.increments[out.holders]
    for family, sums, rest in zip(board.families, board.sums, out.rest, strict=True):
        of_atom = of_atom + family.log_evidence(sums)[out.atoms] - family.log_evidence(rest)
    if board.fragments is not None:
        gain = gain - board.fragments.log_prob_each(np.ones_like(out.values))
        of_atom = of_atom + board.fragments.log_prob_each(np.bincount(out.where, minlength=len(out.atoms)))
    return np.asarray(np.bincount(out.site, gain, minlength=J) + np.bincount(out.sites, of_atom, minlength=J), float)


SENT = {"component": "groups", "state": "states", "topic": "topics"}
"""What people call what sites sent, by the name of the set; all else are values."""


def _site_sentence(site: str, parameters: int, shared: int, gain: float, p: float, worth: bool | None) -> str:
    if parameters == 0:
        return f"site {site!r} sent nothing: fusing it changes nothing."
    if shared == 0:
        return f"site {site!r} shares nothing with the others: fusing it changes nothing."
    part = f"site {site!r} shares {shared:,} of its {parameters:,} with the others"
    if gain < 0:
        return f"{part}, but would fit better alone, by {-gain:,.1f} nats."
    if worth is False:
        return f"{part}, the fit says, but they lie no closer to the others' than chance explains (p = {p:.2g})."
    return f"{part}: matching them gains {gain:,.1f} nats{'' if np.isnan(p) else f' (p = {p:.2g})'}."


def _overall_sentence(parameters: int, shared: int, gain: float, found: Sharing, worth: bool | None, word: str) -> str:
    p = f"(p = {found.p_value:.2g})"
    if shared == 0:
        return "no two sites share anything: fusing changes nothing."
    part = f"{shared:,} of {parameters:,} {word} are shared between sites"
    if worth is None:
        part = f"no verdict: {found.why_not}{'' if np.isnan(found.p_value) else f' {p}'}. By the fit, {part}"
    if gain < 0:
        return f"{part}, but keeping the sites apart explains the values better, by {-gain:,.1f} nats."
    if worth is False:
        first = f"no: values of different sites lie no closer together than chance explains {p}."
        if found.aligned:
            first = f"no: sites differ in place; that they share anything is not shown {p}."
        return f"{first} The fit takes {shared:,} of {parameters:,} for shared: do not rely on that."
    text = f"{part}: fusing explains the values better than keeping the sites apart, by {gain:,.1f} nats"
    if worth is None:
        return f"{text}; that alone is no proof, as chance gives gains too."
    return f"yes: {text}; values of different sites lie closer together than chance explains {p}."
