"""Clusters of cells, donor by donor, under common names: AnnData in, columns of `obs` out.

Only means, spreads and sizes of clusters are compared. Batch effects, offsets and scales by which donors differ, are
estimated with the matching and corrected before it.

Independent components of many subjects: the groups of a fusion, written into every ICA of mne.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from modelweld.errors import InputError, some
from modelweld.fuse import fuse
from modelweld.fusion import Fusion
from modelweld.libraries.centre_models import number_labels
from modelweld.libraries.reading import read


def fuse_cells(
    donors: Mapping[str, Any], key: str, *, use_rep: str | None = None, added: str = "modelweld", **options: Any
) -> Fusion:
    """Find which clusters of which donors are the same, and write common names into every donor's AnnData.

    Parameters
    ----------
    donors : mapping of str to AnnData
        One per donor, sample or batch, each clustered by itself.
    key : str
        Column of `obs` with the clusters, such as "leiden". Cells without one (missing, or -1) stay without.
    use_rep : str, optional
        Which entry of `obsm` to compare clusters by, such as "X_pca" of a PCA fitted once for all donors: coordinates
        of one PCA per donor mean nothing to the others and are refused. Default: `X`, genes aligned by their names.
    added : str
        What is added is called: ``obs[added]``, a categorical with the same categories at every donor;
        ``obs[added + "_confidence"]``, the posterior probability of the cluster's match; ``uns[added]``, settings.
    **options
        For `modelweld.fuse`.

    Returns
    -------
    Fusion
        Whose sites are the donors: ``fusion.table()``, ``fusion.report(path)``.

    Examples
    --------
    >>> import anndata, numpy as np, pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> def donor(kinds):
    ...     kinds = np.repeat(kinds, 50)
    ...     obs = pd.DataFrame({"leiden": pd.Categorical(kinds.astype(str))}, index=map(str, range(len(kinds))))
    ...     return anndata.AnnData(9.0 * np.eye(3)[kinds] + rng.normal(size=(len(kinds), 3)), obs=obs)
    >>> donors = {"a": donor([0, 1]), "b": donor([1, 2]), "c": donor([2, 0])}
    >>> fuse_cells(donors, "leiden").K
    3
    >>> list(donors["a"].obs["modelweld"].cat.categories) == list(donors["b"].obs["modelweld"].cat.categories)
    True
    """
    if not isinstance(donors, Mapping):
        raise InputError(f"donors are AnnData by name, {{'donor1': adata, ...}}; found a {type(donors).__name__}.")
    _check_axes(donors, use_rep)
    sites = {str(name): _read_donor(str(name), cells, key, use_rep) for name, cells in donors.items()}
    fusion = fuse(sites, **options)
    groups = [str(k) for k in range(len(fusion.counts))]
    for cells, labels, sure in zip(donors.values(), fusion.labels, fusion.confidence(), strict=True):
        _write_donor(cells, key, labels, sure, groups, added)
        cells.uns[added] = {"key": key, "use_rep": use_rep or "X", "groups": fusion.K, "shared": fusion.shared}
    return fusion


def _read_donor(name: str, cells: Any, key: str, use_rep: str | None) -> Any:
    """What leaves a donor: means, spreads and sizes of its clusters."""
    for where, column in ("obs", key), ("obsm", use_rep):
        if column is not None and column not in getattr(cells, where, ()):
            held = some(map(str, getattr(cells, where, ())))
            raise InputError(f"donor {name!r}: {where} has no {column!r}; it has {held}.")
    X, features = (cells.X, list(map(str, cells.var_names))) if use_rep is None else (cells.obsm[use_rep], None)
    try:
        return read(X=X, labels=cells.obs[key], features=features)
    except InputError as wrong:
        raise InputError(f"donor {name!r}: {wrong}") from None


def _check_axes(donors: Mapping[str, Any], use_rep: str | None) -> None:
    """Refuse principal components of different PCAs: their coordinates mean different things."""
    if use_rep is None or "pca" not in use_rep.lower():
        return
    axes = {
        name: np.asarray(cells.varm["PCs"]) for name, cells in donors.items() if "PCs" in getattr(cells, "varm", ())
    }
    first = next(iter(axes), "")
    for name, own in axes.items():
        if own.shape != axes[first].shape or not np.allclose(own, axes[first], atol=1e-6):
            found = f"{use_rep!r} of donors {first!r} and {name!r} are coordinates of two PCAs (varm['PCs'] differ)"
            raise InputError(f"{found}. Fit one PCA for all donors, or leave use_rep out.")


def _write_donor(cells: Any, key: str, labels: Any, sure: Any, groups: list[str], added: str) -> None:
    import pandas as pd

    names, index = number_labels(cells.obs[key])
    assert len(names) == len(labels)
    codes = np.where(index >= 0, np.asarray(labels)[index], -1)
    cells.obs[added] = pd.Categorical.from_codes(codes, groups)
    cells.obs[f"{added}_confidence"] = np.where(index >= 0, np.asarray(sure)[index], np.nan)


def label_components(fusion: Fusion, icas: Mapping[str, Any], *, label: str = "modelweld", least: int = 2) -> None:
    """Write into ``ica.labels_`` of every subject which of its components belong to which group.

    Parameters
    ----------
    fusion : Fusion
        Of these subjects: ``modelweld.fuse(icas)``.
    icas : mapping of str to mne.preprocessing.ICA
        By names of subjects.
    label : str
        What the labels begin with: group 3 is called "modelweld 3" at every subject. Those of before are replaced.
    least : int
        Subjects that a group needs to be written.

    Examples
    --------
    >>> import mne, modelweld, numpy as np
    >>> rng, icas = np.random.default_rng(0), {}
    >>> maps, names = rng.normal(size=(8, 4)), [f"EEG {i}" for i in range(8)]
    >>> for subject in ("a", "b", "c"):
    ...     recording = maps @ rng.laplace(size=(4, 2000)) + 0.1 * rng.normal(size=(8, 2000))
    ...     raw = mne.io.RawArray(1e-6 * recording, mne.create_info(names, 100.0, "eeg"), verbose="ERROR")
    ...     ica = mne.preprocessing.ICA(4, random_state=0, verbose="ERROR")
    ...     icas[subject] = ica.fit(raw, verbose="ERROR")
    >>> label_components(modelweld.fuse(icas), icas)
    >>> sorted(icas["b"].labels_)
    ['modelweld 0', 'modelweld 1', 'modelweld 2', 'modelweld 3']
    """
    sites = fusion.sites
    if set(sites) != set(map(str, icas)):
        raise InputError(f"the fusion is of subjects {some(sites)}; found {some(map(str, icas))}.")
    for subject, ica in icas.items():
        kept = {name: found for name, found in ica.labels_.items() if not name.startswith(f"{label} ")}
        atoms = np.asarray(fusion.labels[sites.index(str(subject))])
        shared = [atom for atom in np.unique(atoms) if fusion.counts[atom] >= least]
        ica.labels_ = {**kept, **{f"{label} {atom}": np.flatnonzero(atoms == atom).tolist() for atom in shared}}
