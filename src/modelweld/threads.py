"""How many threads matrix products may use."""

from __future__ import annotations

from functools import cache
from typing import Any


@cache
def _thread_pools() -> Any:
    """The loaded BLAS libraries; looking for them takes longer than a small job, so it is done once."""
    import scipy.linalg  # noqa: F401  (its BLAS is the one the compiled products call)
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def blas_threads(n: int) -> Any:
    """Context in which matrix products use at most n threads."""
    return _thread_pools().limit(limits=n, user_api="blas")
