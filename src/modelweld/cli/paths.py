"""Files that commands read: which they are, and, where some cannot be used, the fusion of the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from glob import glob
from itertools import chain
from pathlib import Path
from typing import Any

from modelweld.cli.messages import say
from modelweld.errors import InputError, announce
from modelweld.federate.round import check_writable, fuse_others
from modelweld.files import READ, is_fusion, load, read_sites
from modelweld.fuse import check_files, site_names
from modelweld.fusion import Fusion
from modelweld.inputs.local_model import LocalModel
from modelweld.kinds import kind_of, name_doubts
from modelweld.progress import track
from modelweld.revision.slim_fusion import SlimFusion
from modelweld.site.export import open_model as open_model


def expand_patterns(given: Sequence[str]) -> list[Path]:
    """The files that paths, folders and patterns name, each once, in the order of their names.

    Fusions and reports are left out: a pattern may match them.
    """
    check_files(given)
    found: list[Path] = []
    for name in given:
        if not name.strip():
            raise InputError("the name of a file is empty. Give the files that sites have sent, or their folder.")
        if Path(name).is_dir() and Path(name).suffix.lower() not in READ:
            inside = [p for p in sorted(Path(name).iterdir()) if p.suffix.lower() in READ]
            if all(map(_own_output, inside)):
                raise InputError(f"{name}: no file in this folder is a site's; those end in {', '.join(READ)}.")
            found += inside
        elif any(c in name for c in "*?["):
            matching = sorted(Path(p) for p in glob(name))
            if not matching and not Path(name).exists():
                raise InputError(f"{name}: no file matches this pattern.")
            found += matching
        else:
            found.append(Path(name))
    own = {path: what for path in dict.fromkeys(found) if (what := _own_output(path))}
    if own.keys() >= set(found):
        path, what = next(iter(own.items()))
        raise InputError(f"{path}: it is {what}, not a site's model. Give the files that sites have sent.")
    for path, what in own.items():
        say(f"{path}: this is {what}: left out.")
    return [path for path in dict.fromkeys(found) if path not in own]


def _own_output(path: Path) -> str:
    """Whether a file is a report or a fusion, in words; empty if it is neither."""
    if path.suffix.lower() == ".html":
        return "a report"
    return "a fusion" if path.suffix.lower() == ".safetensors" and is_fusion(path) else ""


def sites_of(paths: Sequence[Path], *, centres: bool = False) -> list[LocalModel]:
    """The sites' models in these files."""
    return [m for path in track(paths, "reading files", len(paths)) for m in read_sites(path, centres=centres)]


def read_files(paths: Sequence[Path], *, centres: bool = False) -> tuple[dict[str, list[LocalModel]], dict[str, str]]:
    """The sites' models by file, and the files that cannot be read with the reason."""
    read: dict[str, list[LocalModel]] = {}
    refused: dict[str, str] = {}
    for path in track(paths, "reading files", len(paths)):
        try:
            read[str(path)] = read_sites(path, centres=centres)
        except (InputError, OSError) as wrong:
            refused[str(path)] = str(wrong)
    return read, refused


def check_sites(paths: Sequence[Path], *, centres: bool = False) -> tuple[list[LocalModel], dict[str, str]]:
    """The models that can be read, and what is wrong: by file, or with all of them "together"."""
    read, problems = read_files(paths, centres=centres)
    good = list(chain.from_iterable(read.values()))
    try:
        if len(good) > 1:
            site_names(good)
            kind = kind_of(good)
            announce(name_doubts(kind, good, kind.arrange(good)))
    except InputError as wrong:
        problems["together"] = str(wrong)
    return good, problems


def read_fusion(path: Path) -> Fusion:
    """The fusion in a file."""
    found = read_any_fusion(path)
    if isinstance(found, SlimFusion):
        raise InputError(f"{path}: a slim fusion, without the sites' values, is for inspect and add alone.")
    return found


def read_any_fusion(path: Path) -> Fusion | SlimFusion:
    """The fusion in a file, with the sites' values or without."""
    found = load(path)
    if isinstance(found, LocalModel):
        raise InputError(f"{path}: this is a site's model, not a fusion; `modelweld fuse` makes one of several.")
    return found


def fuse_files(
    files: Sequence[Path], has_report: bool, *, centres: bool = False, **options: Any
) -> tuple[Fusion, dict[str, str]]:
    """Fuse all files but those that cannot be read, fused or written; the others are returned with the reason.

    As in a federated round (`federate.Answers`): a name that two files give with different values counts for neither,
    and more than half of the files that can be read must agree. Each file has one vote, which the sites of a table
    share, and a file that uses the names of several others is left out itself: it cannot exclude them.
    """
    read, refused = read_files(files, centres=centres)
    refused = {path: why.removeprefix(f"{path!r}: ") for path, why in refused.items()}
    while out := _find_impostor(read, claimed := _find_contested(read)):
        del read[out]
        refused[out] = "sites of several other files have other values there: it takes their names."
    voting = [(model, 1 / len(found)) for found in read.values() for model in found if model.site not in claimed]
    if not voting:
        reasons = {**refused, **_by_source(claimed, read)}
        raise InputError(f"no file can be used. {' '.join(f'{source}: {why}' for source, why in reasons.items())}")
    models, votes = zip(*voting, strict=True)
    fusion, others = fuse_others(models, lambda found: check_writable(found, has_report), votes, **options)
    return fusion, {**refused, **_by_source({**claimed, **others}, read)}


def _find_contested(read: Mapping[str, Sequence[LocalModel]]) -> dict[str, str]:
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


def _find_impostor(read: Mapping[str, Sequence[LocalModel]], claimed: Mapping[str, str]) -> str:
    """The file that contests names with several others, and with more than any of these does; empty: there is none."""
    rivals: dict[str, set[str]] = {}
    for name in claimed:
        holders = {path for path, models in read.items() if any(model.site == name for model in models)}
        for path in holders:
            rivals.setdefault(path, set()).update(holders - {path})
    worst = max(sorted(rivals), key=lambda path: len(rivals[path]), default="")
    most = len(rivals.get(worst, ()))
    return worst if most > 1 and all(len(rivals[other]) < most for other in rivals[worst]) else ""


def _by_source(refused: Mapping[str, str], read: Mapping[str, Sequence[LocalModel]]) -> dict[str, str]:
    """Files, or sites of tables, and why they are left out; a table of which no site stays is named once."""
    reasons = {}
    for path, models in read.items():
        out = [model.site for model in models if model.site in refused]
        if len(models) == len(out) > 1:
            reasons[path] = f"none of its {len(models):,} sites can be used. The first: {refused[out[0]]}"
        else:
            reasons |= {path if len(models) == 1 else f"{path}, site {site!r}": refused[site] for site in out}
    return reasons
