"""How a set is matched: what `fuse` was asked for, checked and decided once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from modelweld.core.prior import BetaBernoulli, Prior
from modelweld.errors import InputError
from modelweld.families.real_values import Gaussian
from modelweld.fit.priors.spectrum import Spectrum

if TYPE_CHECKING:
    from modelweld.inputs.sets import Families

Auto = Literal["auto"]
Engine = Literal["auto", "numpy", "compiled"]
Search = Literal["auto", "plain", "thorough"]
Preset = Literal["paper", "authors"]
DuplicateRule = Literal["once", "independent"]

COMPILED_FROM = 2_000_000
"""Local parameters x largest group x dimensions from which the compiled sweep is used. Below, plain numpy takes a
fraction of a second and nobody should wait for a compiler. The choice depends on the input alone, not on what has
been compiled before, so that the same call gives the same bits."""

FEWEST_FOR_SPECTRUM = 4
"""Sites from which on the spectrum of supports can be learned."""

MOST_SWEEPS = 200
"""Ten times what the hardest simulated sets needed; rounds of moves that follow end after as many, too."""

PRESET_SWEEPS = 11
"""The first pass and ten sweeps."""

PRESETS: dict[str, tuple[Gaussian, BetaBernoulli]] = {
    form: (Gaussian(mean=0.0, noise=1.0, spread=1.0, learning="moments"), BetaBernoulli(form=form))
    for form in ("paper", "authors")
}
"""The paper's setting and its authors' program's: start (1, 1), closed-form hyperparameters, form of the prior."""


@dataclass(frozen=True)
class Plan:
    """How a set is matched.

    Attributes
    ----------
    prior : Prior or "auto"
        How probable matchings are; "auto": what suits the number of sites that are fitted.
    fragments : bool or "auto"
        Whether a site may hold an atom in several fragments; "auto": where sites send standard errors.
    by_evidence : bool
        Whether "auto" also finds fragments among values without them, where the objective insists.
    screen : bool or "auto"
        Whether gross outliers and shifted sites are excluded; "auto": unless the kind of model has none.
    search : {"auto", "plain", "thorough"}
        How hard to look.
    max_sweeps : int
        Sweeps after which a run gives up.
    warn : bool
        Whether to say so.
    engine : {"auto", "numpy", "compiled"}
        What does the sweeps.
    duplicates : {"once", "independent"}
        What coinciding sites are.
    """

    prior: Prior | Auto
    fragments: bool | Auto = "auto"
    by_evidence: bool = True
    screen: bool | Auto = "auto"
    search: Search = "auto"
    max_sweeps: int = MOST_SWEEPS
    warn: bool = True
    engine: Engine = "auto"
    duplicates: DuplicateRule = "once"

    def __post_init__(self) -> None:
        default_prior(self.prior, 0)  # refuses what is none
        if self.engine not in ("auto", "numpy", "compiled"):
            raise InputError(f"engine is 'auto', 'numpy' or 'compiled'; found {self.engine!r}.")
        if self.search not in ("auto", "plain", "thorough"):
            raise InputError(f"search is 'auto', 'plain' or 'thorough'; found {self.search!r}.")
        if self.fragments not in (True, False, "auto"):
            raise InputError(f"copies is True, False or 'auto'; found {self.fragments!r}.")
        if self.duplicates not in ("once", "independent"):
            raise InputError(f"duplicates is 'once' or 'independent'; found {self.duplicates!r}.")
        if self.max_sweeps < 1:
            raise InputError(f"max_sweeps must be at least 1; found {self.max_sweeps}.")


@dataclass(frozen=True, eq=False)
class Request:
    """What `fuse` was asked for, as it was asked: see there for what the fields mean."""

    families: Families = None
    prior: Prior | Auto = "auto"
    preset: Preset | None = None
    seed: int = 0
    splits: bool | Auto = "auto"
    filter_outliers: bool | Auto = "auto"
    search: Search = "auto"
    max_sweeps: int | None = None
    engine: Engine = "auto"
    duplicates: DuplicateRule = "once"

    def spell(self) -> dict[str, Any]:
        """As words and plain values, to be kept and shown."""
        return {field.name: spell_setting(getattr(self, field.name)) for field in fields(self)}

    def decide(self) -> tuple[Families, Plan]:
        """Families and plan. A preset is Algorithm 1 as printed: it may go in circles."""
        families, prior, preset = self.families, self.prior, self.preset is not None
        if self.preset is not None:
            families, prior = preset_of(self.preset, families, prior)
        plain = preset or self.search == "plain"
        limit = PRESET_SWEEPS if preset else MOST_SWEEPS
        plan = Plan(
            prior=prior,
            fragments=self.splits,
            screen=False if self.filter_outliers == "auto" and plain else self.filter_outliers,
            search=self.search,
            max_sweeps=limit if self.max_sweeps is None else self.max_sweeps,
            warn=self.max_sweeps is not None or not preset,
            engine=self.engine,
            duplicates=self.duplicates,
        )
        return families, replace(plan, search="plain") if preset else plan


def default_prior(prior: Prior | Auto, sites: int) -> Prior:
    """The prior itself, or the one that suits so many sites."""
    if isinstance(prior, Prior):
        return prior
    if prior != "auto":
        raise InputError(f"prior must be a Prior, such as BetaBernoulli(), or 'auto'; found {prior!r}.")
    return Spectrum() if sites >= FEWEST_FOR_SPECTRUM else BetaBernoulli()


def preset_of(name: str, families: object, prior: object) -> tuple[Gaussian, BetaBernoulli]:
    """Family and prior of a preset, which must not be given besides."""
    if families is not None or prior != "auto":
        raise InputError("a preset sets families and prior; give either the preset or those.")
    if name not in PRESETS:
        raise InputError(f"preset is one of {list(PRESETS)}; found {name!r}.")
    return PRESETS[name]


def spell_setting(asked: Any) -> Any:
    """A setting as JSON has it; families and priors as one would write them, arrays as their shapes.

    Examples
    --------
    >>> from modelweld import BetaBernoulli, Gaussian
    >>> spell_setting({"means": Gaussian(shape="full"), "prior": BetaBernoulli(gamma0=2.0), "seed": 0})
    {'means': "Gaussian(shape='full')", 'prior': 'BetaBernoulli(gamma0=2.0)', 'seed': 0}
    """
    asked = asked.item() if isinstance(asked, np.generic) else asked
    if asked is None or isinstance(asked, (bool, int, str)):
        return asked
    if isinstance(asked, Mapping):
        return {
            key if isinstance(key, str) else " and ".join(key): spell_setting(value) for key, value in asked.items()
        }
    if is_dataclass(asked):
        changed = ", ".join(f"{name}={_short(value)}" for name, value in _not_default(asked).items())
        return f"{type(asked).__name__}({changed})"
    return _short(asked)


def _not_default(thing: Any) -> dict[str, Any]:
    """Fields that are not what they are by default."""
    found = {}
    for field in fields(thing):
        if not field.init:
            continue
        value = getattr(thing, field.name)
        default = field.default if field.default_factory is MISSING else field.default_factory()
        if value is not default and not np.all(np.asarray(value == default)):  # checks make arrays of numbers
            found[field.name] = value
    return found


def _short(value: Any) -> str:
    """A value as one would write it in code; if it has no such form, its name, or its type."""
    if isinstance(value, np.ndarray) and value.size > 1:
        return f"array of {' x '.join(map(str, value.shape))}"
    plain = value.ravel().tolist()[0] if isinstance(value, np.ndarray) and value.size else value
    if plain is None or isinstance(plain, (bool, int, float, str, tuple, list)):
        return repr(plain)
    return str(getattr(plain, "__name__", f"a {type(plain).__name__}"))
