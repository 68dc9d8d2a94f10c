"""How does the time of people who fit at home compare with one model of all frames, as there are more people?

python experiments/mocap/forty.py            # 2, 5, 10, 20 and 40 people of the database; a quarter of an hour of CPU
python experiments/mocap/forty.py --quick    # two people
python experiments/mocap/forty.py --accept   # keep the results here

Everyone fits at home, side by side: what counts is the slowest, and then the matching, `fuse(models).model()`. The full
model has the same frames in one place. Besides: which share of a fit goes to the first look, by which zeta is found.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from study import Claim, Results, Study, Summary, Table, Task, main  # isort: skip; first: it sets the threads

import time
import warnings
from collections.abc import Sequence
from typing import Any

from data import Person, database, pooled
from modelweld import fuse
from modelweld.hmm import StickyHDPHMM

PEOPLE = (2, 5, 10, 20, 40)
HELD_OUT = 4
"""Every fourth take of a person is held out, the last of each four; their likelihood stands beside the time."""
MOST_STATES = 80
"""Of the model of all frames."""
LOOKED_AT = 5
"""People whose fits are made again, told zeta: what the first look takes."""
HALF_FROM = 5
"""People from whom on half of the full model's time is meant to suffice."""


def fitted(person: Person, **settings: Any) -> tuple[Any, float]:
    """A model of frames, and the CPU seconds of its fit."""
    begun = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = StickyHDPHMM(random_state=0, **settings).fit(person.X, person.lengths)
    return model, time.process_time() - begun


def fused(models: Sequence[Any]) -> tuple[Any, float]:
    """The model of all models, and the CPU seconds it takes."""
    begun = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = fuse(list(models)).model()
    return model, time.process_time() - begun


def timed(number: int) -> dict[str, Any]:
    """The first so many people of the database."""
    people = database(least_takes=HELD_OUT)[:number]
    seen = [p.sequences(s for s in range(len(p.lengths)) if s % HELD_OUT != HELD_OUT - 1) for p in people]
    new = pooled(p.sequences(range(HELD_OUT - 1, len(p.lengths), HELD_OUT)) for p in people)
    fused([fitted(seen[0].sequences([0]))[0]] * 2)  # compiles
    models, seconds = zip(*(fitted(p) for p in seen), strict=True)
    told = [fitted(p, zeta=m.zeta_)[1] for p, m in zip(seen[:LOOKED_AT], models[:LOOKED_AT], strict=True)]
    model, matching = fused(models)
    full, whole = fitted(pooled(seen), n_states=MOST_STATES)
    return {
        "frames": [len(p.X) for p in seen],
        "K": {"local": [m.n_states_ for m in models], "fused": model.n_states_, "full": full.n_states_},
        "seconds": {"local": list(seconds), "zeta told": told, "matching": matching, "full": whole},
        "likelihood": {n: m.score(new.X, new.lengths) / len(new.X) for n, m in (("fused", model), ("full", full))},
    }


def share(seconds: dict[str, Any]) -> float:
    """Of the full model's time: the slowest person, and the matching."""
    return float((max(seconds["local"]) + seconds["matching"]) / seconds["full"])


def tasks(quick: bool) -> list[Task]:
    """The shortest first."""
    return [Task(f"{n} people", timed, (n,)) for n in (PEOPLE[:1] if quick else PEOPLE)]


def summary(results: Results) -> Summary:
    """A row per number of people."""
    rows, claims = [], []
    for name, r in results.items():
        t, K, score = r["seconds"], r["K"], r["likelihood"]
        first = 1 - sum(t["zeta told"]) / sum(t["local"][:LOOKED_AT])
        times = [f"{s:.2f}" for s in (sum(t["local"]), max(t["local"]), t["matching"], t["full"], share(t), first)]
        states = f"{sum(K['local'])}, {K['fused']}, {K['full']}"
        told = [f"{score[n]:.2f}" for n in ("fused", "full")]
        rows.append([name, f"{sum(r['frames']):,}", states, *times, *told])
        if int(name.split()[0]) >= HALF_FROM:
            full = f"of a full model that begins with {MOST_STATES} states"
            text = f"{name}: the slowest and the matching take less than half of the time {full}."
            claims.append(Claim(text, f"{share(t):.2f} of it", share(t) < 0.5))
    columns = ["", "frames", "states: local, fused, full", "all local fits", "slowest", "matching", "full", "share"]
    columns += ["of a fit, the first look", "held out: fused", "full"]
    note = (
        "CPU seconds, one run each; share: slowest and matching to full. Held out: log likelihood per frame of every "
        f"fourth take. The full model begins with {MOST_STATES} states, local ones with 40: that, too, takes its time."
    )
    return Summary([Table("CPU seconds as there are more people", columns, rows, note)], claims)


STUDY = Study(
    name="mocap/forty",
    title="Movements: time at home beside one model of all frames",
    question="Two to forty people of the database fit at home and fuse: how long does it take beside one model of all "
    "frames?",
    tasks=tasks,
    summary=summary,
    draw=lambda results, folder: [],
    needs={},
)

if __name__ == "__main__":
    main(STUDY)
