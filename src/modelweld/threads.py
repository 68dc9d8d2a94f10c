"""How many processors a call may use: what `n_jobs` means, and how many threads matrix products get."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cache, wraps
from typing import Any, ParamSpec, TypeVar

from modelweld.errors import InputError

Asked = ParamSpec("Asked")
Answer = TypeVar("Answer")


def check_n_jobs(n_jobs: int | None) -> None:
    """Refuse what is no number of processors: `n_jobs` means the same wherever it stands.

    Examples
    --------
    >>> check_n_jobs(0)
    Traceback (most recent call last):
    ...
    modelweld.errors.InputError: n_jobs is a number of processors, -1 for all of them or None for one; found 0.
    """
    if n_jobs is not None and (not hasattr(n_jobs, "__index__") or n_jobs == 0 or n_jobs < -1):
        raise InputError(f"n_jobs is a number of processors, -1 for all of them or None for one; found {n_jobs!r}.")


def processors(n_jobs: int | None) -> int:
    """How many processors `n_jobs` stands for.

    Examples
    --------
    >>> processors(None), processors(3), processors(-1) == os.cpu_count()
    (1, 3, True)
    """
    check_n_jobs(n_jobs)
    if n_jobs is None:
        return 1
    return n_jobs if n_jobs > 0 else os.cpu_count() or 1


THREADS_FROM = 250_000
"""Numbers of the largest site from which matrix products are shared among threads: 1,000 values of 250 dimensions.
Below, products are over before a second thread is awake, and waiting for it takes two to eight times as long."""


def useful_threads(n_jobs: int | None, numbers: int) -> int:
    """How many threads help where the largest site sends so many numbers.

    Examples
    --------
    >>> useful_threads(2, 5000), useful_threads(2, 300_000), useful_threads(None, 300_000)
    (1, 2, 1)
    """
    return processors(n_jobs) if numbers >= THREADS_FROM else 1


@cache
def _thread_pools() -> Any:
    """The loaded BLAS libraries; looking for them takes longer than a small job, so it is done once."""
    import scipy.linalg  # noqa: F401  (its BLAS is the one the compiled products call)
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def blas_threads(n: int) -> AbstractContextManager[object]:
    """Context in which matrix products use at most n threads."""
    limited: AbstractContextManager[object] = _thread_pools().limit(limits=n, user_api="blas")
    return limited


def on_one_thread(question: Callable[Asked, Answer]) -> Callable[Asked, Answer]:
    """A decorator for questions that make many small matrix products: several threads would wait for each other.

    Examples
    --------
    >>> on_one_thread(lambda x: x + 1)(1)
    2
    """

    @wraps(question)
    def asked(*args: Asked.args, **options: Asked.kwargs) -> Answer:
        with blas_threads(1):
            return question(*args, **options)

    return asked
