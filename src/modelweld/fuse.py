"""The one verb: sets in order, values in, a Fusion out."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from modelweld.errors import ConvergenceWarning, InputError, OutOfRangeError, warn_user
from modelweld.families import Family, Gaussian
from modelweld.families.suggest import check_fit
from modelweld.fusion import Fusion
from modelweld.inputs.columns import columns_of
from modelweld.inputs.local_model import LocalModel, check_finite, check_squares
from modelweld.inputs.sets import Families, checked_models, families_by_set, stack_of
from modelweld.inputs.settings import in_words
from modelweld.inputs.stack import Index, Stack, arranged, stack_arrays
from modelweld.inputs.units import check_units
from modelweld.kinds import kind_of
from modelweld.libraries import read
from modelweld.matching.algorithm1 import AnyBoard
from modelweld.matching.finish import finished
from modelweld.matching.result import Key, Matching
from modelweld.matching.search import Effort, best_run, find_matching
from modelweld.priors.beta_bernoulli import BetaBernoulli, Prior
from modelweld.priors.spectrum import Spectrum
from modelweld.progress import Progress, heard_by, tell
from modelweld.screening.quarantine import with_outliers, without_outliers
from modelweld.screening.shifted_sites import without_shifted
from modelweld.threads import blas_threads, processors

COMPILED_FROM = 2_000_000
"""Local parameters x largest group x dimensions from which the compiled sweep is used. Below, plain numpy takes a
fraction of a second and nobody should wait for a compiler. The choice depends on the input alone, not on what has
been compiled before, so that the same call gives the same bits."""

REMATCHED_UP_TO = 100_000
"""Values up to which a compiled job of `search="auto"` frees groups and matches them again: that takes three to five
times as long as the sweeps, a second at this size."""

FEWEST_FOR_SPECTRUM = 4
"""Sites from which on the spectrum of supports can be learned."""

MOST_SWEEPS = 200
"""Ten times what the hardest simulated sets needed."""

PRESET_SWEEPS = 11
"""The first pass and ten sweeps."""

PRESETS: dict[str, tuple[Gaussian, BetaBernoulli]] = {
    form: (Gaussian(mean=0.0, noise=1.0, spread=1.0, learning="moments"), BetaBernoulli(form=form))
    for form in ("paper", "authors")
}
"""The paper's setting and its authors' program's: start (1, 1), closed-form hyperparameters, form of the prior."""


def fuse(
    models: Iterable[LocalModel | Any],
    families: Families = None,
    prior: Prior | Literal["auto"] = "auto",
    *,
    preset: Literal["paper", "authors"] | None = None,
    seed: int = 0,
    n_jobs: int | None = None,
    copies: bool | Literal["auto"] = "auto",
    filter_outliers: bool | Literal["auto"] = "auto",
    search: Literal["auto", "plain", "thorough"] = "auto",
    max_sweeps: int | None = None,
    engine: Literal["auto", "numpy", "compiled"] = "auto",
    progress: Progress = None,
) -> Fusion:
    """Find which local parameters are noisy copies of the same global one, and how many global ones there are.

    Parameters
    ----------
    models : iterable of fitted models, of LocalModels, of paths of files, or of arrays (L_j, D)
        One per site. Sites may have different numbers of parameters, also none. ``modelweld.adapters()`` lists the
        model classes that are known; what their objects forgot (numbers of points) is said in `modelweld.read`.
    families : Family or mapping, optional
        How values scatter about their global value: one family for all arrays, or ``{array: family}``, or
        ``{set: {array: family}}``. Arrays that are not named ride along. Default: what suits the kind of model, else
        `Gaussian` for every array that does not ride. See docs/families.md.
    prior : Prior or "auto"
        How probable matchings are: ``BetaBernoulli(alpha, gamma0)`` or ``Spectrum()``, which is learned and knows
        values that belong to no atom. ``"auto"`` is ``Spectrum()`` from four sites on, else ``BetaBernoulli(1, 1)``.
    preset : {"paper", "authors"}, optional
        Replicate the paper's or its authors' program's setting: families and prior are then given by the preset.
    seed : int
        Draws the order of groups in each sweep. The order in which sites or rows are given does not matter.
    n_jobs : int, optional
        Processors to use, here as threads of matrix products; None means 1, -1 all. More than one helps from about 500
        parameters per site on.
    copies : bool or "auto"
        Whether a site may hold an atom in several pieces, as estimated models do. ``"auto"``: if sites send standard
        errors (`variance`); without them, pieces cannot be told from neighbours where atoms overlap.
    filter_outliers : bool or "auto"
        Whether gross outliers are set aside before the fit, with a warning that names them (four sites or more). They
        stay in the result as atoms of their own, after the K others. ``"auto"``: unless the search is plain.
    search : {"auto", "plain", "thorough"}
        ``"plain"`` is the paper's Algorithm 1: sweeps and hyperparameters. ``"auto"`` goes on to merge and split atoms,
        which the compiled engine cannot: there, up to 100,000 values, it frees some groups and matches them again.
        ``"thorough"`` does so with both. All only as long as the objective rises.
    max_sweeps : int, optional
        Sweeps after which to give up and warn; default 200. Runs end by themselves at the first sweep that changes
        nothing. Presets stop, without warning, after the first pass and ten sweeps, as the paper's did.
    engine : {"auto", "numpy", "compiled"}
        The compiled sweep is for large Gaussian jobs; sweeps give the same matching.
    progress : bool or callable, optional
        A function is called now and then with what is being done, how much of it is done and out of how much (None:
        not known), as in ``progress("matching sites", 30, 100)``; True shows a bar on standard error if someone is
        watching. It has no influence on the result.

    Returns
    -------
    Fusion
        Matching, global values, learned hyperparameters, objective and history, and what was asked for (`settings`).

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
    settings = in_words(
        {
            "families": families,
            "prior": prior,
            "preset": preset,
            "seed": seed,
            "copies": copies,
            "filter_outliers": filter_outliers,
            "search": search,
            "max_sweeps": max_sweeps,
            "engine": engine,
        }
    )
    given = [site for m in ([models] if isinstance(models, (str, os.PathLike)) else models) for site in _received(m)]
    if preset is not None:
        if families is not None or prior != "auto":
            raise InputError("a preset sets families and prior; give either the preset or those.")
        if preset not in PRESETS:
            raise InputError(f"preset is one of {list(PRESETS)}; found {preset!r}.")
        families, prior = PRESETS[preset]
    if prior == "auto":
        prior = Spectrum() if len(given) >= FEWEST_FOR_SPECTRUM else BetaBernoulli()
    if not isinstance(prior, Prior):
        raise InputError(f"prior must be a Prior, such as BetaBernoulli(), or 'auto'; found {prior!r}.")
    if engine not in ("auto", "numpy", "compiled"):
        raise InputError(f"engine is 'auto', 'numpy' or 'compiled'; found {engine!r}.")
    if search not in ("auto", "plain", "thorough"):
        raise InputError(f"search is 'auto', 'plain' or 'thorough'; found {search!r}.")
    if copies not in (True, False, "auto"):
        raise InputError(f"copies is True, False or 'auto'; found {copies!r}.")
    if max_sweeps is not None and max_sweeps < 1:
        raise InputError(f"max_sweeps must be at least 1; found {max_sweeps}.")
    options: dict[str, Any] = {
        "prior": prior,
        "engine": engine,
        "copies": copies,
        "filter_outliers": filter_outliers is True or (filter_outliers == "auto" and search != "plain" and not preset),
        "search": "plain" if preset else search,
        "max_sweeps": max_sweeps or (PRESET_SWEEPS if preset else MOST_SWEEPS),
        "warn": max_sweeps is not None or preset is None,
    }
    rng = np.random.default_rng(seed)
    if not given:
        raise InputError("there is nothing to fuse: give at least one local model.")
    with blas_threads(processors(n_jobs)), heard_by(progress, "fusing"):
        if not any(isinstance(m, LocalModel) for m in given):
            return _fuse_arrays(given, families, rng, options, settings)
        check_units([m for m in given if isinstance(m, LocalModel)])
        kind = kind_of(given) if all(isinstance(m, LocalModel) for m in given) else None
        if kind is not None and hasattr(kind, "harmonised"):
            given = kind.harmonised(given)
        sites = checked_models(given)
        if families is None and kind is not None:
            families = kind.families(sites)
        if filter_outliers == "auto" and not getattr(kind, "HAS_OUTLIERS", True):
            options["filter_outliers"] = False
        return _fuse_models(sites, families, rng, options, settings)


def _received(model: Any) -> list[Any]:
    """What a site sent, as numbers: a fitted model is read, and so is a file, which may hold several sites."""
    if isinstance(model, (str, os.PathLike)):
        from modelweld.files import read_sites

        return list(read_sites(model))
    plain = isinstance(model, LocalModel) or type(model) in (list, tuple) or hasattr(model, "__array__")
    return [model if plain else read(model)]


def _fuse_arrays(
    given: Sequence[Any], families: Families, rng: np.random.Generator, options: Any, settings: dict[str, Any]
) -> Fusion:
    """Fuse plain arrays: one set, one array."""
    family = Gaussian() if families is None else families
    if not isinstance(family, Family):
        raise InputError("plain arrays take one Family, not a mapping.")
    sites = [str(j) for j in range(len(given))]
    try:
        matching = _match({"values": (stack_arrays(given), family)}, sites, rng, **options)
    except OutOfRangeError:
        for j, array in enumerate(given):  # the fast look at all values said no; say where
            check_finite(np.asarray(array, dtype=np.float64), f"site {j}")
        raise
    return Fusion(given, sites, {"atom": matching}, settings)


def _fuse_models(
    sites: list[LocalModel], families: Families, rng: np.random.Generator, options: Any, settings: dict[str, Any]
) -> Fusion:
    """Fuse local models: one set after the other, each in the global order of those before."""
    matchings: dict[str, Matching] = {}
    names = [m.site or str(j) for j, m in enumerate(sites)]
    for set_name, chosen in families_by_set(sites, families).items():
        parts = {name: (stack_of(sites, name, set_name, matchings), family) for name, family in chosen.items()}
        columns = [columns_of(sites[0], key, set_name, matchings, in_words=True) for key in chosen]
        matchings[set_name] = _match(parts, names, rng, **options, columns=columns)
    return Fusion(sites, names, matchings, settings)


def _match(
    parts: Mapping[Key, tuple[Stack, Family]],
    sites: Sequence[str],
    rng: np.random.Generator,
    prior: Prior,
    engine: str,
    copies: bool | str,
    filter_outliers: bool,
    search: str,
    max_sweeps: int,
    warn: bool,
    columns: Sequence[Sequence[str]] | None = None,
) -> Matching:
    """Match one set: canonical order, start, Algorithm 1, and the answer in the order in which it was asked."""
    names = list(parts)
    stacks, families = [stack for stack, _ in parts.values()], [family for _, family in parts.values()]
    given, report = stacks, None
    for name, stack, family in zip(names, stacks, families, strict=True):
        if stack.values.shape[1] == 0 and len(stack.values):
            raise InputError(f"array {name!r} has no columns: there is nothing to match by. Send values with features.")
        check_squares(stack.values)
        check_fit(family, stack, sites, name)
    if filter_outliers:
        tell("looking for outliers", 0)
        stacks, report = without_outliers(stacks, families, sites, names, columns)
    N, D = stacks[0].values.shape
    able = len(names) == 1 and _compilable(families[0]) and stacks[0].plain and N > 0 and copies is not True
    if engine == "compiled" and not able:
        raise InputError(
            "engine 'compiled' is for one array with a diagonal or scalar Gaussian, without variance, weight or copies."
        )
    work = N * int(stacks[0].sizes.max(initial=0)) * D
    compiled = engine == "compiled" or (engine == "auto" and able and work >= COMPILED_FROM)
    J, offsets = len(stacks[0].sizes), stacks[0].offsets
    unmoved = compiled and search == "auto" and N <= REMATCHED_UP_TO  # compiled boards cannot merge and split
    effort = Effort(moves=search != "plain", rematch=search == "thorough" or unmoved, max_sweeps=max_sweeps)
    board: AnyBoard
    tell("finding where to start", 0)
    if compiled:
        boards, rows = _compiled_boards(stacks[0], families[0], prior)
        board, progress = best_run(boards, J, rng, effort)
    else:
        pieces = copies is True or (copies == "auto" and any(s.variance is not None for s in stacks))
        stacks, rows = arranged(stacks)
        starts = _side_by_side([family.starts(stack) for family, stack in zip(families, stacks, strict=True)])
        board, progress = find_matching(stacks, starts, prior, pieces, rng, effort)
    if warn and not progress.converged:
        warn_user(
            f"no sweep without change among the first {max_sweeps}: the matching is the last one reached. Raise "
            "max_sweeps; with preset='paper' or 'authors' runs can go round in circles (erratum E2).",
            ConvergenceWarning,
        )
    matching = finished(board, progress, names, rows, offsets, "compiled" if compiled else "numpy")
    matching = with_outliers(matching, report, given)
    return without_shifted(matching, given, sites, rng) if filter_outliers else matching


def _compilable(family: Family) -> bool:
    return type(family) is Gaussian and family.shape != "full"


def _compiled_boards(stack: Stack, family: Any, prior: Prior) -> tuple[list[AnyBoard], Index]:
    """Compiled boards of one Gaussian array, one per start, and where their rows came from."""
    from modelweld.matching.compiled import CompiledBoard, pack

    stack, rows = pack(stack)
    return [CompiledBoard(stack, start, prior) for start in family.starts(stack)], rows


def _side_by_side(lists: Sequence[list[Family]]) -> list[list[Family]]:
    """The first of each list, then the second, ...; a list that has ended goes on with its last."""
    return [[x[min(i, len(x) - 1)] for x in lists] for i in range(max(map(len, lists)))]
