"""Components: vectors of features of which data are sums, x = mean + sum of source times component + noise.

Arrays: `directions (pattern, feature)`, components divided by their lengths, which are matched. Auxiliary are `lengths
(pattern)` and, where they are known, `counts (pattern)`, points in which each is active, `mean (feature)`, and `noise
(feature)`, the variance of what no component explains.
Lengths are those at which sources have variance one, where the model says so. The fact `signed` says whether v and -v
differ: they do where entries must not be negative (non-negative factors), and are one where the sign of a source is
arbitrary (independent and principal components, dictionaries), which is then found with the matching.

Directions that are *orthogonal*, principal axes, are properties of a covariance: fused ones are those of the sites'
covariances, added up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from modelweld.core.values import Array, Key
from modelweld.errors import InputError
from modelweld.families import Directions, Family
from modelweld.families.math.signs import upright
from modelweld.inputs.local_model import LocalModel
from modelweld.kinds.fused_parts import common_facts, keep_arrays
from modelweld.kinds.kind import Facts, Kind, lay_out
from modelweld.kinds.layout import Layout, mapping, truth, whole
from modelweld.results.fit_result import FitResult

HOWS = {
    "atoms": "one component per atom, with the root mean square of its members' lengths",
    "covariances": "the principal axes of all sites' covariances, added up by numbers of rows; for orthogonal ones",
}
"""Ways to make fused parameters."""

ARRAYS = {
    "directions": ("pattern", "feature"),
    "lengths": ("pattern",),
    "counts": ("pattern",),
    "mean": ("feature",),
    "noise": ("feature",),
}
"""Axes of all arrays."""

MEANINGS = {"signed": "have signs that mean something", "orthogonal": "are said to be principal axes"}
"""Facts in which sites must agree."""


def components(
    vectors: ArrayLike,
    *,
    signed: bool = False,
    orthogonal: bool = False,
    mean: ArrayLike | None = None,
    noise: ArrayLike | None = None,
    counts: ArrayLike | None = None,
    rows: int = 0,
    features: Sequence[str] | None = None,
    site: str = "",
    settings: Mapping[str, Any] | None = None,
    facts: Facts | None = None,
) -> LocalModel:
    """Components as they leave a site.

    Parameters
    ----------
    vectors : array (K, D)
        The components: rows of a decoder or dictionary, columns of a mixing matrix, scalp maps. Those of length zero,
        which add nothing to anything, are left out.
    signed : bool
        Whether v and -v differ, as of vectors without negative entries. Default: signs are arbitrary.
    orthogonal : bool
        Whether they are principal axes, of lengths that are standard deviations along them.
    mean, noise : arrays (D,), optional
        What is added to all rows, and the variance of what components leave.
    counts : array (K,), optional
        Points in which each is active, such as tokens that a feature fires on.
    rows : int
        How many rows of data they come from, 0 if not known: means, lengths and covariances are weighed by it.
    features : sequence of str, optional
        Names of the features.
    site : str, optional
        Name of the site.
    settings : mapping, optional
        Of the estimator that is to be written: those of most sites are taken.
    facts : mapping, optional
        What else is needed to write it again.

    Examples
    --------
    Two sites with one component in common, turned round at one of them:

    >>> import modelweld
    >>> north = components([[3.0, 4.0, 0.0], [0.0, 0.0, 2.0]])
    >>> south = components([[0.0, 0.0, -2.0]])
    >>> fusion = modelweld.fuse([north, south])
    >>> fusion.parameters().arrays["directions"].tolist(), [signs.tolist() for signs in fusion.parameters.signs]
    ([[0.0, 0.0, 1.0], [0.6, 0.8, 0.0]], [[1.0, 1.0], [-1.0]])
    """
    found = np.asarray(vectors, dtype=np.float64)
    if found.ndim != 2:
        raise InputError(f"components: vectors is an array (components, features); found shape {found.shape}.")
    lengths = np.linalg.norm(found, axis=1)
    there = lengths > 0
    if not there.any():
        raise InputError("components: all vectors are zero, so that none has a direction. Fit the model again.")
    found, lengths = found[there], lengths[there]
    numbers = None if counts is None else np.asarray(counts, dtype=np.float64)[there]
    beside = {"counts": numbers, "mean": mean, "noise": noise}
    given = {name: np.asarray(values, dtype=np.float64) for name, values in beside.items() if values is not None}
    arrays = {"directions": found / lengths[:, None], "lengths": lengths, **given}
    counted = {"rows": int(rows), "settings": dict(settings or {})}
    return LocalModel(
        **lay_out(arrays, ARRAYS, ["directions"], "pattern", feature=features),
        site=site,
        kind="components",
        facts={**(facts or {}), "signed": bool(signed), "orthogonal": bool(orthogonal), **counted},
    )


def vectors_of(model: LocalModel) -> Array:
    """The components at their lengths (K, D)."""
    directions, lengths = (np.asarray(model.arrays[name], dtype=np.float64) for name in ("directions", "lengths"))
    return np.asarray(directions * lengths[:, None])


class Components(Kind):
    """Components, loadings, factors, features of dictionaries."""

    name = "components"
    plural = "sets of components"
    hows = HOWS
    marginal = False
    stands_for_points = False
    shown = ()

    def layout(self, model: LocalModel) -> Layout:
        """What components must look like."""
        return Layout(
            sets=("pattern",),
            arrays=ARRAYS,
            needed=("directions", "lengths"),
            positive=("lengths",),
            not_negative=("noise", "counts"),
            facts={"signed": truth, "orthogonal": truth, "rows": whole, "settings": mapping},
        )

    def harmonise(self, models: Sequence[LocalModel]) -> list[LocalModel]:
        """With the arrays that all have; sites of which only some have signs are refused."""
        for fact, means in MEANINGS.items():
            said = [bool(model.facts[fact]) for model in models]
            if len(set(said)) > 1:
                yes, no = (models[j].site or str(j) for j in (said.index(True), said.index(False)))
                found = f"components of site {yes} {means}, but not those of site {no}"
                raise InputError(f"{found}: fuse models of one class, with the same constraints.")
        common = set.intersection(*(set(model.arrays) for model in models))
        return [keep_arrays(model, common) for model in models]

    def families(self, models: Sequence[LocalModel]) -> dict[Key, Family]:
        """Directions, axial where signs mean nothing."""
        return {"directions": Directions(axial=not models[0].facts["signed"])}

    def default_how(self, fusion: FitResult) -> str:
        """Principal axes are those of a covariance, and no others."""
        return "covariances" if fusion.models[0].facts["orthogonal"] else "atoms"

    def fuse(self, fusion: FitResult, how: str, *, K: int | None = None) -> LocalModel:
        """One component per atom, or `K` principal axes of all rows (default: as many as there are atoms)."""
        if how == "covariances":
            return _of_covariances(fusion, fusion.K if K is None else K)
        if K is not None:
            raise InputError("components: K is for how='covariances'; atoms are as many as there are.")
        return _arrange(fusion, fusion.array("directions") * _lengths(fusion)[:, None])

    def words(self, fusion: FitResult, set_name: str) -> tuple[Array, Sequence[str]] | None:
        """Sizes of entries; features that enter with the other sign have a minus."""
        atoms = fusion.array("directions")
        names = fusion.models[0].coordinates.get("feature") or [f"feature {i}" for i in range(atoms.shape[1])]
        return np.hstack([np.maximum(atoms, 0), np.maximum(-atoms, 0)]), [*names, *(f"-{name}" for name in names)]


def _shares(fusion: FitResult) -> Array:
    """Of each site in what is averaged: its rows, or all alike if some site does not say."""
    rows = np.array([float(model.facts["rows"]) for model in fusion.models])
    rows = rows if (rows > 0).all() else np.ones(len(rows))
    return np.asarray(rows / rows.sum())


def _lengths(fusion: FitResult) -> Array:
    """Root mean square, over the rows of sites that hold it, of the lengths of each atom's members (K,)."""
    squares, total = np.zeros((2, len(fusion.matching.counts)))
    for share, labels, model in zip(_shares(fusion), fusion.labels, fusion.models, strict=True):
        np.add.at(squares, labels, share * np.asarray(model.arrays["lengths"]) ** 2)
        np.add.at(total, labels, share)
    return np.sqrt(squares / total)


def _arrange(fusion: FitResult, vectors: Array, noise: Array | None = None) -> LocalModel:
    """Fused vectors beside means over all rows of what else there is."""
    models, shares = fusion.models, _shares(fusion)
    beside = {
        name: shares @ np.stack([np.asarray(model.arrays[name]) for model in models])
        for name in ("mean", "noise")
        if name in models[0].arrays
    }
    facts, rows = common_facts(models), [int(model.facts["rows"]) for model in models]
    return components(
        vectors,
        signed=facts["signed"],
        orthogonal=facts["orthogonal"],
        mean=beside.get("mean"),
        noise=beside.get("noise") if noise is None else noise,
        counts=fusion.total("counts") if "counts" in models[0].arrays and noise is None else None,
        rows=sum(rows) if all(rows) else 0,
        features=models[0].coordinates.get("feature"),
        settings=_settings(models),
        facts=facts,
    )


def _of_covariances(fusion: FitResult, K: int) -> LocalModel:
    """Principal axes of the second moments of all rows, about the mean of all where sites send means.

    What a site's axes leave is `noise` in every direction across them.
    """
    models = fusion.models
    if not models[0].facts["orthogonal"]:
        raise InputError("covariances follow from principal axes alone; for these components use how='atoms'.")
    D = np.shape(models[0].arrays["directions"])[1]
    if not 1 <= K <= D:
        raise InputError(f"components: there are {D} features, so 1 to {D} axes; found K={K}. Say fusion.model(K=...).")
    shares, rows = _shares(fusion), sum(int(model.facts["rows"]) for model in models)
    centred = "mean" in models[0].arrays and all(model.facts["rows"] for model in models)
    one = 1 / rows if centred else 0.0  # covariances divide by one row less
    centres = np.stack([np.asarray(model.arrays.get("mean", np.zeros(D))) for model in models])
    off = centres - shares @ centres
    total = (off.T * shares) @ off / (1 - one)
    for share, model in zip((shares - one) / (1 - one), models, strict=True):
        axes, lengths = (np.asarray(model.arrays[name]) for name in ("directions", "lengths"))
        left = float(np.asarray(model.arrays["noise"]).mean()) if "noise" in model.arrays else 0.0
        total += share * ((axes.T * (lengths**2 - left)) @ axes + left * np.eye(D))
    variances, axes = np.linalg.eigh(total)
    variances, axes = np.maximum(variances[::-1], 0.0), upright(axes[:, ::-1].T)
    rest = float(variances[K:].mean()) if K < D else 0.0
    noise = np.full(D, rest) if "noise" in models[0].arrays else None
    K = max(int((variances[:K] > 0).sum()), 1)
    return _arrange(fusion, axes[:K] * np.sqrt(variances[:K, None]), noise)


def _settings(models: Sequence[LocalModel]) -> dict[str, Any]:
    """Of each setting the value that most sites have; among equals the first by its spelling."""
    found = {}
    for name in sorted({name for model in models for name in model.facts["settings"]}):
        values = [model.facts["settings"].get(name) for model in models]
        number = Counter(map(repr, values))
        most = min(number, key=lambda spelt: (-number[spelt], spelt))
        found[name] = next(value for value in values if repr(value) == most)
    return found
