"""How well does `fuse` find which local parameters belong together, and how many atoms there are?

Every method meets every simulated set, seed by seed; see README.md for what is measured and how to read it.

    python experiments/strength/run.py                   # all sets, 20 seeds
    python experiments/strength/run.py --only g_J50      # one set; its rows replace those of an earlier run
    python experiments/strength/run.py --smoke           # two tiny sets, one seed, a few seconds

Sites that estimate their models take longest to draw; they are kept in a cache folder and drawn once.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy: CPU seconds should mean one core

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # where provenance.py is

import argparse
import json
import math
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist
from scipy.stats import chi2

from mixtures import Mixture, log_likelihood, merged
from modelweld import BetaBernoulli, Fusion, Gaussian, LocalModel, ModelweldWarning, Search, fuse
from modelweld.demo.metrics import adjusted_rand
from modelweld.demo.simulate import Simulated
from provenance import keep, resumed
from shared import simulate
from shared.baselines import kmeans_matching
from shared.measures import hamming

HERE = Path(__file__).parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "modelweld" / "strength"
MOST_SITES = 50  # estimated sites are nested: fewer sites are the first of these
SAME_ATOM = 0.99  # share of pairs of values of one atom that DP-means should keep together
RIDGE = 0.01  # added to the variances of local components: a hidden Markov model's can be singular
BY_COMPONENT, BY_POINT = ("values", "truth", "counts", "covariances"), ("origin", "assigned", "fresh")
TOLERANCE = {"ari": 0.01, "error_in_k": 0.5}  # beyond this, a mean differs from what expected.json says


# ---------------------------------------------------------------- sets


class Job(NamedTuple):
    """A set of the study: how it is drawn, its noise deviation, at most how many seeds, methods for it alone."""

    draw: Callable[..., Simulated]
    noise: float
    seeds: int = 20
    extra: tuple[str, ...] = ()

    @property
    def methods(self) -> tuple[str, ...]:
        """What meets this set; methods for it alone go first."""
        return (*self.extra, *METHODS)


def estimated(kind: str, J: int, K_local: int, most: int, *, seed: int, cache: Path | None) -> Simulated:
    """The first J of `most` estimated sites, from the cache if they have been drawn before."""
    draw = {"g": simulate.estimated_mixtures, "h": simulate.estimated_hmms}[kind]
    if cache is None:
        return first_sites(draw(most, K_local, seed=seed), J)
    path = cache / f"{kind}_K{K_local}_J{most}_seed{seed}.npz"
    if not path.exists():
        drawn = draw(most, K_local, seed=seed)
        columns = {name: np.concatenate(getattr(drawn, name)) for name in (*BY_COMPONENT, *BY_POINT)}
        lengths = {"sizes": list(map(len, drawn.values)), "lengths": list(map(len, drawn.origin or []))}
        cache.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(f".{os.getpid()}.npz")  # other processes see the file whole or not at all
        np.savez(part, atoms=drawn.atoms, **lengths, **columns)
        part.replace(path)
    with np.load(path) as kept:
        columns = {
            name: np.split(kept[name], np.cumsum(kept[lengths])[:-1])
            for names, lengths in ((BY_COMPONENT, "sizes"), (BY_POINT, "lengths"))
            for name in names
        }
        return first_sites(Simulated(atoms=kept["atoms"], **columns), J)


def first_sites(drawn: Simulated, J: int) -> Simulated:
    """The first J sites of estimated ones, without the points they learned from."""
    return Simulated(atoms=drawn.atoms, **{name: getattr(drawn, name)[:J] for name in (*BY_COMPONENT, *BY_POINT)})


def study(cache: Path) -> dict[str, Job]:
    """Every set by name."""
    correlated = [0.4 * math.sqrt(np.geomspace(0.05, 8, D).mean()) for D in (10, 30)]
    sets = {
        f"{kind}_J{J}": Job(partial(estimated, kind, J, 8, MOST_SITES, cache=cache), 0.5, extra=REFERENCES)
        for kind in "gh"
        for J in (5, 10, 25, 50)
    }
    for K in (4, 16):
        sets[f"g_K{K}_J10"] = Job(partial(estimated, "g", 10, K, 10, cache=cache), 0.5, 10, REFERENCES)
    noise = {
        "low_J8_D2": 0.2, "low_J10_D3": 0.2, "low_J10_D5": 0.7, "low_J10_D10": 0.5,
        "noisy_J20": 10.0, "noisy_J100": 10.0,
        "correlated_D10": correlated[0], "correlated_D30": correlated[1],
        "diagonal_D10": correlated[0], "diagonal_D30": correlated[1],
        "standard_errors": 0.4, "over_segmented": 0.4,
        "poisoned_gross": 0.4, "poisoned_junk": 0.4, "poisoned_shift": 0.4,
        "all_together": correlated[0],
    }  # fmt: skip
    for name, deviation in noise.items():
        full = ("ours, full",) if name.startswith(("correlated", "diagonal")) else ()
        sets[name] = Job(simulate.SETS[name], deviation, extra=full)
    return sets


def smoke() -> dict[str, Job]:
    """Two tiny sets: one clean, one estimated."""
    return {
        "tiny_sparse": Job(partial(simulate.sparse, 8, 6, 3, 0.2, 4.0, 1.0, 1.0), 0.2, 1, ("ours, full",)),
        "tiny_mixtures": Job(partial(estimated, "g", 5, 3, 5, cache=None), 0.5, 1, REFERENCES),
    }


# ---------------------------------------------------------------- methods


@dataclass
class Answer:
    """What a method says: atoms, the first K of them counted; the label of every value; sites at each atom."""

    labels: np.ndarray
    atoms: np.ndarray
    support: np.ndarray
    K: int
    delta: float = math.nan

    @classmethod
    def of(cls, fusion: Fusion) -> Answer:
        """The answer of a fusion."""
        matching = fusion.matching
        return cls(matching.stacked_labels, fusion.atoms, matching.counts, matching.K, matching.delta)

    @classmethod
    def by_labels(cls, drawn: Simulated, labels: np.ndarray) -> Answer:
        """The answer of a clustering whose label -1 means: set aside; atoms are means."""
        aside, names = labels < 0, np.unique(labels[labels >= 0])
        labels = np.where(aside, len(names) + np.cumsum(aside) - 1, np.searchsorted(names, labels))
        values = np.concatenate(drawn.values)
        atoms = np.array([values[labels == k].mean(axis=0) for k in range(labels.max() + 1)])
        site = np.repeat(np.arange(len(drawn.values)), [len(v) for v in drawn.values])
        support = np.array([len(np.unique(site[labels == k])) for k in range(len(atoms))])
        return cls(labels, atoms, support, len(names))


def with_standard_errors(drawn: Simulated) -> list[LocalModel] | None:
    """What a site sends that knows how well it knows: values and squared standard errors; None if it does not."""
    variance = drawn.variance
    if variance is None and drawn.covariances is not None and drawn.counts is not None:
        variance = [
            np.diagonal(covariance, axis1=1, axis2=2) / np.maximum(count, 1.0)[:, None]
            for covariance, count in zip(drawn.covariances, drawn.counts, strict=True)
        ]
    if variance is None:
        return None
    axes = {"means": ("component", None)}
    return [
        LocalModel({"means": values}, axes, variance={"means": squares})
        for values, squares in zip(drawn.values, variance, strict=True)
    ]


def ours(drawn: Simulated) -> Answer:
    """Our defaults, with all that a site can send."""
    return Answer.of(fuse(with_standard_errors(drawn) or drawn.values))


def kmeans_told_k(drawn: Simulated) -> Answer:
    """k-means of all values, told how many atoms there are (values of junk count as atoms)."""
    return replace(Answer.of(kmeans_matching(drawn.values, len(np.unique(drawn.stacked_truth)))), delta=math.nan)


def dp_means(drawn: Simulated) -> Answer:
    """DP-means (Kulis and Jordan 2012): a value further than the penalty from all centres opens a new one.

    The penalty is told the true noise: 99 % of pairs of values of one atom are nearer to each other than that.
    """
    X = np.concatenate(drawn.values)
    off = ((X - drawn.atoms[drawn.stacked_truth]) ** 2).sum(axis=1)[honest_rows(drawn)]
    penalty = 2 * np.median(off) / chi2.ppf(0.5, X.shape[1]) * chi2.ppf(SAME_ATOM, X.shape[1])
    centres, labels = X.mean(axis=0, keepdims=True), np.full(len(X), -1)
    for _ in range(100):
        before = labels.copy()
        for i, x in enumerate(X):
            distance = ((centres - x) ** 2).sum(axis=1)
            labels[i] = distance.argmin()
            if distance.min() > penalty:
                labels[i], centres = len(centres), np.vstack([centres, x])
        _, labels = np.unique(labels, return_inverse=True)
        centres = np.array([X[labels == k].mean(axis=0) for k in range(labels.max() + 1)])
        if np.array_equal(labels, before):
            break
    return Answer.by_labels(drawn, labels)


def hdbscan(drawn: Simulated) -> Answer:
    """HDBSCAN of all values; what it calls noise is set aside."""
    from sklearn.cluster import HDBSCAN

    return Answer.by_labels(drawn, HDBSCAN(min_cluster_size=2, copy=True).fit_predict(np.concatenate(drawn.values)))


METHODS: dict[str, Callable[[Simulated], Answer]] = {
    "paper": lambda drawn: Answer.of(fuse(drawn.values, preset="paper")),
    "plain": lambda drawn: Answer.of(fuse(drawn.values, prior=BetaBernoulli(), search=Search("plain", splits=False))),
    "ours, means only": lambda drawn: Answer.of(fuse(drawn.values)),
    "ours, copies": lambda drawn: Answer.of(fuse(drawn.values, search=Search(splits=True))),
    "ours": ours,
    "k-means told K": kmeans_told_k,
    "DP-means": dp_means,
    "HDBSCAN": hdbscan,
}
EXTRA: dict[str, Callable[[Simulated], Answer]] = {
    "ours, full": lambda drawn: Answer.of(fuse(drawn.values, Gaussian(shape="full"))),
    "true labels": lambda drawn: Answer.by_labels(drawn, drawn.stacked_truth),
    "union": lambda drawn: Answer.by_labels(drawn, np.arange(len(drawn.stacked_truth))),
}
REFERENCES = ("true labels", "union")  # what the best matching would do with these local models, and none at all
SHOWN = (*METHODS, "ours, full")


# ---------------------------------------------------------------- measures

MEASURES = {
    "ari": "ARI",
    "error_in_k": "error in K",
    "hamming": "wrong points",
    "held_out": "held-out LL",
    "loss": "loss",
    "rms_1": "RMS error, 1 site",
    "rms_2": "2-3 sites",
    "rms_4": ">= 4 sites",
    "aside": "set aside",
    "delta": "delta",
    "cpu": "CPU s",
}


def honest_rows(drawn: Simulated) -> np.ndarray:
    """Which values come from honest sites."""
    honest = np.ones(len(drawn.values), bool) if drawn.honest is None else drawn.honest
    return np.repeat(honest, [len(values) for values in drawn.values])


def measures(drawn: Simulated, answer: Answer, noise: float) -> dict[str, float]:
    """All measures but time and loss."""
    X, truth, honest = np.concatenate(drawn.values), drawn.stacked_truth, honest_rows(drawn)
    labels, aside = answer.labels.copy(), answer.labels >= answer.K
    if aside.any() and answer.K:
        labels[aside] = cdist(X[aside], answer.atoms[: answer.K]).argmin(axis=1)
    squares: dict[str, list[float]] = {"rms_1": [], "rms_2": [], "rms_4": []}
    for k in range(answer.K):
        members = truth[(answer.labels == k) & honest]
        if len(members):
            names, number = np.unique(members, return_counts=True)
            candidates = drawn.atoms[names[number == number.max()]]  # most of its values are of this true atom
            error = ((candidates - answer.atoms[k]) ** 2).mean(axis=1).min() / noise**2
            supporters = answer.support[k]
            squares["rms_1" if supporters < 2 else "rms_2" if supporters < 4 else "rms_4"].append(error)
    return {
        "ari": adjusted_rand(truth[honest], labels[honest]),
        "error_in_k": answer.K - drawn.K,
        "hamming": wrong_points(drawn, labels),
        "held_out": held_out(drawn, answer.labels),
        **{name: math.sqrt(np.mean(found)) if found else math.nan for name, found in squares.items()},
        "aside": int(aside.sum()),
        "delta": answer.delta,
    }


def wrong_points(drawn: Simulated, labels: np.ndarray) -> float:
    """Share of points whose atom is wrong; a point has the label of the local component its site gives it to."""
    if drawn.assigned is None or drawn.origin is None:
        return math.nan
    of_site = np.split(labels, np.cumsum([len(values) for values in drawn.values])[:-1])
    found = [own[assigned] for own, assigned in zip(of_site, drawn.assigned, strict=True)]
    return hamming(np.concatenate(drawn.origin), np.concatenate(found))


def held_out(drawn: Simulated, labels: np.ndarray) -> float:
    """Log likelihood of a fresh point in the mixture of what the labels put together; set aside is not left out."""
    if drawn.fresh is None or drawn.counts is None or drawn.covariances is None:
        return math.nan
    covariances = np.concatenate(drawn.covariances) + RIDGE * np.eye(drawn.atoms.shape[1])
    parts = Mixture(np.concatenate(drawn.values), covariances, np.maximum(np.concatenate(drawn.counts), 1.0))
    return float(log_likelihood(merged(parts, labels), np.concatenate(drawn.fresh)).mean())


def measured(name: str, seed: int, job: Job) -> dict[str, dict[str, Any]]:
    """Every method's measures on one draw; a method that fails has none, and says why."""
    drawn = job.draw(seed=seed)
    rows: dict[str, dict[str, Any]] = {}
    for method in job.methods:
        if method == "ours" and with_standard_errors(drawn) is None and "ours, means only" in rows:
            rows[method] = rows["ours, means only"]  # the very same call
            continue
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            start = time.process_time()
            try:
                answer = (METHODS | EXTRA)[method](drawn)
            except Exception as error:
                rows[method] = {"failed": f"{name}, seed {seed}, {method}: {type(error).__name__}: {error}"}
                continue
            cpu = time.process_time() - start
        found = measures(drawn, answer, job.noise)
        best = rows.get("true labels", found)["held_out"]
        rows[method] = {
            **found,
            "loss": best - found["held_out"],
            "cpu": cpu,
            "warnings": sorted({w.category.__name__ for w in caught if issubclass(w.category, ModelweldWarning)}),
        }
    return rows


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Means and deviations over seeds, warnings counted, the two main measures seed by seed."""
    good = [row for row in rows if "failed" not in row]
    result: dict[str, Any] = {"seeds": len(good), "failed": [row["failed"] for row in rows if "failed" in row]}
    for measure in MEASURES:
        seen = np.array([row[measure] for row in good if not math.isnan(row[measure])])
        deviation = float(seen.std(ddof=1)) if len(seen) > 1 else None
        result[measure] = [float(seen.mean()), deviation] if len(seen) else [None, None]
        result[measure] = [None if x is None else round(x, 4) for x in result[measure]]
    result["warnings"] = dict(sorted(Counter(name for row in good for name in row["warnings"]).items()))
    result["ari_by_seed"] = [round(row["ari"], 4) for row in good]
    result["error_in_k_by_seed"] = [row["error_in_k"] for row in good]
    return result


# ---------------------------------------------------------------- tables

Results = dict[str, dict[str, dict[str, Any]]]


def overview(results: Results) -> str:
    """Mean ARI and error in K, a line per set, a column per method."""
    lines = ["| set | seeds | " + " | ".join(SHOWN) + " |", "|---|---|" + "---|" * len(SHOWN)]
    for name, rows in results.items():
        cells = [cell(rows.get(method), "ari", lambda row: signed(row["error_in_k"][0])) for method in SHOWN]
        lines.append(f"| {name} | {max(row['seeds'] for row in rows.values())} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def points_table(results: Results) -> str:
    """Wrong points and loss in held-out log likelihood of sites that estimate their models."""
    columns = (*METHODS, *REFERENCES)
    lines = ["| set | " + " | ".join(columns) + " |", "|---|" + "---|" * len(columns)]
    for name, rows in results.items():
        if "true labels" in rows:
            cells = [cell(rows.get(method), "hamming", lambda row: signed(row["loss"][0], 3)) for method in columns]
            lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def cell(row: dict[str, Any] | None, measure: str, second: Callable[[dict[str, Any]], str]) -> str:
    """The mean of a measure and a second figure; a dash for a method that has not met the set."""
    if row is None:
        return "-"
    return f"{row[measure][0]:.3f} {second(row)}" if row[measure][0] is not None else "failed"


def full_table(results: Results) -> str:
    """Every measure with its spread, a line per set and method."""
    heads = ["set", "method", "seeds", *MEASURES.values(), "warnings"]
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for name, rows in results.items():
        for method, row in rows.items():
            digits = {"ari": 3, "error_in_k": 1, "hamming": 3, "held_out": 3, "loss": 3, "aside": 1, "delta": 3}
            cells = [with_spread(row[m], digits.get(m, 2), m in ("error_in_k", "loss")) for m in MEASURES]
            warned = ", ".join(f"{w.removesuffix('Warning').lower()} {n}" for w, n in row["warnings"].items()) or "-"
            lines.append("| " + " | ".join([name, method, str(row["seeds"]), *cells, warned]) + " |")
    return "\n".join(lines)


def signed(x: float, digits: int = 1) -> str:
    """Some digits and a sign; nothing is zero, not minus zero."""
    return f"{x:+.{digits}f}" if round(x, digits) else f"{0:.{digits}f}"


def with_spread(pair: list[float | None], digits: int, sign: bool) -> str:
    """Mean and deviation over seeds."""
    mean, deviation = pair
    if mean is None:
        return "-"
    text = signed(mean, digits) if sign else f"{mean:.{digits}f}"
    return text if deviation is None else f"{text} ± {deviation:.{digits}f}"


def write(results: Results, out: Path, first_seed: int) -> None:
    """tables.md and results.json."""
    out.mkdir(parents=True, exist_ok=True)
    keep(out / "results.json", results, {"first_seed": first_seed})
    (out / "tables.md").write_text(
        "# Strength: measured tables\n\nWritten by `run.py`; the README says how to read them.\n\n"
        f"## Mean ARI and error in K\n\n{overview(results)}\n\n"
        f"## Wrong points and loss in held-out log likelihood\n\n{points_table(results)}\n\n"
        f"## All measures, mean ± deviation over seeds\n\n{full_table(results)}\n"
    )


def expectation(results: Results) -> dict[str, dict[str, list[Any]]]:
    """Mean ARI, mean error in K and number of seeds of every set and method."""
    return {
        name: {
            m: [round_or_none(r["ari"][0], 3), round_or_none(r["error_in_k"][0], 2), r["seeds"]]
            for m, r in rows.items()
        }
        for name, rows in results.items()
    }


def round_or_none(x: float | None, digits: int) -> float | None:
    """Rounded, if there is something to round."""
    return None if x is None else round(x, digits)


def differences(results: Results, expected: dict[str, dict[str, list[Any]]]) -> list[str]:
    """Where means have left what was expected of them, on the same number of seeds."""
    lines = []
    for name, rows in expectation(results).items():
        for method, found in rows.items():
            before = expected.get(name, {}).get(method)
            if before is None or before[2] != found[2] or None in (*before, *found):
                continue
            if any(abs(found[i] - before[i]) > limit for i, limit in enumerate(TOLERANCE.values())):
                lines.append(f"{name}, {method}: ARI {before[0]} -> {found[0]}, error in K {before[1]} -> {found[1]}")
    return lines


# ---------------------------------------------------------------- the command


def main() -> int:
    """Run the study; 1 if a method failed somewhere."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20, help="seeds 0, 1, ...; some sets have fewer (default 20)")
    parser.add_argument("--first-seed", type=int, default=0, help="where seeds begin (default 0)")
    parser.add_argument(
        "--only", action="append", metavar="NAME", help="a set, or the start of several; may be repeated"
    )
    parser.add_argument(
        "--cache", type=Path, default=CACHE, help="folder for estimated sites (default: the user's cache)"
    )
    parser.add_argument("--out", type=Path, help="folder for tables.md and results.json (default: beside this file)")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--accept", action="store_true", help="write expected.json from these results")
    parser.add_argument("--smoke", action="store_true", help="two tiny sets, one seed")
    arguments = parser.parse_args()
    if arguments.out is None:
        arguments.out = Path(tempfile.mkdtemp()) if arguments.smoke else HERE
    sets = smoke() if arguments.smoke else study(arguments.cache)
    chosen = [name for name in sets if not arguments.only or any(name.startswith(o) for o in arguments.only)]
    if not chosen:
        parser.error(f"--only names none of {list(sets)}")
    old = arguments.out / "results.json"
    results: Results = resumed(old) if arguments.only else {}
    failures: list[str] = []
    with ProcessPoolExecutor(arguments.jobs, initializer=None if arguments.smoke else warm_up) as pool:
        waiting = {
            name: [
                pool.submit(measured, name, seed, sets[name])
                for seed in range(arguments.first_seed, arguments.first_seed + min(arguments.seeds, sets[name].seeds))
            ]
            for name in chosen
        }
        for name, futures in waiting.items():
            rows = [future.result() for future in futures]
            results[name] = {method: summary([row[method] for row in rows]) for method in sets[name].methods}
            failures += [failure for row in results[name].values() for failure in row["failed"]]
            print(f"{name}: " + "; ".join(said(m, r) for m, r in results[name].items()), flush=True)
            results = {name: results[name] for name in (*sets, *results) if name in results}
            write(results, arguments.out, arguments.first_seed)
    if arguments.accept:
        lines = [f"  {json.dumps(name)}: {json.dumps(rows)}" for name, rows in expectation(results).items()]
        (arguments.out / "expected.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
    elif (HERE / "expected.json").exists():
        moved = differences({name: results[name] for name in chosen}, json.loads((HERE / "expected.json").read_text()))
        print(
            "\n".join(
                ["differs from expected.json:", *moved] if moved else ["as expected.json says, where it says something"]
            )
        )
    print("\n".join(["failed:", *failures]) if failures else f"tables are in {arguments.out}")
    return 1 if failures else 0


def warm_up() -> None:
    """Let the compiler finish before anything is timed."""
    tiny = simulate.sparse(8, 6, 3, 0.2, 4.0, 1.0, 1.0).values
    fuse(tiny, preset="paper", search=Search(engine="compiled"))
    fuse(tiny, search=Search(engine="compiled"))


def said(method: str, row: dict[str, Any]) -> str:
    """One method's main measures, for the terminal."""
    return f"{method} {row['ari'][0]} {row['error_in_k'][0]}"


if __name__ == "__main__":
    raise SystemExit(main())
