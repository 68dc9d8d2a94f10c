"""Options of the command line as values of the library: names, units, families, priors, times."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import modelweld
from modelweld import families
from modelweld.cli.messages import FAMILIES, PRIORS
from modelweld.core.prior import Prior
from modelweld.errors import InputError, suggest
from modelweld.families import Family
from modelweld.files.limits import naming
from modelweld.files.tables import open_csv
from modelweld.inputs.clock import Time, as_time

IN_NAMES = "names"
"""The value of ``--times`` that takes times from the sites' names."""

DATE = r"(?<!\d)(\d{4}(?:-\d{2}(?:-\d{2})?)?)(?!\d)"
NUMBER = r"-?\d+(?:\.\d+)?"


def parse_names(text: str) -> list[str] | None:
    """Names separated by commas; None if there are none.

    Examples
    --------
    >>> parse_names("age, weight")
    ['age', 'weight']
    """
    return [name.strip() for name in text.split(",")] if text else None


def parse_units(text: str) -> dict[str, str] | None:
    """Units by feature.

    Examples
    --------
    >>> parse_units("age=years, weight=kg")
    {'age': 'years', 'weight': 'kg'}
    """
    pairs = [part.partition("=") for part in text.split(",")] if text else []
    wrong = next((name for name, sign, unit in pairs if not (sign and name.strip() and unit.strip())), None)
    if wrong is not None:
        raise InputError(f"--units are feature=unit, separated by commas: age=years,weight=kg; found {wrong!r}.")
    return {name.strip(): unit.strip() for name, _, unit in pairs} or None


def parse_family(text: str) -> Family | None:
    """The family of that name; None for an empty one."""
    name = _find_name(text, FAMILIES, "--family") if text else ""
    return getattr(families, name)() if name else None


def parse_prior(text: str) -> Prior | Literal["auto"]:
    """The prior of that name."""
    name = _find_name(text, PRIORS, "--prior")
    return getattr(modelweld, name)() if name != "auto" else "auto"


def parse_screens(text: str) -> str | list[str]:
    """What to look for before the fit."""
    return text if text == "auto" else [word.strip() for word in text.split(",") if text != "none"]


def parse_splits(text: str) -> bool | Literal["auto"]:
    """Whether a site may hold a group in several fragments."""
    chosen: dict[str, bool | Literal["auto"]] = {"auto": "auto", "yes": True, "no": False}
    return chosen[_find_name(text, "auto, yes, no", "--splits")]


def _find_name(text: str, known: str, option: str) -> str:
    """The name that is meant, whatever its capitals."""
    names = known.split(", ")
    found = next((name for name in names if name.lower() == text.lower()), None)
    if found is None:
        raise InputError(f"{option} is one of {known}; found {text!r}.{suggest(text, names)}")
    return found


def parse_time(text: str, where: str = "--time") -> Time | None:
    """A number or a date; None for an empty text. Four digits are a number, which serves as a year among years."""
    if not text:
        return None
    try:
        return as_time(float(text), where)
    except ValueError:
        return as_time(text, where)


def parse_times(given: str) -> Mapping[str, Time] | None:
    """Times by names of sites; None if none are given.

    Examples
    --------
    >>> times = parse_times("names")
    >>> times["topics-2024-03"], times["week 7"]
    (np.datetime64('2024-03'), 7.0)
    """
    if not given:
        return None
    return InNames() if given == IN_NAMES else read_times(Path(given))


class InNames(dict[str, Time]):
    """The last date in a site's name, 2024, 2024-03 or 2024-03-31; if there is none, the last number."""

    def __missing__(self, name: str) -> Time:
        dates, numbers = re.findall(DATE, name), re.findall(NUMBER, name)
        if not dates and not numbers:
            raise InputError(f"site {name!r}: its name has no date and no number; give a table, --times times.csv.")
        return as_time(dates[-1] if dates else float(numbers[-1]), f"site {name!r}")

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str)


def read_times(path: Path) -> dict[str, Time]:
    """A table with the columns site and time."""
    if not path.exists():
        raise InputError(f"--times is {IN_NAMES!r}, or a table with the columns site and time; no file {str(path)!r}.")
    with naming(path), open_csv(path) as (header, lines):
        rows = [dict(zip(header, line, strict=False)) for line in lines if line]
    if not rows or not {"site", "time"} <= set(rows[0]):
        found = list(rows[0]) if rows else []
        raise InputError(f"{str(path)!r}: it must have the columns site and time; found {found}.")
    times = {row["site"]: parse_time(row["time"], f"site {row['site']!r}") for row in rows}
    return {site: time for site, time in times.items() if time is not None}
