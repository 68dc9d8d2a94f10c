"""Families and priors by name and fields. Files name classes of these tables; nothing else is ever built."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from modelweld.errors import InputError
from modelweld.families import (
    Counts,
    Directions,
    Gaussian,
    Moments,
    NormalGamma,
    NormalWishart,
    Proportions,
    Rates,
    Scatter,
)
from modelweld.priors.beta_bernoulli import BetaBernoulli
from modelweld.priors.spectrum import Spectrum

FAMILIES: dict[str, Any] = {
    cls.__name__: cls
    for cls in (Counts, Directions, Gaussian, Moments, NormalGamma, NormalWishart, Proportions, Rates, Scatter)
}
PRIORS: dict[str, Any] = {cls.__name__: cls for cls in (BetaBernoulli, Spectrum)}


def in_fields(thing: Any, table: Mapping[str, Any], keep: Callable[[str, NDArray[Any]], str]) -> dict[str, Any]:
    """A family or prior as class and fields; arrays are kept as tensors, `keep(field, array)` giving their names.

    Examples
    --------
    >>> in_fields(BetaBernoulli(gamma0=2.0), PRIORS, lambda name, array: name)["fields"]
    {'alpha': 1.0, 'gamma0': 2.0, 'form': 'exact', 'learning': False}
    """
    name = type(thing).__name__
    if table.get(name) is not type(thing):
        raise InputError(
            f"a fusion with a {name} of your own (or from_density) cannot be saved: its functions are code, and files "
            f"hold none; {', '.join(table)} can. Keep the sites' files and fuse them again instead."
        )
    found: dict[str, Any] = {}
    for field in fields(thing):
        value = getattr(thing, field.name)
        found[field.name] = (
            {"tensor": keep(field.name, value)} if isinstance(value, np.ndarray) else number(value, field.name)
        )
    return {"class": name, "fields": found}


def from_fields(entry: Mapping[str, Any], table: Mapping[str, Any], tensor: Callable[[str], NDArray[Any]]) -> Any:
    """The family or prior that class and fields describe."""
    cls = table.get(entry["class"])
    if cls is None:
        raise InputError(
            f"it speaks of a {entry['class'][:40]!r}, which is not known here: known are {', '.join(table)}. A newer "
            "modelweld may know it."
        )
    unknown = sorted(set(entry["fields"]) - {field.name for field in fields(cls)})
    if unknown:
        raise InputError(f"a {entry['class']} has no {unknown[0][:40]!r}. A newer modelweld may know it.")
    given = {
        name: tensor(value["tensor"]) if isinstance(value, dict) and "tensor" in value else back(value)
        for name, value in entry["fields"].items()
    }
    try:
        thing = cls(**given)
    except InputError:
        raise
    except (TypeError, ValueError, AttributeError):
        raise InputError(f"the fields of its {entry['class']} are not what they should be. Save it again.") from None
    for name, value in given.items():  # checks may round (a direction is divided by its length): bit for bit
        made = getattr(thing, name)
        if isinstance(value, np.ndarray) and np.shape(made) == value.shape and made.dtype == value.dtype:
            object.__setattr__(thing, name, value)
    return thing


def number(value: Any, what: str) -> Any:
    """A field as JSON has it; numbers that JSON lacks are spelt out."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise InputError(f"field {what!r} cannot be saved: found {value!r}.")


def back(value: Any) -> Any:
    """The way back of `number`."""
    return float(value["float"]) if isinstance(value, dict) else value
