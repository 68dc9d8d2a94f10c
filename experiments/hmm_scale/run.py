"""Does the surplus of states grow with the number of sites? Simulated people, each with a hidden Markov model.

See README.md for what is drawn, who is compared and what came out.

    python experiments/hmm_scale/run.py            # 5 seeds, 10, 25 and 50 sites
    python experiments/hmm_scale/run.py --quick    # one seed, 5 and 10 sites
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # where study.py is

import time
import warnings
from typing import Any

from contenders import CONTENDERS, POOLED, first_sites, true_K
from drawing import draw
from telling import summary

from modelweld import ModelweldWarning
from modelweld.demo.metrics import adjusted_rand
from shared import simulate
from shared.measures import hamming
from study import Result, Study, Task, main

SITES, STATES_PER_SITE = (10, 25, 50), 8
MOST_POOLED = 10  # sites; beyond, one model of all frames takes longer than all the rest
SEEDS = range(200, 205)  # fresh: defaults were chosen on others


def repeat(seed: int, sites: tuple[int, ...]) -> Result:
    """Every contender on the first 10, 25, ... of the same sites, with the CPU time of local models beside."""
    began = time.process_time()
    drawn = simulate.estimated_hmms(max(sites), STATES_PER_SITE, seed=seed)
    local_seconds = (time.process_time() - began) / max(sites)
    return {str(J): compared(first_sites(drawn, J), local_seconds * J) for J in sites}


def compared(drawn: simulate.Simulated, local_seconds: float) -> dict[str, Any]:
    """Number of states, agreement of frames and of local states, and CPU seconds."""
    assert drawn.origin is not None
    methods: dict[str, Any] = {}
    for name, contender in CONTENDERS.items():
        if name == POOLED and len(drawn.values) > MOST_POOLED:
            continue
        began = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ModelweldWarning)
            answer = contender(drawn)
        methods[name] = {
            "seconds": round(time.process_time() - began, 4),
            "K": answer.K,
            "hamming": round(hamming(drawn.origin, answer.frames), 5),
            "ari": round(adjusted_rand(drawn.origin, answer.frames), 5),
        }
        if answer.states is not None:
            methods[name]["ari of states"] = round(adjusted_rand(drawn.stacked_truth, answer.states), 5)
    return {"true K": true_K(drawn), "local seconds": round(local_seconds, 3), "methods": methods}


def tasks(quick: bool) -> list[Task]:
    """One task per seed: fewer sites are the first of more."""
    if quick:
        return [Task(f"seed/{SEEDS[0]}", repeat, (SEEDS[0], (5, 10)))]
    return [Task(f"seed/{seed}", repeat, (seed, SITES)) for seed in SEEDS]


if __name__ == "__main__":
    main(
        Study(
            name="hmm_scale",
            title="Hidden Markov models of many sites",
            question="Are 20 states found from 10, 25 and 50 sites that each saw 8 of them and estimated their own "
            "model, without being told how many there are?",
            tasks=tasks,
            summary=summary,
            draw=draw,
            needs={"matplotlib": "studies", "hmmlearn": "hmm"},
        )
    )
