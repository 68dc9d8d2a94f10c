"""What was asked for, as it is kept and shown: plain values, families and priors as one would write them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any

import numpy as np


def spell_setting(asked: Any) -> Any:
    """A setting as JSON has it; families and priors as one would write them, arrays as their shapes.

    Examples
    --------
    >>> from modelweld import BetaBernoulli, Gaussian
    >>> spell_setting({"means": Gaussian(shape="full"), "prior": BetaBernoulli(gamma0=2.0), "seed": 0})
    {'means': "Gaussian(shape='full')", 'prior': 'BetaBernoulli(gamma0=2.0)', 'seed': 0}
    """
    asked = asked.item() if isinstance(asked, np.generic) else asked
    if asked is None or isinstance(asked, (bool, int, str)):
        return asked
    if isinstance(asked, (list, tuple, set, frozenset)):
        return sorted(map(str, asked))
    if isinstance(asked, Mapping):
        return {
            key if isinstance(key, str) else " and ".join(key): spell_setting(value) for key, value in asked.items()
        }
    if is_dataclass(asked):
        changed = ", ".join(f"{name}={_short(value)}" for name, value in _not_default(asked).items())
        return f"{type(asked).__name__}({changed})"
    return _short(asked)


def _not_default(thing: Any) -> dict[str, Any]:
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
    """A value as one would write it in code; if it has no such form, its name, or its type."""
    if isinstance(value, np.ndarray) and value.size > 1:
        return f"array of {' x '.join(map(str, value.shape))}"
    plain = value.ravel().tolist()[0] if isinstance(value, np.ndarray) and value.size else value
    if plain is None or isinstance(plain, (bool, int, float, str, tuple, list)):
        return repr(plain)
    return str(getattr(plain, "__name__", f"a {type(plain).__name__}"))
