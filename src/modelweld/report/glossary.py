"""What the words of the page mean, for readers who have not read the paper.

How a run went and what it learned, with the paper's symbols.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from modelweld.core.matching import Matching
from modelweld.core.prior import BetaBernoulli
from modelweld.core.values import Array, Key, arrays_of
from modelweld.families import Family, Gaussian
from modelweld.families.capabilities import name_hyperparameters
from modelweld.fit.priors.birth_death import BirthDeath
from modelweld.fit.priors.spectrum import Spectrum
from modelweld.report.text import Content, Number, exact, rounded

PAPER = {
    "noise": ("σ", "deviation from site to site", True),
    "spread": ("σ₀", "deviation from group to group", True),
    "mean": ("μ₀", "mean of all groups", False),
    "memory": ("", "time after which a group is correlated with where it was by 1 / e (infinite: stands still)", False),
    "trust": ("", "factor on the sites' stated variances", False),
}
"""Hyperparameters of a Gaussian: the paper's symbol, in words, and whether it is the root of ours (a variance)."""


def describe_fit(matching: Matching, most_columns: int) -> Content:
    """The run and its hyperparameters; of those by column, the first ones."""
    many = len(matching.families) > 1
    learned = [
        row
        for key, family in matching.families.items()
        for row in _of_family(family, _name(key) if many or not isinstance(key, str) else "", most_columns)
    ]
    learned += [{"symbol": x, "name": meaning, "of": "", "value": exact(v)} for x, meaning, v in _of_prior(matching)]
    if matching.delta > 0:
        meaning = "share of fragments beyond a site's first of an atom"
        learned.append({"symbol": "δ", "name": meaning, "of": "", "value": exact(matching.delta)})
    return {
        "families": [
            {"arrays": list(arrays_of(key)), "family": type(family).__name__, "shape": _in_words(family)}
            for key, family in matching.families.items()
        ],
        "prior": None if matching.prior is None else type(matching.prior).__name__,
        "engine": matching.engine,
        "sweeps": matching.sweeps,
        "changes": list(matching.changes),
        "converged": matching.converged,
        "objective": exact(matching.objective),
        "history": [exact(x) for x in matching.history],
        "learned": learned,
    }


def _name(key: Key) -> str:
    return ", ".join(arrays_of(key))


def _of_family(family: Family, of: str, most_columns: int) -> Iterator[Content]:
    """Hyperparameters of one family, as deviations where the paper has these."""
    for name, value in name_hyperparameters(family).items():
        if value is None:
            continue
        x = np.asarray(value, dtype=np.float64)
        symbol, meaning = "", f"{name} ({type(family).__name__})"
        if isinstance(family, Gaussian) and name in PAPER:
            symbol, meaning, root = PAPER[name]
            x = np.sqrt(x) if root else x
        yield {"symbol": symbol, "name": meaning, "of": of, "value": _shorten(x, most_columns)}


def _of_prior(matching: Matching) -> list[tuple[str, str, float]]:
    """What the prior believes of sites, by the paper's symbols."""
    prior = matching.prior
    if isinstance(prior, BetaBernoulli):
        return [
            ("γ₀", "atoms a site is expected to hold", prior.gamma0),
            ("α", "concentration: large if sites share little", prior.alpha),
        ]
    if isinstance(prior, BirthDeath):
        return [
            ("", "groups that live at a time, expected", prior.alive),
            ("", "probability that a site holds a group which lives", prior.held),
            ("", "deaths of a group per unit of time (dates: per day)", prior.hazard),
        ]
    if isinstance(prior, Spectrum):
        from scipy.special import betaln

        # sum over m of m / J C(J, m) exp R(m) = c B(a + 1, b), which is the paper's c / b = gamma0 where a is 0
        mass = np.exp(np.log(prior.c) + betaln(prior.a + 1, prior.b))
        return [
            ("γ₀", "atoms a site is expected to hold", float(mass)),
            ("α", "concentration (b of the spectrum of supports)", prior.b),
            ("a", "first shape of the spectrum of supports; 0 in the paper", prior.a),
            ("", "values per site that belong to no atom, expected", prior.background),
        ]
    return []


def _shorten(x: Array, most: int) -> Number | list[Number]:
    """One number if all are equal, else a list (cut, if long, to what a table can hold)."""
    flat = x.ravel()
    if flat.size and (flat == flat[0]).all():
        return exact(flat[0])
    return [rounded(v) for v in (flat if x.ndim < 2 else x.diagonal())[:most]]


def _in_words(family: Family) -> str | None:
    """What a Gaussian's noise is like; other families mean numbers by `shape`."""
    shape = getattr(family, "shape", None)
    return shape if isinstance(shape, str) else None
