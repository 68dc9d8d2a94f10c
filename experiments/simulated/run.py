"""The paper's simulated figures: distance of fused atoms over noise and over the number of sites, and hyperparameters.

See README.md for what is drawn, who is compared and what came out.

    python experiments/simulated/run.py            # 10 repeats: five CPU minutes
    python experiments/simulated/run.py --quick    # a few settings, one repeat
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # where study.py is

import warnings
from typing import Any

from contenders import FROM_KMEANS, FROM_TRUE, occurring, paper_figure_kmeans
from drawing import draw
from measures import best_possible, measured, rounded
from telling import summary

from modelweld import ModelweldWarning
from modelweld.demo.simulate import paper_figure
from study import Result, Study, Task, main, timed

SIGMAS, SITES_OVER_SIGMA = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0), 20  # the authors' own values
SITES, SIGMA_OVER_SITES = (10, 20, 50, 100, 200), 1.0  # the authors': 10, 15, 20, 30, 40, ..., 100
MOST_KMEANS_SITES = 50  # that estimate their atoms: this takes nine tenths of all the time
HARDEST = (100, 10.0)  # beyond the figures, from true local atoms
SEEDS = range(100, 110)  # settings were chosen on seeds below 100


def repeat(J: int, sigma: float, seed: int, kmeans: bool) -> Result:
    """Every contender on one draw."""
    drawn = (paper_figure_kmeans if kmeans else paper_figure)(J, sigma, seed=seed)
    present = occurring(drawn)
    result: dict[str, Any] = {"true K": len(present), "methods": {}}
    if not kmeans:
        result["told the atoms"] = best_possible(drawn, present, sigma)
    for name, contender in (FROM_KMEANS if kmeans else FROM_TRUE).items():
        with warnings.catch_warnings(action="ignore", category=ModelweldWarning):
            fusion, seconds = timed(contender, drawn)
        result["methods"][name] = {**measured(drawn, fusion, present, sigma), "seconds": rounded(seconds, 3)}
    return result


def tasks(quick: bool) -> list[Task]:
    """One task per setting, kind of local atoms and repeat; the smallest first."""
    figures = {(SITES_OVER_SIGMA, s) for s in SIGMAS} | {(J, SIGMA_OVER_SITES) for J in SITES}
    drawn = [(J, s, False) for J, s in {*figures, HARDEST}]
    drawn += [(J, s, True) for J, s in figures if J <= MOST_KMEANS_SITES]
    if quick:
        few = (5, 1.0), (20, 1.0), (20, 10.0)
        drawn = [(J, s, kmeans) for J, s in few for kmeans in (False, True)] + [(*HARDEST, False)]
    return [
        Task(f"{'kmeans' if kmeans else 'true'}/{J}/{sigma:g}/{seed}", repeat, (J, sigma, seed, kmeans))
        for J, sigma, kmeans in sorted(drawn, key=lambda d: (d[2], d))
        for seed in SEEDS[: 1 if quick else None]
    ]


TITLE = "Simulated atoms: noise, sites and hyperparameters"
QUESTION = (
    "How near do fused atoms come to the true ones as noise or the number of sites grows, and are the number of atoms "
    "and the hyperparameters found?"
)

if __name__ == "__main__":
    main(Study("simulated", TITLE, QUESTION, tasks, summary, draw=draw))
