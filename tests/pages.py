"""Run the blocks of a page in docs/, as a reader would type them, in an empty folder.

python tests/pages.py docs/start/hospitals.md    # write what the blocks print into the page

Blocks of a page share their names. A ``python`` block that is followed by a ``text`` block prints it; in ``console``
blocks lines that begin with ``$ modelweld`` are run, and the lines below are what they say. ``# needs the extra x`` on
the first line of a block says where it can run; ``sh`` blocks are for people.
"""

import contextlib
import io
import os
import re
import shlex
import sys
import tempfile
import warnings
from pathlib import Path

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NEEDS = re.compile(r"^# needs the extra (\w+)$", re.MULTILINE)
WIDTH = "100"
"""Columns of the terminal in which commands print."""

FIRST_TIME = "compiling, once on this machine"
"""Begins a line that a command says once: no part of a page."""


def needed(block):
    """The extra that a block needs, or None."""
    found = NEEDS.match(block)
    return found[1] if found else None


def command(line):
    """What a command says, on both streams, and its exit code where that is not zero."""
    from modelweld.cli import main

    said = io.StringIO()
    before = sys.argv
    sys.argv = shlex.split(line)
    code = 0
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            main()
    except SystemExit as end:
        code = end.code or 0
    finally:
        sys.argv = before
    return said.getvalue() + (f"(exit code {code})\n" if code else "")


def console(block):
    """A console block with what its commands say now."""
    lines = []
    for line in block.splitlines():
        if line.startswith("$ "):
            said = command(line[2:]).rstrip("\n").splitlines()
            lines += [line, *(x.rstrip() for x in said if not x.startswith(FIRST_TIME))]
    return "\n".join(lines) + "\n"


def python(block, names, where):
    """What a block of Python prints."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(compile(block, where, "exec"), names)
    return "".join(line.rstrip() + "\n" for line in said.getvalue().splitlines())


def played(path, extras=()):
    """The page's text with what its blocks print now; blocks that need other extras are left alone."""
    text = Path(path).read_text(encoding="utf-8")
    found = list(FENCE.finditer(text))
    names, parts, end = {"__name__": "page"}, [], 0
    os.environ["COLUMNS"] = WIDTH
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for i, block in enumerate(found):
            if needed(block[2]) not in (None, *extras):
                continue
            if block[1] == "console":
                parts += [text[end : block.start(2)], console(block[2])]
                end = block.end(2)
            elif block[1] == "python":
                printed = python(block[2], names, f"{path}, line {text[: block.start()].count(chr(10)) + 1}")
                after = found[i + 1] if i + 1 < len(found) else None
                if after and after[1] == "text" and not text[block.end() : after.start()].strip():
                    parts += [text[end : after.start(2)], printed]
                    end = after.end(2)
                elif printed:
                    raise AssertionError(f"{path}: prints what the page does not show: {printed}")
    return "".join([*parts, text[end:]])


if __name__ == "__main__":
    warnings.simplefilter("error")
    for page in sys.argv[1:]:
        Path(page).write_text(played(page), encoding="utf-8")
