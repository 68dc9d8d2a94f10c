"""Clusters of cells, donor by donor, under common names: AnnData in, columns of `obs` out.

Only means, spreads and sizes of clusters are compared. Batch effects, offsets and scales by which donors differ, are
estimated with the matching and corrected before it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from modelweld.errors import InputError, some
from modelweld.fuse import fuse
from modelweld.fusion import Fusion
from modelweld.libraries.labelled_rows import number_labels
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
            raise InputError(
                f"{use_rep!r} of donors {first!r} and {name!r} are coordinates of two PCAs (varm['PCs'] differ). Send "
                "the PCA that all donors share: fit it once, and project every donor's cells; or leave use_rep out."
            )


def _write_donor(cells: Any, key: str, labels: Any, sure: Any, groups: list[str], added: str) -> None:
    import pandas as pd

    names, index = number_labels(cells.obs[key])
    assert len(names) == len(labels)
    codes = np.where(index >= 0, np.asarray(labels)[index], -1)
    cells.obs[added] = pd.Categorical.from_codes(codes, groups)
    cells.obs[f"{added}_confidence"] = np.where(index >= 0, np.asarray(sure)[index], np.nan)
