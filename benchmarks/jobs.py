"""Jobs that people have, each beside the CPU time it is meant to take at most: one thread, the quickest of repeats.

Fitted mixtures, hidden Markov models and networks of five sites; sites with standard errors; many atoms of which sites
share few; a million values, with what is asked of them afterwards and the memory it takes (copies of the data, them
included); five small files on the command line, beyond what importing takes; two processors beside one.

    python benchmarks/jobs.py            # some minutes and 4 GB; writes jobs.json
    python benchmarks/jobs.py --smoke    # seconds: does it run?
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

import modelweld
from modelweld import LocalModel, simulate
from recorded import least_seconds, record
from scale import Peak, resident

RECORD = Path(__file__).parent / "jobs.json"

Row = dict[str, Any]


def with_errors(J: int) -> list[LocalModel]:
    """The paper's sites, with noise of which they send the variance."""
    data, rng = simulate.paper_figure(J, 1.0, seed=1), np.random.default_rng(1)
    sites = []
    for values in data.values:
        variance = rng.uniform(0.3, 1.5, values.shape)
        noisy = values + np.sqrt(variance) * rng.standard_normal(values.shape)
        sites.append(LocalModel({"v": noisy}, {"v": ("atom", None)}, variance={"v": variance}))
    return sites


def mixtures() -> list[LocalModel]:
    """Five fitted mixtures of eight components, read with their rows."""
    from sklearn.mixture import GaussianMixture

    rng = np.random.default_rng(0)
    heaps = rng.normal(0, 6, (12, 4))
    tables = [np.concatenate([rng.normal(heaps[k], 1, (100, 4)) for k in rng.permutation(12)[:8]]) for _ in range(5)]
    return [modelweld.read(GaussianMixture(8, random_state=0).fit(X), X=X, site=str(j)) for j, X in enumerate(tables)]


def hidden_markov_models() -> list[LocalModel]:
    """Five of four states each."""
    from hmmlearn.hmm import GaussianHMM

    rng = np.random.default_rng(0)
    means, sites = rng.normal(0, 6, (6, 3)), []
    for _ in range(5):
        held, state = rng.permutation(6)[:4], np.repeat(rng.integers(0, 4, 60), 5)
        X = means[held][state] + rng.normal(size=(300, 3))
        sites.append(modelweld.read(GaussianHMM(4, random_state=0, n_iter=20).fit(X)))
    return sites


def networks() -> list[LocalModel]:
    """Five of fifty hidden units, for parts of the digits."""
    from sklearn.datasets import load_digits
    from sklearn.neural_network import MLPClassifier

    X, y = load_digits(return_X_y=True)
    parts = np.array_split(np.random.default_rng(0).permutation(len(X)), 5)
    fitted = [MLPClassifier((50,), max_iter=60, random_state=j).fit(X[i] / 16, y[i]) for j, i in enumerate(parts)]
    return [modelweld.read(model) for model in fitted]


def few_shared(J: int, L: int, each: int, D: int = 50) -> list[np.ndarray]:
    """L atoms, of which every site holds so many."""
    rng = np.random.default_rng(0)
    atoms = 2 + np.sqrt(50) * rng.standard_normal((L, D))
    return [atoms[rng.permutation(L)[:each]] + rng.standard_normal((each, D)) for _ in range(J)]


def fused(job: str, sites: Any, most: float, repeats: int) -> Row:
    """One call of fuse, after one that is not counted."""
    fusion = modelweld.fuse(sites)
    return {"job": job, "s": least_seconds(lambda: modelweld.fuse(sites), repeats), "most": most, "K": fusion.K}


def many(J: int) -> Iterator[Row]:
    """Sites of fifty values: fuse, and what is asked of the fusion; seconds and copies of the data."""
    modelweld.fuse(few_shared(100, 100, 50))  # compiled
    before, sites = resident(), few_shared(J, 100, 50)
    data = sum(values.nbytes for values in sites)
    found: list[Any] = []
    page = Path(tempfile.mkdtemp()) / "page.html"
    calls: dict[str, tuple[Callable[[], Any], float]] = {
        "fuse": (lambda: found.append(modelweld.fuse(sites)), 4.0),
        "confidence": (lambda: found[0].confidence(), 8.0),
        "diagnose": (lambda: found[0].diagnosis.sites(), 8.0),
        "report": (lambda: found[0].report(page), 16.0),
    }
    for name, (call, most) in calls.items():
        begin = process_time()
        with Peak() as peak:
            call()
        seconds, copies = process_time() - begin, (peak.most - before) / data
        yield {"job": f"{J * 50:,} values: {name}", "s": seconds, "most": most, "copies": copies, "most copies": 3.0}


def spent(words: list[str]) -> float:
    """CPU seconds of a process and of what it starts."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *words], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def command_line(repeats: int) -> Row:
    """Five small files, beyond what importing the same modules takes."""
    rng = np.random.default_rng(0)
    atoms = rng.normal(0, 10, (6, 3))
    imports = "import modelweld.cli.central, modelweld.files, modelweld.fuse, scipy.optimize, scipy.sparse.csgraph"
    with tempfile.TemporaryDirectory() as folder:
        files = [str(Path(folder) / f"{name}.npy") for name in "abcde"]
        for file in files:
            np.save(file, atoms[rng.permutation(6)[:4]] + rng.normal(0, 0.3, (4, 3)))
        words = ["-m", "modelweld", "fuse", *files, "--out", str(Path(folder) / "out.safetensors"), "--force"]
        whole, bare = (min(spent(w) for _ in range(repeats)) for w in (words, ["-c", imports]))
    return {"job": "modelweld fuse, five small files, beyond imports", "s": whole - bare, "most": 0.5, "whole": whole}


def processors(J: int, repeats: int) -> Row:
    """Two processors beside one, in turn."""
    sites = simulate.paper_figure(J, 1.0, seed=1).values
    modelweld.fuse(sites)
    one, two = [], []
    for _ in range(repeats):
        one.append(least_seconds(lambda: modelweld.fuse(sites, search=modelweld.Search(n_jobs=1)), 1))
        two.append(least_seconds(lambda: modelweld.fuse(sites, search=modelweld.Search(n_jobs=2)), 1))
    return {"job": f"{J} sites, n_jobs=2 to n_jobs=1", "s": min(two), "most": 1.05 * min(one), "one": min(one)}


def rows(smoke: bool) -> Iterator[Row]:
    """All jobs, one after the other."""
    repeats = 1 if smoke else 9
    yield fused("5 mixtures of 8 components, with rows", mixtures(), 0.03, repeats)
    if smoke:
        yield fused("5 sites with standard errors", with_errors(5), 0.5, 1)
        yield from many(20)
        return
    yield fused("5 hidden Markov models of 4 states", hidden_markov_models(), 0.02, repeats)
    yield fused("5 networks of 50 units", networks(), 0.15, repeats)
    yield fused("70 sites with standard errors", with_errors(70), 0.5, 3)
    yield fused("1,000 sites with standard errors", with_errors(1000), 3.0, 2)
    yield fused("100,000 values, 1,000 atoms, 100 per site", few_shared(1000, 1000, 100), 1.5, 2)
    yield command_line(5)
    for J in (30, 100, 2000):
        yield processors(J, 5)
    yield from many(20_000)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--smoke", action="store_true", help="a small version that writes nothing")
    smoke = parser.parse_args().smoke
    found = []
    warnings.simplefilter("ignore", modelweld.ModelweldWarning)
    for row in rows(smoke):
        row["held"] = row["s"] <= row["most"] and row.get("copies", 0.0) <= row.get("most copies", np.inf)
        row = {name: round(value, 4) if isinstance(value, float) else value for name, value in row.items()}
        found.append(row)
        copies = f", {row['copies']:.1f} copies of the data" if "copies" in row else ""
        print(
            f"{row['job']}: {row['s']:.3f} s of {row['most']:.3f} s{copies}{'' if row['held'] else ': MISSED'}",
            flush=True,
        )
        if not smoke:  # a run that is stopped leaves what it has measured
            record(RECORD, "CPU seconds, one thread, beside the most that they are meant to be", found)


if __name__ == "__main__":
    main()
