"""Commands to try things out: simulated sites, the demonstration, what is installed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from modelweld.cli.messages import result, result_json
from modelweld.cli.site import Force, Json


def register(app: typer.Typer) -> None:
    """Add these commands."""
    for command in (simulate, demo, adapters):
        app.command()(command)


def simulate(
    out: Annotated[Path, typer.Option(help="A folder for the sites' files.")] = Path("sites"),
    sites: Annotated[int, typer.Option(min=1, help="How many sites.")] = 5,
    atoms: Annotated[int, typer.Option(min=1, help="How many true atoms.")] = 8,
    dimensions: Annotated[int, typer.Option(min=1, help="Of what dimension.")] = 3,
    noise: Annotated[float, typer.Option(min=0, help="Standard deviation of values about their atom.")] = 0.2,
    spread: Annotated[float, typer.Option(min=0, help="Standard deviation of the atoms.")] = 5.0,
    seed: Annotated[int, typer.Option(help="Source of the draws.")] = 0,
    force: Force = False,
    json: Json = False,
) -> None:
    """Draw sites that share some of a number of true atoms, to try the other commands on."""
    from modelweld.demo.simulate import sparse
    from modelweld.files import save
    from modelweld.files.limits import check_free
    from modelweld.inputs.local_model import LocalModel

    drawn = sparse(atoms, sites, dimensions, noise, spread, 1.0, 1.0, seed=seed)
    out.mkdir(parents=True, exist_ok=True)
    paths = [check_free(out / f"site{j + 1}.safetensors", force=force) for j in range(sites)]
    for path, values in zip(paths, drawn.values, strict=True):
        save(LocalModel({"values": values}, {"values": ("atom", None)}, site=path.stem), path, force=force)
    if json:
        result_json({"files": [str(p) for p in paths], "truth": [t.tolist() for t in drawn.truth]})
    else:
        result(f"{sites} sites written to {out}: now `modelweld fuse '{out}/*.safetensors'`")


def demo() -> None:
    """Four hospitals with real patients, one fused model."""
    from modelweld.demo.show import main

    main()


def adapters(json: Json = False) -> None:
    """Which model classes are read and written, and whether their libraries are installed."""
    from modelweld.libraries import adapters as known

    rows = [
        {
            "model": a.name,
            "kind": a.kind,
            "installed": a.version if a.installed else "",
            "needs": f"modelweld[{a.extra}]" if a.extra else "",
            "written": a.writes,
        }
        for a in known()
    ]
    if json:
        result_json(rows)
        return
    width = max(len(str(row["model"])) for row in rows)
    for row in rows:
        state = row["installed"] or (f"not installed: pip install {row['needs']}" if row["needs"] else "not installed")
        result(
            f"{row['model']:<{width}}  {row['kind']:<12} {'read, written' if row['written'] else 'read':<14} {state}"
        )
