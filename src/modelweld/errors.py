"""What modelweld raises and warns with, so that callers can tell our words from numpy's.

Names: which comes twice, found in one pass (a stranger may send a hundred thousand); and a few of many in words.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Hashable, Iterable, Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import Any, TypeVar

PACKAGE, _, _ = __name__.partition(".")


LONGEST_MESSAGE = 2_000
"""Characters of an error's message. Ours have a few hundred; what is longer quotes what a stranger sent."""


class InputError(ValueError):
    r"""Something that was handed in cannot be fused: the message gives the rule, the fact and the remedy.

    Messages quote what strangers sent and end up in logs: so they are one line, without anything a terminal would
    obey, and what is too long loses its middle.

    Examples
    --------
    >>> print(InputError("no site 'a\x1b[2J\nb'."))
    no site 'a\x1b[2J\nb'.
    """

    def __init__(self, message: str = "") -> None:
        super().__init__(shorten(printable(str(message))))


class OutOfRangeError(InputError):
    """Some value is not finite, or too large to be squared."""


class MissingPackageError(InputError, ImportError):
    """A package that an extra brings is not installed."""


class ModelweldWarning(UserWarning):
    """Base of all warnings of this package.

    Examples
    --------
    What may not pass unseen, in a program that runs unattended:

    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", ModelweldWarning)
    ...     warnings.warn("site 'north': in other units", SiteEffectWarning)
    Traceback (most recent call last):
    modelweld.errors.SiteEffectWarning: site 'north': in other units
    """


class AccuracyWarning(ModelweldWarning):
    """An integral over the global value was computed less accurately than a matching needs."""


class ConvergenceWarning(ModelweldWarning):
    """The sweeps were stopped before one of them left every label unchanged."""


class DataWarning(ModelweldWarning):
    """A site's data look wrong: a code for missing values, a running number of rows, or rows of another site."""


class DensityWarning(ModelweldWarning):
    """A fused mixture has so few components that much of the density of the sites' mixtures is lost."""


class DisclosureWarning(ModelweldWarning):
    """Something that is about to leave a site may tell more about its rows than it should."""


class NamesWarning(ModelweldWarning):
    """Names leave something open: a site lacks features of the others, codes have no names, or rows no sites."""


class OutlierWarning(ModelweldWarning):
    """Some values lie so far from all others that they were excluded before the fit."""


class OversplitWarning(ModelweldWarning):
    """One site sent its atoms in fragments, which the others hold whole."""


class SmallShardWarning(ModelweldWarning):
    """Shards of few sites, whose own matchings rest on little."""


class DuplicateWarning(ModelweldWarning):
    """Some sites sent the same values, so that they were counted once, or seem to share rows."""


class SiteEffectWarning(ModelweldWarning):
    """Sites differ by an offset or a scale (batch, calibration, unit), which was corrected before matching."""


def printable(text: str) -> str:
    """Text without anything a terminal would obey: line breaks and control characters are spelt out."""
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def shorten(text: str) -> str:
    """The beginning and the end of what is too long to be read."""
    if len(text) <= LONGEST_MESSAGE:
        return text
    half = LONGEST_MESSAGE // 2
    return f"{text[:half]} [{len(text) - 2 * half:,} more characters] {text[-half:]}"


def warn_user(message: str | Warning, category: type[Warning] = ModelweldWarning) -> None:
    """Warn, and name the line outside this package from which it was called, however deep inside we are."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == PACKAGE:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


class Finding(str):
    """A finding about some sites: a sentence that names them and, of a category, a warning (`announce`).

    Parameters
    ----------
    text : str
        What is said of the sites, which the sentence begins with.
    category : type of Warning, optional
        None: it stands among the reasons of the result, and no warning is given.
    sites : sequence of str
        Their names.

    Examples
    --------
    >>> print(Finding(" sent the same values.", DuplicateWarning, ["a", "b", "c"]))
    sites 'a', 'b' and 'c' sent the same values.
    """

    category: type[Warning] | None = None

    def __new__(cls, text: str, category: type[Warning] | None = None, sites: Sequence[str] = ()) -> Finding:
        """The sentence."""
        *first, last = map(repr, sites or [""])
        named = f"sites {', '.join(first)} and {last}" if first else f"site {last}"
        finding = super().__new__(cls, f"{named}{text}" if sites else text)
        finding.category = category
        return finding


QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
"""A name as `repr` writes it."""

SITES_NAMED = re.compile(rf"\bsites? ((?:(?:{QUOTED})(?: of shard \d+| \d+)?(?:, | and | or )?)+)")
"""How all sentences name sites: "site 'a'", "sites 'a', 'b' and 'c'", of a shard or with a number after each."""


def sites_named(text: str, quoted: dict[str, str]) -> list[str]:
    r"""Sites that a sentence names; `quoted` has all names by how they are written.

    Examples
    --------
    >>> quoted = {repr(site): site for site in ("north", "south", "O'Hara", "age")}
    >>> sites_named("site 'north' or 'south': 'age' is about 100 times larger.", quoted)
    ['north', 'south']
    >>> sites_named("sites \"O'Hara\", 'west' and 'north' sent the same values.", quoted)
    ["O'Hara", 'north']
    """
    found = (name for part in SITES_NAMED.findall(text) for name in re.findall(QUOTED, part))
    return list(dict.fromkeys(quoted[name] for name in found if name in quoted))


def announce(reasons: Iterable[str], most: int | None = None) -> None:
    """Warn of what was found, each of it once; of one category at most so many times, and then of how many more."""
    said: dict[type[Warning], list[str]] = {}
    for reason in dict.fromkeys(reasons):
        if isinstance(reason, Finding) and reason.category is not None:
            said.setdefault(reason.category, []).append(str(reason))
    for category, sentences in said.items():
        more = len(sentences[most:]) if most else 0
        for sentence in [*sentences[:most], *([f"{more} more such findings: see `reasons`."] if more else [])]:
            warn_user(sentence, category)


Name = TypeVar("Name", bound=Hashable)

SHOWN = 5
"""Names, or sentences about them, in a message before it says "and so many more"."""


def first_repeated(names: Iterable[Name]) -> Name | None:
    """The first name that was there already; None if all differ.

    Examples
    --------
    >>> first_repeated(["a", "b", "c", "b", "a"])
    'b'
    """
    seen: set[Name] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def load_extra(module: str, what: str, install: str) -> Any:
    """A module of a package that modelweld does not bring, or an error that says how to get it.

    >>> load_extra("nowhere", "a DataFrame needs", "pandas")
    Traceback (most recent call last):
    modelweld.errors.MissingPackageError: a DataFrame needs 'nowhere', which is not installed: pip install pandas.
    """
    try:
        return import_module(module)
    except ImportError:
        name = module.partition(".")[0]
        raise MissingPackageError(f"{what} {name!r}, which is not installed: pip install {install}.") from None


def check_choice(name: str, given: object, known: Sequence[object]) -> None:
    """Refuse a setting that is none of those there are."""
    if given not in known:
        *others, last = map(repr, known)
        raise InputError(f"{name} is {', '.join(others)} or {last}; found {given!r}.")


def suggest(text: str, known: Iterable[str]) -> str:
    """A question after the known name that is most like a text; nothing if none is.

    Examples
    --------
    >>> suggest("densit", ["density", "moments"]), suggest("x", ["density"])
    (" Did you mean 'density'?", '')
    """
    lower = {name.lower(): name for name in known}
    close = get_close_matches(text.lower(), lower, 1)
    return f" Did you mean {lower[close[0]]!r}?" if close else ""


def some(names: Iterable[str]) -> str:
    """A few names, in order, and how many more there are.

    Examples
    --------
    >>> some("gfedcba")
    "'a', 'b', 'c', 'd', 'e' and 2 more"
    """
    ranked = sorted(names)
    more = f" and {len(ranked) - SHOWN} more" if len(ranked) > SHOWN else ""
    return (", ".join(map(repr, ranked[:SHOWN])) + more) if ranked else "nothing"
