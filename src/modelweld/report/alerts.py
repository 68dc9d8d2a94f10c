"""What to look at first: why values were set aside, then sites that stand out, those farthest off first."""

from __future__ import annotations

import re
from collections.abc import Sequence

from modelweld.report.rounding import Content

QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
"""A name as `repr` writes it."""

NAMED = re.compile(rf"\bsites? ((?:(?:{QUOTED})(?: of shard \d+| \d+)?(?:, | and | or )?)+)")
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
    found = (name for part in NAMED.findall(text) for name in re.findall(QUOTED, part))
    return list(dict.fromkeys(quoted[name] for name in found if name in quoted))


def rank_alerts(
    reasons: Sequence[str],
    diagnostics: Sequence[Content] | None,
    sites: Sequence[str],
    others: Sequence[str] = (),
) -> list[Content]:
    """Sentences of a matching and of its sites: what changed the result first, then by how far a site is off.

    A site is off by the largest of its shift, in noise deviations, and of how much worse it fits than the typical one,
    in robust deviations. Reasons may also be about `others` than the sites that were diagnosed.

    Examples
    --------
    >>> calm = {"unshared": 0, "score": 1.0, "surprise": 0.0, "influence": 0.1}
    >>> found = [{**calm, "shift": x, "warning": f"{site} is off."} for site, x in (("north", 2.0), ("south", -9.0))]
    >>> alerts = rank_alerts(["site 'west' was set aside."], found, ["north", "south"], ["west"])
    >>> [(alert["sites"], alert["text"]) for alert in alerts]
    [(['west'], "site 'west' was set aside."), (['south'], 'south is off.'), (['north'], 'north is off.')]
    """
    warned = [(site, d) for site, d in zip(sites, diagnostics or [], strict=False) if d["warning"]]
    warned.sort(key=lambda one: -max(abs(one[1]["shift"] or 0.0), -(one[1]["surprise"] or 0.0)))
    quoted = {repr(site): site for site in (*sites, *others)} if reasons else {}
    first: list[Content] = [{"sites": sites_named(reason, quoted), "text": reason} for reason in reasons]
    return first + [{"sites": [site], "text": str(d["warning"])} for site, d in warned]
