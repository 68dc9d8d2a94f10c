"""Site effects in words: which site, which feature, by how much, and which unit that may be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from modelweld.errors import Finding, SiteEffectWarning
from modelweld.fit.effects.corrections import SiteEffects
from modelweld.fit.screening.unit_table import FAHRENHEIT, UNITS

NEAR = 1.1
"""Factor within which a scale is one of those."""

SHOWN = 3
"""Features of a site that are described."""


class SiteEffect(NamedTuple):
    """What a site differs by in a feature: its values are ``scale * y + offset``, where y is on the common scale.

    Examples
    --------
    >>> print(SiteEffect("B", "'mass'", 1000.0, 0.0).words)
    'mass' is about 1,000 times larger than elsewhere (grams for kilograms?)
    >>> print(SiteEffect("B", "'pressure'", 1.0, 4.1).words)
    'pressure' lies 4.1 above the others
    """

    site: str
    feature: str
    scale: float
    offset: float

    @property
    def unit(self) -> str:
        """The units that would explain it, as "grams for kilograms"; empty if none is known, or it has no name."""
        if self.feature.startswith("dimension "):
            return ""
        for factor, offset in (FAHRENHEIT, (1 / FAHRENHEIT[0], -FAHRENHEIT[1] / FAHRENHEIT[0])):
            if abs(np.log(self.scale / factor)) < np.log(NEAR) and abs(self.offset / offset - 1) < NEAR - 1:
                return "degrees Fahrenheit for Celsius" if factor > 1 else "degrees Celsius for Fahrenheit"
        times = max(self.scale, 1 / self.scale)
        near = [(abs(np.log(times / f)), small, large) for f, small, large in UNITS if self.scale != 1]
        named = [(small, large) for off, small, large in sorted(near) if off < np.log(NEAR)]
        return ", or ".join(f"{a} for {b}" if self.scale > 1 else f"{b} for {a}" for a, b in named)

    @property
    def words(self) -> str:
        """Feature and difference."""
        if self.scale == 1:
            return f"{self.feature} lies {abs(self.offset):.3g} {'above' if self.offset > 0 else 'below'} the others"
        times = float(f"{max(self.scale, 1 / self.scale):.2g}")
        unit = f" ({self.unit}?)" if self.unit else ""
        how = "larger" if self.scale > 1 else "smaller"
        return f"{self.feature} is about {times:,.10g} times {how} than elsewhere{unit}"


def list_effects(effects: SiteEffects, sites: Sequence[str], features: Sequence[str]) -> list[SiteEffect]:
    """All effects that are not zero, site by site."""
    scale = np.exp(effects.log_scale)
    return [
        SiteEffect(sites[j], features[d], float(scale[j, d]), float(scale[j, d] * effects.offset[j, d]))
        for j, d in np.argwhere((effects.offset != 0) | (effects.log_scale != 0)).tolist()
    ]


CORRECTED = (
    " It is corrected before matching: the fused model is on the scale of most sites. fusion.site_effects lists all; "
    "ask how that is measured there, or fuse with site_effects=False."
)


def describe_effects(effects: SiteEffects, sites: Sequence[str], features: Sequence[str]) -> list[Finding]:
    """Sentences for users: up to a third of sites (rounded up) one by one, more of them together."""
    found = list_effects(effects, sites, features)
    each: dict[str, list[SiteEffect]] = {}
    for one in found:
        each.setdefault(one.site, []).append(one)
    if len(each) > -(-len(sites) // 3):
        largest = max(found, key=lambda x: abs(np.log(x.scale)) if x.scale != 1 else abs(x.offset) * 1e-300)
        return [
            Finding(
                f"{len(each)} of {len(sites)} sites differ by offsets or scales; at one of them {largest.words}. No "
                f"site is the reference: the median has no effect.{CORRECTED}",
                SiteEffectWarning,
            )
        ]
    return [
        Finding(
            f": {', '.join(one.words for one in own[:SHOWN])}"
            f"{f' (and {len(own) - SHOWN} more features)' if len(own) > SHOWN else ''}.{CORRECTED}",
            SiteEffectWarning,
            [site],
        )
        for site, own in each.items()
    ]
