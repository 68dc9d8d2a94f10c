"""The command line: ``modelweld --help``.

One file per place where commands are run: `site` (export, inspect, validate), `central` (fuse, verdict, report, add,
remove, compare), `use` (model, apply) and `trials` (simulate, demo, adapters). Everything they
do is the library's; here are arguments, messages (`messages`, `words`) and exit codes: 0 done, 1 bad input (one line
that says what, where and what to do), 2 wrong usage, 3 done but for what was left out (`keep_going`).

Internal: docs/public.md says what is not.
"""

from __future__ import annotations

from typing import Annotated

import typer

from modelweld.cli import central, site, use
from modelweld.cli import trials as bench
from modelweld.cli.messages import problems_in_words

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"max_content_width": 120},
    rich_markup_mode=None,  # plain help: loading rich would take longer than all the rest
    help="Fuse models that were trained apart, from their parameters alone.",
    epilog="At a site: export. At the centre: validate, fuse, verdict, report. To use it: model, apply. Later: add, "
    "remove, compare.",
)
for part in (site, central, use, bench):
    part.register(app)


def _tell_version(asked: bool) -> None:
    if asked:
        from modelweld import __version__

        typer.echo(f"modelweld {__version__}")
        raise typer.Exit


@app.callback()
def about(
    version: Annotated[
        bool, typer.Option("--version", callback=_tell_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Fuse models that were trained apart, from their parameters alone."""


def main() -> None:
    """Run the command line."""
    with problems_in_words():
        app(prog_name="modelweld")
