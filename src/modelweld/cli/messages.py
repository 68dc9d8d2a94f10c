"""What commands print: results on standard output, everything else on standard error, one line per problem.

Messages of the library name arguments of Python; `spell_options` names the command line's options instead.
"""

from __future__ import annotations

import json
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from modelweld.errors import InputError, ModelweldWarning, printable
from modelweld.progress import COMPILING, progress_to

FAMILIES = "Gaussian, Factors, Directions, Counts, Proportions, Rates, Moments, NormalGamma, Scatter"
"""Families that ``--family`` takes: those without required arguments."""

PRIORS = "auto, BetaBernoulli, Spectrum"
"""Priors that ``--prior`` takes."""

OPTIONS = (
    (r"\b\w+=True \((--[\w-]+)\)", r"\1"),
    (r"\bn=, counts= or X=", "--n or --X"),
    (r"\bread\(model, n=\.\.\.\), counts=\.\.\. or X=\.\.\.", "modelweld export --n or --X."),
    (r"\bread\(model, (features|lacks|units)=(\[\.\.\.\]|\.\.\.)\)", r"modelweld export --\1"),
    (r"\bfusion\.remove\((?:'[^']*'|\"[^\"]*\"), from_scratch=True\)", "modelweld fuse without its file"),
    (r"\bfusion\.model\(how='(\w+)'\)", r"--how \1"),
    (r"\bfusion\.model\(K=(\d+)\)", r"modelweld model --K \1"),
    (r"\bsearch=Search\(splits=False\)", "--splits no"),
    (r"\bsearch=Search\(splits=True\)", "--splits yes"),
    (r"\bmodelweld\.load\(path, centres=True\)", "--centres"),
    (r"\b(force|allow_small|drop_small|centres)=True", lambda found: f"--{found[1].replace('_', '-')}"),
    (r"\b(features|units|lacks|X|n|site)=(\[\.\.\.\]|\.\.\.)?(?![\w'\"])", r"--\1"),
    (r"\b(how|search|preset)='(\w+)'", r"--\1 \2"),
    (r"\bscreens=\['(\w+)'\]", r"--screens \1"),
)
"""Arguments as Python writes them, and the options of the command line."""

PRINTED: list[str] = []
"""Warnings of this run: each is printed once, also where a result has it among its reasons."""


def spell_options(message: str) -> str:
    """A message of the library with the command line's options.

    Examples
    --------
    >>> spell_options("Say n=, counts= or X=."), spell_options("say force=True to replace it")
    ('Say --n or --X.', 'say --force to replace it')
    """
    for python, option in OPTIONS:
        message = re.sub(python, option, message)
    return message


@contextmanager
def problems_in_words() -> Iterator[None]:
    """Invalid input ends in one line and exit code 1, never in a traceback; warnings and compiling are lines too."""
    with _warnings_in_words(), progress_to(Compiling()):
        try:
            yield
        except (InputError, OSError) as wrong:
            say(f"error: {_one_line(wrong)}")
            sys.exit(1)


class Compiling:
    """A callback that says, once, that a first call takes longer; a terminal's bar says more."""

    said = False

    def __call__(self, what: str, done: int, total: int | None) -> None:
        """Report progress."""
        if what == COMPILING and not self.said:
            self.said = True
            say(f"{what}.")


def say(text: str) -> None:
    """Print something that is not a result."""
    typer.echo(_legible(text), err=True)


def result(text: str, content: object = None, as_json: bool = False) -> None:
    """Print the result of a command: text for people, or the same content as JSON."""
    if as_json:
        typer.echo(json.dumps(content, indent=2, allow_nan=False, default=_plain))
    elif text:
        typer.echo(_legible(text))


def _legible(text: str) -> str:
    """Text with the command line's options, and without control characters."""
    return "\n".join(map(printable, spell_options(text).split("\n")))


@contextmanager
def _warnings_in_words() -> Iterator[None]:
    PRINTED.clear()

    def show(message: Warning | str, category: type[Warning], *rest: object, **more: object) -> None:
        if issubclass(category, ModelweldWarning):
            text = spell_options(_one_line(message))
            if text not in PRINTED:
                PRINTED.append(text)
                say(f"warning: {text}")

    with warnings.catch_warnings():
        warnings.simplefilter("always", ModelweldWarning)
        warnings.showwarning = show
        yield


def _one_line(message: object) -> str:
    if isinstance(message, OSError) and message.filename is not None:
        return f"{message.filename}: {message.strerror or 'cannot be read or written'}."
    return " ".join(str(message).split())


def _plain(value: object) -> object:
    """Numbers and arrays of numpy as numbers and lists."""
    return value.tolist() if hasattr(value, "tolist") else str(value)
