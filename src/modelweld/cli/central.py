"""Commands at the centre: fuse files, judge the result, show it, add and remove sites."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import modelweld
from modelweld import cli
from modelweld.cli.messages import FAMILIES, PRIORS, result, say, spell_options
from modelweld.cli.site import AllowSmall, Centres, Force, Json
from modelweld.progress import progress_to

if TYPE_CHECKING:
    import modelweld.files.limits
    import modelweld.report.page
    from modelweld.fusion import Fusion
    from modelweld.revision.slim_fusion import SlimFusion

FusionFile = Annotated[Path, typer.Argument(help="A fusion, as `modelweld fuse` writes it.")]
Target = Annotated[Path | None, typer.Option(help="Where to write; default: the fusion's own file, with --force.")]
Seed = Annotated[int, typer.Option(help="Seed of the order in which sites are visited.")]

LEFT_OUT = 3
"""Exit code where some files were fused and others were left out."""


def fuse(
    paths: Annotated[list[str], typer.Argument(help="Files of sites, folders of them, or patterns.")],
    out: Annotated[Path, typer.Option(help="File to write the fusion to.")] = Path("fusion.safetensors"),
    page: Annotated[Path | None, typer.Option("--report", help="Also write the report here.")] = None,
    family: Annotated[str, typer.Option(help=f"Distribution of values, default by kind of model: {FAMILIES}.")] = "",
    prior: Annotated[str, typer.Option(help=f"Prior over matchings: {PRIORS}.")] = "auto",
    times: Annotated[
        str, typer.Option(help="When sites were trained: 'names', or a table with the columns site and time.")
    ] = "",
    preset: Annotated[str | None, typer.Option(help="paper or authors: replicate that setting.")] = None,
    seed: Seed = 0,
    splits: Annotated[str, typer.Option(help="auto, yes or no: may a site split a group into fragments?")] = "auto",
    search: Annotated[str, typer.Option(help="auto, plain or thorough.")] = "auto",
    screens: Annotated[
        str, typer.Option(help="auto, none, or some of duplicates,outliers: what to look for before the fit.")
    ] = "auto",
    keep_going: Annotated[
        bool, typer.Option("--keep-going", help="Leave out and name files that cannot be used; exit code 3.")
    ] = False,
    centres: Centres = False,
    force: Force = False,
    json: Json = False,
) -> None:
    """Match the groups of all sites, and fuse them. Finds which are the same, and how many there are in all."""
    options: dict[str, Any] = {
        "families": cli.arguments.parse_family(family),
        "prior": cli.arguments.parse_prior(prior),
        "times": cli.arguments.parse_times(times),
        "preset": preset,
        "seed": seed,
        "search": modelweld.Search(search, cli.arguments.parse_splits(splits)),  # type: ignore[arg-type]
        "screens": cli.arguments.parse_screens(screens),
    }
    files = cli.paths.expand_patterns(paths)
    sites = [] if keep_going else cli.paths.sites_of(files, centres=centres)
    modelweld.files.limits.check_free(out, force=force)
    if page is not None:
        modelweld.report.page.check_page(page, force=force)
    refused: dict[str, str] = {}
    with progress_to(True, "fusing"):
        if keep_going:
            fusion, refused = cli.paths.fuse_files(files, page is not None, centres=centres, **options)
        else:
            fusion = modelweld.fuse(sites, **options)
    modelweld.files.save(fusion, out, force=force)
    if page is not None:
        _write_page(fusion, page, force)
    if len(fusion.sites) == 1:
        say("warning: this is one site: nothing was fused. Give the files of all sites, or their folder.")
    _show_written(fusion, out, json, f", report {page}" if page else "", refused)
    if refused:
        raise typer.Exit(LEFT_OUT)


def verdict(
    fusion: FusionFile,
    level: Annotated[float, typer.Option(help="Significance level of the test.")] = 0.05,
    seed: Annotated[int, typer.Option(help="Seed of the random rotations of sites.")] = 0,
    json: Json = False,
) -> None:
    """Test whether sites share structure. Was it worth merging, and which sites do not belong?"""
    found = cli.paths.read_fusion(fusion)
    with progress_to(True, "judging"):
        content = cli.table_output.judge(found, level, seed)
    result(cli.table_output.spell_verdict(content), content, json)


def report(
    fusion: FusionFile,
    out: Annotated[Path, typer.Option(help="Where to write the report.")] = Path("report.html"),
    title: Annotated[str, typer.Option(help="Heading of the page.")] = "Fusion report",
    allow_small: AllowSmall = False,
    force: Force = False,
    json: Annotated[bool, typer.Option("--json", help="Print the report's numbers instead of writing it.")] = False,
) -> None:
    """Write a report about a fusion. It is a single HTML file for any browser, offline."""
    if json:
        found = cli.paths.read_fusion(fusion)
        with progress_to(True, "computing the numbers"):
            numbers = modelweld.report.numbers_of(found, allow_small=allow_small)
        return result("", numbers, json)
    modelweld.report.page.check_page(out, force=force)
    _write_page(cli.paths.read_fusion(fusion), out, force, title=title, allow_small=allow_small)
    result(f"written to {out}")


def _write_page(fusion: Fusion, path: Path, force: bool, **shown: Any) -> None:
    with progress_to(True, "writing the report"):
        modelweld.report.write_report(fusion, path, force=force, **shown)


def add(
    fusion: FusionFile,
    site: Annotated[Path, typer.Argument(help="The new site's file.")],
    out: Target = None,
    time: Annotated[str, typer.Option(help="When it was trained, if its file does not say and the others do.")] = "",
    seed: Seed = 0,
    centres: Centres = False,
    force: Force = False,
    json: Json = False,
) -> None:
    """Add a site to a fusion, without the other sites' files."""

    def revise() -> Fusion | SlimFusion:
        found = cli.paths.read_any_fusion(fusion)
        for model in cli.paths.sites_of([site], centres=centres):
            with progress_to(True, f"adding {model.site}"):
                model = model.with_(time=cli.arguments.parse_time(time)) if time else model
                found = found.add(model, seed=seed) if isinstance(found, modelweld.Fusion) else found.add(model)
        return found

    _write_revised(revise, out or fusion, force, json)


def remove(
    fusion: FusionFile,
    site: Annotated[str, typer.Argument(help="Name of the site that leaves.")],
    out: Target = None,
    seed: Seed = 0,
    force: Force = False,
    json: Json = False,
) -> None:
    """Remove a site from a fusion, with every value that it sent."""

    def revise() -> Fusion:
        with progress_to(True, f"removing {site}"):
            return cli.paths.read_fusion(fusion).remove(site, seed=seed)

    _write_revised(revise, out or fusion, force, json)


def _write_revised(revise: Callable[[], Fusion | SlimFusion], target: Path, force: bool, json: bool) -> None:
    """Check that the file may be written, then make the fusion, write it and describe it."""
    modelweld.files.limits.check_free(target, force=force)
    found = revise()
    modelweld.files.save(found, target, force=force)
    _show_written(found, target, json)


def _show_written(
    fusion: Fusion | SlimFusion, path: Path, json: bool, more: str = "", refused: Mapping[str, str] | None = None
) -> None:
    """Describe a fusion that was written, and what was left out of it."""
    content = cli.table_output.describe(fusion)
    left_out = {source: spell_options(why) for source, why in (refused or {}).items()}
    for source, why in left_out.items():
        say(f"left out: {source}: {why}")
    text = f"{cli.table_output.spell_content(content)}\nwritten to {path}{more}"
    result(text, {**content, "file": str(path), **({"refused": left_out} if left_out else {})}, json)


def compare(first: FusionFile, second: FusionFile, json: Json = False) -> None:
    """Compare two fusions. Do they put the same parameters of the same sites together?"""
    content = modelweld.metrics.compare(cli.paths.read_fusion(first), cli.paths.read_fusion(second))
    lines = [
        f"{name}: K {found['K'][0]} and {found['K'][1]}; agreement (ARI) {found['ari']:.4f}; "
        f"{found['parameters']} parameters of {found['sites']} sites that are in both"
        for name, found in content.items()
    ]
    result("\n".join(lines), content, json)


COMMANDS = (fuse, verdict, report, add, remove, compare)
"""The commands of this file, in the order of ``modelweld --help``."""
