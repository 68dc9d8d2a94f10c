"""Partitions that gave no model: which, why, and whether enough are left."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import shorten

from modelweld.errors import InputError, ModelweldWarning, warn_user
from modelweld.files.limits import LONGEST_NAME
from modelweld.inputs.names import SHOWN


@dataclass(frozen=True)
class Failure:
    """A partition that gave no model.

    Attributes
    ----------
    site : str
        Name of the partition.
    error : str
        Class of what was raised there.
    message : str
        What it said.
    traceback : str
        Where it was raised, for whoever mends it.

    Examples
    --------
    >>> print(Failure("north", "ValueError", "no rows", "Traceback ..."))
    'north' (ValueError: no rows)
    """

    site: str
    error: str
    message: str
    traceback: str

    def __str__(self) -> str:
        return f"{self.site!r} ({self.error}: {shorten(self.message, LONGEST_NAME, placeholder=' ...')})"


class FailureWarning(ModelweldWarning):
    """Some partitions gave no model, and the others were fused without them; `failures` says which and why."""

    def __init__(self, message: str, failures: tuple[Failure, ...] = ()) -> None:
        super().__init__(message)
        self.failures = failures


class TrainingError(InputError):
    """Too few partitions gave a model; `failures` says which did not and why."""

    def __init__(self, message: str, failures: tuple[Failure, ...] = ()) -> None:
        super().__init__(message)
        self.failures = failures


def check_enough(found: int, minimum: int, failures: tuple[Failure, ...]) -> None:
    """Warn whoever called the caller of failures; refuse if too few partitions are left."""
    which = "; ".join(map(str, failures[:SHOWN]))
    if len(failures) > SHOWN:
        which += f"; and {len(failures) - SHOWN} more"
    if found < minimum:
        raise TrainingError(
            f"{found} of {found + len(failures)} partitions gave a model, and at least {minimum} must"
            + (f". Failed: {which}. The error's `failures` has the tracebacks." if failures else "."),
            failures,
        )
    if failures:
        text = (
            f"{len(failures)} of {found + len(failures)} partitions gave no model and are left out: {which}. "
            "fusion.failures has the tracebacks."
        )
        warn_user(FailureWarning(text, failures))
