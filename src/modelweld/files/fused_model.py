"""Fitted models in files of their libraries' kinds: one to export, at the site; the fused one, for the sites to use.

A skops file names the classes it holds and builds none that its reader does not trust. A joblib file is a pickle: who
loads it runs whatever it says, so it is written only where its name asks for one. Weights of a torch network are
tensors and nothing else; which layers they belong to stands beside them in words.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import joblib

from modelweld.errors import InputError, load_extra
from modelweld.files.limits import first_line, naming, size_of, whole_file
from modelweld.files.numpy_files import check_archive

if TYPE_CHECKING:
    from torch.nn import Module

ENDINGS = {
    ".skops": "safe to load, with the extra 'safe'",
    ".joblib": "a pickle, which runs code when it is loaded",
    ".safetensors": "weights of a torch network",
}
"""Endings of such files, and what they are."""


def save_model(model: object, path: str | os.PathLike[str], *, force: bool = False) -> str:
    """Write a fitted model, and say how it is loaded.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.cluster import KMeans
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(KMeans(1, n_init=1).fit([[0.0], [1.0]]), f"{folder}/fused.skops").replace(folder, "here")
    "skops.io.load('here/fused.skops')"
    """
    where = Path(path)
    network = any(cls.__module__.startswith("torch.nn") for cls in type(model).__mro__)
    if where.suffix not in ENDINGS:
        known = ", ".join(f"{ending} ({what})" for ending, what in ENDINGS.items())
        raise InputError(f"{str(path)!r}: fused models are written as {known}; found {where.suffix or 'no ending'!r}.")
    if network != (where.suffix == ".safetensors"):
        fits = ".safetensors" if network else ".skops"
        raise InputError(
            f"{str(path)!r}: a {type(model).__name__} is not written as {where.suffix}: call the file something{fits}, "
            "or write it from Python, fusion.model()."
        )
    with whole_file(where, force=force) as part:
        return {".skops": _skops, ".joblib": _joblib, ".safetensors": _weights}[where.suffix](model, part, where)


def read_skops(path: Path) -> object:
    """A fitted model from a skops file, whose size is checked first: skops itself has no limit. Only trusted types."""
    with naming(path):
        check_archive(path, size_of(path))
        io = _skops_io()
        try:
            return io.load(path, trusted=[])
        except Exception as wrong:
            raise InputError(f"skops does not load it: {first_line(wrong)}.") from None


def _skops_io() -> Any:
    return load_extra("skops.io", "skops files need", "modelweld[safe]")


def _skops(model: object, part: Path, path: Path) -> str:
    io = _skops_io()
    io.dump(model, part)
    unknown = io.get_untrusted_types(file=part)
    return f"skops.io.load({str(path)!r}{f', trusted={unknown}' if unknown else ''})"


def _joblib(model: object, part: Path, path: Path) -> str:
    joblib.dump(model, part)
    return f"joblib.load({str(path)!r})"


def _weights(model: Module, part: Path, path: Path) -> str:
    from safetensors.torch import save_file

    layers = ", ".join(repr(module) for module in model.children())
    save_file(model.state_dict(), part, metadata={"layers": layers})
    made = f"Sequential({layers})" if type(model).__name__ == "Sequential" else "fusion.model()"
    return f"net = {made}; net.load_state_dict(safetensors.torch.load_file({str(path)!r}))"
