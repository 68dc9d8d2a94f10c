"""The demonstration as text: what each hospital sent, the groups of patients, and the same in words."""

from __future__ import annotations

from pathlib import Path
from textwrap import fill

import numpy as np

from modelweld.demo.hospitals import NAMES, DemoResult, has_measured, run
from modelweld.report.group_table import whole_numbers
from modelweld.report.text import align_cells

PAGE, WIDTH = "hospitals.html", 80
"""The report that the demonstration writes where it is run, and the width of its text."""

HEADLINE = """Four hospitals, four models of their own patients, one model fused from them.
No patient's record leaves a hospital: only the parameters of its model do."""


def describe(result: DemoResult, page: Path | None = None) -> str:
    """What was sent and what it was fused to, as text; `page` is where the report was written.

    Examples
    --------
    >>> describe(run()).splitlines()[3]
    'What each hospital sent'
    """
    fusion, groups = result.fusion, result.fusion.table()
    heads, rows = groups.cells()
    ill = [f"{100 * share:.0f}" for share in fusion.parameters.total("ill") / fusion.parameters.total("counts")]
    cells = [[cell.replace("(fused ", "(") for cell in row] for row in rows]  # in brackets: a page is narrow
    columns = [*zip(heads, *cells, strict=True), ("ill (%)", *ill)]  # one column per group: names of features are long
    parts = [
        HEADLINE,
        _table("What each hospital sent", _submissions(result)),
        _table("The groups of patients they have between them", columns),
        *(fill(line.replace("fused:", "in brackets:"), WIDTH) for line in groups.notes()),
        *(fill(sentence, WIDTH) for sentence in _sentences(result)),
    ]
    if page is not None:
        parts.append(f"\nThe same as a page, with who has what and how sure that is: {page}")
    return "\n".join(parts).replace("–", "-")  # a pipe may know ASCII only


def _submissions(result: DemoResult) -> list[tuple[str, ...]]:
    """Patients of each hospital, in all and in each of its components, and what it never measured."""
    rows: list[tuple[str, ...]] = [("hospital", "patients", "in each component", "never measured")]
    for model, patients in zip(result.models, result.patients, strict=True):
        sizes = sorted(whole_numbers(np.asarray(model.arrays["counts"])), reverse=True)
        lacks = [name for name, seen in zip(NAMES, has_measured(model), strict=True) if not seen]
        rows.append((model.site, str(patients), " + ".join(f"{n:.0f}" for n in sizes), ", ".join(lacks)))
    return rows


def _sentences(result: DemoResult) -> list[str]:
    """The result in plain words."""
    fusion = result.fusion
    deviations = np.sqrt(fusion.diagnosis.hyperparameters["noise"])
    moves = [f"{sd:.1f} {unit} ({name})" for sd, (name, unit) in zip(deviations, NAMES.items(), strict=True)]
    components = sum(len(labels) for labels in fusion.labels)
    shared, everywhere = (fusion.counts > 1).sum(), (fusion.counts == len(fusion.sites)).sum()
    measurements = int(np.dot(result.patients, [has_measured(model).sum() for model in result.models]))
    return [
        f"{components} components make {fusion.K} groups: {shared} shared by several hospitals, "
        f"{everywhere} of these by all, and {fusion.K - shared} found at one hospital alone.",
        f"From hospital to hospital the mean of a group moves by about {', '.join(moves)}. This is learned, and is "
        "beyond what the hospitals' own errors explain.",
        "Ill means that heart disease was diagnosed. The diagnosis is auxiliary: no fit and no match used it.",
        f"{result.numbers_sent} numbers were sent, instead of {measurements:,} measurements of "
        f"{sum(result.patients)} patients.",
    ]


def _table(title: str, rows: list[tuple[str, ...]]) -> str:
    """A table under a title, the first row as heads."""
    head, *lines = align_cells(rows, left=1)
    return "\n".join(["", title, head, "-" * max(map(len, [head, *lines])), *lines, ""])


def main() -> None:
    """Run the demonstration, write its report and print it."""
    result = run()
    page = result.fusion.report(PAGE, "Four hospitals", force=True, draws=False)  # draws are compiled at first use
    print(describe(result, page))
