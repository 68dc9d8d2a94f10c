"""The demonstration for people: what each hospital sent, the groups of patients, and the same in words."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from modelweld.demo.hospitals import NAMES, DemoResult, has_measured, run
from modelweld.report.group_table import whole_numbers

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

PAGE = "hospitals.html"
"""The page that the demonstration writes where it is run."""

HEADLINE = """
[bold]Four hospitals, four models of their own patients, one model fused from the four.[/]
No patient's record leaves a hospital: only the parameters of its model do.
"""


def show(result: DemoResult, console: Console, page: Path | None = None) -> None:
    """Print what was sent and what it was fused to, for people.

    Parameters
    ----------
    result : DemoResult
        What to print.
    console : rich.console.Console
        Where to.
    page : Path, optional
        Where the page of the fusion was written.

    Examples
    --------
    >>> from rich.console import Console
    >>> show(run(), Console(quiet=True))
    """
    fusion, groups = result.fusion, result.fusion.table()
    heads, rows = groups.cells()
    ill = [f"{100 * share:.0f}" for share in fusion.total("ill") / fusion.total("counts")]
    console.print(HEADLINE)
    console.print(_table("What each hospital sent", _submissions(result)))
    columns = [*zip(heads, *rows, strict=True), ("ill (%)", *ill)]  # groups side by side: names of rows may be long
    console.print(_table("The groups of patients they have between them", columns))
    for sentence in [*groups.notes(), *_sentences(result)]:
        console.print(sentence, highlight=False)
    if page is not None:
        console.print(f"\nThe same as a page, with who has what and how sure that is: [bold]{page}[/]", highlight=False)


def _submissions(result: DemoResult) -> list[tuple[str, ...]]:
    """Patients of each hospital, in all and in each of its components, and what it never measured."""
    rows: list[tuple[str, ...]] = [("hospital", "patients", "in each component", "never measured")]
    for model, patients in zip(result.models, result.patients, strict=True):
        sizes = sorted(whole_numbers(np.asarray(model.arrays["counts"])), reverse=True)
        lacks = [name for name, seen in zip(NAMES, has_measured(model), strict=True) if not seen]
        rows.append((model.site, str(patients), " + ".join(f"{n:.0f}" for n in sizes), ", ".join(lacks)))
    return rows


def _sentences(result: DemoResult) -> list[str]:
    """The same in plain words."""
    fusion = result.fusion
    deviations = np.sqrt(fusion.hyperparameters["noise"])
    moves = [f"{sd:.1f} {unit} ({name})" for sd, (name, unit) in zip(deviations, NAMES.items(), strict=True)]
    components = sum(len(labels) for labels in fusion.labels)
    shared, everywhere = (fusion.counts > 1).sum(), (fusion.counts == len(fusion.sites)).sum()
    measurements = int(np.dot(result.patients, [has_measured(model).sum() for model in result.models]))
    return [
        f"{components} components make [bold]{fusion.K} groups[/]: {shared} shared by several hospitals, "
        f"{everywhere} of these by all, and {fusion.K - shared} found at one hospital alone.",
        f"From hospital to hospital the mean of a group moves by about {', '.join(moves)}. This is learned, and is "
        "beyond what the hospitals' own errors explain.",
        "Ill means that heart disease was diagnosed. The diagnosis rode along: no fit and no match used it.",
        f"{result.numbers_sent} numbers travelled, in place of {measurements:,} measurements of "
        f"{sum(result.patients)} patients.",
    ]


def _table(title: str, rows: list[tuple[str, ...]]) -> Table:
    """Under a title, the first row as heads."""
    from rich import box
    from rich.table import Table

    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    for d, head in enumerate(rows[0]):
        table.add_column(head, justify="right" if d else "left")
    for row in rows[1:]:
        table.add_row(*(cell.replace("–", "-") for cell in row))  # a pipe may know ASCII only
    return table


def main() -> None:
    """Run the demonstration, write its page and print it."""
    from rich.console import Console

    result = run()
    page = result.fusion.report(PAGE, "Four hospitals", force=True, draws=False)  # draws are compiled at first use
    show(result, Console(), page)
