"""The command line: ``modelweld --help``.

One file per place where commands are run: `site` (export, inspect, validate), `central` (fuse, verdict, report, add,
remove, compare) and `commands` (model, apply, simulate, demo, adapters). The library does the work; these files hold
arguments, messages and exit codes: 0 done, 1 invalid input (one line that says what, where and what to do), 2 wrong
usage, 3 done, with some files left out (``--keep-going``).

Internal: docs/public.md lists what is public.
"""

from __future__ import annotations

from importlib import import_module


def __getattr__(name: str) -> object:
    """Load a module when a command needs it, so that ``modelweld --help`` loads no numpy."""
    if name in ("app", "main"):
        return getattr(import_module("modelweld.cli.commands"), name)
    if name in ("arguments", "demonstration", "paths", "points", "table_output"):
        return import_module(f"modelweld.cli.{name}")
    raise AttributeError(f"module 'modelweld.cli' has no attribute {name!r}")
