"""Four hospitals, one fused model: ``modelweld demo``.

Each hospital trains a Gaussian mixture on its own patients, in its own room, and sends the components' means,
how well they are known and how many patients stand behind them. `fuse` finds out which components of
different hospitals are the same group of patients. Switzerland never measured cholesterol and says so
(``lacks=["cholesterol"]``).

The data are described in ``modelweld/demo/data/NOTICE.md``. Principal investigators: Andras Janosi (Budapest),
William Steinbrunn (Zurich), Matthias Pfisterer (Basel), Robert Detrano (Long Beach and Cleveland).
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from modelweld.core.values import Array
from modelweld.fuse import fuse
from modelweld.fusion import Fusion
from modelweld.inputs.local_model import LocalModel
from modelweld.libraries import read

if TYPE_CHECKING:
    from sklearn.mixture import GaussianMixture

Flags = NDArray[np.bool_]
"""Which rows, or which columns."""

HOSPITALS = {"cleveland": "Cleveland", "hungarian": "Budapest", "switzerland": "Switzerland", "va": "Long Beach"}
"""Names in the file, and names for people."""

COLUMNS = ("age", "trestbps", "chol", "thalach", "oldpeak")
"""What is measured, as the file calls it."""

NAMES = {
    "age": "years",
    "blood pressure": "mmHg",
    "cholesterol": "mg/dl",
    "maximum heart rate": "beats per minute",
    "ST depression": "mm",
}
"""The same in words, and its unit."""

ZERO_IS_MISSING = ("trestbps", "chol")
"""Columns in which no living patient has a zero: zero means that it was not measured."""

MOST_COMPONENTS, STARTS = 5, 20
"""Mixtures tried at each hospital, of one component and more (the BIC takes fewer than five at all four), and starts of
each."""

ACCURACY = 0.02
"""Least variance of a component, in standard units. One to two thirds of a hospital's patients have an ST
depression of exactly zero, and a component free to shrink onto one value has any likelihood it likes. No
measurement is that exact: a reading to half a millimetre has variance .5²/12 = .02 square millimetres, and a
standard unit is about one millimetre. The same share is 3 mmHg of pressure and 7 mg/dl of cholesterol, which
is fair as well."""


@dataclass(frozen=True, eq=False)
class DemoResult:
    """What the hospitals sent, and what became of it.

    Attributes
    ----------
    models : list of LocalModel
        One per hospital, features in the order of `COLUMNS`.
    patients : list of int
        How many patients each hospital learned from.
    fusion : Fusion
        The fused model.

    Examples
    --------
    >>> means, axes, weight = [[54.0, 0.0]], ("component", None), [[1.0, 0.0]]
    >>> model = LocalModel({"means": means}, {"means": axes}, weight={"means": weight})
    >>> DemoResult([model], [80], fuse([model])).numbers_sent
    4
    """

    models: list[LocalModel]
    patients: list[int]
    fusion: Fusion

    @property
    def numbers_sent(self) -> int:
        """Means and standard errors of what was measured, and two numbers of patients, all and ill ones."""
        seen = sum(int(has_measured(model).sum()) * model.sizes["component"] for model in self.models)
        return 2 * seen + 2 * sum(model.sizes["component"] for model in self.models)


def run(seed: int = 0) -> DemoResult:
    """Train at each hospital, then fuse.

    Parameters
    ----------
    seed : int
        Decides the starts of the local fits, and the order of hospitals in `fuse`.

    Returns
    -------
    DemoResult

    Examples
    --------
    >>> result = run()
    >>> result.fusion.sites, result.patients
    (['Cleveland', 'Budapest', 'Switzerland', 'Long Beach'], [303, 270, 117, 99])
    """
    models, patients = [], []
    for hospital, name in HOSPITALS.items():
        measured, ill = load_hospital(hospital)
        models.append(train(measured, ill, site=name, seed=seed))
        patients.append(len(_complete(measured)[0]))
    fusion = fuse(models, seed=seed)
    return DemoResult(fusion._fit.models, patients, fusion)


def load_hospital(hospital: str) -> tuple[Array, Array]:
    """One hospital's measurements (n, 5), NaN where missing, and whether each patient is ill (n,).

    Parameters
    ----------
    hospital : {"cleveland", "hungarian", "switzerland", "va"}
        Name in the file.

    Examples
    --------
    >>> measured, ill = load_hospital("switzerland")
    >>> measured.shape, int(ill.sum()), bool(np.isnan(measured[:, 2]).all())
    ((123, 5), 115, True)
    """
    text = (files("modelweld") / "demo" / "data" / "heart_disease.csv").read_text(encoding="utf-8")
    rows = [row for row in csv.DictReader(text.splitlines()) if row["hospital"] == hospital]
    measured = np.array([[float(row[column] or "nan") for column in COLUMNS] for row in rows])
    for d, column in enumerate(COLUMNS):
        if column in ZERO_IS_MISSING:
            measured[measured[:, d] == 0, d] = np.nan
    return measured, np.array([float(float(row["num"]) > 0) for row in rows])


def train(measured: Array, ill: Array, *, site: str = "", seed: int = 0) -> LocalModel:
    """One hospital's work: a Gaussian mixture of as many components as the BIC likes, and what to send of it.

    Components have diagonal covariances: at all four hospitals the BIC prefers these to full ones.

    Parameters
    ----------
    measured : array (n, D)
        Measurements, as in `COLUMNS`. A column without any value was not measured: the hospital lacks it. Of the
        others, patients with a missing value are left out.
    ill : array (n,)
        Whether each patient is ill. This is auxiliary and has no part in the fit, nor in the fusion.
    site : str
        Name of the hospital.
    seed : int
        Decides the starts.

    Returns
    -------
    LocalModel
        Means with their squared standard errors; expected numbers of patients and of ill patients are auxiliary.

    Examples
    --------
    >>> age = np.repeat([40.0, 70.0], 50) + np.random.default_rng(0).normal(size=100)
    >>> model = train(np.column_stack([age, np.full(100, np.nan)]), np.repeat([0.0, 1.0], 50))
    >>> sorted(model.arrays["means"][:, 0].round().tolist()), sorted(model.arrays["ill"].round().tolist())
    ([40.0, 70.0], [0.0, 50.0])
    >>> model.weight["means"][0]
    array([1., 0.])
    """
    complete, seen, kept = _complete(measured)
    centre, unit = complete.mean(axis=0), complete.std(axis=0)
    standard = (complete - centre) / unit  # starts are drawn by distance: columns must have one scale
    best = best_mixture(standard, seed)
    belongs = best.predict_proba(standard)
    counts = belongs.sum(axis=0)
    names = list(NAMES.items())[: len(seen)]
    own = dict(pair for pair, there in zip(names, seen, strict=True) if there)
    local = LocalModel(
        arrays={"means": centre + unit * best.means_, "counts": counts, "ill": belongs.T @ ill[kept]},
        axes={"means": ("component", "feature"), "counts": ("component",), "ill": ("component",)},
        variance={"means": unit**2 * best.covariances_ / counts[:, None]},
        auxiliary=["counts", "ill"],
        site=site,
        coordinates={"feature": list(own)},
        facts={"points": "patients", "units": own},
    )
    return read(local, lacks=[name for name, _ in names if name not in own])


def has_measured(model: LocalModel) -> Flags:
    """Which features a hospital has measured."""
    means = np.asarray(model.arrays["means"])
    return np.asarray(np.asarray(model.weight.get("means", np.ones(means.shape)))[0] > 0)


def best_mixture(standard: Array, seed: int = 0, starts: int = STARTS) -> GaussianMixture:
    """The mixture of diagonal components, of one and more, that the BIC likes best on columns of one scale."""
    from sklearn.mixture import GaussianMixture

    setting = {"covariance_type": "diag", "reg_covar": ACCURACY, "init_params": "k-means++", "max_iter": 500}
    models = [GaussianMixture(L, n_init=starts, random_state=seed, **setting) for L in range(1, MOST_COMPONENTS + 1)]
    return min((model.fit(standard) for model in models), key=lambda fit: float(fit.bic(standard)))


def _complete(measured: Array) -> tuple[Array, Flags, Flags]:
    """Rows and columns without a missing value, which columns these are, and which rows."""
    missing = np.isnan(measured)
    seen: Flags = np.logical_not(missing.all(axis=0))
    kept: Flags = np.logical_not(missing[:, seen].any(axis=1))
    return measured[kept][:, seen], seen, kept
