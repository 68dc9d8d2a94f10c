"""How good is the mixture fused from the mixtures of several sites? Held-out log likelihood per row, at equal K.

python experiments/mixtures/run.py                  # four real sets, seeds 1 to 5; five CPU minutes
python experiments/mixtures/run.py --smoke          # two small sets, one seed
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from study import Result, Results, Study, Summary, Table, Task, by_cell, main, not_behind  # isort: skip; first: it sets the threads

import warnings
from collections.abc import Sequence

import numpy as np
from rivals import Mixture, em, kmeans, refitted
from sets import SETS, Sites

from modelweld import Fusion, LocalModel, fuse
from modelweld.kinds.mixture_completion import merge_components
from modelweld.kinds.mixture_components import Components, parameters
from modelweld.kinds.mixture_density import log_likelihood
from modelweld.kinds.mixture_reduction import reduce_to
from paired import paired

SEEDS = range(1, 6)  # settings were chosen on seeds 0 and 100 to 102
FRACTIONS = {"half": 2, "a fifth": 5, "a tenth": 10}  # of the union's number of components
FEWEST = 2
OURS, HOME, OFF = "ours, density", "ours, rows on their sites' scales", "ours, no site effects"
RUNNALLS, DRAWS = "Runnalls", "draws + EM"


def stacked(models: Sequence[LocalModel]) -> Components:
    """Means, covariances and counts of all sites' components, one site below the other."""
    means, spreads, counts = (np.concatenate(parts) for parts in zip(*map(parameters, models), strict=True))
    return means, spreads, counts


def score(mixture: Mixture, rows: np.ndarray) -> float:
    """Mean log density of rows."""
    return log_likelihood(mixture, rows, np.full(len(rows), 1 / len(rows)))


def at_home(fusion: Fusion, out: Sequence[np.ndarray], K: int) -> float:
    """Mean log density of rows, each on the scale of its site; on the common one where rows are of no site."""
    sites = fusion.sites if len(out) == len(fusion.sites) else [None]
    models = [parameters(fusion.parameters("density", K=K, site=site)) for site in sites]
    scores = [score(model, rows) for model, rows in zip(models, out, strict=True)]
    return float(np.average(scores, weights=[len(rows) for rows in out]))


def measured(name: str, seed: int, options: dict[str, int]) -> Result:
    """Everything of one draw: local models, their union, the bare call at its own size, all methods at equal size."""
    warnings.simplefilter("ignore")
    sites: Sites = SETS[name](seed, **options)
    out, parts, fusion = np.concatenate(sites.out), stacked(sites.models), fuse(sites.models)
    alike = fuse(sites.models, site_effects=False)
    labels = np.unique(fusion.matching.stacked_labels, return_inverse=True)[1]
    size, N = int(labels.max()) + 1, len(labels)
    local = [score(parameters(m), out) for m in sites.models]
    own = {
        "K": fusion.K,
        "size": size,
        "moments": score(merge_components(*parts, labels), out),
        "density": score(parameters(fusion.parameters("density")), out),
        RUNNALLS: score(merge_components(*parts, reduce_to(*parts, size)), out),
    }
    told = {}
    for share, fraction in FRACTIONS.items():
        K = max(FEWEST, round(N / fraction))
        told[share] = {
            "K": K,
            OURS: score(parameters(fusion.parameters("density", K=K)), out),
            HOME: at_home(fusion, sites.out, K),
            OFF: score(parameters(alike.parameters("density", K=K)), out),
            RUNNALLS: score(merge_components(*parts, reduce_to(*parts, K)), out),
            DRAWS: score(refitted(parts, K, seed), out),
            "k-means on means": score(kmeans(parts, K, seed), out),
            "pooled EM (sees rows)": score(em(sites.rows, K, seed), out),
        }
    references = {"components": N, "mean local": float(np.mean(local)), "best local": max(local)}
    return {"references": {**references, "union": score(parts, out)}, "own": own, "told": told}


def tasks(quick: bool) -> list[Task]:
    """One per set and seed."""
    few = [("heart", 0, {}), ("digits", 0, {"J": 4, "D": 4})]
    chosen = few if quick else [(name, seed, {}) for name in SETS for seed in SEEDS]
    return [Task(f"{name}/{seed}", measured, (name, seed, options)) for name, seed, options in chosen]


def summary(results: Results) -> Summary:
    """Means over seeds, and density less its rivals, draw by draw."""
    tables, own = [], []
    for name, runs in by_cell(results).items():
        own.append([name, *(f"{np.mean([r['own'][c] for r in runs]):.3f}" for c in runs[0]["own"])])
        told = [r["told"] for r in runs]
        means = {size: {m: np.mean([t[size][m] for t in told]) for m in row} for size, row in told[0].items()}
        rows = [[m, *(f"{row[m]:.3f}" for row in means.values())] for m in means["half"] if m != "K"]
        for rival in (RUNNALLS, DRAWS):
            least = (min(t[size][OURS] - t[size][rival] for t in told) for size in means)
            rows.append([f"density - {rival}, worst seed", *(f"{x:+.3f}" for x in least)])
        alone = {what: np.mean([r["references"][what] for r in runs]) for what in runs[0]["references"]}
        note = ", ".join(f"{what} {value:.3f}" for what, value in alone.items())
        sizes = [f"{size} ({row['K']:.1f})" for size, row in means.items()]
        tables.append(Table(f"{name}, {len(runs)} seeds, at equal K", ["", *sizes], rows, f"{note}."))
    columns = ["set", "K", "size", "moments", "density", RUNNALLS]
    tables.append(Table("The bare call at the size it finds", columns, own, "K counts groups, size all components."))
    claims, told = [], [list(r["told"].values()) for r in results.values()]
    drawn = {m: [np.mean([t[m] for t in of]) for of in told] for m in (OURS, OFF, RUNNALLS, DRAWS)}
    for rival in (RUNNALLS, DRAWS):
        for ours, how in ((OURS, "the bare call"), (OFF, "`site_effects=False`")):
            text = f'`how="density"`, {how}, is level with or ahead of {rival} at equal size (nats per row).'
            gain = paired(drawn[ours], drawn[rival])
            claims.append(not_behind(text, gain, f"{len(results)} draws: 4 sets, 5 seeds; mean over sizes"))
    return Summary(tables, claims)


TITLE = "Mixtures of several sites as one, at equal size"
QUESTION = (
    "How good is the mixture fused from the mixtures of several sites, at equal size, beside others that see the same?"
)

if __name__ == "__main__":
    main(Study("mixtures", TITLE, QUESTION, tasks, summary))
