"""Files that commands read and write."""

from __future__ import annotations

from collections.abc import Sequence
from glob import glob
from pathlib import Path

from modelweld.errors import InputError
from modelweld.files import READ, is_fusion
from modelweld.fusion import Fusion
from modelweld.inputs.local_model import LocalModel
from modelweld.progress import track
from modelweld.revision.slim import SlimFusion


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
    from modelweld.files import read_sites

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
    from modelweld.files import load

    found = load(path)
    if isinstance(found, LocalModel):
        raise InputError(f"{path}: this is a site's model, not a fusion; `modelweld fuse` makes one of several.")
    return found
