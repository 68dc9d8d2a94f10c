"""Train on each partition where it lies, in parallel, and fuse: data stay, parameters come back.

Work is handed out by joblib, so that the caller decides who does it: processes of this machine by default, threads,
a Dask or a Ray cluster within ``joblib.parallel_config(backend=...)``.

Partitions of data: what they are called and hold, and which gave no model, why, and whether enough are left.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from inspect import Parameter, signature
from textwrap import shorten
from typing import Any

import numpy as np

from modelweld.errors import SHOWN, InputError, ModelweldWarning, warn_user
from modelweld.files.limits import LONGEST_NAME
from modelweld.fuse import fuse
from modelweld.fusion import Fusion
from modelweld.inputs.local_model import LocalModel
from modelweld.libraries.reading import list_facts, read
from modelweld.progress import Progress, is_heard, progress_to, report_progress
from modelweld.threads import check_n_jobs


class TrainedFusion(Fusion):
    """A `Fusion` of models that were trained here, and what became of the partitions that are not in it.

    Attributes
    ----------
    failures : tuple of Failure
        Partitions that gave no model, in the order in which they were given.

    Examples
    --------
    >>> import modelweld
    >>> from sklearn.cluster import KMeans
    >>> data = {"north": [[0.0], [0.1], [9.0]], "south": [[0.2], [9.1], [9.2]]}
    >>> fusion = modelweld.train_and_fuse(KMeans(2, n_init=1), data)
    >>> fusion.K, fusion.failures
    (2, ())
    """

    def __init__(self, fusion: Fusion, failures: Sequence[Failure] = ()) -> None:
        super().__init__(fusion._fit)
        self.failures = tuple(failures)


def train_and_fuse(
    estimator: object,
    partitions: Mapping[str, object] | Iterable[object],
    *,
    n_jobs: int | None = None,
    sites: Sequence[str] | None = None,
    features: Sequence[str] | None = None,
    seed: int = 0,
    minimum: int = 1,
    progress: Progress = None,
    **options: Any,
) -> TrainedFusion:
    """Train one model per partition, in parallel, each where its data lie, and fuse them.

    Only parameters come back from the workers. The result is bit for bit that of training one partition after the other
    with `train_site` and calling `fuse`, whatever `n_jobs` and the backend: models are trained with one thread each.

    Parameters
    ----------
    estimator : estimator, or function of a partition
        An estimator with `fit` is cloned for each partition. A function gets the partition, and a seed if it has a
        parameter ``seed`` without default. It returns a fitted model, which is read with the partition's arrays if that
        is ``X``, ``(X, y)``, ``(X, lengths)`` or a dict of these; or a LocalModel, to say itself what leaves.
    partitions : mapping of site names to data, or iterable of data
        One partition's data is whatever `fit` takes: ``X``, or a tuple ``(X, y)``, ``(X, lengths)`` for hidden Markov
        models, or a dict of named arguments. Or a function without arguments that returns one of these: it is called by
        the worker, so that the data need not pass through here. Functions for `estimator` may take anything else.
    n_jobs : int, optional
        Processors to use, here as workers of joblib that train a partition each; None means 1 or what
        ``joblib.parallel_config`` says, -1 all.
    sites : sequence of str, optional
        Names of the sites, if the partitions are not given by name; default "0", "1", ...
    features : sequence of str, optional
        Names of the features; by default those the models were fitted with, if they were.
    seed : int
        For training and for `fuse`. Each ``random_state`` of the estimator that is None becomes a number made of this
        seed and the site's name (`seed_of`), so that neither order nor company of a partition changes its model.
    minimum : int
        Fewest partitions that must give a model.
    progress : bool or callable, optional
        As in `fuse`, which goes on with it after ``progress("training", done, total)`` for each partition that is done.
    **options
        For `fuse`: `families`, `prior`, `search`, ...

    Returns
    -------
    TrainedFusion
        A `Fusion`, and in `failures` the partitions that gave no model.

    Warns
    -----
    FailureWarning
        If training failed at some partitions. They are named, and left out.

    Raises
    ------
    TrainingError
        If fewer than `minimum` partitions gave a model.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.cluster import KMeans
    >>> rng = np.random.default_rng(0)
    >>> held = {"north": [0, 9], "south": [9, -9], "east": [0, -9]}
    >>> data = {site: np.concatenate([rng.normal(m, 1, (50, 2)) for m in means]) for site, means in held.items()}
    >>> fusion = train_and_fuse(KMeans(2, n_init=5), data)
    >>> fusion.K, fusion.sites, fusion.failures
    (3, ['north', 'south', 'east'], ())
    """
    from sklearn.utils.parallel import delayed

    if isinstance(estimator, type) or not (hasattr(estimator, "fit") or callable(estimator)):
        raise _refusal(estimator)
    unknown = sorted(options.keys() - signature(fuse).parameters.keys())
    if unknown:  # refused now, not after training
        raise InputError(f"neither train_and_fuse nor fuse has an option {unknown[0]!r}.")
    check_n_jobs(n_jobs)
    data = name_partitions(partitions, sites)
    tasks = [delayed(_attempt)(j, estimator, part, site, features, seed) for j, (site, part) in enumerate(data.items())]
    with progress_to(progress, "training and fusing"):
        answers = _answers(tasks, n_jobs)
        models = [answer for answer in answers if isinstance(answer, LocalModel)]
        failures = tuple(answer for answer in answers if isinstance(answer, Failure))
        check_enough(len(models), max(minimum, 1), failures)
        fusion = fuse(models, seed=seed, **options)
    return TrainedFusion(fusion, failures)


def train_site(
    estimator: object, data: object, *, site: str = "", features: Sequence[str] | None = None, seed: int = 0
) -> LocalModel:
    """What one partition sends: what `train_and_fuse` does at each of them.

    Parameters
    ----------
    estimator, data, features, seed
        As in `train_and_fuse`; the estimator is not changed.
    site : str
        Name of the site; part of the seed.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.cluster import KMeans
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> train_site(KMeans(3), X, site="north").arrays["counts"].sum()
    np.float64(60.0)
    """
    from threadpoolctl import threadpool_limits

    # sums depend on how many threads share them: with one, bits are the same wherever, and beside whatever, it trains
    with threadpool_limits(1):
        own = seed_of(site, seed)
        data = data() if callable(data) else data
        if hasattr(estimator, "fit"):
            from sklearn.base import clone

            model = _seed(clone(estimator), own)
            facts = name_arguments(model, data)
            model.fit(**facts)
        elif not callable(estimator):
            raise _refusal(estimator)
        else:
            model = estimator(data, **({"seed": own} if _wants_seed(estimator) else {}))
            if isinstance(model, LocalModel):
                return read(model, site=site)
            facts = name_arguments(model, data) if is_data(data) else {}
        return read(model, site=site, features=features, **keep_wanted(model, facts))


def seed_of(site: str, seed: int = 0) -> int:
    """The seed of a site: of its name and the common seed alone.

    Examples
    --------
    >>> seed_of("north") == seed_of("north"), seed_of("north") == seed_of("south"), seed_of("north", seed=1) < 2**32
    (True, False, True)
    """
    return int(np.random.SeedSequence([seed, *site.encode()]).generate_state(1)[0])


def _answers(tasks: Sequence[object], n_jobs: int | None) -> list[LocalModel | Failure]:
    """Models or failures of the partitions, in their order; progress is reported where the backend supports it."""
    from joblib.parallel import get_active_backend
    from sklearn.utils.parallel import Parallel
    from threadpoolctl import threadpool_limits

    as_they_come = is_heard() and get_active_backend()[0].supports_return_generator
    workers = Parallel(n_jobs=n_jobs, return_as="generator_unordered" if as_they_come else "list", batch_size=1)
    # here too: workers that are threads of this process share its number of threads for matrix products
    answers: dict[int, LocalModel | Failure] = {}
    report_progress("training", 0, len(tasks))
    with threadpool_limits(1):
        for j, answer in workers(tasks):
            answers[j] = answer
            report_progress("training", len(answers), len(tasks))
    return [answers[j] for j in range(len(tasks))]


def _attempt(
    j: int, estimator: object, data: object, site: str, features: Sequence[str] | None, seed: int
) -> tuple[int, LocalModel | Failure]:
    """What a worker does: number of the partition, and its model or why there is none."""
    try:
        return j, train_site(estimator, data, site=site, features=features, seed=seed)
    except Exception as wrong:
        # in words: the object itself may not travel, and what it holds on to should not
        return j, Failure(site, type(wrong).__name__, str(wrong), traceback.format_exc())


def _seed(model: Any, seed: int) -> Any:
    """The estimator with a number in place of each random state that is None."""
    open_ones = [
        name
        for name, value in sorted(model.get_params(deep=True).items())
        if value is None and name.split("__")[-1] == "random_state"
    ]
    numbers = np.random.SeedSequence(seed).generate_state(len(open_ones)).tolist()
    return model.set_params(**dict(zip(open_ones, numbers, strict=True)))


def _refusal(estimator: object) -> InputError:
    return InputError(
        "estimator is an estimator with fit, such as KMeans(3), or a function of a partition that returns a fitted "
        f"model; found {estimator!r}."
    )


def _wants_seed(function: Callable[..., object]) -> bool:
    parameter = signature(function).parameters.get("seed")
    return parameter is not None and parameter.default is Parameter.empty


def name_partitions(
    partitions: Mapping[str, object] | Iterable[object], sites: Sequence[str] | None
) -> dict[str, object]:
    """Data by site."""
    if hasattr(partitions, "shape") or isinstance(partitions, (str, bytes)):
        raise InputError(
            "partitions are a dict of site names to data, or a list of data, one entry per site; found one "
            f"{type(partitions).__name__}. Split it: {{name: X[rows] for name, rows in ...}}."
        )
    if isinstance(partitions, Mapping):
        if sites is not None:
            raise InputError("partitions given by name have their names: leave sites out, or give a list of data.")
        names, data = [str(name) for name in partitions], list(partitions.values())
    else:
        data = list(partitions)
        names = [str(j) for j in range(len(data))] if sites is None else [str(name) for name in sites]
    if not data:
        raise InputError("there is nothing to train on: give at least one partition.")
    if len(names) != len(data) or len(set(names)) < len(names):
        raise InputError(
            f"every partition needs a name of its own: {len(data)} partitions have {len(set(names))} different names."
        )
    return dict(zip(names, data, strict=True))


def name_arguments(model: object, data: object) -> dict[str, object]:
    """A partition's data by the names that the model's `fit` has for them."""
    if isinstance(data, Mapping):
        return {str(name): value for name, value in data.items()}
    given = data if isinstance(data, tuple) else (data,)
    fit = getattr(model, "fit", None)
    names = ["X", "y"] if fit is None else [p.name for p in signature(fit).parameters.values() if _has_place(p)]
    if len(given) > len(names):
        raise InputError(
            f"a tuple holds what fit of a {type(model).__name__} takes in this order: {', '.join(names)}; found "
            f"{len(given)} entries. Name them in a dict, or use a list if the tuple is X."
        )
    return dict(zip(names, given, strict=False))


def is_data(data: object) -> bool:
    """Whether a partition is X, a pair (X, ...) or a dict with X, and not something only its function understands."""
    if isinstance(data, tuple):
        return len(data) == 2 and hasattr(data[0], "shape")
    return hasattr(data.get("X") if isinstance(data, Mapping) else data, "shape")


def keep_wanted(model: object, facts: Mapping[str, object]) -> dict[str, Any]:
    """Of what is known, that which the model's adapter wants to know."""
    taken = list_facts(model)
    return {name: fact for name, fact in facts.items() if name in taken and fact is not None}


def _has_place(parameter: Parameter) -> bool:
    return parameter.kind is Parameter.POSITIONAL_OR_KEYWORD


@dataclass(frozen=True)
class Failure:
    """A partition that gave no model.

    Attributes
    ----------
    site : str
        Name of the partition.
    error : str
        Class of what was raised there.
    message : str
        Its message.
    traceback : str
        Where it was raised.

    Examples
    --------
    >>> print(Failure("north", "ValueError", "no rows", "Traceback ..."))
    'north' (ValueError: no rows)
    """

    site: str
    error: str
    message: str
    traceback: str

    def __str__(self) -> str:
        return f"{self.site!r} ({self.error}: {shorten(self.message, LONGEST_NAME, placeholder=' ...')})"


class FailureWarning(ModelweldWarning):
    """Some partitions gave no model, and the others were fused without them; `failures` says which and why."""

    def __init__(self, message: str, failures: tuple[Failure, ...] = ()) -> None:
        super().__init__(message)
        self.failures = failures


class TrainingError(InputError):
    """Too few partitions gave a model; `failures` says which did not and why."""

    def __init__(self, message: str, failures: tuple[Failure, ...] = ()) -> None:
        super().__init__(message)
        self.failures = failures


def check_enough(found: int, minimum: int, failures: tuple[Failure, ...]) -> None:
    """Warn of failures; refuse if too few partitions are left."""
    which = "; ".join(map(str, failures[:SHOWN]))
    if len(failures) > SHOWN:
        which += f"; and {len(failures) - SHOWN} more"
    if found < minimum:
        raise TrainingError(
            f"{found} of {found + len(failures)} partitions gave a model, and at least {minimum} must"
            + (f". Failed: {which}. The error's `failures` has the tracebacks." if failures else "."),
            failures,
        )
    if failures:
        text = (
            f"{len(failures)} of {found + len(failures)} partitions gave no model and are left out: {which}. "
            "fusion.failures has the tracebacks."
        )
        warn_user(FailureWarning(text, failures))
