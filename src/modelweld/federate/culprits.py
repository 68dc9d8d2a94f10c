"""The largest group of sites that works together, where all of them do not: so that one bad answer costs no other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, TypeVar

from modelweld.federate.agreement import counting, find_disagreeing
from modelweld.files.file_errors import first_line
from modelweld.fuse import fuse
from modelweld.fusion import Fusion
from modelweld.inputs.local_model import LocalModel

Member = TypeVar("Member")


def fuse_others(
    models: Sequence[LocalModel], use: Callable[[Fusion], object], votes: Sequence[float] | None = None, **options: Any
) -> tuple[Fusion, dict[str, str]]:
    """Fuse the sites that can be fused, if they are more than half, and say of the others by name why they cannot.

    Those are sites that describe something else than more than half of all do (other features, another kind), and
    those without which the others can be fused and used and with which they cannot.

    Parameters
    ----------
    models : sequence of LocalModel
        Each with its site's name.
    use : function of a Fusion
        What is to be done with it (to return it, to write it).
    votes : sequence of float, optional
        How many votes each site has as to who is right; default one.
    **options
        For `modelweld.fuse`.

    Examples
    --------
    >>> axes = {"v": ("atom", None)}
    >>> sites = [LocalModel({"v": v}, axes, site=s) for s, v in (("a", [[1.0]]), ("b", [[2.0]]), ("c", [[3.0, 4.0]]))]
    >>> fusion, refused = fuse_others(sites, use=str)
    >>> fusion.sites, list(refused)
    (['a', 'b'], ['c'])
    """
    refused = find_disagreeing(models, votes) if len(models) > 1 else {}
    count = counting(models, votes)
    models = [model for model in models if model.site not in refused]

    def attempt(some: Sequence[LocalModel]) -> Fusion:
        fusion = fuse(some, **options)
        use(fusion)
        return fusion

    try:
        return attempt(models), refused
    except Exception as wrong:  # whatever one site sends, the answers of the others must not be lost
        kept = largest_working(models, lambda some: _is_fine(attempt, some))
        if 2 * count(kept) <= count(models):
            raise
        why = f"with it nothing can be fused ({type(wrong).__name__}: {first_line(wrong)})"
    chosen = {id(model) for model in kept}
    return attempt(kept), {**refused, **{model.site: why for model in models if id(model) not in chosen}}


def _is_fine(attempt: Callable[[Sequence[LocalModel]], Fusion], some: Sequence[LocalModel]) -> bool:
    try:
        attempt(some)
    except Exception:
        return False
    return True


def largest_working(members: Sequence[Member], works: Callable[[Sequence[Member]], bool]) -> list[Member]:
    """As many members as work together, in the order given: halves are tried alone, joined, then filled up one by one.

    One culprit among J is found with about 4 log J trials, if it fails alone or with anyone; where only a combination
    fails, whoever completes it is left out. Largest is not proved: no single member can be added to what comes back.

    Parameters
    ----------
    members : sequence
        Who might work.
    works : function of some members
        Whether these do.

    Examples
    --------
    >>> largest_working([1, 2, -7, 3, 4], lambda some: min(some) > 0)
    [1, 2, 3, 4]
    """
    tried = cache(lambda some: works([members[i] for i in some]))
    chosen = _working(tuple(range(len(members))), tried)
    return [members[i] for i in chosen]


def _working(members: tuple[int, ...], works: Callable[[tuple[int, ...]], bool]) -> tuple[int, ...]:
    if works(members):
        return members
    if len(members) == 1:
        return ()
    half = len(members) // 2
    first, second = _working(members[:half], works), _working(members[half:], works)
    if first and second and works(first + second):
        return first + second
    kept = max(first, second, key=len)
    for one in members:
        more = tuple(sorted({*kept, one}))
        kept = more if works(more) else kept
    return kept
