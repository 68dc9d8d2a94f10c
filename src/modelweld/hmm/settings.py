"""Whether the settings of a StickyHDPHMM make sense."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeGuard

import numpy as np

from modelweld.errors import InputError, ModelweldWarning, warn_user

if TYPE_CHECKING:
    from modelweld.hmm.model import StickyHDPHMM


def check_settings(model: StickyHDPHMM) -> None:
    """Refuse settings that are none."""
    for name in ("n_states", "window", "n_init", "max_iter"):
        value = getattr(model, name)
        if not isinstance(value, (int, np.integer)) or value < 1:
            raise InputError(f"{name} is a whole number, at least 1; found {value!r}.")
    for name in ("eta", "gamma", "eta0", "mean_precision", "tol"):
        if not is_number(getattr(model, name)) or not 0 < getattr(model, name) < np.inf:
            raise InputError(f"{name} is a positive number; found {getattr(model, name)!r}.")
    if not is_number(model.kappa) or not 0 <= model.kappa < np.inf:
        raise InputError(f"kappa is a number, not negative; found {model.kappa!r}.")
    if model.zeta != "auto" and not (is_number(model.zeta) and 0 < model.zeta <= 1):
        raise InputError(f"zeta is 'auto' or a number above 0, at most 1; found {model.zeta!r}.")
    if model.prior_scale != "learned" and not (is_number(model.prior_scale) and 0 < model.prior_scale < np.inf):
        raise InputError(f"prior_scale is 'learned' or a positive number; found {model.prior_scale!r}.")
    if model.start not in ("windows", "random"):
        raise InputError(f"start is 'windows' or 'random'; found {model.start!r}.")


def is_number(value: object) -> TypeGuard[float]:
    """Whether a setting is a real number."""
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


PILOT = (
    "in the first fit, by which zeta is chosen: if they are too wide, frames seem more alike than they are, and zeta "
    "is too small. Raise n_states, or give zeta"
)
"""What it means that the fit which takes frames for independent, and so cuts them finely, is short of states."""


def warn_if_all_used(found: int, most: int, meaning: str) -> None:
    """Say that a fit ended with as many states as it may have."""
    if found == most > 1:
        warn_user(f"all {most} states are in use, {meaning}.", ModelweldWarning)
