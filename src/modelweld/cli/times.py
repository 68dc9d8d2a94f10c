"""When sites were trained, as one says it on the command line: in their names, or in a table."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from modelweld.errors import InputError
from modelweld.inputs.clock import Time, as_time

IN_NAMES = "names"
"""What says that times stand in the sites' names."""

DATE = r"(?<!\d)(\d{4}(?:-\d{2}(?:-\d{2})?)?)(?!\d)"
NUMBER = r"-?\d+(?:\.\d+)?"


def times_in(given: str) -> Mapping[str, Time] | None:
    """Times by names of sites; None if none are given.

    Examples
    --------
    >>> times = times_in("names")
    >>> times["topics-2024-03"], times["week 7"]
    (np.datetime64('2024-03'), 7.0)
    """
    if not given:
        return None
    return InNames() if given == IN_NAMES else read_times(Path(given))


class InNames(Mapping[str, Time]):
    """The last date in a site's name, 2024, 2024-03 or 2024-03-31; if there is none, the last number."""

    def __getitem__(self, name: str) -> Time:
        dates, numbers = re.findall(DATE, name), re.findall(NUMBER, name)
        if dates:
            return as_time(dates[-1], f"site {name!r}")
        if numbers:
            return as_time(float(numbers[-1]), f"site {name!r}")
        raise InputError(f"site {name!r}: there is no date and no number in its name; give a table, --times times.csv.")

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


def read_times(path: Path) -> dict[str, Time]:
    """A table with the columns site and time."""
    if not path.exists():
        raise InputError(
            f"--times is {IN_NAMES!r}, or a table with the columns site and time; there is no {str(path)!r}."
        )
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    if not rows or not {"site", "time"} <= set(rows[0]):
        raise InputError(
            f"{str(path)!r}: it must have the columns site and time; found {list(rows[0]) if rows else []}."
        )
    times = {row["site"]: time_in(row["time"], f"site {row['site']!r}") for row in rows}
    return {site: time for site, time in times.items() if time is not None}


def time_in(text: str, where: str = "--time") -> Time | None:
    """A number or a date; None if nothing is said. Four digits are a number, as good as a year among years."""
    if not text:
        return None
    try:
        return as_time(float(text), where)
    except ValueError:
        return as_time(text, where)
