"""Files of which some cannot be used: the others are fused, and who was left out is named."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from modelweld.errors import InputError
from modelweld.federate.culprits import fuse_others
from modelweld.files import read_sites
from modelweld.fusion import Fusion
from modelweld.inputs.local_model import LocalModel
from modelweld.inputs.site_names import site_names
from modelweld.progress import track

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
