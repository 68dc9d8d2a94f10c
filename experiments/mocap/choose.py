"""Where the settings of the study come from: other people's takes and simulated sequences, never its two people.

How much a frame counts: with tau the autocorrelation time within the states of a fit that takes frames for independent,
zeta = 1 / (1 + a (tau - 1)). That fit cuts movements too finely, so tau is too short, and a is above one. And: by what
should states of two models be matched?

python experiments/mocap/choose.py            # 12 sessions, 24 pairs; into reproduced/mocap/choice
python experiments/mocap/choose.py --quick    # one of each
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from study import Results, Study, Summary, Table, Task, main  # isort: skip; first: it sets the threads

import warnings
from typing import Any

import numpy as np
from matchings import FUSIONS, disjoint, paths_of, relabelled, scores
from sessions import pairs, sessions

from data import Person, pooled
from modelweld.errors import ModelweldWarning
from modelweld.hmm import StickyHDPHMM
from simulated import CASES, simulated

SLOPES = (1.0, 1.4, 1.8, 2.4)
"""Values of a."""


def fits(person: Person) -> dict[float, Any]:
    """Models by slope; tau is measured once."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelweldWarning)
        tau = StickyHDPHMM(zeta="auto", random_state=0).fit(person.X, person.lengths).correlation_time_
        return {
            a: StickyHDPHMM(zeta=1 / (1 + a * (tau - 1)), random_state=0).fit(person.X, person.lengths) for a in SLOPES
        }


def alone(person: Person) -> dict[str, Any]:
    """How well a person's own states follow the activities, by slope."""
    return {
        "rows": {
            str(a): {"zeta": m.zeta_, **scores(person.activity, m.predict(person.X, person.lengths))}
            for a, m in fits(person).items()
        }
    }


def session_task(number: int) -> dict[str, Any]:
    """A session of a person of the database."""
    return alone(sessions()[number])


def simulated_task(case: str, seed: int) -> dict[str, Any]:
    """Frames drawn from known states."""
    return alone(simulated(case, seed))


def pair_task(number: int) -> dict[str, Any]:
    """Two sessions: every matching of their states, by slope."""
    both = pairs()[number]
    everyone = pooled(both)
    models = [fits(p) for p in both]
    rows: dict[str, dict[str, Any]] = {}
    for a in SLOPES:
        locals_ = [m[a] for m in models]
        paths = paths_of(locals_, both)
        rows[str(a)] = {"local models": scores(everyone.activity, disjoint(paths))}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ModelweldWarning)
            for name, method in FUSIONS.items():
                rows[str(a)][name] = scores(everyone.activity, relabelled(method(locals_), paths))
    return {"rows": rows}


def tasks(quick: bool) -> list[Task]:
    """One per session, pair and simulated set."""
    numbers = (range(1), range(1)) if quick else (range(0, len(sessions()), 4), range(len(pairs())))
    seeds = range(1 if quick else 3)
    return [
        *(Task(f"pair {n}", pair_task, (n,)) for n in numbers[1]),
        *(Task(f"session {n}", session_task, (n,)) for n in numbers[0]),
        *(Task(f"{case} {seed}", simulated_task, (case, seed)) for case in CASES for seed in seeds),
    ]


def summary(results: Results) -> Summary:
    """By slope."""
    columns = ["", *(f"a = {a:g}" for a in SLOPES)]

    def means(chosen: list[Any]) -> list[str]:
        rows = ([r[a] for r in chosen] for a in map(str, SLOPES))
        return [f"{np.mean([s['hamming'] for s in r]):.3f} / {np.mean([s['ari'] for s in r]):.3f}" for r in rows]

    by_kind = {
        kind: [r["rows"] for name, r in results.items() if name.startswith(kind)] for kind in ("session", *CASES)
    }
    found = [[f"{kind} ({len(chosen)})", *means(chosen)] for kind, chosen in by_kind.items()]
    zeta = [["zeta, sessions", *(f"{np.mean([r[str(a)]['zeta'] for r in by_kind['session']]):.2f}" for a in SLOPES)]]
    both = [r["rows"] for name, r in results.items() if name.startswith("pair")]
    methods = [
        [name, *means([{a: rows[a][name] for a in rows} for rows in both])] for name in ("local models", *FUSIONS)
    ]
    return Summary(
        [
            Table(
                "One person: Hamming / ARI by slope a", columns, found + zeta, "Mean over sessions or simulated sets."
            ),
            Table(f"Pairs of sessions ({len(both)}): Hamming / ARI by matching and slope a", columns, methods),
        ]
    )


STUDY = Study(
    name="mocap/choice",
    title="Movements: how settings were chosen",
    question="How much does a frame count, and by what should states be matched? Asked of people not in the study.",
    tasks=tasks,
    summary=summary,
    draw=lambda results, folder: [],
    needs={},
)

if __name__ == "__main__":
    main(STUDY)
