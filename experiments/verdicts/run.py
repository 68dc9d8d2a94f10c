"""Can the verdicts say no? Yeses of `worth_merging` and warnings of `diagnosis.sites` where truth is known.

See README.md for what is drawn.

    python experiments/verdicts/run.py --jobs 2 --out experiments/verdicts/merging
    python experiments/verdicts/run.py --sets 10 --first 500 --cases worth/offset --out /tmp/x
    python experiments/verdicts/run.py --smoke          # two sets per cell, small cells; seconds

Said before it is run: 60 sets of every cell, seeds 96000 to 96059; 20 of sites that differ in place and share a half,
seeds 96000 to 96019, which take twenty times as long. None of these seeds was looked at before; settings were chosen on
seeds below 9000.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # where study.py is

from study import Claim, Result, Table, Task, timed  # isort: skip; first: it sets the threads

import argparse
import zlib
from collections.abc import Iterator

import numpy as np
from cells import asked, measure, quietly
from draws import CLEAN, DISTRIBUTIONS, FOUR, ODD, apart, clean, mixtures, odd, shifted, values

import modelweld

SETS, SETS_OF_MOVED, FIRST_SEED = 60, 20, 96_000
"""Sets per cell, of cells that take long, and the first seed."""

CELLS, SMOKE_CELLS = [(2, 3), (3, 3), (5, 10)], [(3, 3)]
"""Numbers of sites and features."""

MOVED, MOVED_CELLS = "offset 1", [(J, D) for J in (3, 10) for D in (2, 5, 20)]
MOVED_SHARING = [(3, 5), (5, 5), (5, 20)]
"""Sites that differ in place, and those of them of which half is shared, too."""

SHARES = {"nothing": 0.0, "a quarter": 0.25, "half": 0.5}
"""Of a site's values, which are shared."""

LEVEL, MOST_YES, LEAST_POWER, MOST_ALARMED = 0.05, 0.07, {"a quarter": 0.8, "half": 0.95}, 0.02
"""The level; what must hold of sites that share nothing, of those that do (three sites and features at least), and of
honest sites."""

SHIFTS, SHIFT_SITES = (0.0, 2.0, 4.0), (5, 10)
"""Noise deviations by which one site is off, and numbers of sites."""


def judge(kind: str, J: int, D: int, shared: str, seed: int) -> Result:
    """The verdict about one set of sites, and the seconds it took after the fit."""
    rng = np.random.default_rng([seed, J, D, list(SHARES).index(shared), zlib.crc32(kind.encode())])
    given, family = (J, D, SHARES[shared], rng), None
    if kind in CLEAN:
        sites, family = clean(kind, rng)
    elif kind == "mixtures":
        sites = mixtures(*given)
    else:
        sites = (odd if kind in ODD else apart if kind == MOVED else values)(kind, *given)
    fusion = modelweld.fuse(sites, family)
    verdict, seconds = timed(lambda: fusion.worth_merging(level=LEVEL))
    return {
        "p": verdict.p_value,
        "worth": verdict.worth,
        "sites": [site.worth for site in verdict.sites],
        "seconds": seconds,
    }


def warn(J: int, deviations: float, seed: int) -> Result:
    """Which sites of a fusion are warned of, and which corrected; the first one is shifted."""
    rng = np.random.default_rng([seed, J, int(deviations)])
    fusion = modelweld.fuse(shifted(J, 3, deviations, rng))
    corrected = {effect.site for effect in fusion.site_effects}
    return {
        "warned": [bool(site.warning) for site in fusion.diagnosis.sites()],
        "corrected": [site in corrected for site in fusion.sites],
    }


def cells(smoke: bool) -> Iterator[str]:
    """Kinds of values with sites, features and what is shared."""
    for J, D in SMOKE_CELLS if smoke else CELLS:
        for kind in [*DISTRIBUTIONS, "mixtures"] if (J, D) == (3, 3) else ["normal"]:
            for shared in {"normal": list(SHARES), "mixtures": ["nothing", "half"]}.get(kind, ["nothing"]):
                yield f"{kind}/{J}/{D}/{shared}"
    if smoke:
        return
    for kind, (J, D) in ODD.items():
        yield from (f"{kind}/{J}/{D}/{shared}" for shared in ("nothing", "a quarter"))
    yield from (f"{kind}///nothing" for kind in CLEAN)
    yield from (f"{MOVED}/{J}/{D}/nothing" for J, D in MOVED_CELLS)
    yield from (f"{MOVED}/{J}/{D}/half" for J, D in MOVED_SHARING)


def tasks(options: argparse.Namespace) -> Iterator[Task]:
    """One per cell and seed."""
    seeds = range(options.first, options.first + options.sets)
    for name in cells(options.smoke):
        kind, J, D, shared = name.split("/")
        own = seeds[:SETS_OF_MOVED] if (kind, shared) == (MOVED, "half") else seeds
        yield from (Task(f"worth/{name}/{s}", quietly, (judge, kind, int(J or 0), int(D or 0), shared, s)) for s in own)
    for J in SHIFT_SITES:
        for deviations in SHIFTS:
            yield from (Task(f"warned/{J}/{deviations:g}/{s}", quietly, (warn, J, deviations, s)) for s in seeds)


def summary(cells: dict[str, list[Result]]) -> tuple[list[Table], list[Claim]]:
    """Shares of yeses and of warnings, and whether what must hold does."""
    judged = {cell: found for cell, found in cells.items() if "worth/" in cell}
    yes = {cell: float(np.mean([bool(one["worth"]) for one in found])) for cell, found in judged.items()}
    sites = {cell: float(np.mean([bool(w) for one in found for w in one["sites"]])) for cell, found in judged.items()}
    seconds = max((float(np.median([one["seconds"] for one in found])) for found in judged.values()), default=0.0)
    alarms = {
        cell: (
            float(np.mean([one["warned"][0] or one["corrected"][0] for one in found])),
            float(np.mean([any(one["warned"][1:] + one["corrected"][1:]) for one in found])),
            float(np.mean([any(one["warned"]) for one in found])),
        )
        for cell, found in cells.items()
        if "warned/" in cell
    }
    parts = {cell: cell.split("/")[1:] for cell in cells}
    tables = [
        Table(
            f"worth_merging: share of yeses at level {LEVEL:g}",
            ["values", "sites", "features", "shared", "yes", "yes, of sites"],
            [[*parts[cell], round(yes[cell], 3), round(sites[cell], 3)] for cell in yes],
        ),
        Table(
            "diagnose: share of fusions",
            ["sites", "shift, noise deviations", "shifted site named or corrected", "another"],
            [[*parts[cell], *(round(x, 3) for x in alarms[cell][:2])] for cell in alarms],
        ),
    ]
    return [table for table in tables if table.rows], list(claims(parts, yes, alarms, seconds))


def claims(parts, yes, alarms, seconds: float) -> Iterator[Claim]:
    """What must hold."""

    def of(kinds, shared: str, sites: int = 2) -> dict[str, float]:
        own = {c: x for c, x in yes.items() if parts[c][0] in kinds and parts[c][-1] == shared}
        return {c: x for c, x in own.items() if int(parts[c][1] or sites) >= sites}

    usual = {*DISTRIBUTIONS, "mixtures"}
    others = {*ODD} - {*FOUR}
    for text, kinds in {"usual": usual, "clean": CLEAN, "odd": FOUR, "other odd": others, "moved": {MOVED}}.items():
        if nothing := of(kinds, "nothing"):
            yield _worst(f"{text} sites that share nothing: at most 7 % yes in every cell", nothing, MOST_YES, True)
    for shared, least in LEAST_POWER.items():
        text = f"{shared} shared, three sites or more: at least {100 * least:.0f} % yes"
        if power := of(usual, shared, 3):
            yield _worst(text, power, least, False)
    if power := of(ODD, "a quarter"):
        enough = sum(x >= LEAST_POWER["a quarter"] for x in power.values())
        least = min(power, key=power.__getitem__)
        found = f"{enough} of {len(power)}; least {power[least]:.3f} ({least})"
        yield Claim("odd, a quarter shared: at least 80 % yes in 12 of 14 cells", found, enough >= 12)
    if power := of({MOVED}, "half"):
        yield _worst("moved, half shared, five features or more: at least 80 % yes", power, 0.8, False)
    if not alarms:
        return
    honest = {cell: x[2] for cell, x in alarms.items() if parts[cell][-1] == "0"}
    overall = float(np.mean(list(honest.values())))
    text = f"honest sites: at most {100 * MOST_ALARMED:.0f} % of fusions have a warning"
    yield Claim(text, f"{100 * overall:.1f} % (by number of sites: {honest})", overall <= MOST_ALARMED)
    yield Claim("a verdict takes less than a second after the fit", f"{seconds:.2f} s in the slowest cell", seconds < 1)


def _worst(text: str, shares: dict[str, float], limit: float, at_most: bool) -> Claim:
    cell = (max if at_most else min)(shares, key=shares.__getitem__)
    holds = shares[cell] <= limit if at_most else shares[cell] >= limit
    return Claim(text, f"{shares[cell]:.3f} at worst ({cell})", bool(holds))


if __name__ == "__main__":
    measure("Verdicts that can say no", tasks, asked(__doc__, "merging", FIRST_SEED, SETS, 2), summary)
