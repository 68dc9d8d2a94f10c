"""Files that commands read: which they are, and, where some cannot be used, the fusion of the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from glob import glob
from itertools import chain
from pathlib import Path
from typing import Any

from modelweld.errors import InputError
from modelweld.federate.culprits import fuse_others
from modelweld.files import READ, is_fusion, load, read_sites
from modelweld.fusion import Fusion
from modelweld.inputs.local_model import LocalModel
from modelweld.inputs.plain_tables import site_names
from modelweld.progress import track
from modelweld.results.revision.slim import SlimFusion


def expand_patterns(given: Sequence[str]) -> list[Path]:
    """Paths, folders and patterns that the shell has left alone filled in; each once, in the order of their names.

    Fusions and pages about them are left out, however they are named: a shell makes names of patterns.
    """
    from modelweld.cli.messages import say
    from modelweld.fuse import check_files

    check_files(given)
    found: list[Path] = []
    for name in given:
        if not name.strip():
            raise InputError("the name of a file is empty. Give the files that sites have sent, or their folder.")
        if Path(name).is_dir() and Path(name).suffix.lower() not in READ:
            inside = [p for p in sorted(Path(name).iterdir()) if p.suffix.lower() in READ]
            if all(map(_own, inside)):
                raise InputError(f"{name}: no file in this folder is a site's; such end in {', '.join(READ)}.")
            found += inside
        elif any(c in name for c in "*?["):
            matching = sorted(Path(p) for p in glob(name))
            if not matching and not Path(name).exists():
                raise InputError(f"{name}: no file matches this pattern.")
            found += matching
        else:
            found.append(Path(name))
    own = {path: what for path in dict.fromkeys(found) if (what := _own(path))}
    if own.keys() >= set(found):
        path, what = next(iter(own.items()))
        raise InputError(f"{path}: it is {what}, not a site's model. Give the files that sites have sent.")
    for path, what in own.items():
        say(f"{path}: is {what}, and left out.")
    return [path for path in dict.fromkeys(found) if path not in own]


def _own(path: Path) -> str:
    """What a file is that a command of ours has written about fusions; nothing if it is something else."""
    if path.suffix.lower() == ".html":
        return "a page"
    return "a fusion" if path.suffix.lower() == ".safetensors" and is_fusion(path) else ""


def sites_of(paths: Sequence[Path], *, centres: bool = False) -> list[LocalModel]:
    """The sites' models in these files."""
    files = track(paths, "reading files", len(paths))
    return [model for path in files for model in read_sites(path, centres=centres)]


def fusion_of(path: Path) -> Fusion:
    """The fusion in a file."""
    found = fusion_or_slim(path)
    if isinstance(found, SlimFusion):
        raise InputError(
            f"{path}: this is a slim fusion, without the sites' values and labels, and this command takes them: use "
            "the fusion it was made of. `modelweld inspect` and `modelweld add` take slim ones."
        )
    return found


def fusion_or_slim(path: Path) -> Fusion | SlimFusion:
    """The fusion in a file, with its sites or without."""
    found = load(path)
    if isinstance(found, LocalModel):
        raise InputError(f"{path}: this is a site's model, not a fusion; `modelweld fuse` makes one of several.")
    return found


LEFT_OUT = 3
"""Exit code where something was fused and something was not."""


def fuse_files(
    files: Sequence[Path], use: Callable[[Fusion], object], *, centres: bool = False, **options: Any
) -> tuple[Fusion, dict[str, str]]:
    """Fuse what these files hold but for what cannot be read, fused or used; file -> why it was left out.

    As in a round (`federate.Answers`): a name that two files give with different values counts for neither, and more
    than half of the files that can be read must get on with each other. Each file has one vote, which the sites of a
    table share, and one that takes the names of several others is out itself: a stranger's table shuts nobody out.
    """
    refused: dict[str, str] = {}
    read: dict[str, list[LocalModel]] = {}
    for path in track(files, "reading files", len(files)):
        try:
            read[str(path)] = read_sites(path, centres=centres)
        except (InputError, OSError) as wrong:
            refused[str(path)] = str(wrong).removeprefix(f"{str(path)!r}: ")
    while out := _impostor(read, claimed := _contested(read)):
        del read[out]
        refused[out] = "sites of several other files have other values there: it takes their names."
    voting = [(model, 1 / len(found)) for found in read.values() for model in found if model.site not in claimed]
    if not voting:
        raise InputError(f"no file can be used. {_listed({**refused, **_by_source(claimed, read)})}")
    models, votes = zip(*voting, strict=True)
    fusion, others = fuse_others(models, use, votes, **options)
    return fusion, {**refused, **_by_source({**claimed, **others}, read)}


def _contested(read: Mapping[str, Sequence[LocalModel]]) -> dict[str, str]:
    """Names under which files have different values, and what is wrong with that."""
    named: dict[str, list[LocalModel]] = {}
    for model in chain.from_iterable(read.values()):
        named.setdefault(model.site, []).append(model)
    claimed = {}
    for name, models in named.items():
        try:
            site_names(models)
        except InputError as wrong:
            claimed[name] = str(wrong)
    return claimed


def _impostor(read: Mapping[str, Sequence[LocalModel]], claimed: Mapping[str, str]) -> str:
    """The file that contests names with several others, and with more than any of these does; empty: there is none."""
    holders: dict[str, list[str]] = {}
    for path, models in read.items():
        for model in models:
            if model.site in claimed:
                holders.setdefault(model.site, []).append(path)
    rivals: dict[str, set[str]] = {}
    for paths in holders.values():
        for path in paths:
            rivals.setdefault(path, set()).update({*paths} - {path})
    worst = max(rivals, key=lambda path: len(rivals[path]), default="")
    most = len(rivals.get(worst, ()))
    return worst if most > 1 and all(len(rivals[other]) < most for other in rivals[worst]) else ""


def _by_source(refused: Mapping[str, str], read: Mapping[str, Sequence[LocalModel]]) -> dict[str, str]:
    """Files, or sites of tables, and why they are left out; a table of which no site stays is named once."""
    told = {}
    for path, models in read.items():
        out = [model.site for model in models if model.site in refused]
        if len(out) < len(models) or len(models) == 1:
            told.update({path if len(models) == 1 else f"{path}, site {site!r}": refused[site] for site in out})
        else:
            told[path] = f"none of its {len(models):,} sites can be used. The first: {refused[out[0]]}"
    return told


def _listed(refused: dict[str, str]) -> str:
    return " ".join(f"{source}: {why}" for source, why in refused.items())
