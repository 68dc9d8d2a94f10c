"""How a set is matched: decided once, and then passed on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from modelweld.core.prior import Prior
from modelweld.core.values import Stack
from modelweld.errors import InputError

Auto = Literal["auto"]
EngineName = Literal["auto", "numpy", "compiled"]
Effort = Literal["auto", "plain", "thorough"]

MOST_SWEEPS = 200
"""Ten times what the hardest simulated sets needed; rounds of moves that follow end after as many, too."""


@dataclass(frozen=True)
class Plan:
    """How a set is matched.

    Attributes
    ----------
    prior : Prior or "auto"
        The prior over matchings; "auto": what suits the number of sites that are fitted.
    splits : bool or "auto"
        Whether a site may hold an atom in several fragments; "auto": where sites send standard errors.
    by_evidence : bool
        Whether "auto" also finds fragments among values without them, where the objective insists.
    outliers : bool or "auto"
        Whether gross outliers and oversized sites are excluded; "auto": unless the kind of model has none.
    site_effects : bool or "auto"
        Whether offsets and scales of sites are estimated and corrected; "auto": where they are evident.
    duplicates : bool
        Whether sites that sent the same values are fitted once.
    search : {"auto", "plain", "thorough"}
        How hard to look.
    max_sweeps : int
        Sweeps after which a run ends.
    warn : bool
        Whether to warn of that.
    engine : {"auto", "numpy", "compiled"}
        What does the sweeps.
    """

    prior: Prior | Auto
    splits: bool | Auto = "auto"
    by_evidence: bool = True
    outliers: bool | Auto = "auto"
    site_effects: bool | Auto = "auto"
    duplicates: bool = True
    search: Effort = "auto"
    max_sweeps: int = MOST_SWEEPS
    warn: bool = True
    engine: EngineName = "auto"

    def __post_init__(self) -> None:
        if not isinstance(self.prior, Prior) and self.prior != "auto":
            raise InputError(f"prior must be a Prior, such as BetaBernoulli(), or 'auto'; found {self.prior!r}.")
        if self.engine not in ("auto", "numpy", "compiled"):
            raise InputError(f"engine is 'auto', 'numpy' or 'compiled'; found {self.engine!r}.")
        if self.search not in ("auto", "plain", "thorough"):
            raise InputError(f"search is 'auto', 'plain' or 'thorough'; found {self.search!r}.")
        if self.splits not in (True, False, "auto"):
            raise InputError(f"splits is True, False or 'auto'; found {self.splits!r}.")
        if self.site_effects not in (True, False, "auto"):
            raise InputError(f"site_effects is True, False or 'auto'; found {self.site_effects!r}.")
        if self.max_sweeps < 1:
            raise InputError(f"max_sweeps must be at least 1; found {self.max_sweeps}.")

    @property
    def looks_for_effects(self) -> bool:
        """Whether site effects are looked for: not where the search is plain, unless they are asked for."""
        return self.site_effects is True or (self.site_effects == "auto" and self.search != "plain")

    def splits_of(self, stacks: Sequence[Stack]) -> bool:
        """Whether sites of these values may hold atoms in several fragments."""
        return self.splits is True or (self.splits == "auto" and any(stack.variance is not None for stack in stacks))
