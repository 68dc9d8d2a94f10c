"""Fuse models that were trained apart, from their parameters alone."""

import sys
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modelweld.errors import ConvergenceWarning, InputError, ModelweldWarning, OutlierWarning, OverlapWarning
    from modelweld.estimator import SPAHM
    from modelweld.families import (
        Counts,
        Directions,
        Family,
        Gaussian,
        Moments,
        NormalGamma,
        NormalWishart,
        Proportions,
        Rates,
        Scatter,
        from_density,
    )
    from modelweld.files import load
    from modelweld.fuse import fuse
    from modelweld.fusion import Fusion
    from modelweld.inputs.local_model import LocalModel
    from modelweld.libraries import adapters, read
    from modelweld.matching.result import Matching
    from modelweld.priors.beta_bernoulli import BetaBernoulli, Prior
    from modelweld.priors.spectrum import Spectrum
    from modelweld.site.export import export
    from modelweld.site.failures import FailureWarning
    from modelweld.site.train import train_and_fuse

__version__ = "0.1.0.dev0"

__all__ = [
    "SPAHM",
    "BetaBernoulli",
    "ConvergenceWarning",
    "Counts",
    "Directions",
    "FailureWarning",
    "Family",
    "Fusion",
    "Gaussian",
    "InputError",
    "LocalModel",
    "Matching",
    "ModelweldWarning",
    "Moments",
    "NormalGamma",
    "NormalWishart",
    "OutlierWarning",
    "OverlapWarning",
    "Prior",
    "Proportions",
    "Rates",
    "Scatter",
    "Spectrum",
    "adapters",
    "export",
    "from_density",
    "fuse",
    "load",
    "read",
    "train_and_fuse",
]

HOMES = {
    "errors": ("ConvergenceWarning", "InputError", "ModelweldWarning", "OutlierWarning", "OverlapWarning"),
    "estimator": ("SPAHM",),
    "site.export": ("export",),
    "site.failures": ("FailureWarning",),
    "families": (
        "Counts", "Directions", "Family", "Gaussian", "Moments", "NormalGamma", "NormalWishart", "Proportions", "Rates",
        "Scatter", "from_density",
    ),
    "files": ("load",),
    "fuse": ("fuse",),
    "fusion": ("Fusion",),
    "libraries": ("adapters", "read"),
    "inputs.local_model": ("LocalModel",),
    "matching.result": ("Matching",),
    "priors.beta_bernoulli": ("BetaBernoulli", "Prior"),
    "priors.spectrum": ("Spectrum",),
    "site.train": ("train_and_fuse",),
}  # fmt: skip
"""Module -> what it brings. Each is loaded when it is first asked for, so that ``modelweld --help`` loads no numpy."""


MODULES = {
    "baselines": "studies.baselines",
    "metrics": "studies.metrics",
    "notes": "diagnostics.notes",
    "simulate": "studies.simulate",
}
"""Modules that are public under a shorter name."""


def __getattr__(name: str) -> Any:
    if name in MODULES:
        return import_module(f"modelweld.{MODULES[name]}")
    for module, names in HOMES.items():
        if name in names:
            globals()[name] = getattr(import_module(f"modelweld.{module}"), name)
            return globals()[name]
    if not name.startswith("_") and find_spec(f"modelweld.{name}") is not None:
        return import_module(f"modelweld.{name}")
    raise AttributeError(f"module 'modelweld' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class _Package(ModuleType):
    """Importing the module ``modelweld.fuse`` does not put it where the function is."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in __all__ and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
