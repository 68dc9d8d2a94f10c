"""Figures of the study: time against accuracy, segmentations, and what people do in the states that were matched."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from segmentations import APART, FULL, NONE, OURS, times, unpacked

from data import Array, Index, held, pooled, two_people
from study import Figure, Result, Results
from style import plain, written

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#f0e442", "#999999")
"""Okabe and Ito's, told apart by most eyes."""
LEAST_SHARE = 0.02
"""Of all frames: states below are not drawn."""
POSES, COLUMNS = 6, 3
"""Poses of a stretch that are drawn, side by side, and panels in a row of the figure."""

BONES = {"trunk": 0.288, "neck": 0.052, "head": 0.13, "upper": 0.186, "fore": 0.146, "thigh": 0.245, "shank": 0.246}
BONES |= {"foot": 0.1, "shoulder": 0.129, "hip": 0.0955}
"""Lengths in body heights (Drillis and Contini, 1966; shoulder and hip: half of the breadth). The data have angles of
joints and no skeleton of the person."""
STANDING = {"humerus": 25.0, "radius": 50.0, "tibia": 35.0}
"""Degrees that are added, as channels are centred: arms a little off the body, elbows and knees bent forwards."""


def draw(results: Results, folder: Path) -> list[Figure]:
    """All figures that these results allow."""
    plain("mocap")
    figures = []
    for setting, words in (("paper", "the paper's setting"), ("default", "the default setting")):
        done = [r for name, r in results.items() if name.startswith(f"{setting}/")]
        shown = sorted(done, key=lambda r: r["scores"][OURS]["hamming"])[len(done) // 2]
        squares(done, folder / f"{setting}_squares.svg")
        skeletons(shown, folder / f"{setting}_skeletons.svg")
        figures += [
            Figure(
                f"{setting}_squares.svg",
                f"The paper's squares, {words}: share of the full model's time by method; areas are 1 - Hamming "
                "(above) and ARI (below), mean over starts.",
            ),
            Figure(
                f"{setting}_skeletons.svg",
                f"Global states as stick figures, {words}: six poses of the longest stretch of person 13 (red) and 14 "
                "(blue), and the activity most frames show. Drawn from ten of the twelve channels on a standard "
                "skeleton: the data have no bones, no angle of the hips (they bend half as much as the knees), and the "
                "lower foot stands on the ground.",
            ),
        ]
    return figures


def squares(done: Sequence[Result], file: Path) -> None:
    """Time against accuracy."""
    import matplotlib.pyplot as plt

    shown = [name for name in done[0]["scores"] if name != APART]
    local, matching, full = times(done)
    share = {FULL: 1.0, NONE: local / full}
    figure, axes = plt.subplots(2, 1, figsize=(7.5, 5), sharex=True, layout="constrained")
    for ax, key, label in zip(axes, ("hamming", "ari"), ("1 - Hamming", "ARI"), strict=True):
        for k, name in enumerate(shown):
            value = float(np.mean([r["scores"][name][key] for r in done]))
            value, height = 1 - value if key == "hamming" else value, share.get(name, (local + matching) / full)
            ax.scatter(k, height, s=1500 * max(value, 0.01), marker="s", color=COLOURS[k], alpha=0.75)
            ax.annotate(f"{value:.2f}", (k, height), ha="center", va="center", fontsize=8, weight="bold")
        ax.set(ylabel="share of full time", ylim=(0, 1.4), xlim=(-0.6, len(shown) - 0.4))
        ax.set_title(f"area: {label}", loc="left", fontsize=9)
    axes[1].set_xticks(range(len(shown)), [n.replace(", ", ",\n") for n in shown])
    written(figure, file)


def skeletons(shown: Result, file: Path) -> None:
    """Stick figures of the global states, one panel each, person 13 above person 14."""
    import matplotlib.pyplot as plt

    everyone = pooled(two_people())
    path, first = unpacked(shown["paths"][OURS]), len(two_people()[0].X)
    sequence = np.repeat(np.arange(len(everyone.lengths)), everyone.lengths)
    owner = (np.arange(len(path)) >= first).astype(int)
    states = [k for k in np.argsort(-np.bincount(path)) if (path == k).mean() >= LEAST_SHARE]
    rows = -(-len(states) // COLUMNS)
    figure, axes = plt.subplots(rows, COLUMNS, figsize=(12, 2.3 * rows), layout="constrained", squeeze=False)
    for ax in axes.ravel():
        ax.set(xlim=(-0.6, POSES + 0.1), ylim=(-2.65, 0.35), aspect="equal")
        ax.axis("off")
    for number, (ax, k) in enumerate(zip(axes.ravel(), states, strict=False), 1):
        ax.set_title(f"state {number}", fontsize=9, loc="left", weight="bold")
        for j, colour in enumerate(("#d55e00", "#0072b2")):
            own = (path == k) & (owner == j)
            top = -1.5 * j
            if not own.any():
                ax.text(-0.5, top - 0.5, f"{13 + j}: not in this state", fontsize=8, color=colour)
                continue
            ax.text(-0.5, top + 0.08, f"{13 + j}: {covered(everyone.activity[own])}", fontsize=8, color=colour)
            stretch = longest(own, sequence)
            for i, frame in enumerate(stretch[np.linspace(0, len(stretch) - 1, POSES).astype(int)]):
                for line in bones(everyone.X[frame]):
                    ax.plot(i + line[:, 0], top - 1.1 + line[:, 1], color=colour, lw=1.1, solid_capstyle="round")
    written(figure, file)


def bones(frame: Array) -> list[Array]:
    """Lines of a stick figure seen from half left, in body heights, from the angles of one frame."""
    at = dict(zip((str(name) for name in held()["channel_names"]), frame, strict=True))
    lean, twist = at["lowerback.rx"], at["lowerback.ry"]
    lines, feet = [], []
    trunk = turned(BONES["trunk"] * down(180 + lean), twist)
    lines += [np.array([0 * trunk, trunk, trunk + (BONES["neck"] + BONES["head"]) * down(180 + lean)])]
    for side, sign in (("r", -1.0), ("l", 1.0)):
        shoulder = trunk + turned(np.array([sign * BONES["shoulder"], 0.0, 0.0]), twist)
        raised = np.clip(STANDING["humerus"] - sign * at[f"{side}humerus.rz"], 0, 175)
        upper = BONES["upper"] * np.array([sign * np.sin(np.radians(raised)), -np.cos(np.radians(raised)), 0.0])
        bent = np.radians(np.clip(STANDING["radius"] + at[f"{side}radius.rx"], 0, 150))
        fore = BONES["fore"] * (np.cos(bent) * upper / BONES["upper"] + np.sin(bent) * np.array([0.0, 0.0, 1.0]))
        elbow = shoulder + turned(upper, twist)
        lines.append(np.array([trunk, shoulder, elbow, elbow + turned(fore, twist)]))
        hip = np.array([sign * BONES["hip"], 0.0, 0.0])
        knee_bent = np.clip(STANDING["tibia"] + at[f"{side}tibia.rx"], 0, 150)
        knee = hip + BONES["thigh"] * down(knee_bent / 2)
        ankle = knee + BONES["shank"] * down(-knee_bent / 2)
        lines.append(np.array([0 * hip, hip, knee, ankle, ankle + BONES["foot"] * down(90 - at[f"{side}foot.rx"] / 2)]))
        feet.append(ankle[1])
    seen = [np.stack([line[:, 0] + 0.6 * line[:, 2], line[:, 1] - min(feet)], axis=1) for line in lines]
    head = seen[0][-1] + BONES["head"] / 2 * np.stack([np.cos(CIRCLE), np.sin(CIRCLE)], axis=1)
    seen[0][-1] = seen[0][1] + (seen[0][-1] - seen[0][1]) * BONES["neck"] / (BONES["neck"] + BONES["head"])
    return [*seen, head]


CIRCLE = np.linspace(0, 2 * np.pi, 25)


def down(angle: float) -> Array:
    """A unit vector, straight down at 0 degrees, forward at 90."""
    return np.array([0.0, -np.cos(np.radians(angle)), np.sin(np.radians(angle))])


def turned(x: Array, twist: float) -> Array:
    """A vector turned about the vertical axis."""
    c, s = np.cos(np.radians(twist)), np.sin(np.radians(twist))
    return np.array([c * x[0] + s * x[2], x[1], c * x[2] - s * x[0]])


def longest(mask: Any, sequence: Index) -> Index:
    """The longest stretch of set frames within a sequence."""
    at = np.flatnonzero(mask)
    breaks = np.flatnonzero((np.diff(at) > 1) | (np.diff(sequence[at]) > 0)) + 1
    return max(np.split(at, breaks), key=len)


def covered(activity: Index) -> str:
    """The activity that makes up most frames, and its share."""
    shares = np.bincount(activity, minlength=12) / len(activity)
    return f"{held()['activity_names'][shares.argmax()]} {shares.max():.0%}"
