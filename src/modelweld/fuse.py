"""The one verb: sets in order, values in, a Fusion out."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from modelweld.errors import ConvergenceWarning, InputError, OutOfRange
from modelweld.families import Family, Gaussian
from modelweld.fusion import Fusion, Matching
from modelweld.local import Array, LocalModel, check_finite, check_squares, checked_values
from modelweld.matching import SMALLEST_RISE, AnyBoard, Board, alternate
from modelweld.moves import rematch
from modelweld.prior import BetaBernoulli
from modelweld.stack import Index, Stack, arranged, offsets_of
from modelweld.threads import blas_threads

Families = Family | Mapping[str, Any] | None

COMPILED_FROM = 2_000_000
"""Local parameters x largest group x dimensions from which the compiled sweep is used. Below, plain numpy takes a
fraction of a second and nobody should wait for a compiler. The choice depends on the input alone, not on what has
been compiled before, so that the same call gives the same bits."""

MOST_SWEEPS = 200
"""Ten times what the hardest simulated sets needed."""

PRESET_SWEEPS = 11
"""The first pass and ten sweeps."""

PRESETS: dict[str, tuple[Gaussian, BetaBernoulli]] = {
    form: (Gaussian(mean=0.0, noise=1.0, spread=1.0, learning="moments"), BetaBernoulli(form=form))
    for form in ("paper", "authors")
}
"""The paper's setting (start (1, 1), closed-form hyperparameters, its form of the prior), and its authors' program's."""


def fuse(
    models: Iterable[LocalModel | Any],
    families: Families = None,
    prior: BetaBernoulli | Literal["auto"] = "auto",
    *,
    preset: Literal["paper", "authors"] | None = None,
    seed: int = 0,
    n_jobs: int | None = None,
    search: Literal["plain", "thorough"] = "plain",
    max_sweeps: int | None = None,
    engine: Literal["auto", "numpy", "compiled"] = "auto",
) -> Fusion:
    """Find which local parameters are noisy copies of the same global one, and how many global ones there are.

    Parameters
    ----------
    models : iterable of LocalModel or of arrays (L_j, D)
        One per site. Sites may have different numbers of parameters, also none.
    families : Family or mapping, optional
        How values scatter about their global value: one family for all arrays, or ``{array: family}``, or
        ``{set: {array: family}}``. Arrays that are not named ride along. Default: `Gaussian` for every array that
        does not ride.
    prior : BetaBernoulli or "auto"
        How probable matchings are. ``"auto"`` is ``BetaBernoulli(1, 1)``.
    preset : {"paper", "authors"}, optional
        Replicate the paper's or its authors' program's setting: families and prior are then given by the preset.
    seed : int
        Draws the order of groups in each sweep. The order in which sites or rows are given does not matter.
    n_jobs : int, optional
        Threads for matrix products; None means 1, -1 all processors. More than one helps from about 500
        parameters per site on.
    search : {"plain", "thorough"}
        ``"plain"`` is the paper's Algorithm 1: sweeps and hyperparameters. ``"thorough"`` goes on to free some groups
        and match them again as long as that raises the objective.
    max_sweeps : int, optional
        Sweeps after which to give up and warn; default 200. Runs end by themselves at the first sweep that changes
        nothing. Presets stop, without warning, after the first pass and ten sweeps, as the paper's did.
    engine : {"auto", "numpy", "compiled"}
        The compiled sweep is for large Gaussian jobs; results are the same.

    Returns
    -------
    Fusion
        Matching, global values, learned hyperparameters, objective and history.

    Examples
    --------
    >>> import numpy as np, modelweld
    >>> rng = np.random.default_rng(0)
    >>> atoms = rng.normal(0, 10, (4, 3))
    >>> sites = [atoms[held] + rng.normal(0, 0.1, (len(held), 3)) for held in ([0, 1], [1, 2, 3], [3, 0])]
    >>> fusion = modelweld.fuse(sites)
    >>> fusion.K, fusion.converged
    (4, True)
    """
    given = list(models)
    if preset is not None:
        if families is not None or prior != "auto":
            raise InputError("a preset sets families and prior; give either the preset or those.")
        if preset not in PRESETS:
            raise InputError(f"preset is one of {list(PRESETS)}; found {preset!r}.")
        families, prior = PRESETS[preset]
    prior = BetaBernoulli() if prior == "auto" else prior
    if not isinstance(prior, BetaBernoulli):
        raise InputError(f"prior must be a BetaBernoulli or 'auto'; found {prior!r}.")
    if engine not in ("auto", "numpy", "compiled"):
        raise InputError(f"engine is 'auto', 'numpy' or 'compiled'; found {engine!r}.")
    if search not in ("plain", "thorough"):
        raise InputError(f"search is 'plain' or 'thorough'; found {search!r}.")
    if max_sweeps is not None and max_sweeps < 1:
        raise InputError(f"max_sweeps must be at least 1; found {max_sweeps}.")
    options: dict[str, Any] = {
        "prior": prior,
        "engine": engine,
        "search": search,
        "max_sweeps": max_sweeps or (PRESET_SWEEPS if preset else MOST_SWEEPS),
        "warn": max_sweeps is not None or preset is None,
    }
    rng = np.random.default_rng(seed)
    if not given:
        raise InputError("there is nothing to fuse: give at least one local model.")
    with blas_threads(_threads(n_jobs)):
        if not any(isinstance(m, LocalModel) for m in given):
            return _fuse_arrays(given, families, rng, options)
        return _fuse_models(_checked_models(given), families, rng, options)


def _fuse_arrays(given: Sequence[Any], families: Families, rng: np.random.Generator, options: Any) -> Fusion:
    """Fuse plain arrays: one set, one array."""
    family = Gaussian() if families is None else families
    if not isinstance(family, Family):
        raise InputError("plain arrays take one Family, not a mapping.")
    try:
        matching = _match({"values": (Stack(*_stacked_arrays(given)), family)}, rng, **options)
    except OutOfRange:
        for j, array in enumerate(given):  # the fast look at all values said no; say where
            check_finite(np.asarray(array, dtype=np.float64), f"site {j}")
        raise
    return Fusion(given, [str(j) for j in range(len(given))], {"atom": matching})


def _fuse_models(sites: list[LocalModel], families: Families, rng: np.random.Generator, options: Any) -> Fusion:
    """Fuse local models: one set after the other, each in the global order of those before."""
    matchings: dict[str, Matching] = {}
    for set_name, chosen in _families_by_set(sites, families).items():
        parts = {name: (_stack(sites, name, set_name, matchings), family) for name, family in chosen.items()}
        matchings[set_name] = _match(parts, rng, **options)
    return Fusion(sites, [m.site or str(j) for j, m in enumerate(sites)], matchings)


def _stacked_arrays(given: Sequence[Any]) -> tuple[Array, Index]:
    """Plain arrays (L_j, D) one below the other, and where they begin."""
    arrays = [
        a if type(a) is np.ndarray and a.dtype == np.float64 else checked_values(a, f"site {j}")
        for j, a in enumerate(given)
    ]
    if len({a.shape[1:] for a in arrays}) > 1 or arrays[0].ndim != 2:
        arrays = _reshaped(arrays)
    if arrays[0].shape[1] == 0 or not any(len(a) for a in arrays):
        raise InputError("there is nothing to fuse: no site sent a local parameter.")
    return np.concatenate(arrays), offsets_of([len(a) for a in arrays])


def _reshaped(arrays: list[Array]) -> list[Array]:
    """Arrays that are empty in one way or another with the columns of the others; an error if columns differ."""
    width = next((a.shape[-1] for a in arrays if a.ndim == 2 and a.size), 0)
    for j, a in enumerate(arrays):
        if a.size == 0 and (a.ndim == 1 or len(a) == 0):
            continue
        if a.ndim != 2 or a.shape[1] != width:
            what = "one row per local parameter: two axes" if a.ndim != 2 else f"{width} columns like the first site"
            raise InputError(
                f"site {j}: its array must have {what}; found shape {a.shape}."
                + (" For one-dimensional parameters use shape (L, 1)." if a.ndim == 1 else "")
            )
    return [a if a.size else np.zeros((0, width)) for a in arrays]


def _checked_models(given: Sequence[Any]) -> list[LocalModel]:
    """All LocalModels, with the same arrays and axes."""
    for j, m in enumerate(given):
        if not isinstance(m, LocalModel):
            raise InputError(f"site {j}: either all sites are LocalModels or none is; found {type(m).__name__}.")
    first = given[0]
    for j, m in enumerate(given):
        if dict(m.axes) != dict(first.axes):
            raise InputError(
                f"site {m.site or j}: all sites must send the same arrays with the same axes. It has "
                f"{dict(m.axes)}, the first site {dict(first.axes)}. What a site has not seen it sends with weight 0."
            )
        for name, axes in m.axes.items():
            for axis, n, n_first in zip(axes, np.shape(m.arrays[name]), np.shape(first.arrays[name]), strict=True):
                if axis is None and n != n_first:
                    raise InputError(
                        f"site {m.site or j}: fixed coordinates must agree, but array {name!r} has shape "
                        f"{np.shape(m.arrays[name])} and the first site's {np.shape(first.arrays[name])}."
                    )
    return list(given)


def _families_by_set(sites: Sequence[LocalModel], families: Families) -> dict[str, dict[str, Family]]:
    """Which arrays decide which set's matching, with their families; sets in the order of the arrays' axes."""
    first = sites[0]
    sets = list(dict.fromkeys(axis for axes in first.axes.values() for axis in axes if axis is not None))
    result: dict[str, dict[str, Family]] = {}
    for position, set_name in enumerate(sets):
        known = set(sets[:position])
        usable = [
            name
            for name, axes in first.axes.items()
            if axes.count(set_name) == 1 and all(a is None or a == set_name or a in known for a in axes)
        ]
        result[set_name] = _chosen(families, set_name, usable, first)
    if not result:
        raise InputError("there is nothing to match: no array has a set among its axes.")
    return result


def _chosen(families: Families, set_name: str, usable: list[str], first: LocalModel) -> dict[str, Family]:
    """The families of one set."""
    if families is None or isinstance(families, Family):
        chosen = {name: families or Gaussian() for name in usable if name not in first.riding}
    else:
        own = families.get(set_name, families)
        if not isinstance(own, Mapping):
            raise InputError(f"families[{set_name!r}] must map array names to families; found {own!r}.")
        wrong = [n for n, f in own.items() if n in first.axes and not isinstance(f, Family)]
        if wrong:
            raise InputError(f"families must be Family objects, such as Gaussian(); {wrong} are not.")
        unknown = [n for n in own if n not in first.axes and n not in {a for x in first.axes.values() for a in x}]
        if unknown:
            raise InputError(f"families name {unknown}, but the sites send {sorted(first.axes)}.")
        chosen = {name: own[name] for name in usable if name in own}
    if not chosen:
        raise InputError(
            f"no array decides the matching of set {set_name!r}: arrays that could are {usable or 'none'}; "
            "they must not all ride, and must have a family."
        )
    return chosen


def _stack(sites: Sequence[LocalModel], name: str, set_name: str, matchings: Mapping[str, Matching]) -> Stack:
    """One array of all sites as rows of `set_name`, its other sets in global order (absent members: weight 0)."""
    has_variance = any(name in m.variance for m in sites)
    axes = sites[0].axes[name]
    reordered = any(axis is not None and axis != set_name for axis in axes)
    has_weight = reordered or any(name in m.weight for m in sites)
    values, variance, weight = [], [], []
    for j, m in enumerate(sites):
        array = np.asarray(m.arrays[name])

        def rows(x: Array, j: int = j, m: LocalModel = m) -> Array:
            for position, axis in enumerate(m.axes[name]):
                if axis is not None and axis != set_name:
                    matching = matchings[axis]
                    shape = (*x.shape[:position], matching.K, *x.shape[position + 1 :])
                    spread_out = np.zeros(shape)
                    spread_out[(slice(None),) * position + (matching.labels[j],)] = x
                    x = spread_out
            return np.moveaxis(x, m.axes[name].index(set_name), 0).reshape(m.sizes[set_name], -1)

        values.append(rows(array))
        if has_variance:
            variance.append(rows(np.asarray(m.variance.get(name, np.zeros(array.shape)))))
        if has_weight:
            weight.append(rows(np.asarray(m.weight.get(name, np.ones(array.shape)))))
    stack = Stack(
        np.concatenate(values),
        offsets_of([len(v) for v in values]),
        np.concatenate(variance) if has_variance else None,
        np.concatenate(weight) if has_weight else None,
    )
    return stack.blind()


def _match(
    parts: Mapping[str, tuple[Stack, Family]],
    rng: np.random.Generator,
    prior: BetaBernoulli,
    engine: str,
    search: str,
    max_sweeps: int,
    warn: bool,
) -> Matching:
    """Match one set: canonical order, start, Algorithm 1, and the answer in the order in which it was asked."""
    names, (stacks, families) = list(parts), zip(*parts.values(), strict=True)
    N, D = stacks[0].values.shape
    able = len(names) == 1 and type(families[0]) is Gaussian and stacks[0].plain and N > 0
    if engine == "compiled" and not able:
        raise InputError("engine 'compiled' is for one array with a Gaussian family and no variance or weight.")
    work = N * int(stacks[0].sizes.max(initial=0)) * D
    compiled = engine == "compiled" or (engine == "auto" and able and work >= COMPILED_FROM)
    if compiled:
        from modelweld.compiled import CompiledBoard, pack

        stack = pack(stacks[0])
        rows = stack.rows
        boards: list[AnyBoard] = [CompiledBoard(stack, family, prior) for family in families[0].starts(stack)]
    else:
        for s in stacks:
            check_squares(s.values)
        stacks, rows = arranged(stacks)
        starts = [f.starts(s) for f, s in zip(families, stacks, strict=True)]
        boards = [Board(stacks, chosen, prior) for chosen in _side_by_side(starts)]
    J = len(stacks[0].sizes)
    board, *others = boards
    progress = alternate(board, J, rng, max_sweeps)
    for other in others:
        attempt = alternate(other, J, rng, max_sweeps)
        if attempt.history[-1] > progress.history[-1] + SMALLEST_RISE:
            board, progress = other, attempt
    if search == "thorough":
        progress = rematch(board, J, rng, progress, max_sweeps)
    values = board.estimates()
    if warn and not progress.converged:
        warnings.warn(
            f"no sweep without change among the first {max_sweeps}: the matching is the last one reached. Raise "
            "max_sweeps; with preset='paper' or 'authors' runs can go round in circles (erratum E2).",
            ConvergenceWarning,
            stacklevel=3,
        )
    number = _by_count(board.counts, values[0])
    rank = np.empty(len(number), dtype=np.int64)
    rank[number] = np.arange(len(number))
    labels = np.empty(N, dtype=np.int64)
    labels[rows] = rank[board.labels]
    return Matching(
        stacked_labels=labels,
        offsets=parts[names[0]][0].offsets,
        counts=board.counts[number],
        families=dict(zip(names, board.families, strict=True)),
        values={name: v[number] for name, v in zip(names, values, strict=True)},
        prior=prior,
        objective=progress.history[-1],
        history=tuple(progress.history),
        changes=tuple(progress.changes),
        converged=progress.converged,
        engine="compiled" if compiled else "numpy",
    )


def _side_by_side(lists: Sequence[list[Family]]) -> list[list[Family]]:
    """The first of each list, then the second, ...; a list that has ended goes on with its last."""
    return [[x[min(i, len(x) - 1)] for x in lists] for i in range(max(map(len, lists)))]


def _by_count(counts: Index, values: Array) -> Index:
    """Atoms by decreasing count, then by content, so that their numbers do not depend on the order of arrival."""
    order = np.lexsort((values[:, 0], -counts))
    tied = (np.diff(counts[order]) == 0) & (np.diff(values[order, 0]) == 0)
    return np.lexsort((*values.T[::-1], -counts)) if tied.any() else order


def _threads(n_jobs: int | None) -> int:
    """How many threads `n_jobs` stands for."""
    if n_jobs is None:
        return 1
    if n_jobs == 0 or n_jobs < -1:
        raise InputError(f"n_jobs is a positive number, -1 for all processors or None for one; found {n_jobs}.")
    return n_jobs if n_jobs > 0 else os.cpu_count() or 1
