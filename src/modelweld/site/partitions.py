"""Partitions of data: what they are called and hold, and which gave no model, why, and whether enough are left."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from inspect import Parameter, signature
from textwrap import shorten
from typing import Any

from modelweld.errors import InputError, ModelweldWarning, warn_user
from modelweld.files.limits import LONGEST_NAME
from modelweld.inputs.names import SHOWN
from modelweld.libraries import asked_by_adapter


def name_partitions(
    partitions: Mapping[str, object] | Iterable[object], sites: Sequence[str] | None
) -> dict[str, object]:
    """Data by site."""
    if hasattr(partitions, "shape") or isinstance(partitions, (str, bytes)):
        raise InputError(
            "partitions are a dict of site names to data, or a list of data, one entry per site; found one "
            f"{type(partitions).__name__}. Split it: {{name: X[rows] for name, rows in ...}}."
        )
    if isinstance(partitions, Mapping):
        if sites is not None:
            raise InputError("partitions given by name have their names: leave sites out, or give a list of data.")
        names, data = [str(name) for name in partitions], list(partitions.values())
    else:
        data = list(partitions)
        names = [str(j) for j in range(len(data))] if sites is None else [str(name) for name in sites]
    if not data:
        raise InputError("there is nothing to train on: give at least one partition.")
    if len(names) != len(data) or len(set(names)) < len(names):
        raise InputError(
            f"every partition needs a name of its own: {len(data)} partitions have {len(set(names))} different names."
        )
    return dict(zip(names, data, strict=True))


def name_arguments(model: object, data: object) -> dict[str, object]:
    """A partition's data by the names that the model's `fit` has for them."""
    if isinstance(data, Mapping):
        return {str(name): value for name, value in data.items()}
    given = data if isinstance(data, tuple) else (data,)
    fit = getattr(model, "fit", None)
    names = ["X", "y"] if fit is None else [p.name for p in signature(fit).parameters.values() if _has_place(p)]
    if len(given) > len(names):
        raise InputError(
            f"a tuple holds what fit of a {type(model).__name__} takes in this order: {', '.join(names)}; found "
            f"{len(given)} entries. Name them in a dict, or use a list if the tuple is X."
        )
    return dict(zip(names, given, strict=False))


def is_data(data: object) -> bool:
    """Whether a partition is X, a pair (X, ...) or a dict with X, and not something only its function understands."""
    if isinstance(data, tuple):
        return len(data) == 2 and hasattr(data[0], "shape")
    return hasattr(data.get("X") if isinstance(data, Mapping) else data, "shape")


def keep_wanted(model: object, facts: Mapping[str, object]) -> dict[str, Any]:
    """Of what is known, that which the model's adapter wants to know."""
    asked = asked_by_adapter(model)
    return {name: fact for name, fact in facts.items() if name in asked and fact is not None}


def _has_place(parameter: Parameter) -> bool:
    return parameter.kind is Parameter.POSITIONAL_OR_KEYWORD


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
