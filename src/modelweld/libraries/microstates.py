"""pycrostates' ModKMeans and AAHCluster: maps of EEG microstates, whose polarity means nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from modelweld.errors import InputError
from modelweld.inputs.local_model import LocalModel
from modelweld.kinds.components import components

if TYPE_CHECKING:
    from pycrostates.cluster import AAHCluster, ModKMeans

SETTINGS = {"ModKMeans": ("n_init", "max_iter", "tol"), "AAHCluster": ("normalize_input",)}
"""Those by which a model of each class can be fitted again."""


def read(model: ModKMeans | AAHCluster, *, features: Sequence[str] | None = None, places: bool = True) -> LocalModel:
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
    labels = np.asarray(model.labels_)
    kinds = dict(zip(names, map(str, model.info.get_channel_types()), strict=True))
    spots = {name: channel["loc"][:3] for name, channel in zip(names, model.info["chs"], strict=True) if places}
    known = {name: spot.tolist() for name, spot in spots.items() if np.isfinite(spot).all() and spot.any()}
    return components(
        maps,
        counts=np.bincount(labels[labels >= 0], minlength=len(maps)),
        rows=len(labels),
        features=names if features is None else features,
        settings={
            **{name: getattr(model, name) for name in SETTINGS[type(model).__name__]},
            "types": kinds,
            "places": known,
        },
        facts={"points": "samples"},
    )


def write(local: LocalModel, like: str) -> Any:
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


def _channels(local: LocalModel, number: int) -> Any:
    """Names, types and, as far as they are known, places of the channels."""
    import mne
    from pycrostates.io import ChInfo

    names = list(local.coordinates.get("feature") or [f"channel {i}" for i in range(number)])
    kinds, places = (local.facts["settings"].get(name, {}) for name in ("types", "places"))
    info = mne.create_info(names, 1.0, [kinds.get(name, "eeg") for name in names])
    known = {name: np.array(places[name]) for name in names if name in places}
    if known:
        info.set_montage(mne.channels.make_dig_montage(known, coord_frame="head"), on_missing="ignore")
    return ChInfo(info=info)
