"""People whom no choice has seen: are states that `fuse(models)` matched as good as one model of all frames?

python experiments/mocap/people.py            # the two people of the paper, pairs, groups of 3, 5 and 8; 20 CPU minutes
python experiments/mocap/people.py --quick    # one of each up to three people
python experiments/mocap/people.py --accept   # keep the results here

Everyone of the database who had no part in choosing the slope of zeta (`sessions.pairs`) or the default matching
(`sessions.strangers`), and has takes of two activities or more. Activities are words of the takes' descriptions. In
every draw people are shuffled, dealt to groups in which everyone shares an activity with someone, and their takes
dealt anew. A person is in several groups, so that intervals over groups are somewhat too narrow.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from study import Claim, Results, Study, Summary, Table, Task, main  # isort: skip; first: it sets the threads

import logging
import time
import warnings
from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from matchings import disjoint, paths_of, relabelled, scores
from sessions import LONGEST, pairs, session, strangers

from data import Array, Index, Person, pooled, takes, two_people
from modelweld import fuse
from modelweld.hmm import StickyHDPHMM
from paired import paired

WORDS = (
    *("sideways", "backward", "jump", "run", "jog", "dance", "salsa", "basketball", "soccer", "kick", "punch", "box"),
    *("throw", "climb", "sit", "pick", "hop", "stretch", "swing", "march", "sneak", "crawl", "wash", "drink", "wave"),
    *("bend", "balance", "skip", "turn", "walk"),
)
"""Activities: the first of these words in a take's description names it."""

FEWEST_ACTIVITIES, FEWEST_FRAMES = 2, 300
SIZES = {2: 4, 3: 3, 5: 2, 8: 2}
"""People of a group, and groups of that size in a draw; those of a size are disjoint."""

DRAWS = 4
RESTARTS = (0, 1, 2, 4, 5)
"""Of the two people of the paper: seeds that begin at different windows (1 and 3 are one, and so are 6 and 7)."""

BIC_STATES = range(4, 21, 4)
SHRUNK = 0.3
"""Share of the mean covariance of all states in that of each: what hmmlearn needs where states are small."""


@cache
def fresh() -> dict[str, dict[str, list[Array]]]:
    """Takes by person and activity, of people who had no part in any choice."""
    known = {p.name for seed in range(3) for pair in (*strangers(seed), *pairs(seed)) for p in pair}
    known = {name.removesuffix(" again") for name in known}
    people: dict[str, dict[str, list[Array]]] = defaultdict(lambda: defaultdict(list))
    for take in takes():
        word = next((w for w in WORDS if w in take.description), None)
        if word is not None and f"person {take.subject}" not in known:
            people[take.subject][word].append(take.X[:LONGEST])
    return {
        name: dict(own)
        for name, own in people.items()
        if len(own) >= FEWEST_ACTIVITIES and sum(len(x) for part in own.values() for x in part) >= FEWEST_FRAMES
    }


def groups(draw: int) -> list[list[Person]]:
    """Groups of people of a draw, by size."""
    people = fresh()
    rng = np.random.default_rng([4, draw])
    names = sorted({word for own in people.values() for word in own})
    made = {}
    for name in sorted(people, key=int):
        held = sorted(people[name])
        person = session(people[name], held, np.random.default_rng([int(name), draw, 4]))
        activity = np.array([names.index(held[a]) for a in person.activity])
        made[name] = person._replace(name=f"person {name}", activity=activity)
    found = []
    for size, number in SIZES.items():
        left = [str(name) for name in rng.permutation(sorted(people, key=int))]
        for _ in range(number):
            group, shown = [], set[str]()
            while len(group) < size:
                name = next(n for n in left if not group or shown & set(people[n]))
                left.remove(name)
                group.append(made[name])
                shown |= set(people[name])
            found.append(group)
    return found


def compared(people: Sequence[Person], seed: int = 0) -> dict[str, Any]:
    """All rows of one group, and CPU seconds."""
    everyone, seconds, models = pooled(people), [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        part = people[0].sequences([0])
        fuse([StickyHDPHMM(random_state=s).fit(part.X, part.lengths) for s in range(2)]).model()  # compiles
        for p in people:
            begun = time.process_time()
            models.append(StickyHDPHMM(random_state=seed).fit(p.X, p.lengths))
            seconds.append(time.process_time() - begun)
        begun = time.process_time()
        full = StickyHDPHMM(random_state=seed).fit(everyone.X, everyone.lengths)
        full_seconds = time.process_time() - begun
        paths = paths_of(models, people)
        begun = time.process_time()
        fusion = fuse(models)
        fused = fusion.model()
        matching = time.process_time() - begun
        chain = by_bic(everyone, seed)
    together = full.predict(everyone.X, everyone.lengths)
    found = {
        "fuse(models)": relabelled(fusion, paths),
        "fuse(models).model() decodes": fused.predict(everyone.X, everyone.lengths),
        "no matching": disjoint(paths),
        "full model": together,
        "full model, no state shared": apart(together, people),
        "local states named by the full model": named(disjoint(paths), together),
        "hmmlearn + BIC, all frames": chain.predict(everyone.X, everyone.lengths),
        "local states named by the truth": named(disjoint(paths), everyone.activity),
    }
    return {
        "rows": {name: scores(everyone.activity, path) for name, path in found.items()},
        "people": [p.name for p in people],
        "frames": len(everyone.X),
        "zeta": [m.zeta_ for m in (*models, full)],
        "seconds": {"locals": seconds, "full": full_seconds, "matching": matching},
    }


def named(path: Index, activity: Index) -> Index:
    """Every state as what most of its frames show: the best that any matching of them can do."""
    shown = np.zeros(int(path.max()) + 1, dtype=np.int64)
    for state in np.unique(path):
        shown[state] = np.bincount(activity[path == state]).argmax()
    return shown[path]


def apart(path: Index, people: Sequence[Person]) -> Index:
    """A path of all people in which nobody shares a state: what it is worth within people."""
    person = np.repeat(np.arange(len(people)), [len(p.X) for p in people])
    return np.asarray(np.unique(path * len(people) + person, return_inverse=True)[1])


def by_bic(person: Person, seed: int) -> Any:
    """A model of hmmlearn with full covariances, its number of states by BIC, covariances shrunk after the fit."""
    from hmmlearn.hmm import GaussianHMM

    logging.getLogger("hmmlearn").setLevel(logging.CRITICAL)
    fits = []
    for K in BIC_STATES:
        model = GaussianHMM(K, "full", min_covar=1e-2, n_iter=30, random_state=seed)
        try:
            fits.append((model.fit(person.X, person.lengths).bic(person.X, person.lengths), K, model))
        except ValueError:  # hmmlearn's word for a state that lost its frames
            continue
    model = min(fits)[2]
    weights = np.bincount(model.predict(person.X, person.lengths), minlength=model.n_components)
    mean = np.average(model.covars_, axis=0, weights=weights)
    model.covars_ = (1 - SHRUNK) * model.covars_ + SHRUNK * mean
    return model


def group_task(draw: int, number: int) -> dict[str, Any]:
    """A group of a draw."""
    return compared(groups(draw)[number])


def two_people_task(seed: int) -> dict[str, Any]:
    """The people of the paper, from one start."""
    return compared(two_people(), seed)


def tasks(quick: bool) -> list[Task]:
    """Draw by draw, so that a run that is stopped has some groups of each size."""
    sizes = [size for size, number in SIZES.items() for _ in range(number)]
    draws = [(d, n) for d in range(1 if quick else DRAWS) for n in range(len(sizes))]
    chosen = [(d, n) for d, n in draws if not quick or sizes[n] <= 3]
    found = [Task(f"two people of the paper/{s}", two_people_task, (s,)) for s in (RESTARTS[:1] if quick else RESTARTS)]
    return found + [Task(f"{sizes[n]} people/{d}.{n}", group_task, (d, n)) for d, n in chosen]


OURS, FULL = "fuse(models)", "full model"
BESIDE = ("no matching", FULL, "hmmlearn + BIC, all frames")
PARTS = {
    "local models: theirs beside the full model's states, none shared": ("no matching", "full model, no state shared"),
    "matching: ours beside the full model's": (OURS, "local states named by the full model"),
    "transition table: fused model decodes, beside local paths": ("fuse(models).model() decodes", OURS),
}
"""In which part of a fused segmentation a difference from the full model's arises."""


def kinds(results: Results) -> dict[str, list[Any]]:
    """Results by kind of group."""
    found: dict[str, list[Any]] = defaultdict(list)
    for name, result in results.items():
        found[name.split("/")[0]].append(result)
    return dict(found)


def summary(results: Results) -> Summary:
    """Means, differences by group, and times."""
    rows, differences, times, parts, claims = [], [], [], [], []
    for kind, done in kinds(results).items():

        def of(method: str, measure: str, done: list[Any] = done) -> list[float]:
            return [r["rows"][method][measure] for r in done]

        for method in done[0]["rows"]:
            cells = [f"{np.mean(of(method, m)):.3f}" for m in ("hamming", "ari")]
            rows.append([kind, method, *cells, f"{np.mean(of(method, 'K')):.1f}", str(len(done))])
        for method in BESIDE:
            better = paired(of(method, "hamming"), of(OURS, "hamming")), paired(of(OURS, "ari"), of(method, "ari"))
            differences.append([kind, method, str(better[0]), better[0].verdict, str(better[1]), better[1].verdict])
            if method != BESIDE[-1]:
                text = f"{kind}: {OURS} not behind {method} (Hamming, ARI)."
                held = all(b.verdict != "behind" for b in better)
                claims.append(Claim(text, f"Hamming less by {better[0]}, ARI more by {better[1]}", held))
        for part, (ours, theirs) in PARTS.items():
            if theirs in done[0]["rows"]:
                gains = paired(of(theirs, "hamming"), of(ours, "hamming")), paired(of(ours, "ari"), of(theirs, "ari"))
                parts.append([kind, part, str(gains[0]), gains[0].verdict, str(gains[1]), gains[1].verdict])
        slowest = [max(r["seconds"]["locals"]) + r["seconds"]["matching"] for r in done]
        whole = [r["seconds"]["full"] for r in done]
        frames, share = np.mean([r["frames"] for r in done]), np.sum(slowest) / np.sum(whole)
        times.append([kind, f"{frames:.0f}", f"{np.mean(slowest):.2f}", f"{np.mean(whole):.2f}", f"{share:.2f}"])
    who = sorted({name for r in results.values() for name in r["people"]}, key=lambda n: int(n.split()[1]))
    return Summary(
        [
            Table("Segmentations", ["", "states", "Hamming", "ARI", "states seen", "n"], rows, f"Of {', '.join(who)}."),
            Table(
                f"{OURS} beside others, group by group",
                ["", "beside", "Hamming, less by", "", "ARI, more by", ""],
                differences,
                "Mean difference with its 95 % interval; above zero is better for both.",
            ),
            Table(
                "CPU seconds",
                ["", "frames", "slowest person and matching", "full model", "share"],
                times,
                "Everyone fits at home, side by side.",
            ),
            Table(
                "What limits: a part of ours beside the full model's",
                ["", "part", "Hamming, less by", "", "ARI, more by", ""],
                parts,
                "Above zero is better for ours; below, this part is what the full model does better.",
            ),
        ],
        claims,
    )


STUDY = Study(
    name="mocap/people",
    title="Movements of people whom no choice has seen",
    question="Two to eight people whom no choice has seen: are states that fuse matched by default as good a "
    "segmentation as one model of all frames, as no matching, as hmmlearn?",
    tasks=tasks,
    summary=summary,
    draw=lambda results, folder: [],
    needs={"hmmlearn": "hmm"},
)

if __name__ == "__main__":
    main(STUDY)
