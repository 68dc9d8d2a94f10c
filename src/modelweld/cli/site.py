"""Commands at a site: export a model, show what is in a file, check files before they are fused."""

from __future__ import annotations

import warnings
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import modelweld
from modelweld import cli
from modelweld.cli.messages import result, say, spell_options
from modelweld.errors import DisclosureWarning
from modelweld.progress import progress_to

if TYPE_CHECKING:
    import modelweld.files.limits

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Centres = Annotated[
    bool, typer.Option("--centres", help="Rows of tables without counts are centres of groups, not people.")
]
AllowSmall = Annotated[
    bool, typer.Option("--allow-small", help="Show groups and numbers of fewer than five points, which may be persons.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace files that exist.")]


def export(
    model: Annotated[
        Path, typer.Argument(help="A fitted model in a .skops file, parameters in a table, or rows with --labels.")
    ],
    out: Annotated[Path, typer.Option(help="File to write.")] = Path("site.safetensors"),
    site: Annotated[str, typer.Option(help="Name of the site, which may be a pseudonym.")] = "",
    features: Annotated[str, typer.Option(help="Names of the features, separated by commas.")] = "",
    n: Annotated[
        int | None, typer.Option(min=1, help="Number of points in training, if the model does not store it.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option("--X", help="The site's data, .csv or .npy, to count points with: it does not leave.")
    ] = None,
    labels: Annotated[
        str, typer.Option(help="Column of a .csv file of the site's rows that says to which group each belongs.")
    ] = "",
    units: Annotated[str, typer.Option(help="Units of the features: age=years,weight=kg.")] = "",
    lacks: Annotated[str, typer.Option(help="Features of the other sites that this one never measured.")] = "",
    time: Annotated[str, typer.Option(help="When the model was trained: a date, 2024-03-31, or a number.")] = "",
    noise: Annotated[
        float | None, typer.Option(help="Standard deviation of noise to add; it is stated in the file.")
    ] = None,
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
    """Write what leaves a site, and list it. That is parameters and counts, and nothing else."""
    fitted = None if labels else cli.paths.open_model(model, centres)
    modelweld.files.limits.check_free(out, force=force)
    parse, facts = cli.arguments, dict[str, Any]({} if n is None else {"n": n})
    names = parse.parse_names(features)
    if labels:
        facts["X"], facts["labels"], names = cli.points.read_labels(model, labels, names)
    elif data is not None:
        facts["X"], names = cli.points.read_data(data, fitted, names)
    with progress_to(True, "looking at what leaves"), warnings.catch_warnings():
        warnings.simplefilter("ignore", DisclosureWarning)  # the report says it
        report = modelweld.export(
            fitted,
            out,
            site=site or out.stem,
            features=names,
            units=parse.parse_units(units),
            lacks=parse.parse_names(lacks),
            time=parse.parse_time(time),
            noise=noise,
            allow_small=allow_small,
            drop_small=drop_small,
            force=force,
            **facts,
        )
    concerns = [spell_options(concern) for concern in report.concerns]
    result(str(report), {**asdict(report), "concerns": concerns}, json)


def inspect(
    path: Annotated[Path, typer.Argument(help="A site's file, or a fusion.")],
    confidence: Annotated[
        bool, typer.Option("--confidence", help="Of a fusion: confidences of groups, and in how many sites each is.")
    ] = False,
    allow_small: AllowSmall = False,
    centres: Centres = False,
    json: Json = False,
) -> None:
    """Show what is in a file. Of a site: arrays, shapes, names, counts; of a fusion: what it has found."""
    found = modelweld.load(path, centres=centres)
    content = cli.table_output.describe(found)
    lines = [] if json else [cli.table_output.spell_content(content)]
    if isinstance(found, modelweld.Fusion):
        if json and confidence:
            content["sharing"] = {name: found.posterior.sharing(set_name=name).as_dict() for name in found.matchings}
        for name in () if json else found.matchings:
            lines.append(f"\n{found.table(name, confidence=confidence, allow_small=allow_small)}")
            lines += [f"\n{found.timeline.lifetimes(name)}"] if found.timeline.times is not None else []
    result("\n".join(lines), content, json)


def validate(
    paths: Annotated[list[str], typer.Argument(help="Files of sites, or patterns.")],
    centres: Centres = False,
    json: Json = False,
) -> None:
    """Check files of sites. Each by itself, and whether they describe the same things."""
    with progress_to(True, "checking files"):
        good, problems = cli.paths.check_sites(cli.paths.expand_patterns(paths), centres=centres)
    problems = {where: spell_options(" ".join(why.split())) for where, why in problems.items()}
    result(
        "\n".join(f"{m.site}: {cli.table_output.spell_sizes(m)}" for m in good),
        {"sites": [m.site for m in good], "problems": problems},
        json,
    )
    for where, problem in {} if json else problems.items():
        say(f"error: {problem}" if where != "together" else f"error: together: {problem}")
    if problems:
        raise typer.Exit(1)


COMMANDS = (export, inspect, validate)
"""The commands of this file, in the order of ``modelweld --help``."""
