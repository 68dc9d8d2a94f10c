"""Table, claims and key figures of the study."""

from __future__ import annotations

import numpy as np
from contenders import AUTHORS, KMEANS, OURS, POOLED

from paired import paired
from study import Claim, Results, Summary, Table

MEASURES = {"K": "{:.1f}", "hamming": "{:.4f}", "ari": "{:.4f}", "ari of states": "{:.4f}"}
LARGEST_K_ERROR = 0.1


class Repeats:
    """Measures of all seeds by number of sites."""

    def __init__(self, results: Results) -> None:
        self.by_sites: dict[int, list[dict]] = {}
        for result in results.values():
            for J in filter(str.isdigit, result):
                self.by_sites.setdefault(int(J), []).append(result[J])

    def contenders(self, J: int) -> list[str]:
        """Who met this many sites."""
        return list(self.by_sites[J][0]["methods"])

    def values(self, J: int, name: str, measure: str) -> np.ndarray:
        """A measure of every seed; NaN where there is none."""
        return np.array([row["methods"][name].get(measure, np.nan) for row in self.by_sites[J]], dtype=float)

    def fact(self, J: int, name: str) -> np.ndarray:
        """The true number of states, or CPU seconds of all local models."""
        return np.array([row[name] for row in self.by_sites[J]], dtype=float)


def summary(results: Results) -> Summary:
    """What the seeds say."""
    repeats = Repeats(results)
    return Summary([table(repeats), times(repeats)], claims(repeats), keys(repeats))


def table(repeats: Repeats) -> Table:
    """Every measure of every contender."""
    rows = [
        [f"{J}", name, *(shown(repeats.values(J, name, m), form) for m, form in MEASURES.items())]
        for J in sorted(repeats.by_sites)
        for name in repeats.contenders(J)
    ]
    true = ", ".join(f"{J}: {repeats.fact(J, 'true K').mean():g}" for J in sorted(repeats.by_sites))
    note = (
        f"Mean ± standard deviation over seeds. True number of states that occur, by sites: {true}. Hamming: share of "
        "frames with a wrong state, after the best renaming; ARI of frames and of local states. Frames have the "
        "state of their local most likely path, except where a model decodes them. 'True labels' is the best that any "
        "matching of these local models can do, 'no matching' what is there without one."
    )
    return Table(
        "States and frames", ["sites", "method", "K", "Hamming", "ARI, frames", "ARI, local states"], rows, note
    )


def times(repeats: Repeats) -> Table:
    """CPU seconds of local models and matching, and of one model of all frames."""
    rows = []
    for J in sorted(repeats.by_sites):
        local, matching = repeats.fact(J, "local seconds"), repeats.values(J, OURS, "seconds")
        cells = [shown(local, "{:.1f}"), shown(matching, "{:.2f}")]
        if POOLED in repeats.contenders(J):
            whole = repeats.values(J, POOLED, "seconds")
            cells += [shown(whole, "{:.1f}"), shown((local + matching) / whole, "{:.2f}")]
            cells += [shown((local / J + matching) / whole, "{:.3f}")]
        rows.append([f"{J}", *cells, *[""] * (5 - len(cells))])
    columns = ["sites", "local models, all", "matching", "pooled model", "ratio", "ratio, sites in parallel"]
    note = "CPU seconds, one thread; three starts for local models and for the pooled one, which is told K."
    return Table("Time", columns, rows, note)


def claims(repeats: Repeats) -> list[Claim]:
    """The number of states, and frames against k-means that is told it."""
    found = []
    for J in sorted(repeats.by_sites):
        K, true = repeats.values(J, OURS, "K"), repeats.fact(J, "true K")
        off = np.abs(K - true) / true
        theirs = repeats.values(J, AUTHORS, "K")
        ours, kmeans = (repeats.values(J, name, "hamming") for name in (OURS, KMEANS))
        difference = ours - kmeans
        found += [
            Claim(
                f"{J} sites: K within 10 % of the truth without being told.",
                f"{K.mean():.1f} for {true.mean():.1f}; single seeds off by {off.mean():.1%} on average, "
                f"{off.max():.1%} at most. SPAHM in its authors' form {theirs.mean():.1f}.",
                bool(np.abs(K - true).sum() <= LARGEST_K_ERROR * true.sum()),
            ),
            Claim(
                f"{J} sites: Hamming not above that of k-means told K.",
                f"{ours.mean():.4f} against {kmeans.mean():.4f}, {paired(ours, kmeans)}: "
                f"{paired(kmeans, ours).verdict}; lower in {(difference < 0).sum()} and equal in "
                f"{(difference == 0).sum()} of {len(difference)} seeds.",
                paired(kmeans, ours).verdict != "behind",
            ),
        ]
    return found


def keys(repeats: Repeats) -> dict[str, tuple[float, float]]:
    """The figures to compare with those expected."""
    return {
        f"{J} sites: {name}, {measure}": (float(repeats.values(J, name, measure).mean()), tolerance)
        for J in sorted(repeats.by_sites)
        for name in (AUTHORS, OURS, KMEANS)
        for measure, tolerance in (("K", 1.0), ("hamming", 0.01))
    }


def shown(values: np.ndarray, form: str) -> str:
    """Mean and deviation; nothing where there are no values."""
    if np.isnan(values).all():
        return ""
    mean = form.format(values.mean())
    return f"{mean} ± {form.format(values.std(ddof=1))}" if len(values) > 1 else mean
