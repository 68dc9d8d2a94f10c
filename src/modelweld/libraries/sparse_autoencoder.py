"""Features of a sparse autoencoder, or of any dictionary that is kept as named tensors: rows of its decoder."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import safetensors.numpy
from numpy.typing import ArrayLike

from modelweld.core.values import Array
from modelweld.errors import InputError
from modelweld.inputs.local_model import LocalModel
from modelweld.kinds.components import components


def decoder(
    state: Mapping[str, Any] | str | os.PathLike[str],
    name: str,
    *,
    features: Literal["rows", "columns"],
    bias: str | None = None,
    counts: ArrayLike | None = None,
    site: str = "",
) -> LocalModel:
    """The features of a sparse autoencoder as components: directions that have signs.

    Parameters
    ----------
    state : mapping of str to array, or path
        The autoencoder's ``state_dict()``, or a .safetensors file of it, which is read without running any code.
    name : str
        Which tensor is the decoder: "W_dec", "decoder.weight", ...
    features : {"rows", "columns"}
        Whether a feature is a row of it (`W_dec`, features x dimensions) or a column (the weight of a
        ``torch.nn.Linear`` from features to dimensions).
    bias : str, optional
        Which tensor is added to every output: it becomes the mean.
    counts : array, optional
        Tokens that each feature fires on.
    site : str, optional
        A name for the dictionary.

    Examples
    --------
    >>> import modelweld
    >>> seeds = [{"W_dec": [[3.0, 4.0], [1.0, 0.0]]}, {"W_dec": [[0.6, 0.8]]}]
    >>> fusion = modelweld.fuse([decoder(state, "W_dec", features="rows") for state in seeds])
    >>> [labels.tolist() for labels in fusion.labels]
    [[0, 1], [0]]
    """
    tensors = state if isinstance(state, Mapping) else _load(state)
    weights = _matrix(tensors, name)
    if weights.ndim != 2:
        raise InputError(f"decoder: {name!r} is a matrix of features and dimensions; found shape {weights.shape}.")
    if features not in ("rows", "columns"):
        raise InputError(f"decoder: features is 'rows' or 'columns'; found {features!r}. {name!r} is {weights.shape}.")
    vectors = weights if features == "rows" else weights.T
    mean = None if bias is None else _matrix(tensors, bias)
    return components(vectors, signed=True, mean=mean, counts=counts, site=site)


def _load(path: str | os.PathLike[str]) -> Mapping[str, Any]:
    try:
        return dict(safetensors.numpy.load_file(path))
    except (OSError, safetensors.SafetensorError) as wrong:
        raise InputError(f"{path} is no safetensors file that can be read: {wrong}.") from None


def _matrix(tensors: Mapping[str, Any], name: str) -> Array:
    if name not in tensors:
        shapes = {key: tuple(np.shape(value)) for key, value in tensors.items()}
        raise InputError(f"decoder: there is no tensor {name!r}; there are {shapes}.")
    given = tensors[name]
    if hasattr(given, "detach"):  # a tensor of torch, which may be on a device, or of half precision
        given = given.detach().cpu().double().numpy()
    return np.asarray(given, dtype=np.float64)
