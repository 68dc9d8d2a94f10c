"""Do hidden Markov models of people, fused, segment their movements as well as one fitted to all frames?

python experiments/mocap/run.py            # the two people of the paper, and groups of people that no choice has seen
python experiments/mocap/run.py --quick    # one start, one pair
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from study import Claim, Result, Results, Study, Summary, Table, Task, main  # isort: skip; first: it sets the threads

from collections.abc import Sequence

import numpy as np
from drawing import draw
from segmentations import APART, FULL, NONE, OURS, SETTINGS, compared, times

from data import SIZES, groups, two_people
from paired import Paired, paired

STARTS = (0, 1, 2, 4, 5)
"""Seeds whose default starts differ: windows begin at twenty places, and 3 is 1 again."""
DRAWS = 2
PAPER, TWO = "two people of the paper, paper's setting", "two people of the paper, default"
OTHERS = "2 to 8 other people"


def of_two(setting: str, seed: int) -> Result:
    """The people of the paper, from one start."""
    return compared(two_people(), setting, seed)


def of_group(draw: int, number: int) -> Result:
    """A group of a draw."""
    return compared(groups(draw)[number], "default", 0)


def tasks(quick: bool) -> list[Task]:
    """One per start and group."""
    sizes = [size for size, number in SIZES.items() for _ in range(number)]
    found = [Task(f"{s}/{seed}", of_two, (s, seed)) for s in SETTINGS for seed in (STARTS[:1] if quick else STARTS)]
    chosen = [(d, n) for d in range(1 if quick else DRAWS) for n in range(1 if quick else len(sizes))]
    return found + [Task(f"people/{sizes[n]}/{d}.{n}", of_group, (d, n)) for d, n in chosen]


def kinds(results: Results) -> dict[str, list[Result]]:
    """Results of the two people by setting, of all other groups together, and of these by size."""
    found: dict[str, list[Result]] = {PAPER: [], TWO: [], OTHERS: []}
    for name, result in results.items():
        first, second, *_ = name.split("/")
        found[{"paper": PAPER, "default": TWO}.get(first, OTHERS)].append(result)
        if first == "people":
            found.setdefault(f"of these, groups of {second}", []).append(result)
    return found


def better(done: Sequence[Result], ours: str, theirs: str) -> tuple[Paired, Paired]:
    """By how much Hamming is less and ARI more, group by group."""

    def of(method: str, what: str) -> list[float]:
        return [r["scores"][method][what] for r in done]

    return paired(of(theirs, "hamming"), of(ours, "hamming")), paired(of(ours, "ari"), of(theirs, "ari"))


def share(done: Sequence[Result]) -> float:
    """CPU time of the slowest person and the matching, over that of the full model."""
    return float(np.mean([(max(r["seconds"][:-2]) + r["seconds"][-1]) / r["seconds"][-2] for r in done]))


def summary(results: Results) -> Summary:
    """Means, differences by group, and times."""
    rows, differences, spent, limits, claims = [], [], [], [], []
    for kind, done in kinds(results).items():
        number = f"{len(done)} {'starts' if kind in (PAPER, TWO) else 'groups'}"
        for method in done[0]["scores"]:
            means = [np.mean([r["scores"][method][what] for r in done]) for what in ("hamming", "ari", "K")]
            rows.append([kind, method, f"{means[0]:.3f}", f"{means[1]:.3f}", f"{means[2]:.1f}", str(len(done))])
        for method in (NONE, FULL, "SPAHM, authors' form"):
            less, more = better(done, OURS, method)
            differences.append([kind, method, str(less), less.verdict, str(more), more.verdict])
            if not kind.startswith("of these") and method != "SPAHM, authors' form":
                held = all(b.verdict != "behind" for b in (less, more))
                text = f"{kind}: `{OURS}` not behind {method} (Hamming, ARI)."
                claims.append(Claim(text, f"Hamming less by {less}, ARI more by {more}.", held, number))
        limits.append([kind, *map(str, better(done, NONE, APART))])
        seconds = (f"{s:.2f}" for s in times(done))
        spent.append([kind, f"{np.mean([r['frames'] for r in done]):.0f}", *seconds, f"{share(done):.2f}"])
        if kind == TWO or kind.endswith(" 8"):
            text = f"{kind}: less than half of the full model's time, everyone at home."
            claims.append(Claim(text, f"{share(done):.2f} of it.", share(done) < 0.5, number))
    paper = np.array([r["K"] for r in kinds(results)[PAPER]])
    states = ", ".join(f"{a}-{b}" for a, b in zip(paper.min(0), paper.max(0), strict=True))
    return Summary(
        [
            Table(
                "Segmentations",
                ["", "states", "Hamming", "ARI", "states seen", "n"],
                rows,
                f"States of person 13, person 14, full model in the paper's setting: {states}; the paper: 9, 13, 14. "
                "Its Hamming and ARI are in a figure without numbers.",
            ),
            Table(
                f"{OURS}, less others on the same people",
                ["", "other", "Hamming, less by", "", "ARI, more by", ""],
                differences,
                "Mean difference with its 95 % interval; above zero is better for both. Of the two people intervals "
                "speak of starts; other people are in several groups, so that theirs are somewhat too narrow.",
            ),
            Table(
                "CPU seconds",
                ["", "frames", "slowest person", "matching", "full model", "share"],
                spent,
                'The paper: "less than half of the time of the full model".',
            ),
            Table(
                "What limits: local models, less the full model's states, none shared",
                ["", "Hamming, less by", "ARI, more by"],
                limits,
                "Above zero: local models are better.",
            ),
        ],
        claims,
    )


TITLE = "Movements: hidden Markov models of people"
QUESTION = (
    "Each person's frames make a sticky HDP-HMM. Are its states, fused, as good a segmentation as one model of all "
    "frames, at less than half its time? Two people of the paper, and groups of people whom no choice has seen."
)

if __name__ == "__main__":
    main(Study("mocap", TITLE, QUESTION, tasks, summary, draw=draw))
