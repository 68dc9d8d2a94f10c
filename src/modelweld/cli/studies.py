"""The command that runs the paper's studies: they lie in a clone of the repository, with their data."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from modelweld.cli.messages import result, say
from modelweld.errors import InputError


class Choice(StrEnum):
    """The studies by the names of their folders, and all of them."""

    simulated = "simulated"
    topics = "topics"
    temperatures = "temperatures"
    mocap = "mocap"
    hmm_scale = "hmm_scale"
    all = "all"


NEEDS = 3
"""How a study ends that lacks a library (experiments/study.py)."""


def register(app: typer.Typer) -> None:
    """Add these commands."""
    app.command()(reproduce)


def reproduce(
    study: Annotated[Choice, typer.Argument(help="Which study, or all of them.")],
    quick: Annotated[bool, typer.Option("--quick", help="Fewer settings and repeats: under a minute each.")] = False,
    jobs: Annotated[int, typer.Option(min=1, help="Tasks run side by side.")] = 2,
    out: Annotated[Path, typer.Option(help="A folder for results, figures and the page.")] = Path("reproduced"),
    fresh: Annotated[bool, typer.Option("--fresh", help="Forget the tasks that are done.")] = False,
) -> None:
    """Make the tables and figures of the paper, with its rivals and ours on the same data, and a page of them.

    A run that was stopped goes on where it stopped.
    """
    import subprocess
    import sys

    experiments = studies_of_clone()
    names = [c for c in Choice if c is not Choice.all] if study is Choice.all else [study]
    out = out / "quick" if quick else out
    for name in names:
        say(f"{name}: results in {out / name}")
        options = ["--jobs", str(jobs), "--out", str(out / name), *["--quick"] * quick, *["--fresh"] * fresh]
        run = subprocess.run([sys.executable, str(experiments / name / "run.py"), *options], check=False)
        if run.returncode == NEEDS:
            raise typer.Exit(1)  # the study has said what to install
        if run.returncode:
            raise InputError(f"the study '{name}' stopped; what it had done is kept in {out / name}.")
    page = out / "page.html"
    folders = [str(out / name) for name in names]
    subprocess.run([sys.executable, str(experiments / "page.py"), *folders, "--out", str(page)], check=True)
    result(str(page))


def studies_of_clone() -> Path:
    """The folder of the studies: in the present folder, or beside the source of this package."""
    places = [Path("experiments"), Path(__file__).parents[3] / "experiments"]
    for place in places:
        if (place / "study.py").exists():
            return place
    raise InputError(
        "the studies and their data are not part of the installed package: clone the repository and run this there."
    )
