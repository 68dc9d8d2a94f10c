"""Figures of the study: time against accuracy, segmentations, matched states, people added."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from data import activity_names, channel_names, pooled, two_people
from study import Figure, Results
from style import plain, written

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#f0e442", "#999999")
"""Okabe and Ito's, told apart by most eyes."""
PEOPLE_COLOURS = ("#d55e00", "#0072b2")
LEAST_SHARE = 0.02
"""Of all frames: states below are not drawn."""


def draw(results: Results, folder: Path) -> list[Figure]:
    """All figures that these results allow."""
    plain("mocap")
    figures = []
    for setting in ("paper", "default"):
        done = [r for name, r in results.items() if name.startswith(f"{setting} restart")]
        squares(done, folder / f"{setting}_squares.svg")
        shown = typical(done)
        segments(shown, folder / f"{setting}_segments.svg")
        states(shown, folder / f"{setting}_states.svg")
        words = "the paper's setting" if setting == "paper" else "the default setting"
        figures += [
            Figure(
                f"{setting}_squares.svg",
                f"As the paper's figure, {words}: share of the full model's time against method; the area of a square "
                "is 1 - Hamming (above) and ARI (below), mean over restarts.",
            ),
            Figure(
                f"{setting}_segments.svg",
                f"Six sequences, {words}, the restart with the middle Hamming distance. A colour is a state; each "
                "model's states have the colour of the activity they cover best, hatched where another state has it "
                "already.",
            ),
            Figure(
                f"{setting}_states.svg",
                f"Global states, {words}: channels of the longest stretch of each person (red 13, blue 14), three "
                "seconds at most, and the activities its frames show.",
            ),
        ]
    people = {int(name.split()[1]): r for name, r in results.items() if name.startswith("people")}
    added(people, folder / "people.svg")
    return [
        *figures,
        Figure("people.svg", "As people of the database are added: CPU time and held-out log likelihood."),
    ]


def typical(done: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The restart whose Hamming distance, states matched by means + covariances, is in the middle."""
    return sorted(done, key=lambda r: r["scores"]["means + covariances"]["hamming"])[len(done) // 2]


def squares(done: Sequence[Mapping[str, Any]], file: Path) -> None:
    """Time against accuracy."""
    import matplotlib.pyplot as plt

    full = np.mean([r["seconds"]["full"] for r in done])
    local = np.mean([max(r["seconds"]["local"]) for r in done])
    times = {
        name: 1.0
        if name == "full model"
        else (local + np.mean([r["seconds"]["matching"].get(name, 0.0) for r in done])) / full
        for name in done[0]["scores"]
        if "decodes" not in name
    }
    figure, axes = plt.subplots(2, 1, figsize=(7.5, 5), sharex=True, layout="constrained")
    for ax, key, label in zip(axes, ("hamming", "ari"), ("1 - Hamming", "ARI"), strict=True):
        for k, (name, share) in enumerate(times.items()):
            value = np.mean([r["scores"][name][key] for r in done])
            value = 1 - value if key == "hamming" else value
            ax.scatter(k, share, s=1500 * max(value, 0.01), marker="s", color=COLOURS[k % len(COLOURS)], alpha=0.75)
            ax.annotate(f"{value:.2f}", (k, share), ha="center", va="center", fontsize=8, weight="bold")
        ax.set(
            ylabel="share of full time", ylim=(0, max(1.4, 1.3 * max(times.values()))), xlim=(-0.6, len(times) - 0.4)
        )
        ax.set_title(f"area: {label}", loc="left", fontsize=9)
    axes[1].set_xticks(range(len(times)), [n.replace(" + ", " +\n").replace(", ", ",\n") for n in times])
    written(figure, file)


def unpacked(runs: Sequence[Sequence[int]]) -> Any:
    """A path from its runs."""
    return np.concatenate([np.full(n, k) for k, n in runs])


def colours_of(path: Any, activity: Any) -> dict[int, tuple[int, bool]]:
    """For each state the activity it covers best, and whether a larger state has it already."""
    taken: set[int] = set()
    result = {}
    for k in sorted(np.unique(path), key=lambda k: -(path == k).sum()):
        covered = int(np.bincount(activity[path == k]).argmax())
        result[int(k)] = (covered, covered in taken)
        taken.add(covered)
    return result


def segments(best: Mapping[str, Any], file: Path) -> None:
    """Activities and segmentations of the six sequences."""
    import matplotlib.pyplot as plt
    from matplotlib.patches import Patch

    everyone = pooled(two_people())
    palette = plt.get_cmap("tab20")(np.linspace(0, 1, 20))[[0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 1, 3]]
    rows = {"activity": everyone.activity, **{name: unpacked(runs) for name, runs in best["paths"].items()}}
    figure, axes = plt.subplots(3, 2, figsize=(10, 5.2), layout="constrained")
    ends = np.cumsum(everyone.lengths)
    for s, ax in enumerate(axes.T.ravel()):
        own = slice(ends[s] - everyone.lengths[s], ends[s])
        for y, (_, path) in enumerate(rows.items()):
            shade = {a: (a, False) for a in range(12)} if y == 0 else colours_of(path, everyone.activity)
            cuts = [0, *(np.flatnonzero(np.diff(path[own])) + 1), int(everyone.lengths[s])]
            for begin, end in pairwise(cuts):
                a, again = shade[int(path[own][begin])]
                style = {"hatch": "////", "edgecolor": "white"} if again else {"edgecolor": "none"}
                ax.barh(y, (end - begin) / 10, left=begin / 10, height=0.85, color=palette[a], linewidth=0, **style)
        ax.set(yticks=range(len(rows)), yticklabels=rows, ylim=(len(rows) - 0.5, -0.5))
        ax.set_title(f"person {13 if s < 3 else 14}, sequence {s % 3 + 1}", fontsize=9, loc="left")
    for ax in axes[-1]:
        ax.set_xlabel("seconds")
    handles = [Patch(color=palette[a], label=name) for a, name in enumerate(activity_names())]
    figure.legend(handles=handles, loc="outside lower center", ncols=6, fontsize=8, frameon=False)
    written(figure, file)


def states(best: Mapping[str, Any], file: Path) -> None:
    """Channel traces of the global states, and what people do in them."""
    import matplotlib.pyplot as plt

    people = two_people()
    everyone = pooled(people)
    path = unpacked(best["paths"]["fused"])
    owner = np.repeat([0, 1], [len(p.X) for p in people])
    sequence = np.repeat(np.arange(len(everyone.lengths)), everyone.lengths)
    shown = [k for k in np.argsort(-np.bincount(path)) if (path == k).mean() >= LEAST_SHARE]
    unit = everyone.X.std(axis=0)
    columns = 7
    rows = -(-len(shown) // columns)
    figure, axes = plt.subplots(rows, columns, figsize=(12, 2.9 * rows), layout="constrained", squeeze=False)
    for ax in axes.ravel():
        ax.axis("off")
    for ax, k in zip(axes.ravel(), shown, strict=False):
        for j in (0, 1):
            stretch = longest((path == k) & (owner == j), sequence)
            for channel in range(12):
                trace = everyone.X[stretch, channel] / unit[channel] / 4
                ax.plot(np.arange(len(stretch)) / 10, trace - channel, color=PEOPLE_COLOURS[j], linewidth=0.8)
        names = [
            f"{'13' if j == 0 else '14'}: {covered(everyone.activity[(path == k) & (owner == j)])}"
            for j in (0, 1)
            if ((path == k) & (owner == j)).any()
        ]
        ax.set_title("\n".join(names), fontsize=7, loc="left")
        ax.set(xlim=(0, 3), ylim=(-12.2, 1.2))
    for channel, name in enumerate(channel_names()):
        axes[0, 0].annotate(name, (-0.05, -channel), fontsize=5, ha="right", va="center", annotation_clip=False)
    written(figure, file)


def longest(mask: Any, sequence: Any) -> Any:
    """The longest stretch of set frames within a sequence, thirty frames at most."""
    at = np.flatnonzero(mask)
    if not len(at):
        return at
    breaks = np.flatnonzero((np.diff(at) > 1) | (np.diff(sequence[at]) > 0)) + 1
    return max(np.split(at, breaks), key=len)[:30]


def covered(activity: Any) -> str:
    """The activities that make up most frames."""
    shares = np.bincount(activity, minlength=12) / len(activity)
    order = [a for a in np.argsort(-shares)[:2] if shares[a] >= 0.15]
    return ", ".join(f"{activity_names()[a]} {shares[a]:.0%}" for a in order)


def added(people: Mapping[int, Mapping[str, Any]], file: Path) -> None:
    """Time and held-out likelihood over the number of people."""
    import matplotlib.pyplot as plt

    numbers = sorted(people)
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.5, 3.2), layout="constrained")
    curves = {"all local fits": "local", "slowest local fit": "slowest", "matching": "matching", "pooled fit": "pooled"}
    for k, (label, key) in enumerate(curves.items()):
        points = [(n, people[n]["seconds"][key]) for n in numbers if key in people[n]["seconds"]]
        left.loglog(*zip(*points, strict=True), "o-", color=COLOURS[k], label=label)
    left.set(xlabel="people", ylabel="CPU seconds")
    left.set_xticks(numbers, map(str, numbers))
    left.minorticks_off()
    left.legend(frameon=False, fontsize=8)
    for k, key in enumerate(("local models", "fused", "pooled")):
        points = [(n, people[n]["likelihood"][key]) for n in numbers if key in people[n]["likelihood"]]
        right.plot(*zip(*points, strict=True), "o-", color=COLOURS[k], label="own model" if k == 0 else key)
    right.set(xlabel="people", ylabel="held-out log likelihood per frame", xscale="log")
    right.set_xticks(numbers, map(str, numbers))
    right.minorticks_off()
    right.legend(frameon=False, fontsize=8)
    written(figure, file)
