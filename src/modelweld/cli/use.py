"""Commands for those who use the fused model: have it in a file, or have rows labelled."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from modelweld.cli.messages import result, say
from modelweld.cli.site import Force
from modelweld.progress import show_progress

FusionFile = Annotated[Path, typer.Argument(help="A fusion, as `modelweld fuse` writes it.")]
How = Annotated[
    str | None, typer.Option(help="How the fused model is made: density, moments, atoms, ... (docs/models.md).")
]
Features = Annotated[
    str, typer.Option(help="Which features, in which order, separated by commas; default: all, in that of most sites.")
]


def register(app: typer.Typer) -> None:
    """Add these commands."""
    app.command()(model)
    app.command()(apply)


def model(
    fusion: FusionFile,
    out: Annotated[
        Path, typer.Option(help="Where to write: .skops; .joblib, a pickle; .safetensors for torch.")
    ] = Path("fused.skops"),
    how: How = None,
    size: Annotated[int | None, typer.Option("--K", help="Components of a mixture, if not one per atom.")] = None,
    features: Features = "",
    at: Annotated[str, typer.Option(help="Where sites have times: when. Else all atoms, where last seen.")] = "",
    force: Force = False,
) -> None:
    """Write the fused model for the sites to use, as a fitted model of their own library."""
    from modelweld.cli.messages import names_in
    from modelweld.cli.paths import fusion_of
    from modelweld.cli.times import time_in
    from modelweld.files.fused_model import save_model
    from modelweld.files.limits import check_free

    check_free(out, force=force)
    found = fusion_of(fusion)
    if at:
        found = found.at(time_in(at, "--at"))
    with show_progress("making the fused model"):
        fused = found.model(how, features=names_in(features), **({} if size is None else {"K": size}))
        opened = save_model(fused, out, force=force)
    names = getattr(fused, "feature_names_in_", None)
    result(f"{type(fused).__name__} written to {out}")
    result(f"load it: {opened}")
    if names is not None:
        result(f"its columns: {', '.join(map(str, names))}")
    if out.suffix == ".joblib":
        say(
            f"{out} is a pickle: who loads it runs whatever code it holds. Send .skops to those who should not have to."
        )


def apply(
    fusion: FusionFile,
    data: Annotated[Path, typer.Argument(help="A csv file with one row per point and a header.")],
    out: Annotated[
        Path | None, typer.Option(help="Where to write labels and scores; default: standard output.")
    ] = None,
    how: How = None,
    features: Features = "",
    force: Force = False,
) -> None:
    """Use the fused model on a table: a label for each row, and a score where the model gives one."""
    from modelweld.cli.messages import names_in
    from modelweld.cli.paths import fusion_of
    from modelweld.cli.points import ask_model, csv_text, read_points
    from modelweld.files.limits import check_free, whole_file

    if out is not None:
        check_free(out, force=force)
    found = fusion_of(fusion)
    with show_progress("using the fused model"):
        names = names_in(features)
        model = found.model(how, features=names)
        columns = names or found.models[0].coordinates.get("feature")
        header, lines = ask_model(model, read_points(data, columns)[0])
    text = csv_text([header, *lines])
    if out is None:
        result(text.removesuffix("\n"))
        return
    with whole_file(out, force=force) as part:
        part.write_text(text, encoding="utf-8", newline="")
    say(f"{len(lines)} rows written to {out}")
