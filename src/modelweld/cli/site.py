"""Commands for those who have data: export a model, see what is in a file, check files before they are fused."""

from __future__ import annotations

import warnings
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from modelweld.cli.messages import result, result_json, say
from modelweld.progress import show_progress

Json = Annotated[bool, typer.Option("--json", help="For machines.")]
Centres = Annotated[
    bool, typer.Option("--centres", help="Rows of tables are centres of groups, not of people: tables without counts.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace files that are there already.")]


def register(app: typer.Typer) -> None:
    """Add these commands."""
    app.command()(export)
    app.command()(inspect)
    app.command()(validate)


def export(
    model: Annotated[Path, typer.Argument(help="A fitted model in a .skops file, or parameters in a table.")],
    out: Annotated[Path, typer.Option(help="Where to write what leaves.")] = Path("site.safetensors"),
    site: Annotated[str, typer.Option(help="A name for the site: a pseudonym will do.")] = "",
    features: Annotated[str, typer.Option(help="Names of the features, separated by commas.")] = "",
    n: Annotated[int | None, typer.Option(help="Number of points the model was fitted on, if it forgot.")] = None,
    data: Annotated[
        Path | None, typer.Option("--X", help="The site's data, .csv or .npy, to count points with: it does not leave.")
    ] = None,
    units: Annotated[str, typer.Option(help="Units of the features: age=years,weight=kg.")] = "",
    lacks: Annotated[str, typer.Option(help="Features of the other sites that this one never measured.")] = "",
    time: Annotated[str, typer.Option(help="When the model was trained: a date, 2024-03-31, or a number.")] = "",
    noise: Annotated[float | None, typer.Option(help="Standard deviation of noise to add; it travels along.")] = None,
    allow_small: Annotated[
        bool, typer.Option("--allow-small", help="Let components and cells of fewer than five points leave.")
    ] = False,
    drop_small: Annotated[
        bool, typer.Option("--drop-small", help="Set cells of transition tables below five to zero.")
    ] = False,
    centres: Centres = False,
    force: Force = False,
    json: Json = False,
) -> None:
    """Write what leaves a site: parameters and counts, nothing else. Shows what that is."""
    from modelweld.cli.messages import names_in, spoken, units_in
    from modelweld.cli.points import read_data
    from modelweld.cli.times import time_in
    from modelweld.errors import DisclosureWarning
    from modelweld.files.limits import check_free
    from modelweld.site.export import export as write
    from modelweld.site.export import open_model

    fitted = open_model(model, centres)
    facts: dict[str, Any] = {} if n is None else {"n": n}
    check_free(out, force=force)
    names = names_in(features)
    if data is not None:
        facts["X"], names = read_data(data, fitted, names)
    with show_progress("looking at what leaves"), warnings.catch_warnings():
        warnings.simplefilter("ignore", DisclosureWarning)  # the report says it
        report = write(
            fitted,
            out,
            site=site or out.stem,
            features=names,
            units=units_in(units),
            lacks=names_in(lacks),
            time=time_in(time),
            noise=noise,
            allow_small=allow_small,
            drop_small=drop_small,
            force=force,
            **facts,
        )
    if json:
        result_json({**asdict(report), "concerns": [spoken(concern) for concern in report.concerns]})
    else:
        result(spoken(str(report)))


def inspect(
    path: Annotated[Path, typer.Argument(help="A site's file, or a fusion.")],
    confidence: Annotated[
        bool, typer.Option("--confidence", help="Of a fusion: how sure groups are, and in how many sites each is.")
    ] = False,
    centres: Centres = False,
    json: Json = False,
) -> None:
    """Show what is in a file: arrays, shapes, names, counts; or what a fusion has found."""
    from modelweld.cli.table_output import describe, spell_content
    from modelweld.files import load
    from modelweld.fusion import Fusion

    found = load(path, centres=centres)
    content = describe(found)
    if json:
        if confidence and isinstance(found, Fusion):
            rates = {name: found.sharing(set_name=name).as_dict() for name in found.matchings}
            result_json({**content, "sharing": rates})
        else:
            result_json(content)
        return
    result(spell_content(content))
    if isinstance(found, Fusion):
        for name in found.matchings:
            result(f"\n{found.table(name, confidence=confidence)}")
            if found.times is not None:
                result(f"\n{found.lives(name)}")


def validate(
    paths: Annotated[list[str], typer.Argument(help="Files of sites, or patterns.")],
    centres: Centres = False,
    json: Json = False,
) -> None:
    """Check files of sites: each for itself, and whether they describe the same things."""
    from modelweld.cli.messages import spoken
    from modelweld.cli.paths import expand_patterns
    from modelweld.errors import InputError
    from modelweld.files import read_sites
    from modelweld.inputs.plain_tables import site_names
    from modelweld.kinds import kind_of, name_doubts
    from modelweld.progress import track
    from modelweld.report.text import several

    problems: dict[str, str] = {}
    good = []
    files = expand_patterns(paths)
    with show_progress("checking files"):
        for path in track(files, "reading files", len(files)):
            try:
                good += read_sites(path, centres=centres)
            except (InputError, OSError) as wrong:
                problems[str(path)] = spoken(" ".join(str(wrong).split()))
    if len(good) > 1:
        try:
            site_names(good)
            kind = kind_of(good)
            name_doubts(kind, good, kind.arrange(good))
        except InputError as wrong:
            problems["together"] = spoken(" ".join(str(wrong).split()))
    if json:
        result_json({"sites": [m.site for m in good], "problems": problems})
    else:
        for m in good:
            result(f"{m.site}: {', '.join(several(size, name) for name, size in m.sizes.items())}")
        for where, problem in problems.items():
            say(f"error: {problem}" if where != "together" else f"error: together: {problem}")
    if problems:
        raise typer.Exit(1)
