"""What `fuse` was asked for, as plain values and words: kept in the Fusion, saved in its file, shown on its page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any

import numpy as np


def in_words(asked: Any) -> Any:
    """A setting as JSON has it; families and priors as one would write them, arrays as their shapes.

    Examples
    --------
    >>> from modelweld import BetaBernoulli, Gaussian
    >>> in_words({"means": Gaussian(shape="full"), "prior": BetaBernoulli(gamma0=2.0), "seed": 0, "search": "auto"})
    {'means': "Gaussian(shape='full')", 'prior': 'BetaBernoulli(gamma0=2.0)', 'seed': 0, 'search': 'auto'}
    """
    asked = asked.item() if isinstance(asked, np.generic) else asked
    if asked is None or isinstance(asked, (bool, int, str)):
        return asked
    if isinstance(asked, Mapping):
        return {key if isinstance(key, str) else " and ".join(key): in_words(value) for key, value in asked.items()}
    if is_dataclass(asked):
        changed = ", ".join(f"{name}={_short(value)}" for name, value in _changed(asked).items())
        return f"{type(asked).__name__}({changed})"
    return _short(asked)


def _changed(thing: Any) -> dict[str, Any]:
    """Fields that are not what they are by default."""
    found = {}
    for field in fields(thing):
        if not field.init:
            continue
        value = getattr(thing, field.name)
        default = field.default if field.default_factory is MISSING else field.default_factory()
        if value is not default and not np.all(np.asarray(value == default)):  # checks make arrays of numbers
            found[field.name] = value
    return found


def _short(value: Any) -> str:
    """A value as one would write it; of what has no such form, what it is."""
    if isinstance(value, np.ndarray) and value.size > 1:
        return f"array of {' x '.join(map(str, value.shape))}"
    plain = value.ravel().tolist()[0] if isinstance(value, np.ndarray) and value.size else value
    if plain is None or isinstance(plain, (bool, int, float, str, tuple, list)):
        return repr(plain)
    return str(getattr(plain, "__name__", f"a {type(plain).__name__}"))
