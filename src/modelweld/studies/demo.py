"""Four hospitals, one fused model: ``python -m modelweld.studies.demo``.

Each hospital trains a Gaussian mixture on its own patients, in its own room, and sends the components' means,
how well they are known and how many patients stand behind them. `fuse` finds out which components of
different hospitals are the same group of patients. Switzerland never measured cholesterol and says so by
weight 0.

The data are described in ``modelweld/studies/data/NOTICE.md``. Principal investigators: Andras Janosi (Budapest),
William Steinbrunn (Zurich), Matthias Pfisterer (Basel), Robert Detrano (Long Beach and Cleveland).
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from modelweld.fuse import fuse
from modelweld.fusion import Fusion
from modelweld.inputs.local_model import Array, LocalModel

Flags = NDArray[np.bool_]

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

HOSPITALS = {
    "cleveland": "Cleveland",
    "hungarian": "Budapest",
    "switzerland": "Switzerland",
    "va": "Long Beach",
}
"""Names in the file, and names for people."""

COLUMNS = {
    "age": ("age", "age\n[dim]years[/]", "years", 0),
    "trestbps": ("blood pressure", "blood\npressure\n[dim]mmHg[/]", "mmHg", 0),
    "chol": ("cholesterol", "choles-\nterol\n[dim]mg/dl[/]", "mg/dl", 0),
    "thalach": ("maximum heart rate", "max\nheart\nrate", "beats per minute", 0),
    "oldpeak": ("ST depression", "ST de-\npression\n[dim]mm[/]", "mm", 1),
}
"""What is measured: in the file, in words, as head of a column, its unit, digits to show."""

ZERO_IS_MISSING = ("trestbps", "chol")

MOST_COMPONENTS = 5
STARTS = 20
ACCURACY = 0.02
"""Least variance of a component, in standard units. One to two thirds of a hospital's patients have an ST
depression of exactly zero, and a component free to shrink onto one value has any likelihood it likes. No
measurement is that exact: a reading to half a millimetre has variance .5²/12 = .02 square millimetres, and a
standard unit is about one millimetre. The same share is 3 mmHg of pressure and 7 mg/dl of cholesterol, which
is fair as well."""

SMALLEST_MOVE = 0.05
"""Deviations that round to nothing are not worth a word."""

WIDTH = 100
HEADLINE = """\
[bold]Four hospitals, four models of their own patients, one model fused from the four.[/]
No patient's record leaves a hospital: only the parameters of its model do."""


@dataclass(frozen=True, eq=False)
class DemoResult:
    """What the hospitals sent, and what became of it.

    Attributes
    ----------
    models : list of LocalModel
        One per hospital.
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
        seen = sum(int((np.asarray(model.weight["means"]) > 0).sum()) for model in self.models)
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
    return DemoResult(models, patients, fuse(models, seed=seed))


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
    text = (files("modelweld") / "studies" / "data" / "heart_disease.csv").read_text(encoding="utf-8")
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
    measured : (n, D) array
        Measurements. A column without any value was not measured: it is sent with weight 0. Of the others,
        patients with a missing value are left out.
    ill : (n,) array
        Whether each patient is ill. This rides along and has no part in the fit, nor in the fusion.
    site : str
        Name of the hospital.
    seed : int
        Decides the starts.

    Returns
    -------
    LocalModel
        Means with their squared standard errors; expected numbers of patients and of ill patients ride.

    Examples
    --------
    >>> age = np.repeat([40.0, 70.0], 50) + np.random.default_rng(0).normal(size=100)
    >>> model = train(np.column_stack([age, np.full(100, np.nan)]), np.repeat([0.0, 1.0], 50))
    >>> sorted(model.arrays["means"][:, 0].round().tolist()), sorted(model.arrays["ill"].round().tolist())
    ([40.0, 70.0], [0.0, 50.0])
    >>> model.weight["means"][0]
    array([1., 0.])
    """
    from sklearn.mixture import GaussianMixture

    complete, seen, kept = _complete(measured)
    centre, unit = complete.mean(axis=0), complete.std(axis=0)
    standard = (complete - centre) / unit  # starts are drawn by distance: columns must have one scale
    fits = [
        GaussianMixture(
            L,
            covariance_type="diag",
            reg_covar=ACCURACY,
            n_init=STARTS,
            init_params="k-means++",
            max_iter=500,
            random_state=seed,
        ).fit(standard)
        for L in range(1, MOST_COMPONENTS + 1)
    ]
    best = min(fits, key=lambda fit: float(fit.bic(standard)))
    belongs = best.predict_proba(standard)
    counts = belongs.sum(axis=0)
    means, variance, weight = np.zeros((3, len(counts), len(seen)))
    means[:, seen] = centre + unit * best.means_
    variance[:, seen] = unit**2 * best.covariances_ / counts[:, None]
    weight[:, seen] = 1.0
    return LocalModel(
        arrays={"means": means, "counts": counts, "ill": belongs.T @ ill[kept]},
        axes={"means": ("component", None), "counts": ("component",), "ill": ("component",)},
        variance={"means": variance},
        weight={"means": weight},
        riding=["counts", "ill"],
        site=site,
    )


def _complete(measured: Array) -> tuple[Array, Flags, Flags]:
    """Rows and columns without a missing value, which columns these are, and which rows."""
    missing = np.isnan(measured)
    seen: Flags = np.logical_not(missing.all(axis=0))
    kept: Flags = np.logical_not(missing[:, seen].any(axis=1))
    return measured[kept][:, seen], seen, kept


def show(result: DemoResult, console: Console) -> None:
    """Print what was sent and what it was fused to, for people.

    Parameters
    ----------
    result : DemoResult
        What to print.
    console : rich.console.Console
        Where to.

    Examples
    --------
    >>> from rich.console import Console
    >>> show(run(), Console(width=100, quiet=True))
    """
    console.print()
    console.print(HEADLINE)
    for table in (_sent(result), _groups(result)):
        console.print()
        console.print(table)
    for sentence in _sentences(result):
        console.print(sentence, highlight=False)
    console.print()


def _sent(result: DemoResult) -> Table:
    """What each hospital sent."""
    table = _table("What each hospital sent")
    table.add_column("hospital", style="cyan")
    table.add_column("patients", justify="right")
    table.add_column("components", justify="right")
    table.add_column("patients in each", justify="right")
    table.add_column("never measured")
    for model, patients in zip(result.models, result.patients, strict=True):
        sizes = sorted(_patients(model).tolist(), reverse=True)
        unseen = [name for (name, *_), seen in zip(COLUMNS.values(), _seen(model), strict=True) if not seen]
        each = " + ".join(map(str, sizes))
        table.add_row(model.site, str(patients), str(len(sizes)), each, ", ".join(unseen))
    return table


def _groups(result: DemoResult) -> Table:
    """The fused groups of patients: which hospitals have them, and what they are like."""
    fusion = result.fusion
    table = _table("The groups of patients they have between them")
    table.add_column("", justify="right", style="bold")
    for site in fusion.sites:
        table.add_column(site.replace(" ", "\n"), justify="right", style="cyan")
    table.add_column("all", justify="right", style="bold")
    for _, head, _, _ in COLUMNS.values():
        table.add_column(head, justify="right")
    table.add_column("ill\n[dim]%[/]", justify="right")
    share_ill = fusion.total("ill") / fusion.total("counts")
    for k in range(fusion.K):
        held = [labels == k for labels in fusion.labels]
        sizes = [int(_patients(m)[h].sum()) for m, h in zip(result.models, held, strict=True)]
        # what no holder measured is known from other groups alone: that is nothing to show
        known = np.any([_seen(m) for m, h in zip(result.models, held, strict=True) if h.any()], axis=0)
        means = zip(fusion.atoms[k], COLUMNS.values(), known, strict=True)
        table.add_row(
            str(k + 1),
            *(str(size) if h.any() else "[dim]-[/]" for size, h in zip(sizes, held, strict=True)),
            str(sum(sizes)),
            *(f"{mean:.{digits}f}" if there else "[dim]-[/]" for mean, (*_, digits), there in means),
            f"{100 * share_ill[k]:.0f}",
        )
    return table


def _sentences(result: DemoResult) -> list[str]:
    """The same in plain words."""
    fusion = result.fusion
    deviations = np.sqrt(fusion.hyperparameters["noise"])
    columns_moved = zip(deviations, COLUMNS.values(), strict=True)
    moves = [f"{sd:.1f} {unit} ({name})" for sd, (name, _, unit, _) in columns_moved if sd >= SMALLEST_MOVE]
    trust = np.sqrt(fusion.hyperparameters["trust"])
    components = sum(len(labels) for labels in fusion.labels)
    shared, everywhere = (fusion.counts > 1).sum(), (fusion.counts == len(fusion.sites)).sum()
    columns = [int(_seen(model).sum()) for model in result.models]
    measurements = int(np.dot(result.patients, columns))
    return [
        f"{components} components make [bold]{fusion.K} groups[/]: {shared} shared by several hospitals, "
        f"{everywhere} of these by all, and {fusion.K - shared} found at one hospital alone.",
        f"From hospital to hospital the mean of a group moves by about {', '.join(moves)}. This is learned, and is "
        f"beyond what the hospitals' own errors explain (taken {trust:.1f} times as large as stated; learned too).",
        "Ill means that heart disease was diagnosed. The diagnosis rode along: no fit and no match used it.",
        f"{result.numbers_sent} numbers travelled, in place of {measurements:,} measurements of "
        f"{sum(result.patients)} patients.",
    ]


def _patients(model: LocalModel) -> NDArray[np.int64]:
    """Expected numbers of patients as whole ones: rounded sums, so that they add up to all patients."""
    sums = np.rint(np.cumsum(np.asarray(model.arrays["counts"])))
    return np.asarray(np.diff(sums, prepend=0.0), dtype=np.int64)


def _seen(model: LocalModel) -> Flags:
    """Which columns a hospital measured."""
    return np.asarray(np.asarray(model.weight["means"])[0] > 0)


def _table(title: str) -> Table:
    """An empty table in the one style of this page."""
    from rich import box
    from rich.table import Table

    return Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
    )


def main() -> None:
    """Run the demonstration and print it."""
    from rich.console import Console

    console = Console()
    # a pipe has no width, for which rich takes 80 columns: too few for the table
    width = min(console.width, WIDTH) if console.is_terminal else WIDTH
    show(run(), Console(width=width))


if __name__ == "__main__":
    main()
