"""Files: what sites send and what fusions leave. docs/files.md says what is in them; nothing that is read runs code.

`save` writes a LocalModel, a Fusion or a SlimFusion as safetensors with a manifest, `load` reads any of them;
`read_any` reads a LocalModel in any known format, `read_sites` several from a table.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import modelweld
from modelweld.errors import InputError
from modelweld.files.fusion_file import load_fusion
from modelweld.files.limits import check_beginning, naming
from modelweld.files.manifest import SITE, SLIM, load_site, manifest_of, read_json, save_site
from modelweld.files.numpy_files import model_of, read_npy, read_npz
from modelweld.files.slim_file import load_slim
from modelweld.files.tables import read_csv, read_parquet
from modelweld.files.tensors import Tensors, open_tensors
from modelweld.inputs.local_model import LocalModel

if TYPE_CHECKING:
    from modelweld.fusion import Fusion
    from modelweld.revision.slim_fusion import SlimFusion

__all__ = ["load", "read_any", "read_sites", "save"]

READ = (".safetensors", ".npz", ".npy", ".csv", ".parquet", ".json")

EXPORT = "modelweld.export(model, 'site.safetensors')"

PICKLES = (".pkl", ".pickle", ".joblib", ".pt", ".pth", ".bin", ".skops", ".rds", ".rdata")
"""Files that hold a program's own objects: most run code when they are loaded."""


def save(thing: LocalModel | Fusion | SlimFusion, path: str | os.PathLike[str], *, force: bool = False) -> Path:
    """Write a LocalModel or a fusion to a safetensors file with a manifest: the whole file or none.

    Parameters
    ----------
    thing : LocalModel, Fusion or SlimFusion
        What to write.
    path : path
        Where; something.safetensors.
    force : bool
        Whether to replace a file that is there already.

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> import tempfile
    >>> site = LocalModel({"v": [[1.0, 2.0]]}, {"v": ("atom", None)}, site="north")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     load(save(site, f"{folder}/north.safetensors")).arrays["v"].tolist()
    [[1.0, 2.0]]
    """
    if isinstance(thing, LocalModel):
        return save_site(thing, path, force=force)
    from modelweld.revision.slim_fusion import SlimFusion

    if isinstance(thing, (modelweld.Fusion, SlimFusion)):
        return thing.save(path, force=force)
    raise InputError(
        f"{str(path)!r}: a {type(thing).__name__} is neither a LocalModel nor a Fusion. For fitted models there is "
        "modelweld.export(model, path)."
    )


def load(path: str | os.PathLike[str], *, centres: bool = False) -> LocalModel | Fusion | SlimFusion:
    """What `save` wrote: a LocalModel, a Fusion or a SlimFusion, bit for bit; or the LocalModel of another file.

    Parameters
    ----------
    path : path
        Of the file.
    centres : bool
        As in `read_any`.

    Examples
    --------
    >>> import tempfile, modelweld
    >>> fusion = modelweld.fuse([[[0.0], [9.0]], [[9.1]], [[0.1]]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = fusion.save(f"{folder}/fusion.safetensors")
    ...     load(path).K == fusion.K
    True
    """
    where = Path(path)
    with naming(where):
        _check_suffix(where)
        if where.suffix.lower() == ".safetensors":
            file = open_tensors(where)
            manifest = manifest_of(file)
            if manifest is not None and manifest["format"] == SITE:
                return load_site(file, manifest)
            if manifest is not None and manifest["format"] == SLIM:
                return load_slim(file, manifest)
            if manifest is not None:
                return modelweld.Fusion(load_fusion(file, manifest))
    return read_any(where, centres=centres)


def is_fusion(path: str | os.PathLike[str]) -> bool:
    """Whether a safetensors file holds a fusion; not if it cannot be read."""
    try:
        manifest = manifest_of(open_tensors(Path(path)))
    except Exception:  # who reads it says what is wrong with it
        return False
    return manifest is not None and manifest["format"] != SITE


def read_any(path: str | os.PathLike[str], *, centres: bool = False) -> LocalModel:
    r"""The LocalModel of a file, whatever its format.

    Parameters
    ----------
    path : path
        A safetensors, npz, npy, csv, parquet or json file: see docs/files.md for what these may hold.
    centres : bool
        Whether the rows of a table are centres of groups. A table without counts is refused unless this is set: its
        rows may be people's.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "north.csv")
    ...     _ = file.write_text("age,pressure,count\n40.5,120,30\n61.0,,12\n")
    ...     model = read_any(file)
    >>> model.coordinates["feature"], model.weight["values"].tolist(), model.arrays["counts"].tolist()
    (('age', 'pressure'), [[1.0, 1.0], [1.0, 0.0]], [30.0, 12.0])
    """
    found = read_sites(path, centres=centres)
    if len(found) > 1:
        raise InputError(
            f"{str(path)!r}: it holds {len(found)} sites, and one is asked for: use modelweld.files.read_sites."
        )
    return found[0]


def read_sites(path: str | os.PathLike[str], *, centres: bool = False) -> list[LocalModel]:
    r"""The LocalModels of a file: one, or one per site of a table with a column `site`.

    A site that does not say its name is called after its file. For `centres`, see `read_any`.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "centres.csv"
    ...     _ = file.write_text("site,age,weight\nnorth,30,70\nnorth,60,80\nsouth,31,71\n")
    ...     [site.site for site in read_sites(file, centres=True)]
    ['north', 'south']
    """
    where = Path(path)
    with naming(where):
        _check_suffix(where)
        models = _models(where, centres)
        return [model if model.site else model.with_(site=_printable(where.stem)) for model in models]


def _models(path: Path, centres: bool) -> list[LocalModel]:
    if path.suffix.lower() == ".safetensors":
        return [_from_tensors(open_tensors(path), centres)]
    check_beginning(path)
    match path.suffix.lower():
        case ".npz":
            named = [read_npz(path)]
        case ".npy":
            named = [read_npy(path)]
        case ".csv":
            named = read_csv(path)
        case ".parquet":
            named = read_parquet(path)
        case _:
            return [read_json(path, centres=centres)]
    return [model_of(site, centres=centres) for site in named]


def _from_tensors(file: Tensors, centres: bool) -> LocalModel:
    manifest = manifest_of(file)
    if manifest is None:
        return model_of({name: file.read(name) for name in file.places}, centres=centres)
    if manifest["format"] != SITE:
        raise InputError("it is a fusion, not a site's model. Open it with modelweld.load; give the sites' files here.")
    return load_site(file, manifest)


def _check_suffix(path: Path) -> None:
    suffix = path.suffix.lower()
    if suffix in PICKLES:
        raise InputError(
            f"{suffix} files hold objects of a program and may run code when loaded: they are never read here. Write "
            f"the model's parameters at the site, {'modelweld export ' + path.name if suffix == '.skops' else EXPORT}."
        )
    if suffix not in READ:
        raise InputError(f"files are {', '.join(READ)}; found {suffix or 'no ending'!r}. Rename or convert it.")


def _printable(name: str) -> str:
    return "".join(c for c in name if c.isprintable())[:100]
