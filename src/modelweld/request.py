"""What `fuse` was asked for, and the plan that follows from it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, fields
from typing import Any, Literal

from modelweld.core.beta_bernoulli import BetaBernoulli
from modelweld.core.match import MOST_SWEEPS, Auto, Effort, EngineName, Plan
from modelweld.core.prior import Prior
from modelweld.errors import InputError
from modelweld.families.real_values import Gaussian
from modelweld.fit.presets import PRESET
from modelweld.inputs.sets import Families
from modelweld.inputs.settings import spell_setting

Preset = Literal["paper", "authors"]
Screens = Collection[Literal["duplicates", "outliers"]] | Auto

PRESET_SWEEPS = 11
"""The first pass and ten sweeps."""

PRESETS: dict[str, tuple[Gaussian, BetaBernoulli]] = {
    form: (PRESET, BetaBernoulli(form=form)) for form in ("paper", "authors")
}
"""The paper's setting and its authors' program's: family and form of the prior."""


@dataclass(frozen=True)
class Search:
    """Where and how the best matching is searched for; ``search="plain"`` is short for ``search=Search("plain")``.

    Parameters
    ----------
    effort : {"auto", "plain", "thorough"}
        ``"plain"`` is the paper's Algorithm 1: sweeps and hyperparameters. ``"auto"`` goes on to merge and split atoms
        (the compiled engine cannot split), and to free and rematch the smallest ones where values lie between atoms,
        beyond 100,000 values with less and less patience; ``"thorough"`` does so with every atom, in fragments too. All
        only as long as the objective rises.
    splits : bool or "auto"
        Whether a site may hold an atom in several fragments (over-segmentation), as estimated models do. ``"auto"``: if
        fitted models have standard errors (`variance`). Fragments look like neighbours where atoms overlap: plain
        values (up to 2,000 atoms) are taken for fragments only where the objective rises by 10 nats.
    max_sweeps : int, optional
        Iteration limit, with a warning when it is met; default 200. Runs end by themselves at the first sweep that
        changes nothing. Presets stop, without warning, after the first pass and ten sweeps, as the paper's did.
    engine : {"auto", "numpy", "compiled"}
        The compiled sweep is for large Gaussian jobs; sweeps give the same matching.
    n_jobs : int, optional
        Threads of matrix products; None means 1, -1 all processors. More than one helps, and is used, where a site
        sends at least 250,000 numbers.

    Examples
    --------
    >>> import modelweld
    >>> modelweld.fuse([[[0.0], [9.0]], [[9.1]]], search=modelweld.Search("plain", max_sweeps=50)).K
    2
    """

    effort: Effort = "auto"
    splits: bool | Auto = "auto"
    max_sweeps: int | None = None
    engine: EngineName = "auto"
    n_jobs: int | None = None


@dataclass(frozen=True, eq=False)
class Request:
    """What `fuse` was asked for, as it was asked: see there for what the fields mean."""

    families: Families = None
    prior: Prior | Auto = "auto"
    preset: Preset | None = None
    search: Search | Effort = "auto"
    site_effects: bool | Auto = "auto"
    screens: Screens = "auto"
    seed: int = 0

    def spell(self) -> dict[str, Any]:
        """As words and plain values, to be kept and shown."""
        asked = {field.name: getattr(self, field.name) for field in fields(self)}
        asked["search"] = self.effort.effort if self.effort == Search(self.effort.effort) else self.effort
        plain = (bool, int, str, type(None))
        return {name: value if isinstance(value, plain) else spell_setting(value) for name, value in asked.items()}

    @property
    def effort(self) -> Search:
        """The search, spelled out."""
        return self.search if isinstance(self.search, Search) else Search(self.search)

    def decide(self) -> tuple[Families, Plan]:
        """Families and plan. A preset is Algorithm 1 as printed: it may cycle."""
        families, prior, preset, search = self.families, self.prior, self.preset is not None, self.effort
        if self.preset is not None:
            if families is not None or prior != "auto":
                raise InputError("a preset sets families and prior; give either the preset or those.")
            if self.preset not in PRESETS:
                raise InputError(f"preset is 'paper' or 'authors'; found {self.preset!r}.")
            families, prior = PRESETS[self.preset]
        if self.screens != "auto" and (isinstance(self.screens, str) or set(self.screens) - {"duplicates", "outliers"}):
            raise InputError(f"screens is 'auto' or some of 'duplicates', 'outliers'; found {self.screens!r}.")
        outliers: bool | Auto = "auto" if self.screens == "auto" else "outliers" in self.screens
        plain, limit = preset or search.effort == "plain", PRESET_SWEEPS if preset else MOST_SWEEPS
        Plan("auto", search=search.effort)  # a preset does not hide a wrong word
        plan = Plan(
            prior=prior,
            splits=False if preset and search.splits == "auto" else search.splits,  # closed forms know no errors
            outliers=False if outliers == "auto" and plain else outliers,
            duplicates=self.screens == "auto" or "duplicates" in self.screens,
            search="plain" if preset else search.effort,
            max_sweeps=limit if search.max_sweeps is None else search.max_sweeps,
            warn=search.max_sweeps is not None or not preset,
            engine=search.engine,
            site_effects=self.site_effects,
        )
        return families, plan
