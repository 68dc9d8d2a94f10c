"""Units that people mix up, and how to say that a site seems to have done so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

NAMES = (
    (7.0, "days", "weeks"),
    (7.5, "mmHg", "kPa"),
    (10.0, "millimetres", "centimetres"),
    (12.0, "months", "years"),
    (17.1, "µmol/l", "mg/dl of bilirubin"),
    (18.0, "mg/dl", "mmol/l of glucose"),
    (24.0, "hours", "days"),
    (25.4, "millimetres", "inches"),
    (30.4, "days", "months"),
    (38.67, "mg/dl", "mmol/l of cholesterol"),
    (60.0, "minutes", "hours"),
    (88.4, "µmol/l", "mg/dl of creatinine"),
    (100.0, "centimetres", "metres"),
    (365.0, "days", "years"),
    (1000.0, "grams", "kilograms"),
)
"""Factors that people meet, and an example of each: small unit, large unit."""

NEAR = 1.15
"""Factor within which a factor is one of those: sites that differ by themselves blur it by about so much."""

MOST_LISTED = 4
"""Features of a site that are spelt out where many are off by the same factor."""

FAHRENHEIT = 1.8, 32.0
"""Factor and offset that make degrees Fahrenheit of degrees Celsius."""


class OtherUnit(NamedTuple):
    """A site, a feature, and by which factor (and offset) its values are those of others."""

    site: int
    feature: int
    factor: float
    offset: float

    @property
    def what(self) -> str:
        """How the site differs."""
        if self.offset:
            return "off as temperatures are"
        times = float(f"{max(self.factor, 1 / self.factor):.2g}")
        return f"about {times:,.10g} times {'larger' if self.factor > 1 else 'smaller'} than elsewhere"

    @property
    def why(self) -> str:
        """Which units that would be: all that are about as likely."""
        if self.offset:
            return f"degrees {' for '.join(_turned('Fahrenheit', 'Celsius', self.factor))}"
        times = max(self.factor, 1 / self.factor)
        near = sorted(
            (abs(np.log(times / factor)), " for ".join(_turned(small, large, self.factor)))
            for factor, small, large in NAMES
        )
        return ", or ".join(name for off, name in near if off < np.log(NEAR)) or "another unit"


def _turned(small: str, large: str, factor: float) -> tuple[str, str]:
    return (small, large) if factor > 1 else (large, small)


def describe(found: Sequence[OtherUnit], features: Sequence[str], site: str, other: str = "") -> str:
    """In plain words: features of a site that are off alike; where nobody knows which of two is right, both are named.

    Examples
    --------
    >>> print(describe([OtherUnit(0, 0, 1000.0, 0.0)], ["'mass'"], "a", "b"))  # doctest: +ELLIPSIS
    site 'a' or 'b': 'mass' is about 1,000 times larger at 'a' than at 'b', mean and deviation alike: grams for ...
    """
    one, more = found[0], len(features) - MOST_LISTED
    named = ", ".join(features[:MOST_LISTED]) + (f" and {more} more features" if more > 0 else "")
    verb = "is" if len(features) == 1 else "are"
    who, what, without = f"site {site!r}", one.what, f", or leave it out, fusion.remove({site!r}, anew=True)"
    if other:
        who, without = f"{who} or {other!r}", ""
        what = what.replace("than elsewhere", f"at {site!r} than at {other!r}") if not one.offset else what
    return (
        f"{who}: {named} {verb} {what}, mean and deviation alike: {one.why}? Nothing is converted: convert it "
        f"there and fuse again{without}; if it is right, let sites state their units: read(model, units=...)."
    )
