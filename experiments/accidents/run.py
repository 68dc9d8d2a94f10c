"""Accidents of first contact: is the site named at which one happened, and are clean fusions left in peace?

    python experiments/accidents/run.py            # three seeds: half a CPU minute; --accept keeps it here
    python experiments/accidents/run.py --smoke    # one seed of one table

Five real tables are dealt to sites, every one of which fits a Gaussian mixture (three diagonal components) to rows with
named columns and reads it with its data, as a newcomer does: ``read(model, X=X)``, ``fuse(models)``. Then one accident
happens, at one site or at all. *Named* is whether warnings or `fusion.diagnosis.sites()` name the guilty site (where it
happens at all sites: whether a warning says what it is); *innocent*, whether they name another; *silent*, whether
nothing is said at all. README.md has the figures.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from study import Claim, Result, Results, Study, Summary, Table, Task, main  # isort: skip; first: it sets the threads

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn import datasets
from sklearn.mixture import GaussianMixture

import modelweld
from modelweld.core.values import Array as Rows
from modelweld.core.values import Flags
from modelweld.demo.hospitals import HOSPITALS, NAMES, load_hospital
from modelweld.errors import sites_named

SITES = {"wine": 4, "breast cancer": 6, "diabetes": 8, "iris": 3}
FEATURES = 6
"""Columns of each table, drawn at random: what people fuse has few."""


class Sites(NamedTuple):
    """Rows of every site, with names of their columns; `given` are the rows that sites give with their models."""

    rows: list[Rows]
    names: list[list[str]]
    given: list[Rows] | None = None


class Accident(NamedTuple):
    """What happens to sites at site j and feature d, and what a warning says where all sites are guilty."""

    happen: Callable[[Sites, int, int, np.random.Generator], Sites]
    said: str = ""


def at_one(change: Callable[[Rows, int, np.random.Generator], Rows]) -> Accident:
    """A change of one site's rows."""

    def happen(sites: Sites, j: int, d: int, rng: np.random.Generator) -> Sites:
        rows = [X.copy() for X in sites.rows]
        rows[j] = change(rows[j], d, rng)
        return sites._replace(rows=rows)

    return Accident(happen)


def set_column(value: Callable[[Rows, Flags], object], share: float = 1.0) -> Accident:
    """Other values in a share of one site's rows."""

    def change(X: Rows, d: int, rng: np.random.Generator) -> Rows:
        chosen = rng.random(len(X)) < share
        X[chosen, d] = np.broadcast_to(np.asarray(value(X[:, d], chosen)), len(X))[chosen]
        return X

    return at_one(change)


def add_number(sites: Sites, everywhere: bool, j: int) -> Sites:
    """A running number as a further column, at site j or at all."""
    own = [everywhere or i == j for i in range(len(sites.rows))]
    rows = [
        np.column_stack([X, np.arange(1.0, len(X) + 1)]) if has else X for X, has in zip(sites.rows, own, strict=True)
    ]
    return Sites(rows, [[*names, "patient"] if has else names for names, has in zip(sites.names, own, strict=True)])


def code_sex(sites: Sites, j: int, rng: np.random.Generator, first: float) -> Sites:
    """A column of two codes, which are 0 and 1 but at site j."""
    rows = [np.column_stack([X, rng.integers(0, 2, len(X)) + first * (i == j)]) for i, X in enumerate(sites.rows)]
    return Sites(rows, [[*names, "coded sex"] for names in sites.names])


def standardise(X: Rows) -> Rows:
    """Mean zero and deviation one in every column."""
    return (X - X.mean(0)) / X.std(0)


def repeat_rows(sites: Sites, j: int, rng: np.random.Generator) -> Sites:
    """A further site with nine tenths of another's rows."""
    X = sites.rows[j]
    return Sites([*sites.rows, X[rng.permutation(len(X))[: int(0.9 * len(X))]]], [*sites.names, sites.names[0]])


ACCIDENTS = {
    **{f"one column x {unit:g}": set_column(lambda x, _, unit=unit: unit * x) for unit in (1000, 10, 4, 2.2)},
    "one column with its sign turned": set_column(lambda x, _: -x),
    "one site standardised": at_one(lambda X, *_: standardise(X)),
    "all sites standardised apart": Accident(
        lambda s, *_: s._replace(rows=[standardise(X) for X in s.rows]), "standardised"
    ),
    "missing values coded -999": set_column(lambda *_: -999.0, 0.2),
    "missing values coded 0": set_column(lambda *_: 0.0, 0.2),
    "missing values set to the mean": set_column(lambda x, chosen: x[~chosen].mean(), 0.2),
    "sex 1 / 2 for 0 / 1": Accident(lambda s, j, _, rng: code_sex(s, j, rng, 1.0)),
    "running number, one site": Accident(lambda s, j, *_: add_number(s, False, j)),
    "running number, all sites": Accident(lambda s, j, *_: add_number(s, True, j), "'patient'"),
    "X= of another site": Accident(
        lambda s, j, *_: s._replace(
            given=[s.rows[(j + 1) % len(s.rows)] if i == j else X for i, X in enumerate(s.rows)]
        )
    ),
    "nine tenths of the rows again": Accident(lambda s, j, _, rng: repeat_rows(s, j, rng)),
}


LOADERS: dict[str, Callable[[], Any]] = {
    "wine": datasets.load_wine,
    "breast cancer": datasets.load_breast_cancer,
    "diabetes": lambda: datasets.load_diabetes(scaled=False),
    "iris": datasets.load_iris,
}


def deal(name: str, rng: np.random.Generator) -> Sites:
    """A table, dealt to sites; the four hospitals are sites already, of which four fifths of the rows are drawn."""
    if name == "heart":
        measured = [0, 1, 3, 4]  # what all four have measured
        tables = [load_hospital(hospital)[0][:, measured] for hospital in HOSPITALS]
        rows = [X[np.isfinite(X).all(1) & (rng.random(len(X)) < 0.8)] for X in tables]
        return Sites(rows, [[list(NAMES)[d] for d in measured]] * len(rows))
    table = LOADERS[name]()
    chosen = rng.permutation(table.data.shape[1])[:FEATURES]
    parts = np.array_split(rng.permutation(len(table.data)), SITES[name])
    X, names = table.data[:, chosen].astype(float), [str(table.feature_names[d]) for d in chosen]
    return Sites([X[rows] for rows in parts], [names] * len(parts))


def listen(sites: Sites) -> tuple[set[int], str]:
    """Sites that are named by warnings of the library or by `diagnose`, and all that is said."""
    with warnings.catch_warnings(record=True, action="always") as caught:
        models = {}
        for j, (X, names, given) in enumerate(zip(sites.rows, sites.names, sites.given or sites.rows, strict=True)):
            fitted = GaussianMixture(3, covariance_type="diag", random_state=0).fit(X)
            models[f"site {j}"] = modelweld.read(fitted, X=given, features=names, site=f"site {j}")
        fusion = modelweld.fuse(models)
        said = [str(w.message) for w in caught if issubclass(w.category, modelweld.ModelweldWarning)]
    said += [finding for site in fusion.diagnosis.sites() for finding in site.findings]
    quoted = {repr(name): name for name in models}
    return {int(name.split()[1]) for text in said for name in sites_named(text, quoted)}, "\n".join(said)


def measured(name: str, seed: int) -> Result:
    """Fuse clean sites, and again after every accident: who is named, what is said."""
    rng = np.random.default_rng([seed, [*LOADERS, "heart"].index(name)])
    sites, found = deal(name, rng), {}
    named, said = listen(sites)
    found["clean"] = {"silent": not said, "innocent": bool(named), "said": said}
    for accident, (happen, all_of_them) in ACCIDENTS.items():
        j, d = int(rng.integers(len(sites.rows))), int(rng.integers(sites.rows[0].shape[1]))
        spoilt = happen(sites, j, d, rng)
        guilty = {j, len(sites.rows)} if len(spoilt.rows) > len(sites.rows) else {j}
        named, said = listen(spoilt)
        found[accident] = {
            "named": all_of_them in said if all_of_them else bool(named & guilty),
            "silent": not said,
            "innocent": bool(named - guilty) and not all_of_them,
        }
    return {"accidents": found}


def tasks(quick: bool) -> list[Task]:
    """One per seed and table."""
    tables, seeds = (["wine"], range(9000, 9001)) if quick else ([*LOADERS, "heart"], range(9000, 9003))
    return [Task(f"{name}/{seed}", measured, (name, seed)) for seed in seeds for name in tables]


def summary(results: Results) -> Summary:
    """How often what is named."""
    draws, rows, columns = [r["accidents"] for r in results.values()], [], ("named", "silent", "innocent")
    counts = {a: {c: sum(d[a].get(c, False) for d in draws) for c in columns} for a in draws[0]}
    for accident, found in counts.items():
        cells = ["" if accident == "clean" and c == "named" else f"{found[c]} of {len(draws)}" for c in columns]
        rows.append([accident, *cells])
    quiet, n = counts.pop("clean")["silent"], f"{len(draws)} deals of five tables"
    most = [a for a, found in counts.items() if found["named"] >= 0.6 * len(draws)]
    worst = min(counts, key=lambda a: counts[a]["named"])
    claims = [
        Claim("clean tables: nothing is said.", f"{quiet} of {len(draws)}.", quiet == len(draws), n),
        Claim(
            "accidents of first contact are named in six of ten draws or more.",
            f"{len(most)} of {len(counts)} accidents; least '{worst}': {counts[worst]['named']} of {len(draws)}.",
            len(most) == len(counts),
            n,
        ),
    ]
    return Summary([Table("Accidents", ["", *columns], rows)], claims)


TITLE = "Accidents of first contact"
QUESTION = "Is the site named at which an accident happened, and are clean fusions left in peace?"

if __name__ == "__main__":
    main(Study("accidents", TITLE, QUESTION, tasks, summary))
