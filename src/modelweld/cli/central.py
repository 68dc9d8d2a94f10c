"""Commands for the person at the centre: fuse files, look at the page, let sites come and go."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from modelweld.cli.messages import FAMILIES, PRIORS, result, result_json, say, spoken
from modelweld.cli.site import Centres, Force, Json
from modelweld.cli.use import FusionFile
from modelweld.progress import show_progress

if TYPE_CHECKING:
    from modelweld.fusion import Fusion
    from modelweld.results.revision.slim import SlimFusion

Target = Annotated[Path | None, typer.Option(help="Where to write; default: the fusion's own file, with --force.")]
Seed = Annotated[int, typer.Option(help="Draws the order of sites in each sweep.")]


def register(app: typer.Typer) -> None:
    """Add these commands."""
    for command in (fuse, verdict, report, add, remove, compare):
        app.command()(command)


def fuse(
    paths: Annotated[list[str], typer.Argument(help="Files of sites, folders of them, or patterns.")],
    out: Annotated[Path, typer.Option(help="Where to write the fusion.")] = Path("fusion.safetensors"),
    page: Annotated[Path | None, typer.Option("--report", help="Also write the page here.")] = None,
    family: Annotated[str, typer.Option(help=f"How values scatter, default by the kind of model: {FAMILIES}.")] = "",
    prior: Annotated[str, typer.Option(help=f"How probable matchings are: {PRIORS}.")] = "auto",
    times: Annotated[
        str, typer.Option(help="When sites were trained: 'names', or a table with the columns site and time.")
    ] = "",
    preset: Annotated[str | None, typer.Option(help="paper or authors: replicate that setting.")] = None,
    seed: Seed = 0,
    splits: Annotated[str, typer.Option(help="auto, yes or no: may a site hold an atom in fragments?")] = "auto",
    search: Annotated[str, typer.Option(help="auto, plain or thorough.")] = "auto",
    duplicates: Annotated[
        str, typer.Option(help="once or independent: what are sites that sent the same values?")
    ] = "once",
    keep_going: Annotated[
        bool, typer.Option("--keep-going", help="Leave out what cannot be used, name it, and end with exit code 3.")
    ] = False,
    centres: Centres = False,
    force: Force = False,
    json: Json = False,
) -> None:
    """Find which parameters of the sites are copies of the same global one, and how many there are."""
    from modelweld.cli.messages import family_in, prior_in, splits_in
    from modelweld.cli.paths import LEFT_OUT, expand_patterns
    from modelweld.cli.times import times_in
    from modelweld.files import save
    from modelweld.files.limits import check_free
    from modelweld.report.page import check_page

    options = {
        "families": family_in(family),
        "prior": prior_in(prior),
        "times": times_in(times),
        "preset": preset,
        "seed": seed,
        "splits": splits_in(splits),
        "search": search,
        "duplicates": duplicates,
    }
    check_free(out, force=force)
    if page is not None:
        check_page(page, force=force)
    with show_progress("fusing"):
        fusion, refused = _fuse_files(expand_patterns(paths), centres, keep_going, page is not None, options)
    save(fusion, out, force=force)
    if page is not None:
        _write_page(fusion, page, force)
    _tell_written(fusion, out, json, f", page {page}" if page else "", refused)
    if refused:
        raise typer.Exit(LEFT_OUT)


def _fuse_files(
    files: Sequence[Path], centres: bool, keep_going: bool, paged: bool, options: dict[str, Any]
) -> tuple[Fusion, dict[str, str]]:
    """The fusion of what files hold and, if it is to keep going, what was left out and why."""
    from modelweld.cli.paths import fuse_files, sites_of
    from modelweld.files.fusion_file import content_of
    from modelweld.fuse import fuse as fuse_models
    from modelweld.report.page import text_of

    if not keep_going:
        return fuse_models(sites_of(files, centres=centres), **options), {}

    def use(fusion: Fusion) -> None:
        content_of(fusion)
        if paged:
            text_of(fusion, draws=False)

    return fuse_files(files, use, centres=centres, **options)


def verdict(
    fusion: FusionFile,
    level: Annotated[float, typer.Option(help="How often sites that share nothing may get a yes.")] = 0.05,
    seed: Annotated[int, typer.Option(help="Draws the random rotations of sites.")] = 0,
    json: Json = False,
) -> None:
    """Was it worth merging? In plain words: whether sites share anything, and which do not belong."""
    from modelweld.cli.paths import fusion_of
    from modelweld.cli.table_output import judge, spell_verdict

    found = fusion_of(fusion)
    with show_progress("judging"):
        content = judge(found, level, seed)
    if json:
        result_json(content)
    else:
        result(spell_verdict(content))


def report(
    fusion: FusionFile,
    out: Annotated[Path, typer.Option(help="Where to write the page.")] = Path("report.html"),
    force: Force = False,
    json: Annotated[bool, typer.Option("--json", help="Print the page's numbers instead of writing it.")] = False,
) -> None:
    """One page about a fusion, in a single file: open it in any browser, offline."""
    from modelweld.cli.paths import fusion_of
    from modelweld.report.numbers import numbers_of
    from modelweld.report.page import check_page

    if not json:
        check_page(out, force=force)
    found = fusion_of(fusion)
    if json:
        with show_progress("computing the numbers"):
            numbers = numbers_of(found)
        result_json(numbers)
        return
    _write_page(found, out, force)
    result(f"written to {out}")


def _write_page(fusion: Fusion, path: Path, force: bool) -> None:
    from modelweld.report import write_report

    with show_progress("writing the page"):
        write_report(fusion, path, force=force)


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
    from modelweld.cli.paths import fusion_or_slim, sites_of
    from modelweld.cli.times import time_in
    from modelweld.fusion import Fusion

    def added() -> Fusion | SlimFusion:
        found = fusion_or_slim(fusion)
        for model in sites_of([site], centres=centres):
            with show_progress(f"adding {model.site}"):
                model = model if not time else model.with_(time=time_in(time))
                found = found.add(model, seed=seed) if isinstance(found, Fusion) else found.add(model)
        return found

    _revise(added, out or fusion, force, json)


def remove(
    fusion: FusionFile,
    site: Annotated[str, typer.Argument(help="Name of the site that leaves.")],
    out: Target = None,
    seed: Seed = 0,
    force: Force = False,
    json: Json = False,
) -> None:
    """Take a site out of a fusion; no value that it sent is left in it."""
    from modelweld.cli.paths import fusion_of

    def removed() -> Fusion:
        with show_progress(f"removing {site}"):
            return fusion_of(fusion).remove(site, seed=seed)

    _revise(removed, out or fusion, force, json)


def _revise(revised: Callable[[], Fusion | SlimFusion], target: Path, force: bool, json: bool) -> None:
    """Look whether there is room for the file, then make the fusion, write it and say what it is."""
    from modelweld.files import save
    from modelweld.files.limits import check_free

    check_free(target, force=force)
    found = revised()
    save(found, target, force=force)
    _tell_written(found, target, json)


def _tell_written(
    fusion: Fusion | SlimFusion, path: Path, json: bool, more: str = "", refused: Mapping[str, str] | None = None
) -> None:
    """What a fusion that was written has found and what was left out, for people or for machines."""
    from modelweld.cli.table_output import describe, spell_content

    content = describe(fusion)
    refused = {source: spoken(why) for source, why in (refused or {}).items()}
    for source, why in refused.items():
        say(f"left out: {source}: {why}")
    if json:
        result_json({**content, "file": str(path), **({"refused": refused} if refused else {})})
    else:
        result(f"{spell_content(content)}\nwritten to {path}{more}")


def compare(first: FusionFile, second: FusionFile, json: Json = False) -> None:
    """Compare two fusions: do they put the same parameters of the same sites together?"""
    from modelweld.cli.paths import fusion_of
    from modelweld.demo.metrics import compare

    content = compare(fusion_of(first), fusion_of(second))
    if json:
        result_json(content)
        return
    for name, found in content.items():
        lines = [f"{name}: K {found['K'][0]} and {found['K'][1]}", f"agreement (ARI) {found['ari']:.4f}"]
        lines += [f"{found['parameters']} parameters of {found['sites']} sites that are in both"]
        result("; ".join(lines))
