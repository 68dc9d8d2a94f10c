"""Sequences of known states: frames that are independent given their state, and frames that swing as movements do."""

from __future__ import annotations

import numpy as np

from data import Person

CASES = ("independent", "swinging")
STATES, CHANNELS, SEQUENCES, FRAMES = 8, 6, 3, 300
BOUT = 25
"""Frames a state lasts on average."""


def simulated(case: str, seed: int) -> Person:
    """Three sequences over eight states."""
    rng = np.random.default_rng([seed, CASES.index(case)])
    centre = rng.normal(0, 2.0, (STATES, CHANNELS))
    root = rng.normal(0, 0.5, (STATES, CHANNELS, CHANNELS))
    speed, phase = rng.uniform(0.15, 0.6, STATES), rng.uniform(0, 2 * np.pi, (STATES, CHANNELS))
    swing = rng.normal(0, 1.0, (STATES, CHANNELS))
    frames, states = [], []
    for _ in range(SEQUENCES):
        state, path = int(rng.integers(STATES)), []
        while len(path) < FRAMES:
            path += [state] * int(rng.geometric(1 / BOUT) + 5)
            state = int((state + rng.integers(1, STATES)) % STATES)
        z = np.array(path[:FRAMES])
        t = np.arange(FRAMES)[:, None]
        if case == "independent":
            off = np.einsum("tde,te->td", root[z], rng.normal(size=(FRAMES, CHANNELS)))
        else:
            off = swing[z] * np.sin(speed[z][:, None] * t + phase[z]) + 0.2 * rng.normal(size=(FRAMES, CHANNELS))
        frames.append(centre[z] + off)
        states.append(z)
    X = np.concatenate([x - x.mean(axis=0) for x in frames])
    return Person(f"{case} {seed}", X, np.full(SEQUENCES, FRAMES), np.concatenate(states))
