"""Files of which some cannot be used: the others are fused, and who was left out is named."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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


def fuse_files(files: Sequence[Path], use: Callable[[Fusion], object], **options: Any) -> tuple[Fusion, dict[str, str]]:
    """Fuse what these files hold but for what cannot be read, fused or used; file -> why it was left out.

    As in a round (`federate.Answers`): a name that two files give with different values counts for neither, and more
    than half of the sites that can be read must get on with each other.
    """
    refused: dict[str, str] = {}
    sources: dict[str, list[str]] = {}
    models: list[LocalModel] = []
    for path in track(files, "reading files", len(files)):
        try:
            found = read_sites(path)
        except (InputError, OSError) as wrong:
            refused[str(path)] = str(wrong).removeprefix(f"{str(path)!r}: ")
            continue
        models += found
        for model in found:
            sources.setdefault(model.site, []).append(_source(path, model, alone=len(found) == 1))
    named: dict[str, list[LocalModel]] = {}
    for model in models:
        named.setdefault(model.site, []).append(model)
    claimed = {name: why for name, several in named.items() if (why := _contested(several))}
    models = [model for model in models if model.site not in claimed]
    if not models:
        raise InputError(f"no file can be used. {_listed({**refused, **_by_source(claimed, sources)})}")
    fusion, others = fuse_others(models, use, **options)
    return fusion, {**refused, **_by_source({**claimed, **others}, sources)}


def _source(path: Path, model: LocalModel, alone: bool) -> str:
    return str(path) if alone else f"{path}, site {model.site!r}"


def _contested(models: Sequence[LocalModel]) -> str:
    """Why none of the models of one name counts; nothing if they are the same."""
    try:
        site_names(models)
    except InputError as wrong:
        return str(wrong)
    return ""


def _by_source(refused: dict[str, str], sources: dict[str, list[str]]) -> dict[str, str]:
    return {source: why for name, why in refused.items() for source in sources[name]}


def _listed(refused: dict[str, str]) -> str:
    return " ".join(f"{source}: {why}" for source, why in refused.items())
