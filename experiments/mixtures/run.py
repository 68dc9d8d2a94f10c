"""How good is the mixture fused from the mixtures of several sites? Held-out log likelihood per row, at equal K.

python experiments/mixtures/run.py                  # four real sets, seeds 1 to 5; about fifteen minutes
python experiments/mixtures/run.py --only digits    # one set; the others' rows stay
python experiments/mixtures/run.py --smoke          # two small sets, one seed, nothing written
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # where provenance.py is

import argparse
import pickle
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
from rivals import Mixture, barycentre, em, kmeans, refitted, transport
from sets import SETS, Sites, digits, heart

from modelweld import BetaBernoulli, Fusion, Gaussian, LocalModel, Search, fuse
from modelweld.demo.metrics import adjusted_rand
from modelweld.families import Moments, Scatter
from modelweld.kinds.mixture import mixture
from modelweld.kinds.mixture_completion import merge_components
from modelweld.kinds.mixture_components import Components, parameters
from modelweld.kinds.mixture_density import log_likelihood
from modelweld.kinds.mixture_reduction import reduce_to
from provenance import keep, resumed
from shared.local_fits import fit_mixture
from shared.simulate_estimated import estimated_sites, independent

HERE = Path(__file__).parent
SEEDS = range(1, 6)  # settings were chosen on seeds 0 and 100 to 102
FRACTIONS = {"half": 2, "a fifth": 5, "a tenth": 10}  # of the union's number of components
FEWEST = 2
BARYCENTRE = "a fifth"  # its distances between Gaussians take longer than all other methods together
SIMULATED = 10  # sites

Rows = dict[str, dict[str, float]]


# ---------------------------------------------------------------- matchings


def stacked(models: Sequence[LocalModel]) -> Components:
    """Means, covariances and counts of all sites' components, one site below the other."""
    means, spreads, counts = (np.concatenate(parts) for parts in zip(*map(parameters, models), strict=True))
    return means, spreads, counts


def with_covariances(model: LocalModel, *, errors: bool) -> LocalModel:
    """A mixture whose covariances decide too: means with standard errors, or with the number of points as weight."""
    means, covariances, counts = parameters(model)
    return LocalModel(
        {"means": means, "covariances": covariances, "counts": counts},
        {"means": ("component", None), "covariances": ("component", None, None), "counts": ("component",)},
        variance={"means": model.variance["means"]} if errors else {},
        weight={"covariances": counts} if errors else {"means": counts, "covariances": counts},
        auxiliary=["counts"],
        kind="mixture",
        facts={"counted": True},
    )


def product(models: list[LocalModel]) -> Fusion:
    """Means with standard errors, and covariances with the number of points they are worth between sites learned."""
    local = [with_covariances(m, errors=True) for m in models]
    return fuse(local, {"means": Gaussian(), "covariances": Scatter()})


def pair(models: list[LocalModel]) -> Fusion:
    """Means and covariances under one number of points that is learned: means scatter as the component is wide."""
    local = [with_covariances(m, errors=False) for m in models]
    return fuse(local, {("means", "covariances"): Moments()})


def plain(models: list[LocalModel], **options: object) -> Fusion:
    """Means alone, nothing known of them."""
    return fuse([np.asarray(m.arrays["means"]) for m in models], **options)


SPAHM: dict[str, Callable[[list[LocalModel]], Fusion]] = {
    "SPAHM, paper": partial(plain, preset="paper"),
    "SPAHM, learned": partial(plain, prior=BetaBernoulli(), search=Search("plain", splits=False)),
}
OURS: dict[str, Callable[[list[LocalModel]], Fusion]] = {
    "means + errors": fuse,
    "means x covariances": product,
    "pair": pair,
}


# ---------------------------------------------------------------- measures


def score(mixture: Mixture, rows: np.ndarray) -> float:
    """Mean log density of rows."""
    return log_likelihood(mixture, rows, np.full(len(rows), 1 / len(rows)))


def at_its_own_size(sites: Sites, seed: int) -> tuple[Rows, dict[str, Fusion]]:
    """Every matching at the K it finds, with rivals of that size; and our fusions."""
    parts, rows, ours = stacked(sites.models), {}, {}
    for name, call in (SPAHM | OURS).items():
        began = time.process_time()
        fusion = call(sites.models)
        seconds = time.process_time() - began
        labels = np.unique(fusion.matching.stacked_labels, return_inverse=True)[1]
        K = int(labels.max()) + 1
        row = {"K": fusion.K, "size": K, "union": len(labels), "seconds": seconds}
        row["moments"] = score(merge_components(*parts, labels), sites.held_out)
        if name in OURS:
            ours[name] = fusion
            row["density"] = score(parameters(fusion.parameters("density")), sites.held_out)
        row["Runnalls"] = score(merge_components(*parts, reduce_to(*parts, K)), sites.held_out)
        row["k-means"] = score(kmeans(parts, K, seed), sites.held_out)
        row["transport"] = score(transport(parts, K, seed), sites.held_out)
        if sites.truth is not None:
            row["ARI"] = adjusted_rand([sites.truth], [labels])
        rows[name] = row
    return rows, ours


def at_equal_size(sites: Sites, ours: dict[str, Fusion], K: int, seed: int, size: str) -> dict[str, float]:
    """Every method, told K; our moments where the matching has at least as many atoms."""
    parts, out = stacked(sites.models), sites.held_out
    began = time.process_time()
    density = parameters(next(iter(ours.values())).parameters("density", K=K))
    seconds = time.process_time() - began
    result = {"ours, density": score(density, out)}
    for name, fusion in ours.items():
        if len(fusion.counts) >= K:
            result[f"ours, {name}, moments"] = score(parameters(fusion.parameters("moments", K=K)), out)
    result["Runnalls"] = score(merge_components(*parts, reduce_to(*parts, K)), out)
    began = time.process_time()
    result["draws + EM"] = score(refitted(parts, K, seed), out)
    result["seconds, draws + EM"], result["seconds, density"] = time.process_time() - began, seconds
    result["transport (CTD)"] = score(transport(parts, K, seed), out)
    result["k-means on means"] = score(kmeans(parts, K, seed), out)
    found = barycentre([parameters(m) for m in sites.models], K, seed) if size == BARYCENTRE else None
    if found is not None:
        result["barycentre (POT)"] = score(found, out)
    result["pooled EM (sees rows)"] = score(em(sites.rows, K, seed), out)
    return result


def references(sites: Sites) -> dict[str, float]:
    """Local models and their union."""
    local = [score(parameters(m), sites.held_out) for m in sites.models]
    whole = score(stacked(sites.models), sites.held_out)
    return {"mean local": float(np.mean(local)), "best local": max(local), "union": whole}


def measured(sites: Sites, seed: int) -> dict[str, Rows]:
    """Everything of one draw."""
    N = sum(m.sizes["component"] for m in sites.models)
    own, ours = at_its_own_size(sites, seed)
    told: Rows = {}
    for name, fraction in FRACTIONS.items():
        K = max(FEWEST, round(N / fraction))
        told[name] = {"K": K, **at_equal_size(sites, ours, K, seed, name)}
    return {"references": {"all": {"components": N, **references(sites)}}, "own": own, "told": told}


def identities(seed: int, J: int) -> Rows:
    """Matchings of simulated sites, whose components have a truth."""
    _, fits, fresh = estimated_sites(J, 8, np.random.default_rng(1000 + seed), independent, fit_mixture)
    models = [mixture(f.means, f.covariances, f.counts, counted=True) for f in fits]
    truth, rows = [f.truth for f in fits], {}
    for name, call in (SPAHM | OURS).items():
        fusion = call(models)
        found = len(np.unique(np.concatenate(truth)))
        labels = fusion.matching.stacked_labels
        rows[name] = {
            "ARI": adjusted_rand(truth, fusion.labels),
            "error in K": fusion.K - found,
            "moments": score(
                merge_components(*stacked(models), np.unique(labels, return_inverse=True)[1]),
                np.concatenate(fresh),
            ),
        }
    return rows


# ---------------------------------------------------------------- tables


def averaged(runs: list[Rows]) -> Rows:
    """Means over seeds, of rows and measures that all seeds have."""
    return {
        name: {
            measure: float(np.mean([run[name][measure] for run in runs]))
            for measure in runs[0][name]
            if all(measure in run[name] for run in runs)
        }
        for name in runs[0]
        if all(name in run for run in runs)
    }


def worst(runs: list[Rows], row: str, measure: str, against: str) -> float:
    """The least advantage over seeds."""
    return min(run[row][measure] - run[row][against] for run in runs)


def lines(results: dict[str, list[dict[str, Rows]]], simulated: dict[str, list[Rows]]) -> Iterator[str]:
    """All tables."""
    yield "# Measured tables\n\nWritten by `run.py`; the README says how to read them. Means over seeds.\n"
    yield "## At the K each matching finds\n"
    head = [
        "set",
        "matching",
        "K",
        "size",
        "union",
        "ARI",
        "moments",
        "density",
        "Runnalls",
        "transport",
        "k-means",
        "s",
    ]
    yield "| " + " | ".join(head) + " |\n" + "|---" * len(head) + "|"
    for name, runs in results.items():
        for matching, row in averaged([run["own"] for run in runs]).items():
            logs = (number(row.get(m), 3) for m in ("moments", "density", "Runnalls", "transport", "k-means"))
            sizes = (number(row[m], 1) for m in ("K", "size", "union"))
            cells = [name, matching, *sizes, number(row.get("ARI"), 3), *logs, number(row["seconds"], 1)]
            yield "| " + " | ".join(cells) + " |"
    yield "\n## At equal K\n"
    for name, runs in results.items():
        told = averaged([run["told"] for run in runs])
        all_of = averaged([run["references"] for run in runs])["all"]
        sizes = {size: f"{size} ({row['K']:.1f})" for size, row in told.items()}
        yield (
            f"\n**{name}** ({len(runs)} seeds): "
            + ", ".join(f"{what} {value:.3f}" for what, value in all_of.items())
            + "\n"
        )
        yield "| | " + " | ".join(sizes.values()) + " |\n" + "|---" * (len(sizes) + 1) + "|"
        methods = dict.fromkeys(m for row in told.values() for m in row if m != "K")
        for method in methods:
            digits = 1 if method.startswith("seconds") else 3
            yield f"| {method} | " + " | ".join(number(row.get(method), digits) for row in told.values()) + " |"
        least = (f"{worst([r['told'] for r in runs], size, 'ours, density', 'Runnalls'):+.3f}" for size in sizes)
        yield "| *density - Runnalls, worst seed* | " + " | ".join(least) + " |"
        least = (f"{worst([r['told'] for r in runs], size, 'ours, density', 'draws + EM'):+.3f}" for size in sizes)
        yield "| *density - draws + EM, worst seed* | " + " | ".join(least) + " |"
    yield "\n## Simulated sites, whose truth is known\n"
    yield "| sites | matching | ARI | error in K | moments |\n|---|---|---|---|---|"
    for name, draws in simulated.items():
        for matching, row in averaged(draws).items():
            yield f"| {name} | {matching} | {row['ARI']:.3f} | {row['error in K']:+.1f} | {row['moments']:.3f} |"


def number(value: float | None, digits: int) -> str:
    """A cell."""
    return "-" if value is None else f"{value:.{digits}f}"


# ---------------------------------------------------------------- running


def drawn(name: str, seed: int, cache: Path | None) -> Sites:
    """A draw of a set, from the cache folder if it is there."""
    path = None if cache is None else cache / f"{name}_{seed}.pickle"
    if path is not None and path.exists():
        return pickle.loads(path.read_bytes())
    sites = SETS[name](seed)
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(pickle.dumps(sites))
    return sites


def main() -> None:
    """Measure; write results.json and tables.md."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=list(SEEDS), help="default 1 to 5")
    parser.add_argument("--only", choices=[*SETS, "simulated"], help="one of the sets")
    parser.add_argument("--cache", type=Path, help="folder to keep the sites' fitted mixtures in")
    parser.add_argument("--smoke", action="store_true", help="two small sets, one seed, nothing written")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.smoke:
        small = {"heart": heart(0), "digits": digits(0, J=4, D=4)}
        print("\n".join(lines({name: [measured(s, 0)] for name, s in small.items()}, {"3 sites": [identities(0, 3)]})))
        return
    path = HERE / "results.json"
    before = resumed(path) if arguments.only else {"real": {}, "simulated": {}}
    real = {name: before["real"].get(name, []) if arguments.only not in (None, name) else [] for name in SETS}
    simulated = before["simulated"] if arguments.only not in (None, "simulated") else {f"{SIMULATED} sites": []}
    for seed in arguments.seeds:
        for name in SETS:
            if arguments.only in (None, name):
                real[name].append(measured(drawn(name, seed, arguments.cache), seed))
                print(f"{name}, seed {seed}", flush=True)
        if arguments.only in (None, "simulated"):
            simulated[f"{SIMULATED} sites"].append(identities(seed, SIMULATED))
        found = {name: runs for name, runs in real.items() if runs}
        keep(path, {"real": found, "simulated": simulated}, {"seeds": arguments.seeds})
        (HERE / "tables.md").write_text("\n".join(lines(found, simulated)) + "\n")


if __name__ == "__main__":
    main()
