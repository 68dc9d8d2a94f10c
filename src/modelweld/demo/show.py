"""The demonstration for people: what each hospital sent, the groups of patients, and the same in words."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from modelweld.demo.hospitals import COLUMNS, DemoResult, Flags, has_measured, run
from modelweld.inputs.local_model import LocalModel
from modelweld.inputs.stack import Index
from modelweld.report.group_table import GroupTable, whole_numbers

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

PAGE = "hospitals.html"
"""The page that the demonstration writes where it is run."""

WIDTH = 100
"""Columns of the page where nobody says how many there are."""

SMALLEST_MOVE = 0.05
"""Deviations that round to nothing are not worth a word."""

HEADLINE = """\
[bold]Four hospitals, four models of their own patients, one model fused from the four.[/]
No patient's record leaves a hospital: only the parameters of its model do."""


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
    >>> show(run(), Console(width=100, quiet=True))
    """
    console.print()
    console.print(HEADLINE)
    for table in (_sent(result), _groups(result)):
        console.print()
        console.print(table)
    for sentence in _sentences(result):
        console.print(sentence, highlight=False)
    if page is not None:
        console.print(f"\nThe same as a page, with who has what and how sure that is: [bold]{page}[/]", highlight=False)
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
    fusion, groups = result.fusion, result.fusion.table()
    assert groups.counts is not None  # every hospital sends them
    counts, decimals = np.asarray(groups.whole_counts), [digits for *_, digits in COLUMNS.values()]
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
        table.add_row(
            str(k),
            *("[dim]-[/]" if np.isnan(n) else f"{n:.0f}" for n in counts[k]),
            f"{np.nansum(counts[k]):.0f}",
            *(_mean(mean, digits) for mean, digits in zip(groups.means[k], decimals, strict=True)),
            f"{100 * share_ill[k]:.0f}",
        )
    return table


def _mean(mean: float, digits: int) -> str:
    return "[dim]-[/]" if np.isnan(mean) else f"{mean:.{digits}f}"


def _sentences(result: DemoResult) -> list[str]:
    """The same in plain words."""
    fusion = result.fusion
    deviations = np.sqrt(fusion.hyperparameters["noise"])
    columns_moved = zip(deviations, COLUMNS.values(), strict=True)
    moves = [f"{sd:.1f} {unit} ({name})" for sd, (name, _, unit, _) in columns_moved if sd >= SMALLEST_MOVE]
    components = sum(len(labels) for labels in fusion.labels)
    shared, everywhere = (fusion.counts > 1).sum(), (fusion.counts == len(fusion.sites)).sum()
    columns = [int(_seen(model).sum()) for model in result.models]
    measurements = int(np.dot(result.patients, columns))
    return [
        f"{components} components make [bold]{fusion.K} groups[/]: {shared} shared by several hospitals, "
        f"{everywhere} of these by all, and {fusion.K - shared} found at one hospital alone.",
        f"From hospital to hospital the mean of a group moves by about {', '.join(moves)}. This is learned, and is "
        "beyond what the hospitals' own errors explain.",
        *_leaning(fusion.table()),
        "Ill means that heart disease was diagnosed. The diagnosis rode along: no fit and no match used it.",
        f"{result.numbers_sent} numbers travelled, in place of {measurements:,} measurements of "
        f"{sum(result.patients)} patients.",
    ]


def _leaning(groups: GroupTable) -> list[str]:
    """Where fused values differ visibly from patients' means."""
    apart = [
        f"{name} {groups.fused[k, d]:.{digits}f} in group {k}"
        for k, d in np.argwhere(groups.differs).tolist()
        for name, _, _, digits in [list(COLUMNS.values())[d]]
    ]
    if not apart:
        return []
    return [
        "Means are of the patients. A further hospital is expected to have somewhat other ones, nearer to all groups' "
        f"mean: {', '.join(apart)}."
    ]


def _patients(model: LocalModel) -> Index:
    """Expected numbers of patients as whole ones, which add up to all patients."""
    return whole_numbers(np.asarray(model.arrays["counts"])).astype(np.int64)


def _seen(model: LocalModel) -> Flags:
    """Which columns a hospital measured."""
    return has_measured(model)


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
    """Run the demonstration, write its page and print it."""
    from rich.console import Console

    console = Console()
    # a pipe has no width, for which rich takes 80 columns: too few for the table
    width = min(console.width, WIDTH) if console.is_terminal else WIDTH
    result = run()
    page = result.fusion.report(PAGE, "Four hospitals", force=True, draws=False)  # draws are compiled at first use
    show(result, Console(width=width), page)
