"""Fuse models that were trained apart, from their parameters alone.

What is public is listed in docs/public.md: these names, and those of the rooms named there. The rest may change.
"""

from __future__ import annotations

import re
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

__version__ = "0.1.0"

LISTED = re.findall(r"from modelweld\.([\w.]+) import (\w+) as", Path(__file__).with_suffix(".pyi").read_text("utf-8"))
"""Modules and what they bring, as `__init__.pyi` lists them for type checkers."""

MODULES = {
    **{room: room for room in ("errors", "families", "federate", "files", "gp", "hmm", "kinds", "libraries")},
    **{room: room for room in ("demo", "groups", "report", "shards", "site")},
    **{name: f"{room}.{name}" for room, name in LISTED if name in ("metrics", "notes", "simulate")},
}
"""Public modules that are attributes of the package without having been imported; some under a shorter name."""

HOMES = {name: module for module, name in LISTED if name not in MODULES}
"""Name -> its module. Each is loaded when it is first asked for, so that ``modelweld --help`` loads no numpy. The names
of `modelweld.families` come on top of these, whatever they are."""


def _names() -> list[str]:
    """The value of ``__all__``: families included, which are loaded for it."""
    brought = vars(import_module("modelweld.families")).items()
    return sorted(["from_density", *(name for name, thing in brought if isinstance(thing, type)), *HOMES])


def __getattr__(name: str) -> object:
    """What the package brings under a name."""
    if name in MODULES:
        return import_module(f"modelweld.{MODULES[name]}")
    if name == "__all__":
        return _names()
    home = HOMES.get(name, "families")
    if name.startswith("_") or (home == "families" and name not in _names()):
        raise AttributeError(f"module 'modelweld' has no attribute {name!r}")
    globals()[name] = getattr(import_module(f"modelweld.{home}"), name)
    return globals()[name]


def __dir__() -> list[str]:
    return sorted([*_names(), *MODULES, "__version__"])


class _Package(ModuleType):
    """Importing the module ``modelweld.fuse`` does not put it where the function is."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (isinstance(value, ModuleType) and name in HOMES):
            super().__setattr__(name, value)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickled by its name, as other modules are: functions that name the package go to other processes."""
        return import_module, (self.__name__,)


sys.modules[__name__].__class__ = _Package
