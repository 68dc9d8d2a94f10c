"""How CPU time grows with the number of values N, stage by stage and family by family: exponents, from one command.

Atoms and sites stay as they are (twenty atoms in ten dimensions, about ten values per site); the number of sites
doubles until one call takes `LONGEST` seconds, twice at least. The exponent is the slope of log time in log N over the
last three sizes: one is linear. Stages are called by themselves on the true matching.

    python benchmarks/growth.py            # some minutes; writes growth.json
    python benchmarks/growth.py diagnose   # that stage alone; what is known of the others stays
    python benchmarks/growth.py --smoke    # seconds: does it run?
"""

from __future__ import annotations

import argparse
import json
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import modelweld
from families import Sites
from modelweld import Gaussian, LocalModel, simulate
from modelweld.core.board import Board
from modelweld.core.match import Plan
from modelweld.core.prior import Fragments
from modelweld.core.values import Stack, offsets_of
from modelweld.families.counts import Counts
from modelweld.families.directions import Directions
from modelweld.fit.effects.first_look import find_site_effects
from modelweld.fit.search.moves import LARGEST_TABLE, merge, split
from modelweld.fit.search.starts import agglomerate
from modelweld.fit.static_matcher import default_prior
from modelweld.inputs.stacks import stack_arrays
from modelweld.kinds.mixture import mixture
from recorded import commit, least_seconds, record

RECORD = Path(__file__).parent / "growth.json"

ATOMS, DIMENSIONS, NOISE, SPREAD = 20, 10, 1.0, 7.0

LONGEST = 0.5
"""Seconds of a call beyond which sites are not doubled again."""

MOST_SITES = 6_400

Job = Callable[[], object]


def plain(J: int) -> list[np.ndarray]:
    return simulate.sparse(ATOMS, J, DIMENSIONS, NOISE, SPREAD, 1, 1, seed=1).values


def with_errors(J: int) -> list[LocalModel]:
    return [LocalModel({"v": v}, {"v": ("atom", None)}, variance={"v": np.full(v.shape, 0.5)}) for v in plain(J)]


def mixtures(J: int) -> list[LocalModel]:
    return [mixture(v, np.ones(v.shape), np.full(len(v), 50.0), counted=True) for v in plain(J) if len(v)]


def board(J: int) -> Board:
    """At the true matching; one site in ten holds an atom in two pieces."""
    data, rng = simulate.sparse(ATOMS, J, DIMENSIONS, NOISE, SPREAD, 1, 1, seed=1), np.random.default_rng(0)
    values, labels = [], []
    for j, (v, held) in enumerate(zip(data.values, data.truth, strict=True)):
        twice = len(v) > 0 and j % 10 == 0
        values.append(np.concatenate([v, v[:1] + rng.normal(0, NOISE, (1, DIMENSIONS))]) if twice else v)
        labels.append(np.append(held, held[:1]) if twice else held)
    stacked = np.concatenate(values)
    stack = Stack(stacked, offsets_of([len(v) for v in values]), np.full(stacked.shape, 0.5))
    family = Gaussian().starts(stack)[0]
    made = Board([stack], [family], default_prior("auto"), Fragments(), np.concatenate(labels))
    made.learn()
    return made


def asked(sites: Callable[[int], Any], question: Callable[[modelweld.Fusion], object]) -> Callable[[int], Job]:
    """What is asked of a fusion, which is made before."""

    def prepare(J: int) -> Job:
        fusion = modelweld.fuse(sites(J))
        return lambda: question(fusion)

    return prepare


def fusing(sites: Callable[[int], Any], family: modelweld.Family | None = None) -> Callable[[int], Job]:
    """The default call."""

    def prepare(J: int) -> Job:
        values = sites(J)
        return lambda: modelweld.fuse(values, family)

    return prepare


def on_board(stage: Callable[[Board], object]) -> Callable[[int], Job]:
    """A stage of the search, on a board of its own each time."""

    def prepare(J: int) -> Job:
        made = board(J)
        return lambda: stage(made.at(made.labels.copy()))

    return prepare


def conditional(fusion: modelweld.Fusion) -> object:
    """How sure matches are, taking the others to be right: how large fusions are asked."""
    return fusion.confidence(how="conditional")


def page(fusion: modelweld.Fusion) -> object:
    with tempfile.TemporaryDirectory() as folder:
        return fusion.report(Path(folder) / "page.html", draws=False)


def effects(J: int) -> Job:
    matching, stack = modelweld.fuse(plain(J)).matching, stack_arrays(plain(J))
    return lambda: find_site_effects(stack, matching, Plan("auto"), lambda units: Gaussian())


STAGES: dict[str, tuple[Callable[[int], Job], int]] = {
    "fuse, plain values": (fusing(plain), 100),
    "fuse, standard errors (beyond 2,000 values)": (fusing(with_errors), 250),
    "fuse, mixtures (beyond 2,000 values)": (fusing(mixtures), 250),
    "fuse, Directions": (fusing(lambda J: Sites(ATOMS, DIMENSIONS, J, 1).unit(), Directions()), 50),
    "fuse, full covariances": (fusing(plain, Gaussian(shape="full")), 50),
    "fuse, Counts": (fusing(lambda J: Sites(ATOMS, 50, J, 1).counts(1.0), Counts()), 50),
    "split": (on_board(split), 50),
    "agglomeration (to 2,000 values)": (on_board(agglomerate), 25),
    "merge": (on_board(merge), 50),
    "site effects (up to 256 sites)": (effects, 50),
    "confidence, others taken for right": (asked(plain, conditional), 50),
    "diagnose": (asked(plain, lambda fusion: fusion.diagnosis.sites()), 50),
    "diagnose, standard errors": (asked(with_errors, lambda fusion: fusion.diagnosis.sites()), 50),
    "confidence, standard errors": (asked(with_errors, conditional), 50),
    "report": (asked(plain, page), 50),
    "sampler, ten draws": (asked(plain, lambda fusion: fusion.posterior.sample(10, chains=1, warm_up=0)), 50),
    "reduction": (asked(mixtures, lambda fusion: fusion.density.reduction()), 10),
}
"""What grows: how a call for J sites is prepared, and with how many sites to begin."""


def grow(name: str, largest: int) -> dict[str, Any]:
    """Seconds at each N, and the exponent at the end."""
    prepare, J = STAGES[name]
    N, seconds = [], []
    while largest >= J and not (len(seconds) > 2 and seconds[-1] > LONGEST):
        number = sum(map(len, plain(J)))
        if name.startswith("agglomeration") and number**2 > LARGEST_TABLE:
            break
        job = prepare(J)
        job()
        N.append(number)
        seconds.append(round(least_seconds(job, 3 if not seconds or seconds[-1] < 0.3 else 1), 5))
        J *= 2
    exponent = float(np.polyfit(np.log(N[-3:]), np.log(seconds[-3:]), 1)[0]) if len(N) > 1 else None
    return {
        "stage": name,
        "commit": commit(),
        "N": N,
        "seconds": seconds,
        "exponent": None if exponent is None else round(exponent, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--smoke", action="store_true", help="a small version that writes nothing")
    parser.add_argument("stages", nargs="*", help="only these")
    given = parser.parse_args()
    warnings.simplefilter("ignore", modelweld.ModelweldWarning)
    rows = {row["stage"]: row for row in json.loads(RECORD.read_text())["rows"]} if RECORD.exists() else {}
    for name in ["split", "reduction"] if given.smoke else given.stages or STAGES:
        row = grow(name, 50 if given.smoke else MOST_SITES)
        at = f"{row['seconds'][-1]:.3f} s at N = {row['N'][-1]:,}"
        print(f"{name}: exponent {row['exponent']}, {at}", flush=True)
        if not given.smoke:  # a run that is stopped leaves what it has measured, and what was measured before
            rows[name] = row
            kept = [rows[stage] for stage in STAGES if stage in rows]
            record(RECORD, "CPU seconds, one thread; slope of log time in log N over the last three sizes", kept)


if __name__ == "__main__":
    main()
