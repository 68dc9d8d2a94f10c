"""scikit-learn's decompositions: dictionaries, factors, loadings, independent components, sparse and principal axes.

`CLASSES` says of each class which settings travel and what a fitted model of it holds. Also pycrostates' ModKMeans and
AAHCluster, and mne's ICA: maps of EEG microstates and components, whose polarity means nothing.

Features of a sparse autoencoder, or of any dictionary that is kept as named tensors: rows of its decoder.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import safetensors.numpy
import sklearn
from numpy.typing import ArrayLike

from modelweld.core.values import Array
from modelweld.errors import InputError, check_choice
from modelweld.inputs.local_model import LocalModel
from modelweld.kinds.components import components, vectors_of
from modelweld.libraries.scaling import name_features

AXES = ("PCA", "IncrementalPCA", "TruncatedSVD")
"""Principal axes, whose lengths are deviations along them; the others have components of any length and direction."""

_DICTIONARY = (
    "alpha fit_algorithm transform_algorithm transform_n_nonzero_coefs transform_alpha transform_max_iter split_sign "
    "positive_code positive_dict",
    "components_ error_ n_iter_ n_steps_",
)
_FACTORS = (
    "solver beta_loss tol max_iter alpha_W alpha_H l1_ratio transform_max_iter",
    "components_ n_components_ n_iter_ reconstruction_err_",
)
_SPARSE = ("alpha ridge_alpha method", "components_ n_components_ mean_ error_ n_iter_")
_PRINCIPAL = (
    "whiten",
    "components_ n_components_ mean_ explained_variance_ explained_variance_ratio_ singular_values_ noise_variance_ "
    "n_samples_ n_samples_seen_",
)
CLASSES = {
    "DictionaryLearning": _DICTIONARY,
    "MiniBatchDictionaryLearning": _DICTIONARY,
    "NMF": _FACTORS,
    "MiniBatchNMF": _FACTORS,
    "FastICA": ("algorithm whiten fun tol max_iter whiten_solver", "mixing_ components_ _unmixing mean_ n_iter_"),
    "FactorAnalysis": ("tol max_iter svd_method rotation", "components_ mean_ noise_variance_ loglike_ n_iter_"),
    "SparsePCA": _SPARSE,
    "MiniBatchSparsePCA": _SPARSE,
    "PCA": _PRINCIPAL,
    "IncrementalPCA": _PRINCIPAL,
    "TruncatedSVD": ("", "components_ explained_variance_ explained_variance_ratio_ singular_values_"),
}
"""Class -> settings that decide what `transform` gives, or by which it can be fitted again; and what it learns."""


def read_sklearn(
    model: Any, *, n: int | None = None, X: ArrayLike | None = None, features: Sequence[str] | None = None
) -> LocalModel:
    """Components as the data have them, the mean of all rows, and the variance that components leave.

    They have no signs, but for factors of NMF, and dictionaries whose codes or entries must be positive. Those that
    are all zeros are left out. Of FastICA they are columns of `mixing_`, what a source looks like in the data: rows of
    `components_`, by which sources are computed, depend on all sources at once and are not compared. Lengths of
    principal axes are deviations along them; of TruncatedSVD, which centres nothing, singular values, divided by the
    root of the number of rows where that is known.

    Parameters
    ----------
    model : fitted estimator of `CLASSES`
        Without a `rotation`, factors of a FactorAnalysis of about the same strength are turned into each other by
        chance, and match no other site's: fit it with ``rotation="varimax"``.
    n : int, optional
        Rows it was fitted to; PCA and IncrementalPCA know it.
    X : array, optional
        The site's data, to count them here.
    features : sequence of str, optional
        Names of the features.
    """
    name = next(cls.__name__ for cls in type(model).__mro__ if cls.__name__ in CLASSES)
    known = getattr(model, "n_samples_", getattr(model, "n_samples_seen_", 0))
    rows = int(known if X is None else np.shape(X)[0]) if n is None else int(n)
    vectors = np.asarray(model.mixing_).T if name == "FastICA" else np.asarray(model.components_)
    if name in AXES:
        centred = hasattr(model, "mean_")
        lengths = np.sqrt(model.explained_variance_) if centred else model.singular_values_ / np.sqrt(max(rows, 1))
        vectors = vectors.astype(np.float64) * np.asarray(lengths)[:, None]
    noise = getattr(model, "noise_variance_", None)
    given, wanted = model.get_params(deep=False), CLASSES[name][0].split()
    return components(
        vectors,
        signed=name.endswith("NMF") or bool(given.get("positive_code") or given.get("positive_dict")),
        orthogonal=name in AXES,
        mean=getattr(model, "mean_", None),
        noise=None if noise is None else np.broadcast_to(noise, vectors.shape[1:]).copy(),
        rows=rows,
        features=features,
        settings={s: given[s] for s in wanted if isinstance(given.get(s, ()), (int, float, str, bool, type(None)))},
    )


def write_sklearn(local: LocalModel, like: str) -> Any:
    """A fitted estimator of the class called `like` with these components.

    Sources of a FastICA are computed by least squares (the pseudo-inverse). Principal axes that are not quite
    orthogonal are made so; what a TruncatedSVD explains of the variance does not follow from them (NaN).
    """
    vectors = vectors_of(local)
    vectors = np.maximum(vectors, 0.0) if like.endswith("NMF") else vectors
    K, D = vectors.shape
    held: dict[str, Any] = {
        "components_": vectors,
        "n_components_": K,
        "mean_": np.asarray(local.arrays.get("mean", np.zeros(D))),
        "noise_variance_": np.asarray(local.arrays.get("noise", np.ones(D))),
        "loglike_": [],
        "error_": np.nan,
        "reconstruction_err_": np.nan,
        "n_iter_": 0,
        "n_steps_": 0,
    }
    if like == "FastICA":
        unmixing = np.linalg.pinv(vectors.T)
        held |= {"mixing_": vectors.T.copy(), "components_": unmixing, "_unmixing": unmixing}
    if like in AXES:
        held |= _axes(local, like)
    cls = getattr(sklearn.decomposition, like)
    own = cls().get_params(deep=False)
    model = cls(n_components=K, **{s: value for s, value in local.facts["settings"].items() if s in own})
    for name in CLASSES[like][1].split():
        setattr(model, name, held[name])
    if like.endswith("NMF"):
        model._check_params(vectors)  # sets what `transform` of MiniBatchNMF reads
        model._n_components = K
    return name_features(model, local, D)


def _axes(local: LocalModel, like: str) -> dict[str, Any]:
    """What a model of principal axes holds of them, the longest first."""
    directions, lengths = (np.asarray(local.arrays[name]) for name in ("directions", "lengths"))
    order = np.argsort(-lengths, kind="stable")
    axes, variances, rows = _orthonormal(directions)[order], lengths[order] ** 2, int(local.facts["rows"])
    K, D = axes.shape
    noise = float(np.asarray(local.arrays["noise"]).mean()) if "noise" in local.arrays else 0.0
    centred = like != "TruncatedSVD"
    unknown = np.full(K, np.nan)
    return {
        "components_": axes,
        "explained_variance_": variances if centred else unknown,
        "explained_variance_ratio_": variances / (variances.sum() + (D - K) * noise) if centred else unknown,
        "singular_values_": np.sqrt(variances * (max(rows - 1, 0) if centred else max(rows, 1))),
        "noise_variance_": noise,
        "n_samples_": rows,
        "n_samples_seen_": rows,
    }


def _orthonormal(directions: Array) -> Array:
    """The nearest orthonormal rows."""
    K, D = directions.shape
    if K > D:
        raise InputError(f"{K} axes do not fit into {D} dimensions at right angles: fusion.model(how='covariances').")
    if np.allclose(directions @ directions.T, np.eye(K), rtol=0, atol=1e-12):
        return directions
    left, _, right = np.linalg.svd(directions, full_matrices=False)
    return np.asarray(left @ right)


SETTINGS = {"ModKMeans": ("n_init", "max_iter", "tol"), "AAHCluster": ("normalize_input",)}
"""Those by which a model of each class can be fitted again."""


def read_microstates(model: Any, *, features: Sequence[str] | None = None, places: bool = True) -> LocalModel:
    """The maps, by the names of their channels, and how many samples each has; no sample leaves.

    Channels' types and places are auxiliary as settings, so that fused maps can be drawn.

    Parameters
    ----------
    model : fitted ModKMeans or AAHCluster
        Its `cluster_centers_`. Subjects may have their channels in any order, but must have the same.
    features : sequence of str, optional
        Names of the channels, if not those of the model.
    places : bool
        Whether to send where channels are. Those that were measured on a subject's head are the subject's own: leave
        them out, and give the fused model a montage (``fused.info.set_montage``).
    """
    if not model.fitted:
        raise InputError(f"{type(model).__name__}: this model has no maps. Fit it on a subject's recording first.")
    maps, names = np.asarray(model.cluster_centers_), [str(name) for name in model.info["ch_names"]]
    labels, own = np.asarray(model.labels_), SETTINGS[type(model).__name__]
    kinds = dict(zip(names, map(str, model.info.get_channel_types()), strict=True))
    spots = {name: channel["loc"][:3] for name, channel in zip(names, model.info["chs"], strict=True) if places}
    known = {name: spot.tolist() for name, spot in spots.items() if np.isfinite(spot).all() and spot.any()}
    return components(
        maps,
        counts=np.bincount(labels[labels >= 0], minlength=len(maps)),
        rows=len(labels),
        features=names if features is None else features,
        settings={name: getattr(model, name) for name in own} | {"types": kinds, "places": known},
        facts={"points": "samples"},
    )


def write_microstates(local: LocalModel, like: str) -> Any:
    """A model of the same class that assigns samples to these maps (`predict`), draws and saves them.

    It has seen no recording: `fitted_data` and `labels_` are empty, and `GEV_`, what maps explain of it, is not known.
    """
    from pycrostates import cluster

    maps, settings = np.asarray(local.arrays["directions"]), local.facts["settings"]
    model = getattr(cluster, like)(len(maps), **{name: settings[name] for name in SETTINGS[like] if name in settings})
    model._cluster_centers_ = maps.copy()
    model._info = _channels(local, maps.shape[1])
    model._fitted_data, model._labels_ = np.zeros((maps.shape[1], 0)), np.zeros(0, dtype=np.int64)
    model._GEV_, model._fitted = np.nan, True
    return model


def read_ica(model: Any, *, features: Sequence[str] | None = None) -> LocalModel:
    """Scalp maps of independent components, whose polarity means nothing.

    Parameters
    ----------
    model : fitted mne.preprocessing.ICA
        Of channels of one type, or of several in common units.
    features : sequence of str, optional
        Names of the channels, by which sites are aligned; default its own.
    """
    if model.current_fit == "unfitted":
        raise InputError("the ICA is not fitted: fit it to the subject's recording first.")
    names = model.ch_names if features is None else features
    return components(np.asarray(model.get_components()).T, rows=int(model.n_samples_), features=list(map(str, names)))


def write_ica(local: LocalModel, like: str) -> Any:
    """A FastICA of scikit-learn with these maps: an ICA of mne belongs to the recording that it has whitened."""
    return write_sklearn(local, "FastICA")


def _channels(local: LocalModel, number: int) -> Any:
    """Names, types and, as far as they are known, places of the channels."""
    import mne
    import pycrostates

    names = list(local.coordinates.get("feature") or [f"channel {i}" for i in range(number)])
    kinds, places = (local.facts["settings"].get(name, {}) for name in ("types", "places"))
    info = mne.create_info(names, 1.0, [kinds.get(name, "eeg") for name in names])
    known = {name: np.array(places[name]) for name in names if name in places}
    if known:
        info.set_montage(mne.channels.make_dig_montage(known, coord_frame="head"), on_missing="ignore")
    return pycrostates.io.ChInfo(info=info)


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
    try:
        tensors = state if isinstance(state, Mapping) else safetensors.numpy.load_file(state)
    except (OSError, safetensors.SafetensorError) as wrong:
        raise InputError(f"{state} is no safetensors file that can be read: {wrong}.") from None
    weights = _matrix(tensors, name)
    if weights.ndim != 2:
        raise InputError(f"decoder: {name!r} is a matrix of features and dimensions; found shape {weights.shape}.")
    check_choice("decoder: features", features, ("rows", "columns"))
    vectors = weights if features == "rows" else weights.T
    mean = None if bias is None else _matrix(tensors, bias)
    return components(vectors, signed=True, mean=mean, counts=counts, site=site)


def _matrix(tensors: Mapping[str, Any], name: str) -> Array:
    if name not in tensors:
        shapes = {key: tuple(np.shape(value)) for key, value in tensors.items()}
        raise InputError(f"decoder: there is no tensor {name!r}; there are {shapes}.")
    given = tensors[name]
    if hasattr(given, "detach"):  # a tensor of torch, which may be on a device, or of half precision
        given = given.detach().cpu().double().numpy()
    return np.asarray(given, dtype=np.float64)
