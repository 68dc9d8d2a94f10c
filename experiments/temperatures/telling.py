"""Tables and claims, from the scores of all repeats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scores import LEVELS

from paired import paired
from study import Claim, Summary, Table

METHODS = {
    "yesterday": "as warm as yesterday",
    "local": "a state's own process, 50 points",
    "local, many": "a state's own process, 300 points",
    "passed back": "SPAHM: fused inputs and responses passed back",
    "spahm": "SPAHM: one process of fused inputs and responses",
    "rbcm": "robust Bayesian committee machine",
    "natural, k-means": "natural fusion, k-means inputs instead of fused ones",
    "natural": "natural fusion, gamma0 = 50",
    "pooled": "pooled data, as many points as the fused process",
}
"""Name in the results -> what it is, in the order of the table."""

PAPER = {"local": (5.509, 14.565), "passed back": (5.860, 8.917), "local, many": (5.267, 15.848)}
"""The paper's table, on other data (GSOD): own, across."""

WITHIN = 1.0  # per cent
HONEST = (0.88, 0.92)  # shares that intervals of 90 % may hold

Scores = Mapping[str, Sequence[Mapping[str, Any]]]


def summary(results: Mapping[str, Mapping[str, Any]]) -> Summary:
    """What all repeats say."""
    scores, whole = gathered(results), [r for name, r in results.items() if name.startswith("repeat/")]
    tables = [main_table(scores), sizes_table(whole)]
    return Summary(tables, claims(scores))


def gathered(results: Mapping[str, Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    """Scores by method, one per repeat."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for result in results.values():
        for name, score in result["scores"].items():
            found.setdefault(name, []).append(score)
    return found


def column(scores: Scores, name: str, part: str) -> np.ndarray:
    """A figure of all repeats."""
    return np.array([score[part] for score in scores[name]])


def behind(scores: Scores, name: str, part: str = "across") -> np.ndarray:
    """Per cent of error more than the pooled process, repeat by repeat."""
    own = column(scores, name, part)
    return 100 * (own / column(scores, "pooled", part)[: len(own)] - 1)


def held(scores: Scores, name: str, part: str, level: float = 0.9) -> np.ndarray:
    """Shares of temperatures within intervals."""
    return column(scores, name, part)[:, LEVELS.index(level)]


def with_spread(values: np.ndarray, digits: int = 3) -> str:
    """Mean and standard deviation over repeats."""
    if len(values) == 1:
        return f"{values[0]:.{digits}f}"
    return f"{values.mean():.{digits}f} ± {values.std(ddof=1):.{digits}f}"


def main_table(scores: Scores) -> Table:
    """Errors."""
    rows = []
    for name, label in METHODS.items():
        own, across = (column(scores, name, part) for part in ("own", "across"))
        theirs = "{:.3f} / {:.3f}".format(*PAPER[name]) if name in PAPER else ""
        means = with_spread(own), with_spread(across), with_spread(behind(scores, name), 2)
        rows.append([label, *means, len(own), theirs])
    note = (
        "RMSE in F, mean ± standard deviation over random splits, most of which is between splits and common to all "
        "methods; the column behind pooled compares split by split. Own: test rows of the state, mean over states. "
        "Across: test rows of all states; for models that states have each for themselves, mean over these. The "
        "paper's figures are of other data (GSOD), own / across."
    )
    columns = ["", "own state", "across", "behind pooled across, %", "repeats", "paper"]
    return Table("Error of the next day's temperature", columns, rows, note)


def sizes_table(whole: Sequence[Mapping[str, Any]]) -> Table:
    """Sizes found."""

    def of(name: str, digits: int = 0) -> str:
        return with_spread(np.array([r[name] for r in whole], dtype=float), digits)

    rows = [
        ["fused points, gamma0 = 50 (the paper: 289 ± 9.8)", of("K")],
        ["with those that complete them", of("M")],
        ["CPU seconds of a repeat, all methods", of("cpu")],
    ]
    return Table("Sizes", ["", "found"], rows)


def claims(scores: Scores) -> list[Claim]:
    """What should hold."""
    gap, ahead = behind(scores, "natural"), column(scores, "rbcm", "across") - column(scores, "natural", "across")
    home = column(scores, "local", "own") - column(scores, "natural", "own")
    own, across = (float(held(scores, "natural", part).mean()) for part in ("held", "held_across"))
    many = column(scores, "local, many", "across")
    few = column(scores, "local", "across")[: len(many)]  # the same splits come first
    n = f"{len(gap)} splits of 44 states"
    return [
        Claim(
            "Natural fusion is within 1 % of pooled data across the country, in the mean, with no data moved.",
            f"{paired(gap, 0 * gap)} % behind, at most {gap.max():.2f} %: never equal.",
            bool(gap.mean() <= WITHIN),
            n,
        ),
        Claim(
            "... and ahead of the robust committee.",
            f"by {paired(ahead, 0 * ahead)} F across, in {(ahead > 0).sum()} of {len(ahead)} repeats.",
            paired(ahead, 0 * ahead).verdict == "ahead",
            n,
        ),
        Claim(
            "... and at home not worse than the states' own processes.",
            f"better by {paired(home, 0 * home)} F, in {(home > 0).sum()} of {len(home)} repeats.",
            paired(home, 0 * home).verdict != "behind",
            n,
        ),
        Claim(
            "... and its 90 % intervals hold 88 to 92 %.",
            f"{own:.1%} at home, {across:.1%} across.",
            all(HONEST[0] <= share <= HONEST[1] for share in (own, across)),
            n,
        ),
        Claim(
            "More points do not help a state across the country, as in the paper.",
            f"{with_spread(many, 2)} F with 300 points, {with_spread(few, 2)} F with 50 on the same splits.",
            bool(many.mean() > 0.98 * few.mean()),
            f"{len(many)} splits",
        ),
    ]
