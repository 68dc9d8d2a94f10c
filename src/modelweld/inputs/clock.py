"""When groups come: numbers, or dates, which are counted in days."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from modelweld.errors import InputError

Time = float | np.datetime64
"""A number in any unit, or a date."""

ACCEPTED = "a finite number, a date, or a date written 2024-03 or 2024-03-31"


def as_time(given: Any, where: str) -> Time:
    """A time as it is kept: a float, or a date to the second at most; refused if it is neither.

    Examples
    --------
    >>> as_time(3, "site 0"), as_time("2024-03-31", "site 1"), as_time(dt.date(2024, 3, 31), "site 2")
    (3.0, np.datetime64('2024-03-31'), np.datetime64('2024-03-31'))
    """
    wrong = InputError(f"{where}: its time must be {ACCEPTED}; found {given!r}.")
    if isinstance(given, (bool, np.bool_)):
        raise wrong
    if isinstance(given, (int, float, np.integer, np.floating)):
        if not np.isfinite(given):
            raise wrong
        return float(given)
    if not isinstance(given, (str, dt.date, np.datetime64)):
        raise wrong
    if getattr(given, "tzinfo", None) is not None:
        raise InputError(f"{where}: its time must be without a time zone; found {given!r}. Convert all to one zone.")
    try:
        date = np.datetime64(given)
    except ValueError:
        raise wrong from None
    if np.isnat(date):
        raise wrong
    fine = np.datetime_data(date.dtype)[0] in ("ms", "us", "ns", "ps", "fs", "as")
    return date.astype("datetime64[s]") if fine else date


def number_of(time: Time) -> float:
    """A time as a number; dates in days since 1970.

    Examples
    --------
    >>> number_of(np.datetime64("1970-01-02T12")), number_of(2.5)
    (1.5, 2.5)
    """
    if isinstance(time, np.datetime64):
        return float((time.astype("datetime64[s]") - np.datetime64(0, "s")) / np.timedelta64(86400, "s"))
    return float(time)


def read_time(given: Any, example: Time) -> Time:
    """A time that a user asks for, of the same kind as those of the sites, such as `example`.

    Examples
    --------
    >>> read_time("2024-03", np.datetime64("2020-01-31"))
    np.datetime64('2024-03')
    """
    time = as_time(given, "the question")
    if isinstance(time, np.datetime64) != isinstance(example, np.datetime64):
        raise InputError(f"the sites' times are like {example!s}, and so must be those asked for; found {given!r}.")
    return time


def like(number: float, example: Time) -> Time:
    """The way back: a date, as coarse as another, where that is one."""
    if not isinstance(example, np.datetime64):
        return float(number)
    moment = np.datetime64(round(number * 86400), "s")
    coarse: np.datetime64 = moment.astype(f"datetime64[{np.datetime_data(example.dtype)[0]}]")
    return coarse


def spell(time: Time) -> str:
    """As one would write it.

    Examples
    --------
    >>> spell(2020.0), spell(0.25), spell(np.datetime64("2024-03"))
    ('2020', '0.25', '2024-03')
    """
    return str(time) if isinstance(time, np.datetime64) else f"{time:.10g}"


def times_by_site(times: Any, names: Sequence[str]) -> list[Time]:
    """One time per site, from a list in the order of sites or a mapping by their names."""
    if isinstance(times, Mapping):
        absent = [name for name in names if name not in times]
        if absent:
            raise InputError(f"times: there is none for site {absent[0]!r}; give one for each site.")
        times = [times[name] for name in names]
    given = list(times) if not isinstance(times, str) and np.iterable(times) else None
    if given is None or len(given) != len(names):
        found = f"{len(given)} times" if given is not None else repr(times)
        raise InputError(f"times: give one for each of the {len(names)} sites, in their order; found {found}.")
    return [as_time(time, f"site {name!r}") for time, name in zip(given, names, strict=True)]
