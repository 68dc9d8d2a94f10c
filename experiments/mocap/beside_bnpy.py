"""bnpy's sticky HDP-HMM of all frames beside `fuse(models)` and our model of all frames, on the groups of `people.py`.

BNPY_PYTHON=bnpy-env/bin/python python experiments/mocap/beside_bnpy.py    # up to three people; 5 CPU minutes
... --quick                                                                # one start of the two people of the paper
... --accept                                                               # keep the results here

bnpy runs in a Python of its own (`fit_with_bnpy.py` says how to make one). What it is compared with is not fitted
again: the rows of `people/results.json`, group by group.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from study import Claim, Results, Study, Summary, Table, Task, main  # isort: skip; first: it sets the threads

import os
import subprocess
import tempfile
from collections.abc import Sequence
from typing import Any

import numpy as np
from matchings import scores
from people import FULL, OURS, groups, kinds

from data import Person, pooled, two_people
from paired import paired
from provenance import kept

HERE = Path(__file__).parent
OTHER_PYTHON = "BNPY_PYTHON"
STATES = 20
"""At most, as in the paper."""

SIZES = ("two people of the paper", "2 people", "3 people")


def decoded(people: Sequence[Person], seed: int) -> dict[str, Any]:
    """Scores of bnpy's path, and the seconds of its fit."""
    everyone = pooled(people)
    with tempfile.TemporaryDirectory() as home:
        frames, path = Path(home, "frames.npz"), Path(home, "path.npz")
        np.savez(frames, X=everyone.X, lengths=everyone.lengths, K=STATES, seed=seed)
        program = [os.environ[OTHER_PYTHON], str(HERE / "fit_with_bnpy.py"), str(frames), str(path)]
        subprocess.run(program, check=True, stdout=subprocess.DEVNULL)
        with np.load(path) as found:
            states, seconds = found["path"], float(found["seconds"])
    return {"rows": {"bnpy": scores(everyone.activity, states)}, "seconds": seconds}


def group_task(draw: int, number: int) -> dict[str, Any]:
    """A group of a draw."""
    return decoded(groups(draw)[number], 0)


def two_people_task(seed: int) -> dict[str, Any]:
    """The people of the paper, from one start."""
    return decoded(two_people(), seed)


def recorded() -> dict[str, Any]:
    """What `people.py` found."""
    return dict(kept(HERE / "people" / "results.json")["results"])


def tasks(quick: bool) -> list[Task]:
    """Groups that the record has, small ones."""
    found = []
    for name in recorded():
        kind, which = name.split("/")
        if kind == SIZES[0]:
            found.append(Task(name, two_people_task, (int(which),)))
        elif kind in SIZES:
            draw, number = map(int, which.split("."))
            found.append(Task(name, group_task, (draw, number)))
    return found[: 1 if quick else None]


def summary(results: Results) -> Summary:
    """Means, and ours and the full model less bnpy, group by group."""
    record, rows, claims = recorded(), [], []
    for kind, done in kinds(results).items():
        own = [record[name]["rows"] for name in results if name.startswith(f"{kind}/")]
        theirs = [r["rows"]["bnpy"] for r in done]
        cells = [f"{np.mean([t[m] for t in theirs]):.3f}" for m in ("hamming", "ari", "K")]
        seconds = f"{np.mean([r['seconds'] for r in done]):.1f}"
        for method in (OURS, FULL):
            less = paired([t["hamming"] for t in theirs], [r[method]["hamming"] for r in own])
            more = paired([r[method]["ari"] for r in own], [t["ari"] for t in theirs])
            rows.append([kind, *cells, seconds, method, str(less), less.verdict, str(more), more.verdict])
            if method == OURS:
                held = all(x.verdict != "behind" for x in (less, more))
                text = f"{kind}: {OURS} not behind bnpy of all frames (Hamming, ARI)."
                claims.append(Claim(text, f"Hamming less by {less}, ARI more by {more}", held))
    columns = [
        "",
        "bnpy: Hamming",
        "ARI",
        "states seen",
        "CPU s",
        "beside it",
        "Hamming, less by",
        "",
        "ARI, more by",
        "",
    ]
    note = "Mean difference with its 95 % interval; above zero is better for ours. bnpy 0.1.7 without its C++."
    return Summary([Table("bnpy's sticky HDP-HMM of all frames", columns, rows, note)], claims)


STUDY = Study(
    name="mocap/bnpy",
    title="Movements: bnpy's model of all frames beside ours",
    question="Is bnpy's sticky HDP-HMM of all frames a better segmentation than states that fuse matched?",
    tasks=tasks,
    summary=summary,
    draw=lambda results, folder: [],
    needs={},
)

if __name__ == "__main__":
    if OTHER_PYTHON not in os.environ and not {"--retell", "-h", "--help"} & set(sys.argv):
        sys.exit(f"error: set {OTHER_PYTHON} to a Python that has bnpy: fit_with_bnpy.py says how to make one.")
    main(STUDY)
