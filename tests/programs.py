"""Scripts run as programs are, but in this process: most take less time than another Python needs to start."""

import contextlib
import io
import os
import runpy
import subprocess
import sys
import warnings
from pathlib import Path
from unittest import mock

TOO_LONG = 240
"""Seconds after which a program hangs."""


def printed_by(script, *options, folder=None):
    """What a script prints; its folder comes first on the path, and modules imported from there are forgotten."""
    home = Path(script).resolve().parent
    own = [path.stem for path in home.glob("*.py")]  # other folders have files of the same name
    with contextlib.ExitStack() as stack:
        said = stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
        stack.enter_context(mock.patch.object(sys, "argv", [str(script), *map(str, options)]))
        stack.enter_context(mock.patch.object(sys, "path", [str(home), *sys.path]))
        stack.enter_context(mock.patch.dict(os.environ))
        stack.enter_context(contextlib.chdir(folder or Path.cwd()))
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")  # a program only prints them
        _forget(own)
        stack.callback(_forget, own)
        try:
            runpy.run_path(str(script), run_name="__main__")
        except SystemExit as end:
            if end.code:
                raise AssertionError(f"ended with {end.code}: {said.getvalue()}") from end
    return said.getvalue()


def printed_apart(script, *options):
    """The same in a process of its own: for scripts that start others, which must not inherit our threads."""
    command = [sys.executable, str(script), *map(str, options)]
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=TOO_LONG)
    assert run.returncode == 0, run.stderr
    return run.stdout


def _forget(modules):
    for name in modules:
        sys.modules.pop(name, None)
