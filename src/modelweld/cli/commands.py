"""The program, and commands that use a fused model or try things out."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import modelweld
from modelweld import cli
from modelweld.cli import central, site
from modelweld.cli.central import FusionFile
from modelweld.cli.messages import problems_in_words, result, say
from modelweld.cli.site import Force, Json
from modelweld.progress import progress_to

if TYPE_CHECKING:
    import modelweld.files.fused_model
    import modelweld.files.limits
    import modelweld.kinds

How = Annotated[
    str | None, typer.Option(help="How the fused model is made: density, moments, atoms, ... (docs/models.md).")
]
Features = Annotated[
    str, typer.Option(help="Features and their order, separated by commas; default: all, in the order of most sites.")
]


def model(
    fusion: FusionFile,
    out: Annotated[
        Path, typer.Option(help="Where to write: .skops; .joblib, a pickle; .safetensors for torch.")
    ] = Path("fused.skops"),
    how: How = None,
    size: Annotated[
        int | None, typer.Option("--K", help="Number of components of a mixture; default: one per group.")
    ] = None,
    features: Features = "",
    at: Annotated[
        str, typer.Option(help="If sites have times: the model at this time; default: all groups, where last seen.")
    ] = "",
    card: Annotated[Path | None, typer.Option(help="Also write a model card here: a .md file.")] = None,
    licence: Annotated[str, typer.Option(help="The licence that the card states, as model hubs spell it.")] = "other",
    force: Force = False,
) -> None:
    """Write the fused model for the sites to use. It is a fitted model of their own library."""
    found = cli.paths.read_fusion(fusion)
    modelweld.files.limits.check_free(out, force=force)
    if at:
        found = found.timeline.at(cli.arguments.parse_time(at, "--at"))
    with progress_to(True, "making the fused model"):
        names = cli.arguments.parse_names(features)
        fused = found.model(how, features=names, **({} if size is None else {"K": size}))
        opened = modelweld.files.fused_model.save_model(fused, out, force=force)
    if card is not None:
        from modelweld.report.card import card_of

        with modelweld.files.limits.whole_file(card, force=force) as part:
            part.write_text(card_of(found, licence), encoding="utf-8", newline="\n")
    columns = getattr(fused, "feature_names_in_", None)
    result(f"{type(fused).__name__} written to {out}")
    result(f"load it: {opened}")
    if columns is not None:
        result(f"its columns: {', '.join(map(str, columns))}")
    if out.suffix == ".joblib":
        say(f"{out} is a pickle: loading it runs whatever code it holds. A .skops file does not.")


def apply(
    fusion: FusionFile,
    data: Annotated[Path, typer.Argument(help="A csv file with a header and one row per point; - reads from a pipe.")],
    out: Annotated[
        Path | None, typer.Option(help="Where to write labels and scores; default: standard output.")
    ] = None,
    how: How = None,
    features: Features = "",
    force: Force = False,
) -> None:
    """Apply the fused model to a table. A label for each row, and a score where the model gives one.

    Labels are the numbers of the groups. A mixture has one component per group (--how moments); --how density follows
    the density of all sites more closely, and may move groups.
    """
    found, names = cli.paths.read_fusion(fusion), cli.arguments.parse_names(features)
    points, _ = cli.points.read_points(data, names or found._fit.models[0].coordinates.get("feature"))
    if out is not None:
        modelweld.files.limits.check_free(out, force=force)
    kind = modelweld.kinds.kind_named(found._fit.models[0].kind)
    if how is None and kind is not None and "moments" in kind.hows:
        how = "moments"
    with progress_to(True, "using the fused model"):
        header, lines = cli.points.apply_model(found.model(how, features=names), points)
    text = cli.points.csv_text([header, *lines])
    if out is None:
        result(text.removesuffix("\n"))
        return
    with modelweld.files.limits.whole_file(out, force=force) as part:
        part.write_text(text, encoding="utf-8", newline="")
    say(f"{len(lines)} rows written to {out}")


def simulate(
    out: Annotated[Path, typer.Option(help="A folder for the sites' files.")] = Path("sites"),
    sites: Annotated[int, typer.Option(min=1, help="Number of sites.")] = 5,
    atoms: Annotated[int, typer.Option(min=1, help="Number of true groups.")] = 8,
    dimensions: Annotated[int, typer.Option(min=1, help="Number of features.")] = 3,
    noise: Annotated[float, typer.Option(min=0, help="Standard deviation of values about their group.")] = 0.2,
    spread: Annotated[float, typer.Option(min=0, help="Standard deviation of the groups.")] = 5.0,
    seed: Annotated[int, typer.Option(help="Seed of the draws.")] = 0,
    force: Force = False,
    json: Json = False,
) -> None:
    """Simulate sites, to try the other commands on. They share some of a number of true groups."""
    drawn = modelweld.simulate.sparse(atoms, sites, dimensions, noise, spread, 1.0, 1.0, seed=seed)
    out.mkdir(parents=True, exist_ok=True)
    names = [out / f"site{j + 1}.safetensors" for j in range(sites)]
    paths = [modelweld.files.limits.check_free(path, force=force) for path in names]
    for path, values in zip(paths, drawn.values, strict=True):
        local = modelweld.LocalModel({"values": values}, {"values": ("atom", None)}, site=path.stem)
        modelweld.files.save(local, path, force=force)
    content = {"files": [str(p) for p in paths], "truth": [t.tolist() for t in drawn.truth]}
    result(f"{sites} sites written to {out}: now `modelweld fuse '{out}/*.safetensors'`", content, json)


def demo() -> None:
    """Four hospitals with real patients, one fused model."""
    cli.demonstration.main()


def reproduce(
    study: Annotated[str, typer.Argument(help="simulated, topics, temperatures, mocap, networks or streams.")] = "all",
    at: Annotated[
        Path, typer.Option(help="A clone or unpacked source archive of modelweld, with experiments/.")
    ] = Path(),
    quick: Annotated[bool, typer.Option(help="Fewer settings and repeats: some minutes for all.")] = False,
) -> None:
    """Make the paper's tables and figures. They are compared with rivals on one page, in the folder `reproduced`."""
    program = at / "experiments" / "reproduce.py"
    if not program.exists():
        raise modelweld.InputError(
            f"there is no {program}: name the folder of a clone or source archive, modelweld reproduce --at FOLDER."
        )
    raise typer.Exit(subprocess.call([sys.executable, str(program), study, *["--quick"] * quick]))


def adapters(json: Json = False) -> None:
    """List which models are read and written. Also, whether their libraries are installed."""
    rows = [
        {
            "model": a.name,
            "kind": a.kind,
            "installed": a.version if a.installed else "",
            "needs": f"modelweld[{a.extra}]" if a.extra else "",
            "written": a.writes,
        }
        for a in modelweld.adapters()
    ]
    width = max(len(str(row["model"])) for row in rows)
    lines = []
    for row in rows:
        state = row["installed"] or (f"not installed: pip install {row['needs']}" if row["needs"] else "not installed")
        does = "read, written" if row["written"] else "read"
        lines.append(f"{row['model']:<{width}}  {row['kind']:<12} {does:<14} {state}")
    result("\n".join(lines), rows, json)


app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"max_content_width": 120},
    rich_markup_mode=None,  # plain help: loading rich would take longer than all the rest
    help="Fuse models that were trained apart, from their parameters alone.",
    epilog="At a site: export. At the centre: validate, fuse, verdict, report. To use it: model, apply. Later: add, "
    "remove, compare.",
)
for command in (*site.COMMANDS, *central.COMMANDS, model, apply, simulate, demo, reproduce, adapters):
    app.command()(command)
app.command("predict", help="The same as apply.")(apply)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"modelweld {modelweld.__version__}")
        raise typer.Exit


@app.callback()
def about(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Fuse models that were trained apart, from their parameters alone."""


def main() -> None:
    """Run the command line."""
    with problems_in_words():
        app(prog_name="modelweld")
