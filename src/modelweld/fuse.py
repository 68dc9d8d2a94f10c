"""The one verb: models in, sets matched one after the other, a Fusion out."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from modelweld.core.plan import Auto, Effort
from modelweld.core.prior import Prior
from modelweld.errors import InputError, first_repeated
from modelweld.fusion import Fusion
from modelweld.inputs.local_model import LocalModel
from modelweld.inputs.plain_tables import are_arrays, is_plain, set_times, site_names, take_names
from modelweld.inputs.sets import Families
from modelweld.libraries.reading import is_known, read
from modelweld.libraries.refusals import is_state, remedy
from modelweld.progress import Progress, progress_to
from modelweld.request import Preset, Request, Screens, Search
from modelweld.results.fit_result import FitResult, Recipe
from modelweld.stages import ARRAY_STAGES, MODEL_STAGES, Job
from modelweld.threads import blas_threads, processors, useful_threads


def fuse(
    models: Iterable[LocalModel | Any] | Mapping[str, Any],
    families: Families = None,
    prior: Prior | Auto = "auto",
    *,
    times: Sequence[Any] | Mapping[str, Any] | None = None,
    preset: Preset | None = None,
    search: Search | Effort = "auto",
    splits: bool | Auto = "auto",
    screens: Screens = "auto",
    seed: int = 0,
    progress: Progress = None,
) -> Fusion:
    """Find which local parameters are noisy copies of the same global one, and how many global ones there are.

    Parameters
    ----------
    models : iterable of fitted models, of LocalModels, of paths of files, or of arrays (L_j, D)
        One per site, or a mapping from names of sites to these. Sites may have different numbers of parameters, also
        none. Columns of tables (pandas, polars) are names of features. ``modelweld.adapters()`` lists the model classes
        that are known; what their objects forgot (numbers of points) is said in `modelweld.read`.
    families : Family or mapping, optional
        The exponential family of each array, with a conjugate prior: how values scatter about their global value. One
        family for all arrays, or ``{array: family}``, or ``{set: {array: family}}``. Arrays that are not named are
        auxiliary. Default: what suits the kind of model, else `Gaussian`. See docs/families.md.
    prior : Prior or "auto"
        Prior over matchings: ``BetaBernoulli(alpha, gamma0)``, or ``Spectrum()``, which learns how often atoms are
        shared (empirical Bayes) and has a background component. ``"auto"`` is ``Spectrum()`` from four sites on, else
        ``BetaBernoulli(1, 1)``; where sites have times, `BirthDeath`, and no other.
    times : sequence or mapping, optional
        When each site's model was trained: numbers, or dates (also written, ``"2024-03"``), in the order of the sites
        or by their names. Atoms then move, appear and disappear, by rates that are learned; ``fusion.timeline`` has
        where they were when. Several sites may have one time. See docs/time.md.
    preset : {"paper", "authors"}, optional
        Replicate the paper's or its authors' program's setting: families and prior are then given by the preset.
    search : {"auto", "plain", "thorough"} or Search
        ``"plain"`` is the paper's Algorithm 1; ``"auto"`` goes on to merge and split atoms, ``"thorough"`` also frees
        and rematches every atom, all only as long as the objective rises. `Search` also sets the iteration limit, the
        engine and the number of threads.
    splits : bool or "auto"
        Whether a site may hold an atom in several fragments (over-segmentation), as estimated models do. ``"auto"``: if
        sites send standard errors (`variance`). Without them, fragments cannot be told from neighbours where atoms
        overlap, and plain values (up to 2,000 atoms) are taken for fragments only where the objective rises by 10 nats.
    screens : "auto" or collection of {"duplicates", "outliers"}
        What is looked for before the fit; each finding is a warning that names the site. ``"duplicates"``: of sites
        that sent the same values, one is fitted and the others are labelled like it, because two that coincide would
        teach that there is no noise. ``"outliers"``: gross outliers, shifted and oversized sites are excluded from the
        fit (four sites or more); they stay in the result as atoms of their own, after the K others. ``"auto"``: both,
        unless the search is plain; an empty list: neither.
    seed : int
        Draws the order of groups in each sweep. The order in which sites or rows are given does not matter.
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
    >>> fusion.K, fusion.diagnosis.converged
    (4, True)
    """
    asked = Request(families, prior, preset, search, splits, screens, seed)
    given = receive(models)
    if isinstance(models, Mapping):
        given, names = _name_sites(given, list(map(str, models)))
    else:
        names = site_names(given)
    if times is not None:
        given = set_times(given, times, names)
    with progress_to(progress, "fusing"):
        return Fusion(_fuse_received(asked, given, names))


def _fuse_received(asked: Request, given: Sequence[Any], names: Sequence[str]) -> FitResult:
    """Fuse what was received, and remember how, so that the same can be asked of other sites."""
    families, plan = asked.decide()
    n_jobs = asked.effort.n_jobs
    models = any(issubclass(sent, LocalModel) for sent in set(map(type, given)))
    with blas_threads(1 if processors(n_jobs) == 1 else useful_threads(n_jobs, max(map(_numbers, given)))):
        job = Job(given, list(names), families, plan, np.random.default_rng(asked.seed))
        for stage in MODEL_STAGES if models else ARRAY_STAGES:
            job = stage(job)
    recipe = Recipe(given, partial(_fuse_received, asked))
    return FitResult(job.sites, list(names), job.matchings_with_reasons(), asked.spell(), recipe)


def _numbers(model: Any) -> int:
    """How many numbers a site sent."""
    if isinstance(model, LocalModel):
        return sum(map(np.size, model.arrays.values()))
    return math.prod(getattr(model, "shape", (0,)))  # lists are small, and may be no array at all


def _name_sites(given: Sequence[Any], names: list[str]) -> tuple[list[Any], list[str]]:
    """What was received, called by these names."""
    if len(given) != len(names):
        raise InputError(f"a mapping has one model for each name; these {len(names)} names hold {len(given)} sites.")
    named = zip(given, names, strict=True)
    return [model.with_(site=name) if isinstance(model, LocalModel) else model for model, name in named], names


NOTHING = "there is nothing to fuse: give at least one local model."


def receive(models: str | os.PathLike[str] | Iterable[Any] | Mapping[str, Any], nothing: str = NOTHING) -> list[Any]:
    """What sites sent, as numbers: fitted models are read, and so are files, which may hold several sites."""
    check_several(models)
    several = [models] if isinstance(models, (str, os.PathLike)) else list(models)
    names: list[Any] = several if isinstance(models, Mapping) else list(range(len(several)))
    several = list(models.values()) if isinstance(models, Mapping) else several
    if are_arrays(several):
        return several
    check_files(several)
    given = [site for name, model in zip(names, several, strict=True) for site in _receive(model, name)]
    if not given:
        raise InputError(nothing)
    return take_names(given)


def check_several(models: object) -> None:
    """Refuse one model where one per site is asked for; some can be gone through as if they were several."""
    one = isinstance(models, LocalModel) or hasattr(models, "columns") or not isinstance(models, Iterable)
    table = getattr(models, "ndim", None) == 2 and hasattr(models, "__array__")
    if isinstance(models, Mapping) and is_state(models):
        raise InputError(remedy(models))
    if one or table or hasattr(models, "named_parameters"):
        raise InputError(
            f"give one model per site, in a list or a dict by names of sites; found one {type(models).__name__}."
        )


def check_files(models: Sequence[object]) -> None:
    """Refuse a file that is named twice."""
    twice = first_repeated(os.path.normpath(os.fspath(m)) for m in models if isinstance(m, (str, os.PathLike)))
    if twice is not None:
        raise InputError(f"{twice!r}: is named more than once: each site sends one file. Name it once.")


def _receive(model: Any, name: object) -> list[Any]:
    if isinstance(model, (str, os.PathLike)):
        from modelweld.files import read_sites

        return list(read_sites(model))
    if isinstance(model, LocalModel) or (not is_known(model) and is_plain(model)):
        return [model]
    try:
        return [read(model)]
    except InputError as wrong:
        raise type(wrong)(f"site {name}: {wrong}") from None
