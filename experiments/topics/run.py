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
from topic_models import FUSED, OURS, PRIORS, SHARED_BY, TOPICS_PER_BOOK
from topic_pictures import draw
from topic_tasks import DIRECTIONS, LDA, RIVALS, on_tokens, on_vectors, rows_by_method, sampled, war_topic

from paired import paired

SEEDS = range(100, 105)  # settings were chosen on seeds 0 to 2
LDA_SEEDS, SAMPLER_SEEDS = range(100, 102), range(100, 101)
LDA_ITERATIONS = 300
"""The log likelihood per token, which `results.json` has along the way, rises by less than .2 % in the last tenth."""

SAMPLED, ITERATIONS = 100, 100
"""Tokens of each book and iterations of Gaussian LDA; the paper had 100 iterations on all tokens."""

MEASURES = ("uci", "npmi", "unseen", "words")


def tasks(quick: bool) -> Sequence[Task]:
    """One for each seed and sampler."""
    vectors, lda, samplers = (seeds[: 1 if quick else None] for seeds in (SEEDS, LDA_SEEDS, SAMPLER_SEEDS))
    sizes = (20, 5) if quick else (SAMPLED, ITERATIONS)
    return [
        *(Task(f"vectors/{seed}", on_vectors, (seed, quick)) for seed in vectors),
        Task("war", war_topic, (SEEDS[0],)),
        *(Task(f"lda/{seed}", on_tokens, (seed, 20 if quick else LDA_ITERATIONS)) for seed in lda),
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


def coherence_table(found: dict[str, list[Result]], methods: Sequence[str], rule: str, title: str, note: str) -> Table:
    """K, coherence of all topics and of the best supported ones, by one rule for top words."""
    columns = ["method", "K", "UCI", "kept", "UCI, kept", "NPMI, kept", "unseen pairs", "distinct words", "CPU s", "n"]
    rows = []
    for name in methods:
        cells = found[name]
        rows.append(
            [
                name,
                spread([row["K"] for row in cells], 0),
                spread(values_of(cells, f"{rule}/all")),
                spread([row["kept"] for row in cells], 0),
                *(spread(values_of(cells, f"{rule}/filtered", measure)) for measure in MEASURES),
                spread([row["seconds"] for row in cells], 1),
                str(len(cells)),
            ]
        )
    return Table(title, columns, rows, note)


def summary(results: Results) -> Summary:
    """Tables and claims."""
    found = rows_by_method(results)
    ours, lda = found[OURS], found[LDA]
    samplers = [name for name in found if name.startswith("Gaussian LDA")]
    as_ours = [f"{rival}, as {OURS}" for rival in RIVALS]
    as_directions = [name for rival in RIVALS if (name := f"{rival}, as {DIRECTIONS}") in found]
    methods = [*(name for name in FUSED if name in found), *as_ours, *as_directions, LDA, *samplers]
    separate = [result["local"]["uci"] for name, result in results.items() if name.startswith("vectors/")]
    tables = [
        coherence_table(
            found,
            methods,
            "nearest",
            "Coherence, top words by the paper's rule: nearest to the topic's centre",
            "Means ± standard errors over n seeds. Rivals, LDA and Gaussian LDA are told the K of the fusion they are"
            f" named after (else of '{OURS}') and keep as many topics, those that most books hold. 'Distinct words': of"
            " all top words of the topics kept. A centre of LDA, which has none, is the mean of its tokens' vectors:"
            " its topics' lists repeat each other. Top words are drawn from the 3,000 most frequent words; drawn from"
            " all 14,681, k-means of centres is ahead of ours among the topics kept: see README.md. Local topics, not"
            f" fused ({TOPICS_PER_BOOK} a book): UCI {spread(separate)}. The paper, on other books, not comparable:"
            " SPAHM -2.10 (K = 155, 42 s), Gaussian LDA -4.60 (K = 150, 600 s an iteration).",
        ),
        coherence_table(
            found,
            methods,
            "tokens",
            "Coherence, top words by LDA's rule: most tokens in the topic",
            "The same topics. For k-means and fusions, a word's tokens belong to the topic whose centre is closest.",
        ),
        sampler_table(found, samplers),
    ]
    return Summary(tables, claims(found, ours, lda, samplers), keys(found, methods))


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


def claims(
    found: dict[str, list[Result]], ours: Sequence[Result], lda: Sequence[Result], samplers: Sequence[str]
) -> list[Claim]:
    """What the study should show."""
    centres, pooled = (found[f"{rival}, as {OURS}"] for rival in RIVALS)
    rule = {"nearest": "nearest words", "tokens": "words by tokens"}
    result = []
    for part, filtered in (("filtered", f"topics in {SHARED_BY} books or more"), ("all", "all topics")):
        for name in ("nearest", "tokens"):
            for rival, theirs in (("k-means of centres", centres), ("pooled k-means", pooled)):
                text = f"UCI above that of {rival}, same K, {filtered}, {rule[name]} of the 3,000 in the small files."
                result.append(Claim(text, *compared(ours, theirs, f"{name}/{part}")))
    for part, filtered in (("filtered", f"topics in {SHARED_BY} books or more"), ("all", "all topics")):
        text = f"UCI above that of pooled LDA, same K, {filtered}, words by tokens."
        result.append(Claim(text, *compared(ours, lda, f"tokens/{part}")))
        text = f"UCI above that of pooled LDA, same K, {filtered}, each by its own rule (nearest; by tokens)."
        result.append(Claim(text, *compared(ours, lda, f"nearest/{part}", f"tokens/{part}")))
        text = f"UCI above that of pooled LDA, same K, {filtered}, nearest words (LDA's lists repeat each other)."
        result.append(Claim(text, *compared(ours, lda, f"nearest/{part}")))
    for name in samplers:
        text = f"UCI above that of {name}, same K, topics in {SHARED_BY} books or more, nearest words."
        result.append(Claim(text, *compared(ours, found[name], "nearest/filtered")))
    seconds, theirs = (float(np.mean([row["seconds"] for row in rows])) for rows in (ours, lda))
    text = "Local models and fusion take at most a tenth of pooled LDA's CPU time."
    result.append(
        Claim(text, f"{seconds:.1f} s against {theirs:.1f} s, 1/{theirs / seconds:.0f}.", theirs >= 10 * seconds)
    )
    return result


def keys(found: dict[str, list[Result]], methods: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Mean UCI by the paper's rule, to compare with what is expected."""
    return {f"{name}, UCI": (float(values_of(found[name], "nearest/filtered").mean()), 0.1) for name in methods}


STUDY = Study(
    name="topics",
    title="Gaussian topics of 40 books, fused",
    question="40 books cluster the vectors of their words, 25 topics each, and send nothing but centres: are the fused "
    "topics as coherent in other books as those that pooled data give, and at which cost?",
    tasks=tasks,
    summary=summary,
    draw=draw,
    needs={"matplotlib": "studies", "tomotopy": "studies"},
)

if __name__ == "__main__":
    main(STUDY)
