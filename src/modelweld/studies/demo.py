"""The demonstration for people: what each hospital sent, the groups of patients, and the same in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from modelweld.inputs.local_model import Array, LocalModel
from modelweld.inputs.stack import Index
from modelweld.studies.hospitals import COLUMNS, DemoResult, Flags, has_measured, run

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

WIDTH = 100
"""Columns of the page where nobody says how many there are."""

SMALLEST_MOVE = 0.05
"""Deviations that round to nothing are not worth a word."""

HEADLINE = """\
[bold]Four hospitals, four models of their own patients, one model fused from the four.[/]
No patient's record leaves a hospital: only the parameters of its model do."""


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
        means = zip(_patients_means(result.models, held), COLUMNS.values(), strict=True)
        table.add_row(
            str(k + 1),
            *(str(size) if h.any() else "[dim]-[/]" for size, h in zip(sizes, held, strict=True)),
            str(sum(sizes)),
            *("[dim]-[/]" if np.isnan(mean) else f"{mean:.{digits}f}" for mean, (*_, digits) in means),
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


def _patients(model: LocalModel) -> Index:
    """Expected numbers of patients as whole ones: rounded sums, so that they add up to all patients."""
    sums = np.rint(np.cumsum(np.asarray(model.arrays["counts"])))
    return np.asarray(np.diff(sums, prepend=0.0), dtype=np.int64)


def _patients_means(models: Sequence[LocalModel], held: Sequence[Flags]) -> Array:
    """What the patients of a group have measured on average (D,); NaN where no hospital that has them measured it.

    The atom itself is not shown: it is what a further hospital is expected to find, nearer to all groups' mean.
    """
    pairs = list(zip(models, held, strict=True))
    means = np.concatenate([np.asarray(model.arrays["means"])[own] for model, own in pairs])
    patients = np.concatenate([np.outer(np.asarray(model.arrays["counts"])[own], _seen(model)) for model, own in pairs])
    number = patients.sum(0)
    return np.where(number > 0, (patients * means).sum(0) / np.where(number > 0, number, 1.0), np.nan)


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
    """Run the demonstration and print it."""
    from rich.console import Console

    console = Console()
    # a pipe has no width, for which rich takes 80 columns: too few for the table
    width = min(console.width, WIDTH) if console.is_terminal else WIDTH
    show(run(), Console(width=width))


if __name__ == "__main__":
    main()
