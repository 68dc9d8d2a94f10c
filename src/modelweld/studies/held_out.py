"""What fusing buys the four hospitals, on patients that no model has seen.

A third of every hospital's patients is held out. Three models are asked of them: the hospital's own, the one fused from
all hospitals' models, and one fitted to all hospitals' records pooled, which nobody may have. The same is asked of a
hospital that takes no part: there a model of another hospital is what it could borrow. The four things that all
hospitals measure are used.

A model is judged by the mean log density of patients, and by the risk it tells them: the share of ill patients in their
groups, each weighted by the probability that the patient belongs to it. Numbers of ill patients travel with the models.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from modelweld.errors import ModelweldWarning
from modelweld.fuse import fuse
from modelweld.inputs.local_model import Array
from modelweld.inputs.stack import Index
from modelweld.libraries import read, write
from modelweld.studies.hospitals import COLUMNS, HOSPITALS, best_mixture, load_hospital

if TYPE_CHECKING:
    from sklearn.mixture import GaussianMixture

MEASURED_BY_ALL = tuple(d for d, column in enumerate(COLUMNS) if column != "chol")
"""Columns without cholesterol, which Switzerland did not measure."""

SPLITS, STARTS = 3, 5
"""Times the patients are divided, and starts of every fit: some three seconds in all."""


@dataclass(frozen=True)
class Score:
    """Mean log density of a patient in nats, and mean squared error (Brier score) of the risk that is told."""

    log_density: float
    brier: float


@dataclass(frozen=True)
class HeldOut:
    """Scores by model, `home`: of patients of a hospital that takes part; `away`: of one that does not.

    `home` has "own", "fused" and "pooled", `away` "another's" (the others' own models, on average), "fused" and
    "pooled" (of the three others).
    """

    home: dict[str, Score]
    away: dict[str, Score]


@dataclass(frozen=True, eq=False)
class Patients:
    """Measurements (n, D) and whether patients are ill (n,)."""

    X: Array
    ill: Array


@dataclass(frozen=True, eq=False)
class Told:
    """A mixture, the one that has the groups (the same or another), and the share of ill patients in each group."""

    density: GaussianMixture
    groups: GaussianMixture
    share_ill: Array

    def score(self, held: Patients) -> Array:
        """Log density and squared error of the risk of every patient, (n, 2)."""
        risk = self.groups.predict_proba(held.X) @ self.share_ill
        return np.column_stack([self.density.score_samples(held.X), (risk - held.ill) ** 2])


def measure(seed: int = 0, splits: int = SPLITS) -> HeldOut:
    """Divide, train, fuse and ask, some times over.

    Parameters
    ----------
    seed : int
        Divides the patients, and decides the starts of fits.
    splits : int
        How many times.
    """
    scores: dict[tuple[str, str], list[Array]] = {}
    for split in range(splits):
        rng = np.random.default_rng([seed, split])
        parts = [_divide(_load(hospital), rng) for hospital in HOSPITALS]
        train, held = [part[0] for part in parts], [part[1] for part in parts]
        own = [_fit(part, seed) for part in train]
        everyone = {"fused": _fused(own, train), "pooled": _fit(_together(train), seed)}
        for j, patients in enumerate(held):
            others = [i for i in range(len(train)) if i != j]
            away = {
                "fused": _fused([own[i] for i in others], [train[i] for i in others]),
                "pooled": _fit(_together([train[i] for i in others]), seed),
            }
            asked = {("home", "own"): [own[j]], ("away", "another's"): [own[i] for i in others]}
            asked |= {("home", name): [model] for name, model in everyone.items()}
            asked |= {("away", name): [model] for name, model in away.items()}
            for key, models in asked.items():
                scores.setdefault(key, []).append(np.mean([model.score(patients) for model in models], axis=0))
    means = {key: Score(*np.concatenate(found).mean(axis=0).tolist()) for key, found in scores.items()}
    return HeldOut(*({name: score for (at, name), score in means.items() if at == place} for place in ("home", "away")))


def _load(hospital: str) -> Patients:
    measured, ill = load_hospital(hospital)
    X = measured[:, MEASURED_BY_ALL]
    complete = ~np.isnan(X).any(axis=1)
    return Patients(X[complete], ill[complete])


def _divide(patients: Patients, rng: np.random.Generator) -> tuple[Patients, Patients]:
    """Two thirds to learn from, one third held out."""
    order = rng.permutation(len(patients.X))
    third = len(order) // 3

    def some(rows: Index) -> Patients:
        return Patients(patients.X[rows], patients.ill[rows])

    return some(order[third:]), some(order[:third])


def _together(parts: Sequence[Patients]) -> Patients:
    return Patients(np.concatenate([p.X for p in parts]), np.concatenate([p.ill for p in parts]))


def _fit(patients: Patients, seed: int) -> Told:
    """A mixture of one's own patients, in their units."""
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler().fit(patients.X)
    fitted = make_pipeline(scaler, best_mixture(scaler.transform(patients.X), seed, STARTS))
    mixture = write(read(fitted), "GaussianMixture")
    return Told(mixture, mixture, _share_ill(*_count(mixture, patients), patients.ill.mean()))


def _fused(own: Sequence[Told], train: Sequence[Patients]) -> Told:
    """What `fuse` makes of the hospitals' mixtures; ill patients are added through the matching."""
    fusion = fuse([read(told.groups, X=part.X) for told, part in zip(own, train, strict=True)])
    number, ill = np.zeros((2, len(fusion.counts)))
    for labels, told, part in zip(fusion.labels, own, train, strict=True):
        patients, ill_ones = _count(told.groups, part)
        np.add.at(number, labels, patients)
        np.add.at(ill, labels, ill_ones)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelweldWarning)  # what the density loses is what is measured here
        density = fusion.model()
    return Told(density, fusion.model("moments"), _share_ill(number, ill, ill.sum() / number.sum()))


def _count(mixture: GaussianMixture, patients: Patients) -> tuple[Array, Array]:
    """Expected numbers of patients and of ill ones in each component."""
    belongs = mixture.predict_proba(patients.X)
    return belongs.sum(axis=0), belongs.T @ patients.ill


def _share_ill(number: Array, ill: Array, overall: float) -> Array:
    """Shares of ill patients, as if every group had one patient more of the overall share."""
    return np.asarray((ill + overall) / (number + 1))
