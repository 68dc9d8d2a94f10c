"""Topics of 40 books, clustered book by book, fused: are they coherent?

python experiments/topics/run.py              # everything, into reproduced/topics
python experiments/topics/run.py --quick      # under a minute: one seed, short samplers
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from study import Claim, Result, Results, Study, Summary, Table, Task, main  # isort: skip  (first: it sets one thread)
from topic_models import FUSED, OURS, PAPER, PRIORS, SHARED_BY, TOPICS_PER_BOOK
from topic_pictures import draw
from topic_tasks import RIVALS, on_vectors, rows_by_method, sampled, war_topic

from paired import paired

SEEDS = range(100, 105)  # settings were chosen on seeds 0 to 2
SAMPLER_SEEDS = range(100, 101)

SAMPLED, ITERATIONS = 100, 100
"""Tokens of each book and iterations of Gaussian LDA; the paper had 100 iterations on all tokens."""

MEASURES = ("uci", "npmi", "unseen", "words")


def tasks(quick: bool) -> Sequence[Task]:
    """One for each seed and sampler."""
    vectors, samplers = (seeds[: 1 if quick else None] for seeds in (SEEDS, SAMPLER_SEEDS))
    sizes = (20, 5) if quick else (SAMPLED, ITERATIONS)
    return [
        *(Task(f"vectors/{seed}", on_vectors, (seed,)) for seed in vectors),
        Task("war", war_topic, (SEEDS[0],)),
        *(
            Task(f"gaussian_lda/{k}/{seed}", sampled, (prior, seed, *sizes))
            for seed in samplers
            for k, prior in enumerate(PRIORS)
        ),
    ]


# ---------------------------------------------------------------- summary


def spread(values: Sequence[float], digits: int = 3) -> str:
    """Mean and standard error."""
    error = f" ± {np.std(values, ddof=1) / np.sqrt(len(values)):.{digits}f}" if len(values) > 1 else ""
    return f"{np.mean(values):.{digits}f}{error}"


def values_of(rows: Sequence[Result], part: str, measure: str = "uci") -> np.ndarray:
    """One figure, seed by seed."""
    return np.array([row[part][measure] for row in rows])


def summary(results: Results) -> Summary:
    """Tables and claims."""
    found = rows_by_method(results)
    samplers = [name for name in found if name.startswith("Gaussian LDA")]
    methods = [*FUSED, *(f"{rival}, as {OURS}" for rival in RIVALS), *samplers]
    tables = [coherence_table(found, methods), papers_table(found, samplers), sampler_table(found, samplers)]
    return Summary(tables, claims(found, samplers))


def coherence_table(found: dict[str, list[Result]], methods: Sequence[str]) -> Table:
    """K, coherence of all topics and of the best supported ones, by the paper's rule for top words."""
    rows = []
    for name in methods:
        cells = found[name]
        filtered = (spread(values_of(cells, "nearest/filtered", measure)) for measure in MEASURES)
        own = [spread([row[what] for row in cells], 0) for what in ("K", "kept")]
        coherent = spread(values_of(cells, "nearest/all"))
        rows.append(
            [name, own[0], coherent, own[1], *filtered, spread([row["seconds"] for row in cells], 1), len(cells)]
        )
    return Table(
        "Coherence, top words by the paper's rule: nearest to the topic's centre",
        ["method", "K", "UCI", "kept", "UCI, kept", "NPMI, kept", "unseen pairs", "distinct words", "CPU s", "n"],
        rows,
        f"Means ± standard errors over n seeds. Rivals and Gaussian LDA are given the K of '{OURS}' and keep as many "
        f"topics, those that most books hold. Top words are drawn from the 3,000 most frequent words. "
        f"{TOPICS_PER_BOOK} local topics a book.",
    )


def papers_table(found: dict[str, list[Result]], samplers: Sequence[str]) -> Table:
    """The paper's table of coherence and time, and ours."""

    def of(name: str, what: str) -> str:
        full = [row["iteration on all tokens, s"] for row in found[name]] if what == "time" else []
        return f"{np.mean(full):.0f} s an iteration" if full else spread(values_of(found[name], "nearest/all"), 2)

    ours = f"{np.mean([row['seconds'] for row in found[PAPER]]):.1f} s, local models included"
    rows = [
        ["UCI, SPAHM", "-2.10", of(PAPER, "uci")],
        *(["UCI, " + name, "-4.60", of(name, "uci")] for name in samplers),
        ["time, SPAHM", "42 s", ours],
        *(["time, " + name, "600 s an iteration", of(name, "time")] for name in samplers),
        ["topics, SPAHM", "155", spread([row["K"] for row in found[PAPER]], 0)],
    ]
    return Table(
        "The paper's table",
        ["", "the paper", "here"],
        rows,
        "All topics, ten words nearest to a centre, probabilities of words and pairs counted in windows of other books."
        " Other books, vectors and reference corpus than the paper's, which cannot be had: levels are not comparable, "
        "the order is. Gaussian LDA saw as many tokens of every book as the next table says; its time for an iteration "
        "on all tokens is CPU time per token times their number.",
    )


def sampler_table(found: dict[str, list[Result]], samplers: Sequence[str]) -> Table:
    """What Gaussian LDA finds and costs."""
    columns = [
        "sampler",
        "topics with tokens",
        "distinct topics",
        "UCI of these",
        "tokens",
        "iterations",
        "CPU s",
        "an iteration on all tokens, s (extrapolated)",
        "100 of them, h (extrapolated)",
    ]
    rows = []
    for name in samplers:
        cells = found[name]
        full = [row["iteration on all tokens, s"] for row in cells]
        rows.append(
            [
                name,
                *(spread([row[what] for row in cells], 1) for what in ("used topics", "distinct topics")),
                spread([row["distinct uci"] for row in cells]),
                *(str(cells[0][what]) for what in ("tokens", "iterations")),
                spread([row["seconds"] for row in cells], 0),
                spread(full, 0),
                spread([100 * seconds / 3600 for seconds in full], 1),
            ]
        )
    return Table(
        "Gaussian LDA",
        columns,
        rows,
        "Collapsed Gibbs sampling on the same number of tokens of every book. Distinct topics: those whose lists of ten"
        " nearest words differ. Extrapolated: CPU time per token times the corpus's tokens; nothing was run on it.",
    )


def compared(ours: Sequence[Result], theirs: Sequence[Result], part: str, other: str = "") -> tuple[str, bool]:
    """Ours against another, on the same seeds."""
    n = min(len(ours), len(theirs))
    a, b = values_of(ours[:n], part), values_of(theirs[:n], other or part)
    difference = paired(a, b)
    found = f"{a.mean():.3f} against {b.mean():.3f}, difference {difference}: {difference.verdict}."
    return found, difference.verdict == "ahead"


def claims(found: dict[str, list[Result]], samplers: Sequence[str]) -> list[Claim]:
    """What the study should show."""
    rivals = [f"{rival}, as {OURS}" for rival in RIVALS]
    result = []
    for name in (*rivals, *samplers):
        text = f"UCI above that of {name}, same K, topics in {SHARED_BY} books or more, nearest words."
        result.append(Claim(text, *compared(found[OURS], found[name], "nearest/filtered")))
    for name in samplers:
        means = [float(values_of(found[key], "nearest/all").mean()) for key in (PAPER, name)]
        text = f"The paper's order: UCI of SPAHM above that of {name}, all topics."
        result.append(
            Claim(text, f"{means[0]:.2f} against {means[1]:.2f}, one seed of the latter.", means[0] > means[1])
        )
    return result


STUDY = Study(
    name="topics",
    title="Gaussian topics of 40 books, fused",
    question="40 books cluster the vectors of their words, 25 topics each, and send nothing but centres: are the fused "
    "topics as coherent in other books as those that pooled data give, and at which cost?",
    tasks=tasks,
    summary=summary,
    draw=draw,
    needs={"matplotlib": "studies"},
)

if __name__ == "__main__":
    main(STUDY)
