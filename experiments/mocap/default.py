"""Does the bare call pay? Segmentations by states that `fuse(models)` matched, beside states that are not matched.

python experiments/mocap/default.py            # what was not used for choosing; 15 CPU minutes
python experiments/mocap/default.py --quick    # one of each

People's movements by StickyHDPHMM: the two people of the paper, sessions of one person twice, sessions of two people
who share descriptions. The same by hmmlearn's GaussianHMM, told ten states, and a watch's sensors; also without X.
Pairs with even numbers, even seeds and draws of sensors below 16 were used for choosing the default; the others are
reported.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from study import Claim, Results, Study, Summary, Table, Task, main  # isort: skip; first: it sets the threads

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from matchings import disjoint, paths_of, relabelled, scores
from sensors import SITES, STATES, fitted_chain, watches
from sessions import pairs, strangers

from data import Index, Person, pooled, two_people
from modelweld import fuse, read
from modelweld.hmm import StickyHDPHMM
from modelweld.kinds.mixture_completion import merge_components
from paired import paired

TOLD = 10
"""States that hmmlearn's models of people are told."""

MARGIN = 0.01
"""By which a mean may lie below no matching."""

TITLES = {
    "two people": "the two people of the paper",
    "one person": "one person twice",
    "strangers": "two people",
    "hmmlearn, one person": "one person twice, hmmlearn",
    "hmmlearn, strangers": "two people, hmmlearn",
    "sensors": "a watch's sensors, hmmlearn, held out",
}


def sticky(people: Sequence[Person], seed: int = 0) -> dict[str, Any]:
    """Local models of a StickyHDPHMM, fused by default, and the model of all frames."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        models = [StickyHDPHMM(random_state=seed).fit(p.X, p.lengths) for p in people]
        everyone = pooled(people)
        full = StickyHDPHMM(random_state=seed).fit(everyone.X, everyone.lengths)
        paths = paths_of(models, people)
        return {
            "no matching": scores(everyone.activity, disjoint(paths)),
            "fuse(models)": scores(everyone.activity, relabelled(fuse(models), paths)),
            "full model": scores(everyone.activity, full.predict(everyone.X, everyone.lengths)),
        }


def told(people: Sequence[Person], seed: int) -> dict[str, Any]:
    """Local models of hmmlearn, fused with their frames and without; everyone's frames decoded by his own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        models = [fitted_chain(p, "full" if seed % 4 > 1 else "diag", TOLD, 0) for p in people]
        paths, activity = paths_of(models, people), pooled(people).activity
        return {
            "no matching": scores(activity, disjoint(paths)),
            "fuse(models)": scores(activity, relabelled(fuse(models), paths)),
            "fuse(read(X=X))": scores(activity, relabelled(fuse(with_frames(models, people)), paths)),
        }


def with_frames(models: Sequence[Any], people: Sequence[Person]) -> list[Any]:
    """What sites send that have their frames at hand."""
    return [read(m, X=p.X, lengths=p.lengths, site=p.name) for m, p in zip(models, people, strict=True)]


def sensors(draw: int) -> dict[str, Any]:
    """Recordings that no site has seen, decoded by the fused model."""
    people, unseen = watches(draw)
    shape = "diag" if draw % 2 else "full"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        models = [fitted_chain(p, shape, STATES, draw) for p in people]
        sent = with_frames(models, people)
        matched = {
            "no matching": np.arange(SITES * STATES),
            "fuse(models)": np.concatenate(fuse(models).labels),
            "fuse(read(X=X))": np.concatenate(fuse(sent).labels),
        }
        return {
            name: scores(unseen.activity, decoded(models, sent, labels, unseen)) for name, labels in matched.items()
        }


def decoded(models: Sequence[Any], sent: Sequence[Any], labels: Index, unseen: Person) -> Index:
    """The path of new frames through states that are one where their labels say so; numbers are added."""
    from hmmlearn.hmm import GaussianHMM

    labels = np.unique(labels, return_inverse=True)[1]
    means = np.concatenate([m.means_ for m in models])
    spreads = np.concatenate([m.covars_ for m in models])  # hmmlearn gives whole matrices
    counts = np.concatenate([np.asarray(m.arrays["counts"]) for m in sent])
    K = int(labels.max()) + 1
    moves, starts = np.full((K, K), 1e-3), np.full(K, 1e-3)
    for own, part in zip(np.split(labels, SITES), sent, strict=True):
        np.add.at(moves, (own[:, None], own), np.asarray(part.arrays["moves"]))
        np.add.at(starts, own, np.asarray(part.arrays["starts"]))
    chain = GaussianHMM(K, "full")
    chain.startprob_, chain.transmat_ = starts / starts.sum(), moves / moves.sum(axis=1, keepdims=True)
    chain.means_, covariances, _ = merge_components(means, spreads, counts, labels)
    chain.covars_ = covariances + 1e-6 * np.eye(means.shape[1])
    return chain.predict(unseen.X, unseen.lengths)


def two_people_task(seed: int) -> dict[str, Any]:
    """The people of the paper, from one seed."""
    return {"rows": sticky(two_people(), seed)}


def pair_task(kind: str, number: int, seed: int) -> dict[str, Any]:
    """A pair of sessions."""
    both = (strangers if kind.endswith("strangers") else pairs)(seed)[number]
    return {"rows": told(both, number) if kind.startswith("hmmlearn") else sticky(both)}


def sensors_task(draw: int) -> dict[str, Any]:
    """Recordings dealt anew."""
    return {"rows": sensors(draw)}


def tasks(quick: bool) -> list[Task]:
    """Odd seeds and odd pairs; the first of each kind if quick."""
    seeds = range(1, 2 if quick else 20, 2)
    found = [Task(f"two people/{seed}", two_people_task, (seed,)) for seed in seeds]
    for kind, draws in (("one person", 3), ("strangers", 3), ("hmmlearn, one person", 1), ("hmmlearn, strangers", 1)):
        for seed in range(1 if quick else draws):
            every = range(1, len((strangers if kind.endswith("strangers") else pairs)(seed)), 2)
            chosen = every[:1] if quick else every
            found += [Task(f"{kind}/{seed}.{n}", pair_task, (kind, n, seed)) for n in chosen]
    return found + [Task(f"sensors/{draw}", sensors_task, (draw,)) for draw in range(16, 17 if quick else 32)]


def summary(results: Results) -> Summary:
    """Means by kind, and whether matching pays."""
    rows, claims = [], []
    for kind, title in TITLES.items():
        found = [r["rows"] for name, r in results.items() if name.rsplit("/", 1)[0] == kind]
        if not found:
            continue
        without = np.array([r["no matching"]["ari"] for r in found])
        for method in found[0]:
            ari = np.array([r[method]["ari"] for r in found])
            gain = ari - without
            cells = [f"{np.mean([r[method][what] for r in found]):.3f}" for what in ("hamming", "ari")]
            K = f"{np.mean([r[method]['K'] for r in found]):.1f}"
            below = f"{int((gain < 0).sum())} of {len(gain)}"
            rows.append([title, method, *cells, K, str(paired(ari, without)), below])
            if method.startswith("fuse") and (method.endswith("X))") or "hmmlearn" not in title):
                text = f"{title}: {method} at most {MARGIN} below no matching"
                claims.append(Claim(text, str(paired(ari, without)), bool(gain.mean() >= -MARGIN)))
    columns = ["", "states", "Hamming", "ARI", "states seen", "ARI less that of no matching", "draws below it"]
    return Summary(
        [Table("Segmentations", columns, rows, "Means over draws; differences with 95 % intervals.")], claims
    )


STUDY = Study(
    name="mocap/default",
    title="Movements and sensors: does the bare call pay?",
    question="Do states that fuse matched by default follow activities better than states that are not matched at all?",
    tasks=tasks,
    summary=summary,
    draw=lambda results, folder: [],
    needs={"hmmlearn": "hmm"},
)

if __name__ == "__main__":
    main(STUDY)
