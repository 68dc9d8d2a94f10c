"""A watch on the wrist: recordings of four activities, dealt to four sites that fit hmmlearn's models."""

from __future__ import annotations

import logging
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from data import DATA, Array, Index, Person

if TYPE_CHECKING:
    from hmmlearn.hmm import GaussianHMM

SITES, RECORDINGS = 4, 10
"""Sites, and recordings of each; the other 40 are held out."""

STATES, STARTS = 4, 3
"""Of a site's model: one per activity, if all goes well; the most likely of so many fits."""

STAYS = 5
"""Prior number of stays beyond one of each move."""


@cache
def recordings() -> tuple[Array, Index]:
    """Frames (80, 100, 6) and activities (80,)."""
    with np.load(DATA / "basic_motions" / "basic_motions.npz") as held:
        return held["X"].astype(np.float64), held["activity"].astype(np.int64)


def watches(draw: int) -> tuple[list[Person], Person]:
    """Sites, and what is held out, in units of the sites' frames."""
    X, activity = recordings()
    order = np.random.default_rng([77, draw]).permutation(len(X))
    seen = X[order[: SITES * RECORDINGS]].reshape(-1, X.shape[2])
    X = (X - seen.mean(axis=0)) / seen.std(axis=0)

    def person(name: str, chosen: Index) -> Person:
        T = X.shape[1]
        return Person(name, X[chosen].reshape(-1, X.shape[2]), np.full(len(chosen), T), np.repeat(activity[chosen], T))

    parts = np.split(order, RECORDINGS * np.arange(1, SITES + 1))
    return [person(f"watch {j}", part) for j, part in enumerate(parts[:-1])], person("held out", parts[-1])


def fitted_chain(person: Person, shape: str, states: int, seed: int) -> GaussianHMM:
    """The most likely of several fits of hmmlearn."""
    from hmmlearn.hmm import GaussianHMM

    logging.getLogger("hmmlearn").setLevel(logging.CRITICAL)
    fits = []
    for start in range(10 * seed, 10 * seed + STARTS):
        prior = 1 + STAYS * np.eye(states)
        model = GaussianHMM(states, shape, min_covar=1e-2, transmat_prior=prior, n_iter=100, random_state=start)
        try:
            fits.append((float(model.fit(person.X, person.lengths).score(person.X, person.lengths)), start, model))
        except ValueError:  # hmmlearn's word for a state that lost its frames
            continue
    return max(fits)[2]
