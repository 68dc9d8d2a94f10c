"""Topics of 40 books, clustered book by book, fused: are they coherent?

python experiments/topics/run.py              # everything, into reproduced/topics: four CPU minutes
python experiments/topics/run.py --quick      # under a minute: one seed, short samplers
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from study import Claim, Results, Study, Summary, Table, Task, main, not_behind  # isort: skip; first: it sets one thread

import numpy as np
from topic_models import OURS, PAPER, PRIORS, TOLD, TOPICS_PER_BOOK, on_vectors, sampled, war_topic

from paired import paired

SEEDS = range(3000, 3010)  # stated before any was run: planned_topics/plan.md

SAMPLED, ITERATIONS = 100, 100
"""Tokens of each book and iterations of Gaussian LDA; the paper had 100 iterations on all tokens."""


def tasks(quick: bool) -> Sequence[Task]:
    """One for each seed and sampler; samplers and the topic of war have the first seed."""
    sizes = (20, 5) if quick else (SAMPLED, ITERATIONS)
    return [
        *(Task(f"vectors/{seed}", on_vectors, (seed,)) for seed in SEEDS[: 1 if quick else None]),
        Task("war", war_topic, (SEEDS[0],)),
        *(Task(f"gaussian_lda/{k}", sampled, (prior, SEEDS[0], *sizes)) for k, prior in enumerate(PRIORS)),
    ]


def spread(values: Sequence[float], digits: int = 3) -> str:
    """Mean and standard error."""
    error = f" ± {np.std(values, ddof=1) / np.sqrt(len(values)):.{digits}f}" if len(values) > 1 else ""
    return f"{np.mean(values):.{digits}f}{error}"


def summary(results: Results) -> Summary:
    """Coherence, the paper's table, and what is claimed of the bare call."""
    draws = [r["methods"] for name, r in results.items() if name.startswith("vectors/")]
    samplers = {f"Gaussian LDA, {prior}": results[f"gaussian_lda/{k}"] for k, prior in enumerate(PRIORS)}
    found = {name: {m: [d[name][m] for d in draws] for m in draws[0][name]} for name in draws[0]}
    rows = []
    for name, row in found.items():
        less = "" if name == OURS else str(paired(found[OURS]["npmi"], row["npmi"]))
        means = (spread(row[m]) for m in ("npmi", "uci", "unseen"))
        rows.append([name, spread(row["K"], 1), *means, spread(row["seconds"], 1), less])
    for name, row in samplers.items():
        means = (f"{row[m]:.3f}" for m in ("npmi", "uci", "unseen"))
        rows.append([name, str(row["K"]), *means, f"{row['seconds']:.0f}", ""])
    note = (
        f"Means ± standard errors over {len(draws)} seeds, of the ten words nearest to a centre (the paper's rule), by "
        f"517 other books. {TOPICS_PER_BOOK} local topics a book; local models are in the seconds."
    )
    columns = ["method", "K", "NPMI", "UCI", "unseen pairs", "CPU s", "NPMI, ours less it"]
    tables = [Table("Coherence", columns, rows, note), papers_table(found[PAPER], samplers), sampler_table(samplers)]
    tables.append(war_table(results["war"], samplers))
    claims = []
    for name in TOLD:
        for measure in ("npmi", "uci"):
            by, text = paired(found[OURS][measure], found[name][measure]), f"40 books, {measure}: {OURS} beside {name}."
            claims.append(not_behind(text, by, f"{len(draws)} seeds stated before", told=True))
    for name, row in samplers.items():
        mean = float(np.mean(found[PAPER]["uci"]))
        text = f"The paper's order: UCI of SPAHM above that of {name}, all topics."
        claims.append(Claim(text, f"{mean:.2f} against {row['uci']:.2f}.", mean > row["uci"], "one seed of the latter"))
    return Summary(tables, claims)


def papers_table(spahm: dict[str, list[float]], samplers: Results) -> Table:
    """The paper's table of coherence and time, and ours."""
    rows = [
        ["UCI, SPAHM", "-2.10", spread(spahm["uci"], 2)],
        *([f"UCI, {name}", "-4.60", f"{row['uci']:.2f}"] for name, row in samplers.items()),
        ["time, SPAHM", "42 s", f"{np.mean(spahm['seconds']):.1f} s, local models included"],
        *(
            [f"time, {n}", "600 s an iteration", f"{r['iteration on all tokens, s']:.0f} s an iteration"]
            for n, r in samplers.items()
        ),
        ["topics, SPAHM", "155", spread(spahm["K"], 0)],
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


def sampler_table(samplers: Results) -> Table:
    """What Gaussian LDA finds and costs."""
    columns = ["used topics", "distinct topics", "tokens", "iterations", "seconds", "iteration on all tokens, s"]
    rows = [[name, *(f"{row[what]:.0f}" for what in columns)] for name, row in samplers.items()]
    note = "Distinct topics: those whose lists of ten words differ. The last column is extrapolated."
    return Table("Gaussian LDA", ["sampler", *columns], rows, note)


def war_table(war: Results, samplers: Results) -> Table:
    """The paper's picture of a topic of war, in words."""
    rows = [[f"local: {part['title']}", ", ".join(part["words"])] for part in war["parts"]]
    rows += [[f"fused from {war['books']} books", ", ".join(war["fused"])]]
    rows += [[name, ", ".join(row["war"])] for name, row in samplers.items()]
    note = "Words nearest to a centre, of a local topic among those of its book; local topics of most words."
    return Table("A topic of war, as in the paper's figure", ["topic", "words"], rows, note)


TITLE = "Gaussian topics of 40 books, fused"
QUESTION = (
    "40 books cluster the vectors of their words, 25 topics each, and send nothing but centres: are the fused topics "
    "as coherent in other books as those that pooled data give, and at which cost?"
)

if __name__ == "__main__":
    main(Study("topics", TITLE, QUESTION, tasks, summary))
