"""Files that commands read and write."""

from __future__ import annotations

from collections import Counter
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

    Fusions in folders, and among what a pattern matches, are left out.
    """
    found: list[Path] = []
    for name in given:
        if Path(name).is_dir() and Path(name).suffix.lower() not in READ:
            inside = leave_fusions_out([p for p in sorted(Path(name).iterdir()) if p.suffix.lower() in READ])
            if not inside:
                raise InputError(f"{name}: no file in this folder is a site's; such end in {', '.join(READ)}.")
            found += inside
        elif any(c in name for c in "*?["):
            matching = sorted(Path(p) for p in glob(name))
            if not matching and not Path(name).exists():
                raise InputError(f"{name}: no file matches this pattern.")
            found += leave_fusions_out(matching)
        else:
            found.append(Path(name))
    return list(dict.fromkeys(found))


def leave_fusions_out(paths: Sequence[Path]) -> list[Path]:
    """The paths that are not fusions; a line says which are."""
    from modelweld.cli.messages import say

    fusions = [path for path in paths if path.suffix.lower() == ".safetensors" and is_fusion(path)]
    for path in fusions:
        say(f"{path}: is a fusion, and left out.")
    return [path for path in paths if path not in fusions]


def sites_of(paths: Sequence[Path]) -> list[LocalModel]:
    """The sites' models in these files, each site once."""
    from modelweld.files import read_sites

    found = [model for path in track(paths, "reading files", len(paths)) for model in read_sites(path)]
    check_once(found)
    return found


def check_once(models: Sequence[LocalModel]) -> None:
    """Refuse a site that comes more than once."""
    names = Counter(model.site for model in models)
    twice = min((name for name, number in names.items() if number > 1), default=None)
    if twice is not None:
        raise InputError(
            f"site {twice!r} comes more than once: each site sends one file. Remove or rename one of them."
        )


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


def check_free(path: Path, force: bool) -> Path:
    """A path that may be written."""
    if path.exists() and not force:
        raise InputError(f"{path}: is there already; choose another name, or --force to replace it.")
    if not path.parent.exists():
        raise InputError(f"{path}: there is no folder {path.parent}.")
    return path
