"""What to look at first: why values were set aside, then sites that stand out, those farthest off first."""

from __future__ import annotations

from collections.abc import Sequence

from modelweld.report.contents import Alert, Diagnosis

MOST_ALERTS = 500
"""Alerts that are listed."""


def rank_alerts(reasons: Sequence[str], diagnostics: Sequence[Diagnosis] | None, sites: Sequence[str]) -> list[Alert]:
    """Sentences of a matching and of its sites: what changed the result first, then by how far a site is off.

    A site is off by the largest of its shift, in noise deviations, and of how much worse it fits than the typical one,
    in robust deviations.

    Examples
    --------
    >>> calm = {"unshared": 0, "score": 1.0, "surprise": 0.0, "influence": 0.1}
    >>> found = [{**calm, "shift": x, "warning": f"{site} is off."} for site, x in (("north", 2.0), ("south", -9.0))]
    >>> [alert["text"] for alert in rank_alerts(["west was set aside."], found, ["north", "south"])]
    ['west was set aside.', 'south is off.', 'north is off.']
    """
    warned = [(site, d) for site, d in zip(sites, diagnostics or [], strict=False) if d["warning"]]
    warned.sort(key=lambda one: -max(abs(one[1]["shift"] or 0.0), -(one[1]["surprise"] or 0.0)))
    first: list[Alert] = [{"site": None, "text": reason} for reason in reasons]
    return (first + [{"site": site, "text": str(d["warning"])} for site, d in warned])[:MOST_ALERTS]
