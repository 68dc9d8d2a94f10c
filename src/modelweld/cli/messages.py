"""What commands say: results on standard output, everything else on standard error, one line per problem.

What is said on the command line: options given as words, and Python's words in messages as options.
"""

from __future__ import annotations

import json
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

import typer

from modelweld.errors import InputError

if TYPE_CHECKING:
    from modelweld.core.prior import Prior
    from modelweld.families import Family


FAMILIES = "Gaussian, Factors, Directions, Counts, Proportions, Rates, Moments, NormalGamma, Scatter"
"""Families that can be asked for by name: those that are made without further words."""

PRIORS = "auto, BetaBernoulli, Spectrum"
"""Priors that can be."""

OPTIONS = (
    (r"\b\w+=True \((--[\w-]+)\)", r"\1"),
    (r"\bn=, counts= or X=", "--n or --X"),
    (r"\bread\(model, n=\.\.\.\), counts=\.\.\. or X=\.\.\.", "modelweld export --n or --X."),
    (r"\bread\(model, (features|lacks|units)=(\[\.\.\.\]|\.\.\.)\)", r"modelweld export --\1"),
    (r"\bfusion\.remove\((?:'[^']*'|\"[^\"]*\"), from_scratch=True\)", "modelweld fuse without its file"),
    (r"\bfusion\.model\(how='(\w+)'\)", r"--how \1"),
    (r"\bfusion\.model\(K=(\d+)\)", r"modelweld model --K \1"),
    (r"\bcopies=False", "--splits no"),
    (r"\bcopies=True", "--splits yes"),
    (r"\bmodelweld\.load\(path, centres=True\)", "--centres"),
    (r"\b(force|allow_small|drop_small|centres)=True", lambda found: f"--{found[1].replace('_', '-')}"),
    (r"\b(features|units|lacks|X|n|site)=(\[\.\.\.\]|\.\.\.)?(?![\w'\"])", r"--\1"),
    (r"\b(how|search|duplicates|preset)='(\w+)'", r"--\1 \2"),
)
"""What Python calls something -> what the command line does."""


def spoken(message: str) -> str:
    """A message of the library in the command line's words.

    Examples
    --------
    >>> spoken("Say n=, counts= or X=."), spoken("say force=True to replace it")
    ('Say --n or --X.', 'say --force to replace it')
    """
    for python, option in OPTIONS:
        message = re.sub(python, option, message)
    return message


def names_in(text: str) -> list[str] | None:
    """Names separated by commas; None if there are none.

    Examples
    --------
    >>> names_in("age, weight")
    ['age', 'weight']
    """
    return [name.strip() for name in text.split(",")] if text else None


def units_in(text: str) -> dict[str, str] | None:
    """Units by feature.

    Examples
    --------
    >>> units_in("age=years, weight=kg")
    {'age': 'years', 'weight': 'kg'}
    """
    pairs = [part.partition("=") for part in text.split(",")] if text else []
    wrong = next((name for name, sign, unit in pairs if not (sign and name.strip() and unit.strip())), None)
    if wrong is not None:
        raise InputError(
            f"--units are given as feature=unit, separated by commas: age=years,weight=kg; found {wrong!r}."
        )
    return {name.strip(): unit.strip() for name, _, unit in pairs} or None


def family_in(text: str) -> Family | None:
    """The family of that name; None if none is asked for."""
    from modelweld import families

    name = _one_of(text, FAMILIES, "--family")
    found: Family | None = getattr(families, name)() if name else None
    return found


def prior_in(text: str) -> Prior | Literal["auto"]:
    """The prior of that name."""
    from modelweld.core.prior import BetaBernoulli
    from modelweld.fit.priors.spectrum import Spectrum

    name = _one_of(text, PRIORS, "--prior")
    return {"BetaBernoulli": BetaBernoulli, "Spectrum": Spectrum}[name]() if name != "auto" else "auto"


def splits_in(text: str) -> bool | Literal["auto"]:
    """Whether sites may hold atoms in fragments."""
    chosen: dict[str, bool | Literal["auto"]] = {"auto": "auto", "yes": True, "no": False}
    if text not in chosen:
        raise InputError(f"--splits is auto, yes or no; found {text!r}.")
    return chosen[text]


def _one_of(text: str, known: str, option: str) -> str:
    """The name that is meant, whatever its capitals."""
    if not text:
        return ""
    found = next((name for name in known.split(", ") if name.lower() == text.lower()), None)
    if found is None:
        raise InputError(f"{option} is one of {known}; found {text!r}.")
    return found


SAID: list[str] = []
"""Warnings of this run: each is said once, also where a result has it among its reasons."""


@contextmanager
def problems_in_words() -> Iterator[None]:
    """Bad input ends in one line and exit code 1, never in a traceback; warnings are lines too, and so is compiling."""
    from modelweld.errors import InputError
    from modelweld.progress import progress_to

    with _warnings_in_words(), progress_to(Compiling()):
        try:
            yield
        except (InputError, OSError) as wrong:
            say(f"error: {spoken(_one_line(wrong))}")
            sys.exit(1)


class Compiling:
    """A listener that says, once, that a first call takes longer; a terminal's bar says more."""

    said = False

    def __call__(self, what: str, done: int, total: int | None) -> None:
        """Hear what is being done."""
        from modelweld.progress import COMPILING

        if what == COMPILING and not self.said:
            self.said = True
            say(f"{what}.")


def say(text: str) -> None:
    """Tell people something that is not a result."""
    typer.echo(printable(text), err=True)


def result(text: str) -> None:
    """The result of a command, for people."""
    typer.echo(printable(text))


def result_json(content: object) -> None:
    """The result of a command, for machines."""
    typer.echo(json.dumps(content, indent=2, allow_nan=False, default=_plain))


def printable(text: str) -> str:
    """Text without anything a terminal would obey."""
    return "".join(c if c.isprintable() or c in "\n\t" else f"\\x{ord(c):02x}" for c in text)


@contextmanager
def _warnings_in_words() -> Iterator[None]:
    from modelweld.errors import ModelweldWarning

    SAID.clear()

    def show(message: Warning | str, category: type[Warning], *rest: object, **more: object) -> None:
        if issubclass(category, ModelweldWarning):
            text = spoken(_one_line(message))
            if text not in SAID:
                SAID.append(text)
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
