"""What commands say: results on standard output, everything else on standard error, one line per problem."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from modelweld.cli.words import spoken

SAID: list[str] = []
"""Warnings of this run: each is said once, also where a result has it among its reasons."""


@contextmanager
def problems_in_words() -> Iterator[None]:
    """Bad input ends in one line and exit code 1, never in a traceback; warnings are lines too, and so is compiling."""
    from modelweld.errors import InputError
    from modelweld.progress import listen

    with _warnings_in_words(), listen(Compiling()):
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
