"""Families and priors by name and fields. Files name classes of these tables; nothing else is ever built."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from modelweld.errors import InputError
from modelweld.families import FAMILIES as FAMILIES
from modelweld.files.tensors import Entry, Number
from modelweld.priors.beta_bernoulli import BetaBernoulli, Prior
from modelweld.priors.lives import Lives
from modelweld.priors.spectrum import Spectrum

PRIORS: dict[str, type[Prior]] = {cls.__name__: cls for cls in (BetaBernoulli, Lives, Spectrum)}

Made = TypeVar("Made")


def in_fields(thing: object, table: Mapping[str, object], keep: Callable[[str, NDArray[np.generic]], str]) -> Entry:
    """A family or prior as class and fields; arrays are kept as tensors, `keep(field, array)` giving their names.

    Examples
    --------
    >>> in_fields(BetaBernoulli(gamma0=2.0), PRIORS, lambda name, array: name)["fields"]
    {'alpha': 1.0, 'gamma0': 2.0, 'form': 'exact', 'learning': False}
    """
    name = type(thing).__name__
    if table.get(name) is not type(thing) or not is_dataclass(thing):
        raise InputError(
            f"a fusion with a {name} of your own (or from_density) cannot be saved: its functions are code, and files "
            f"hold none; {', '.join(sorted(table))} can, and families that modelweld.families.register was given. Keep "
            "the sites' files and fuse them again instead."
        )
    found: dict[str, object] = {}
    for field in fields(thing):
        value = getattr(thing, field.name)
        found[field.name] = (
            {"tensor": keep(field.name, value)} if isinstance(value, np.ndarray) else number(value, field.name)
        )
    return {"class": name, "fields": found}


def from_fields(
    entry: Entry, table: Mapping[str, Callable[..., Made]], tensor: Callable[[str], NDArray[np.generic]]
) -> Made:
    """The family or prior that class and fields describe."""
    cls = table.get(entry["class"])
    if cls is None or not is_dataclass(cls):
        raise InputError(
            f"it speaks of a {entry['class'][:40]!r}, which is not known here: known are {', '.join(sorted(table))}. "
            "A newer modelweld may know it; a family of one's own is known once it is registered "
            "(modelweld.families.register)."
        )
    unknown = sorted(set(entry["fields"]) - {field.name for field in fields(cls)})
    if unknown:
        raise InputError(f"a {entry['class']} has no {unknown[0][:40]!r}. A newer modelweld may know it.")
    given = {
        name: tensor(value["tensor"]) if isinstance(value, dict) and "tensor" in value else back(value)
        for name, value in entry["fields"].items()
    }
    try:
        thing = table[entry["class"]](**given)
    except InputError:
        raise
    except (TypeError, ValueError, AttributeError):
        raise InputError(f"the fields of its {entry['class']} are not what they should be. Save it again.") from None
    for name, value in given.items():  # checks may round (a direction is divided by its length): bit for bit
        made = getattr(thing, name)
        if isinstance(value, np.ndarray) and np.shape(made) == value.shape and made.dtype == value.dtype:
            object.__setattr__(thing, name, value)
    return thing


def number(value: object, what: str) -> object:
    """A field as JSON has it; numbers that JSON lacks are spelt out."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, float):
        return real(value)
    if value is None or isinstance(value, (bool, int, str)):
        return value
    raise InputError(f"field {what!r} cannot be saved: found {value!r}.")


def back(value: object) -> object:
    """The way back of `number`."""
    return float(value["float"]) if isinstance(value, dict) else value


def real(value: float) -> Number:
    """A real number as JSON has it."""
    return value if math.isfinite(value) else {"float": str(value)}


def real_back(value: Number) -> float:
    """The way back of `real`."""
    return float(value["float"] if isinstance(value, dict) else value)
