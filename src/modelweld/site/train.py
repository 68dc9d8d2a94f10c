"""Train on each partition where it lies, in parallel, and fuse: data stay, parameters come back.

Work is handed out by joblib, so that whoever calls decides who does it: processes of this machine by default, threads,
a Dask or a Ray cluster within ``joblib.parallel_config(backend=...)``.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from inspect import Parameter, signature
from typing import Any

import numpy as np

from modelweld.errors import InputError
from modelweld.fuse import fuse
from modelweld.fusion import Fusion
from modelweld.inputs.local_model import LocalModel
from modelweld.libraries import read
from modelweld.matching.result import Matching
from modelweld.site.failures import Failure, check_enough
from modelweld.site.partitions import arguments, is_data, named, wanted

ONE_THREAD = 1
"""Sums of floating-point numbers depend on how many threads share them: with one each, bits are the same wherever, and
beside whatever, a model is trained."""

Watcher = Callable[[str, int, int], object]
"""Called with the name of a partition that is done, how many are done, and how many there are."""


class TrainedFusion(Fusion):
    """A `Fusion` of models that were trained here, and what became of the partitions that are not in it.

    Attributes
    ----------
    failures : tuple of Failure
        Partitions that gave no model, in the order in which they were given.
    """

    def __init__(
        self,
        models: Sequence[Any],
        sites: Sequence[str],
        matchings: Mapping[str, Matching],
        settings: Mapping[str, Any] | None = None,
        failures: Sequence[Failure] = (),
    ) -> None:
        super().__init__(models, sites, matchings, settings)
        self.failures = tuple(failures)


def train_and_fuse(
    estimator: Any,
    partitions: Mapping[str, Any] | Iterable[Any],
    *,
    n_jobs: int | None = None,
    sites: Sequence[str] | None = None,
    features: Sequence[str] | None = None,
    seed: int = 0,
    minimum: int = 1,
    progress: bool | Watcher = False,
    **options: Any,
) -> TrainedFusion:
    """Train one model per partition, in parallel, each where its data lie, and fuse them.

    Only parameters come back from the workers. The result is bit for bit that of training one partition after the other
    with `trained` and calling `fuse`, whatever `n_jobs` and the backend: models are trained with one thread each.

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
        Partitions trained at the same time; None means 1, or what ``joblib.parallel_config`` says; -1 all processors.
    sites : sequence of str, optional
        Names of the sites, if the partitions are not given by name; default "0", "1", ...
    features : sequence of str, optional
        Names of the features; by default those the models were fitted with, if they were.
    seed : int
        For training and for `fuse`. Each ``random_state`` of the estimator that is None becomes a number made of this
        seed and the site's name (`seed_of`), so that neither order nor company of a partition changes its model.
    minimum : int
        Fewest partitions that must give a model.
    progress : bool or function
        True shows a bar if someone is watching standard error. A function is called, here, as
        ``progress(site, done, total)`` whenever a partition is done.
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
    from threadpoolctl import threadpool_limits

    if isinstance(estimator, type) or not (hasattr(estimator, "fit") or callable(estimator)):
        raise InputError(
            "estimator is an estimator with fit, such as KMeans(3), or a function of a partition that returns a fitted "
            f"model; found {estimator!r}."
        )
    unknown = sorted(options.keys() - signature(fuse).parameters.keys())
    if unknown:  # said now, not after training
        raise InputError(f"neither train_and_fuse nor fuse has an option {unknown[0]!r}.")
    data = named(partitions, sites)
    tasks = [
        delayed(_attempted)(j, estimator, part, site, features, seed) for j, (site, part) in enumerate(data.items())
    ]
    answers: dict[int, LocalModel | Failure] = {}
    # here too: workers that are threads of this process share its number of threads for matrix products
    with threadpool_limits(ONE_THREAD), _watching(progress, len(tasks)) as done:
        for j, answer in _handed_out(tasks, n_jobs, watched=progress is not False):
            answers[j] = answer
            done(answer.site, len(answers), len(tasks))
    ordered = [answers[j] for j in range(len(tasks))]
    models = [answer for answer in ordered if isinstance(answer, LocalModel)]
    failures = tuple(answer for answer in ordered if isinstance(answer, Failure))
    check_enough(len(models), max(minimum, 1), failures)
    fusion = fuse(models, seed=seed, **options)
    return TrainedFusion(fusion.given, fusion.sites, fusion.matchings, fusion.settings, failures)


def trained(
    estimator: Any, data: Any, *, site: str = "", features: Sequence[str] | None = None, seed: int = 0
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
    >>> trained(KMeans(3), X, site="north").arrays["counts"].sum()
    np.float64(60.0)
    """
    from threadpoolctl import threadpool_limits

    with threadpool_limits(ONE_THREAD):
        own = seed_of(site, seed)
        data = data() if callable(data) else data
        if hasattr(estimator, "fit"):
            from sklearn.base import clone

            model = _seeded(clone(estimator), own)
            facts = arguments(model, data)
            model.fit(**facts)
        else:
            model = estimator(data, **({"seed": own} if _wants_seed(estimator) else {}))
            if isinstance(model, LocalModel):
                return read(model, site=site)
            facts = arguments(model, data) if is_data(data) else {}
        return read(model, site=site, features=features, **wanted(model, facts))


def seed_of(site: str, seed: int = 0) -> int:
    """The seed of a site: of its name and the common seed alone.

    Examples
    --------
    >>> seed_of("north") == seed_of("north"), seed_of("north") == seed_of("south"), seed_of("north", seed=1) < 2**32
    (True, False, True)
    """
    return int(np.random.SeedSequence([seed, *site.encode()]).generate_state(1)[0])


def _handed_out(tasks: Sequence[Any], n_jobs: int | None, *, watched: bool) -> Iterable[tuple[int, Any]]:
    """Answers of the tasks; if someone watches, as they come, where the backend can say so."""
    from joblib.parallel import get_active_backend
    from sklearn.utils.parallel import Parallel

    tells = watched and get_active_backend()[0].supports_return_generator
    answers: Iterable[tuple[int, Any]] = Parallel(
        n_jobs=n_jobs, return_as="generator_unordered" if tells else "list", batch_size=1
    )(tasks)
    return answers


def _attempted(
    j: int, estimator: Any, data: Any, site: str, features: Sequence[str] | None, seed: int
) -> tuple[int, LocalModel | Failure]:
    """What a worker does: number of the partition, and its model or why there is none."""
    try:
        return j, trained(estimator, data, site=site, features=features, seed=seed)
    except Exception as wrong:
        # in words: the object itself may not travel, and what it holds on to should not
        return j, Failure(site, type(wrong).__name__, str(wrong), traceback.format_exc())


def _seeded(model: Any, seed: int) -> Any:
    """The estimator with a number in place of each random state that is None."""
    open_ones = [
        name
        for name, value in sorted(model.get_params(deep=True).items())
        if value is None and name.split("__")[-1] == "random_state"
    ]
    numbers = np.random.SeedSequence(seed).generate_state(len(open_ones)).tolist()
    return model.set_params(**dict(zip(open_ones, numbers, strict=True)))


def _wants_seed(function: Any) -> bool:
    parameter = signature(function).parameters.get("seed")
    return parameter is not None and parameter.default is Parameter.empty


@contextmanager
def _watching(progress: bool | Watcher, total: int) -> Iterator[Watcher]:
    """Who is told what is done: the caller's function, a bar on a terminal, or nobody."""
    if callable(progress):
        yield progress
    elif progress and sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import Progress

        with Progress(console=Console(stderr=True)) as bar:
            task = bar.add_task("training", total=total)
            yield lambda site, done, total: bar.update(task, completed=done)
    else:
        yield lambda site, done, total: None
