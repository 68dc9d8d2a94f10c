"""Fuse models that were trained apart, from their parameters alone.

What is public is listed in docs/public.md: these names, and those of the rooms named there. The rest may change.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # for type checkers; `HOMES` says the same to the interpreter, and a test compares the two
    from modelweld.demo import metrics as metrics, simulate as simulate
    from modelweld.results.diagnostics import notes as notes
    from modelweld.errors import (
        ConvergenceWarning as ConvergenceWarning,
        InputError as InputError,
        ModelweldWarning as ModelweldWarning,
        NamesWarning as NamesWarning,
        OutlierWarning as OutlierWarning,
        DuplicateWarning as DuplicateWarning,
        SiteEffectWarning as SiteEffectWarning,
    )
    from modelweld.estimator import SPAHM as SPAHM
    from modelweld.families import *
    from modelweld.files import load as load
    from modelweld.fuse import fuse as fuse
    from modelweld.fusion import Fusion as Fusion
    from modelweld.groups.cells import fuse_cells as fuse_cells
    from modelweld.groups.catalogue import name_groups as name_groups
    from modelweld.groups.reruns import consensus as consensus
    from modelweld.groups.scalp_maps import label_components as label_components
    from modelweld.inputs.local_model import LocalModel as LocalModel
    from modelweld.libraries import adapters as adapters, read as read
    from modelweld.core.matching import Matching as Matching
    from modelweld.core.beta_bernoulli import BetaBernoulli as BetaBernoulli
    from modelweld.core.prior import Prior as Prior
    from modelweld.fit.priors.birth_death import BirthDeath as BirthDeath
    from modelweld.fit.priors.spectrum import Spectrum as Spectrum
    from modelweld.request import Search as Search
    from modelweld.site.export import export as export
    from modelweld.site.train import FailureWarning as FailureWarning
    from modelweld.site.train import train_and_fuse as train_and_fuse

__version__ = "0.1.0"

HOMES = {
    "errors": (
        "ConvergenceWarning",
        "InputError",
        "ModelweldWarning",
        "NamesWarning",
        "OutlierWarning",
        "DuplicateWarning",
        "SiteEffectWarning",
    ),
    "estimator": ("SPAHM",),
    "files": ("load",),
    "fuse": ("fuse",),
    "fusion": ("Fusion",),
    "groups.cells": ("fuse_cells",),
    "groups.catalogue": ("name_groups",),
    "groups.reruns": ("consensus",),
    "groups.scalp_maps": ("label_components",),
    "inputs.local_model": ("LocalModel",),
    "libraries": ("adapters", "read"),
    "core.matching": ("Matching",),
    "core.beta_bernoulli": ("BetaBernoulli",),
    "core.prior": ("Prior",),
    "fit.priors.birth_death": ("BirthDeath",),
    "fit.priors.spectrum": ("Spectrum",),
    "request": ("Search",),
    "site.export": ("export",),
    "site.train": ("FailureWarning", "train_and_fuse"),
}
"""Module -> what it brings. Each is loaded when it is first asked for, so that ``modelweld --help`` loads no numpy. The
names of `modelweld.families` come on top of these, whatever they are."""

MODULES = {
    **{room: room for room in ("errors", "families", "federate", "files", "gp", "hmm", "kinds", "libraries")},
    **{room: room for room in ("demo", "groups", "report", "shards", "site")},
    "metrics": "demo.metrics",
    "notes": "results.diagnostics.notes",
    "simulate": "demo.simulate",
}
"""Public modules that are attributes of the package without having been imported; some under a shorter name."""


def _names() -> list[str]:
    """The value of ``__all__``: families included, which are loaded for it."""
    brought = vars(import_module("modelweld.families")).items()
    families = [name for name, thing in brought if isinstance(thing, type)]
    return sorted(["from_density", *families, *(name for names in HOMES.values() for name in names)])


def _find(name: str) -> object:
    """What the package brings under a name."""
    if name in MODULES:
        return import_module(f"modelweld.{MODULES[name]}")
    if name == "__all__":
        return _names()
    home = next((module for module, names in HOMES.items() if name in names), "families")
    if name.startswith("_") or (home == "families" and name not in _names()):
        raise AttributeError(f"module 'modelweld' has no attribute {name!r}")
    globals()[name] = getattr(import_module(f"modelweld.{home}"), name)
    return globals()[name]


if not TYPE_CHECKING:  # type checkers would take any name at all for one of ours
    __getattr__ = _find


def __dir__() -> list[str]:
    return sorted([*_names(), *MODULES, "__version__"])


class _Package(ModuleType):
    """Importing the module ``modelweld.fuse`` does not put it where the function is."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (isinstance(value, ModuleType) and any(name in names for names in HOMES.values())):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
