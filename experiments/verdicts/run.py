"""Can the verdicts say no? Yeses of `worth_merging` and warnings of `diagnosis.sites` where truth is known.

See README.md for what is drawn.

    python experiments/verdicts/run.py                  # 60 sets per cell
    python experiments/verdicts/run.py --sets 10 --first 500 --cases worth/offset --out /tmp/x
    python experiments/verdicts/run.py --smoke          # two sets per cell, small cells; seconds

Settings of the library were chosen on seeds below 5,000.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy: seconds should mean one core

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # where study.py is

import argparse
import time
import warnings
from collections.abc import Iterator, Sequence

import numpy as np
from cells import measure
from draws import DISTRIBUTIONS, OFFSETS, apart, mixtures, shifted, values

import modelweld
from study import Claim, Result, Table, Task, versions

SETS, FIRST_SEED = 60, 10_000
"""Sets per cell, and the first seed."""

CELLS, SMOKE_CELLS = [(2, 3), (2, 10), (3, 3), (5, 3), (5, 10), (10, 3)], [(3, 3)]
"""Numbers of sites and features."""

OFFSET_CELLS = [(J, D) for J in (3, 5, 10) for D in (2, 5, 20)]
"""The same, of sites that differ in place."""

SHARES = {"nothing": 0.0, "a quarter": 0.25, "half": 0.5}
"""Of a site's values, which are shared."""

LEVEL, MOST_YES, LEAST_POWER, MOST_ALARMED = 0.05, 0.07, {"a quarter": 0.8, "half": 0.95}, 0.02
"""The level; what must hold of sites that share nothing, of those that do (three sites and features at least), and of
honest sites."""

SHIFTS, SHIFT_SITES = (0.0, 2.0, 4.0), (5, 10)
"""Noise deviations by which one site is off, and numbers of sites."""


def judge(kind: str, J: int, D: int, shared: str, seed: int) -> Result:
    """The verdict about one set of sites, and the seconds it took after the fit."""
    rng = np.random.default_rng([seed, J, D, list(SHARES).index(shared)])
    given = J, D, SHARES[shared], rng
    sites = mixtures(*given) if kind == "mixtures" else (apart if kind in OFFSETS else values)(kind, *given)
    fusion = modelweld.fuse(sites)
    start = time.process_time()
    verdict = fusion.worth_merging(level=LEVEL)
    return {
        "p": verdict.p_value,
        "worth": verdict.worth,
        "sites": [site.worth for site in verdict.sites],
        "seconds": time.process_time() - start,
    }


def warn(J: int, deviations: float, seed: int) -> Result:
    """Which sites of a fusion are warned of; the first one is shifted."""
    rng = np.random.default_rng([seed, J, int(deviations)])
    found = modelweld.fuse(shifted(J, 3, deviations, rng)).diagnosis.sites()
    return {"warned": [bool(site.warning) for site in found]}


def tasks(options: argparse.Namespace) -> Iterator[Task]:
    """One per cell and seed."""
    seeds = range(options.first, options.first + options.sets)
    for J, D in SMOKE_CELLS if options.smoke else CELLS:
        for kind in [*DISTRIBUTIONS, "mixtures"]:
            for shared in SHARES if kind in ("normal", "mixtures") else ["nothing"]:
                if not (kind == "mixtures" and shared == "a quarter"):
                    yield from (
                        Task(f"worth/{kind}/{J}/{D}/{shared}/{s}", quietly, (judge, kind, J, D, shared, s))
                        for s in seeds
                    )
    for J, D in [] if options.smoke else OFFSET_CELLS:
        for kind in OFFSETS:
            for shared in ("nothing", "half"):
                yield from (
                    Task(f"worth/{kind}/{J}/{D}/{shared}/{s}", quietly, (judge, kind, J, D, shared, s)) for s in seeds
                )
    for J in SHIFT_SITES:
        for deviations in SHIFTS:
            yield from (Task(f"warned/{J}/{deviations:g}/{s}", quietly, (warn, J, deviations, s)) for s in seeds)


def quietly(function, *given) -> Result:
    """A result without warnings about outliers and overlaps."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*given)


def summary(cells: dict[str, list[Result]]) -> tuple[list[Table], list[Claim]]:
    """Shares of yeses and of warnings, and whether what must hold does."""
    yes = {
        cell: float(np.mean([bool(one["worth"]) for one in found])) for cell, found in cells.items() if "worth/" in cell
    }
    sites = {
        cell: float(np.mean([bool(w) for one in found for w in one["sites"]]))
        for cell, found in cells.items()
        if cell in yes
    }
    seconds = max((float(np.median([one["seconds"] for one in cells[cell]])) for cell in yes), default=0.0)
    alarms = {
        cell: (
            float(np.mean([one["warned"][0] for one in found])),
            float(np.mean([any(one["warned"][1:]) for one in found])),
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
            ["sites", "shift, noise deviations", "shifted site named", "another named"],
            [[*parts[cell], *(round(x, 3) for x in alarms[cell][:2])] for cell in alarms],
        ),
    ]
    return [table for table in tables if table.rows], list(claims(parts, yes, alarms, seconds))


def claims(parts, yes, alarms, seconds: float) -> Iterator[Claim]:
    """What must hold."""
    places = {cell: yes.pop(cell) for cell in list(yes) if parts[cell][0] in OFFSETS}
    for kind in dict.fromkeys(parts[cell][0] for cell in places):
        of = {cell: x for cell, x in places.items() if parts[cell][0] == kind}
        size = float(np.mean([x for cell, x in of.items() if parts[cell][-1] == "nothing"]))
        yield Claim(f"{kind}, nothing shared: at most 7 % yes over all cells", f"{size:.3f}", size <= MOST_YES)
        power = {cell: x for cell, x in of.items() if parts[cell][-1] == "half" and int(parts[cell][2]) >= 5}
        yield _worst(f"{kind}, half shared, five features or more: at least 80 % yes", power, 0.8, at_most=False)
    if not yes or not alarms:
        return
    nothing = {cell: x for cell, x in yes.items() if parts[cell][-1] == "nothing"}
    yield _worst("sites that share nothing: at most 7 % yes in every cell", nothing, MOST_YES, at_most=True)
    for shared, least in LEAST_POWER.items():
        power = {c: x for c, x in yes.items() if parts[c][-1] == shared and int(parts[c][1]) > 2}
        yield _worst(f"{shared} shared, three sites or more: at least {100 * least:.0f} % yes", power, least, False)
    clean = {cell: x[2] for cell, x in alarms.items() if parts[cell][-1] == "0"}
    overall = float(np.mean(list(clean.values())))
    text = f"honest sites: at most {100 * MOST_ALARMED:.0f} % of fusions have a warning"
    yield Claim(text, f"{100 * overall:.1f} % (by number of sites: {clean})", overall <= MOST_ALARMED)
    yield Claim("a verdict takes less than a second after the fit", f"{seconds:.2f} s in the slowest cell", seconds < 1)


def _worst(text: str, shares: dict[str, float], limit: float, at_most: bool) -> Claim:
    cell = (max if at_most else min)(shares, key=shares.__getitem__)
    holds = shares[cell] <= limit if at_most else shares[cell] >= limit
    return Claim(text, f"{shares[cell]:.3f} at worst ({cell})", bool(holds))


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="two sets per cell, small cells: seconds")
    parser.add_argument("--sets", type=int, help="per cell")
    parser.add_argument("--first", type=int, default=FIRST_SEED, help="the first seed")
    parser.add_argument("--cases", nargs="+", default=[""], help="beginnings of names: worth/offset, warned, ...")
    parser.add_argument("--out", type=Path, help="folder for results.json and tables.md")
    parser.add_argument("--jobs", type=int, default=1, help="sets side by side")
    options = parser.parse_args(words)
    options.sets = options.sets or (2 if options.smoke else SETS)
    options.out = options.out or Path("reproduced", *["smoke"] * options.smoke, "verdicts")
    return options


def main() -> None:
    """Measure, and write what came out."""
    options, about = arguments(), versions(modelweld)  # before the run: a checkout can change meanwhile
    chosen = [task for task in tasks(options) if task.name.startswith(tuple(options.cases))]
    measure("Verdicts that can say no", chosen, options, about, summary, options.jobs)


if __name__ == "__main__":
    main()
