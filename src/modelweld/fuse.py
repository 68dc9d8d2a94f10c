"""The one verb: models in, sets matched one after the other, a Fusion out."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from modelweld.array_stage import match_arrays
from modelweld.core.match import Auto, Effort
from modelweld.core.prior import Prior
from modelweld.errors import InputError, announce, first_repeated
from modelweld.fusion import Fusion
from modelweld.inputs.local_model import LocalModel
from modelweld.inputs.plain_tables import is_plain, set_times, take_names
from modelweld.inputs.sets import Families
from modelweld.libraries.reading import is_known, read
from modelweld.libraries.refusals import is_state, remedy
from modelweld.progress import Progress, progress_to
from modelweld.request import Preset, Request, Screens, Search
from modelweld.results.fit_result import FitResult, Recipe
from modelweld.stages import MODEL_STAGES, Job
from modelweld.threads import blas_threads, processors, useful_threads


def fuse(
    models: Iterable[LocalModel | Any] | Mapping[str, Any],
    families: Families = None,
    prior: Prior | Auto = "auto",
    *,
    times: Sequence[Any] | Mapping[str, Any] | None = None,
    preset: Preset | None = None,
    search: Search | Effort = "auto",
    site_effects: bool | Auto = "auto",
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
        shared (empirical Bayes). ``"auto"`` is ``Spectrum()``; where sites have times, `BirthDeath`, and no other.
    times : sequence or mapping, optional
        When each site's model was trained: numbers, or dates (also written, ``"2024-03"``), in the order of the sites
        or by their names. Atoms then move, appear and disappear, by rates that are learned; ``fusion.timeline`` has
        where they were when. Several sites may have one time. See docs/time.md.
    preset : {"paper", "authors"}, optional
        Replicate the paper's or its authors' program's setting: families and prior are then given by the preset.
    search : {"auto", "plain", "thorough"} or Search
        ``"plain"`` is the paper's Algorithm 1; ``"auto"`` goes on to merge and split atoms, ``"thorough"`` also frees
        and rematches every atom, all only as long as the objective rises. `Search` also says whether a site may hold an
        atom in several fragments (`splits`), and sets the iteration limit, the engine and the number of threads.
    site_effects : bool or "auto"
        Whether sites may differ by offsets and scales of features (batch effects, calibration, units, rows standardised
        at home), which are estimated with the matching and corrected before it. ``"auto"``: where they raise the
        objective by 10 nats or more; True: wherever they raise it. ``fusion.site_effects`` lists them.
    screens : "auto" or collection of {"duplicates", "outliers"}
        What is looked for before the fit; each finding is a warning that names the site. ``"duplicates"``: of sites
        that sent the same values, one is fitted and the others are labelled like it, because two that coincide would
        teach that there is no noise. ``"outliers"``: gross outliers and oversized sites are excluded from the
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
        Matching, global values, objective, and groups of methods for all else: docs/public.md.

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
    asked = Request(families, prior, preset, search, site_effects, screens, seed)
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
        for stage in MODEL_STAGES if models else (match_arrays,):
            job = stage(job)
    reasons = [*job.reasons, *(reason for matching in job.matchings.values() for reason in matching.reasons)]
    if reasons:
        announce(reasons)
    matchings = {name: replace(m, reasons=(*job.reasons, *m.reasons)) for name, m in job.matchings.items()}
    return FitResult(job.sites, list(names), matchings, asked.spell(), Recipe(given, partial(_fuse_received, asked)))


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
    several: Iterable[Any] = [models] if isinstance(models, (str, os.PathLike)) else models
    named = several if isinstance(several, Mapping) else dict(enumerate(several))
    if set(map(type, named.values())) == {np.ndarray}:
        return list(named.values())
    check_files([model for model in named.values() if isinstance(model, (str, os.PathLike))])
    given = [site for name, model in named.items() for site in _receive(model, name)]
    if not given:
        raise InputError(nothing)
    return given if all(isinstance(site, LocalModel) for site in given) else take_names(given)


def check_several(models: object) -> None:
    """Refuse one model where one per site is asked for; some can be gone through as if they were several."""
    one = isinstance(models, LocalModel) or hasattr(models, "columns") or not isinstance(models, Iterable)
    table = getattr(models, "ndim", None) == 2 and hasattr(models, "__array__")
    if isinstance(models, Mapping) and is_state(models):
        raise InputError(remedy(models))
    if one or table or hasattr(models, "named_parameters"):
        found = type(models).__name__
        raise InputError(f"give one model per site, in a list or a dict by names of sites; found one {found}.")


def check_files(paths: Sequence[str | os.PathLike[str]]) -> None:
    """Refuse a file that is named twice."""
    names = [os.path.normpath(os.fspath(path)) for path in paths]
    if len(set(names)) < len(names):
        raise InputError(f"{first_repeated(names)!r}: is named more than once: each site sends one file. Name it once.")


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


def site_names(given: Sequence[object]) -> list[str]:
    """A name for each of what sites sent: its own, or its number; the same rule for models, files and command line.

    A name that comes twice with other values is a mistake, an update beside what it was to replace: refused. With the
    same values it is a copy, which is called by a number besides.

    Examples
    --------
    >>> north = LocalModel({"v": [[1.0]]}, {"v": ("atom", None)}, site="north")
    >>> site_names([north, north, [[2.0]]])
    ['north', 'north (2)', '2']
    """
    names, first = list[str](), dict[str, LocalModel]()
    number = Counter[str]()
    for j, model in enumerate(given):
        name = model.site if isinstance(model, LocalModel) else ""
        if isinstance(model, LocalModel) and name and not _is_same(first.setdefault(name, model), model):
            raise InputError(f"site {name!r} comes more than once, with different values: remove or rename one.")
        number[name] += 1
        names.append(f"{name} ({number[name]})" if name and number[name] > 1 else name or str(j))
    return names


ROLES = ("arrays", "variance", "weight")
"""What a model holds numbers in."""


def _is_same(one: LocalModel, other: LocalModel) -> bool:
    """Whether two models hold the same numbers, in whatever order: that of a set means nothing."""
    if one is other:
        return True
    sent, again = (
        {(role, name): np.sort(x, axis=None) for role in ROLES for name, x in getattr(model, role).items()}
        for model in (one, other)
    )
    return sent.keys() == again.keys() and all(np.array_equal(sent[key], again[key]) for key in sent)
