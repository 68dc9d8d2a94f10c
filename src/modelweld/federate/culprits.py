"""Sites that cannot be fused with the others: they describe something else, or nothing works with them; so that one bad
answer costs no other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from math import fsum
from typing import Any, TypeVar

from modelweld.errors import InputError
from modelweld.files.limits import first_line
from modelweld.fuse import fuse
from modelweld.fusion import Fusion
from modelweld.inputs.local_model import LocalModel
from modelweld.inputs.sets import check_units
from modelweld.kinds import kind_of


def find_disagreeing(models: Sequence[LocalModel], votes: Sequence[float] | None = None) -> dict[str, str]:
    """Sites that cannot be fused with what more than half of all sites sent, and why; empty if all can.

    Each site has one vote, unless `votes` says otherwise.

    Raises
    ------
    InputError
        If no such majority exists: who is right cannot be known then.

    Examples
    --------
    >>> axes = {"v": ("atom", None)}
    >>> sites = [LocalModel({"v": v}, axes, site=s) for s, v in (("a", [[1.0]]), ("b", [[2.0]]), ("c", [[3.0, 4.0]]))]
    >>> list(find_disagreeing(sites)), list(find_disagreeing(sites, votes=[0.5, 0.5, 2.0]))
    (['c'], ['a', 'b'])
    """
    wrong = difference(models)
    if wrong is None:
        return {}
    groups: list[list[LocalModel]] = []
    likely: dict[object, list[LocalModel]] = {}
    for model in models:
        named = (model.kind, *model.axes.items(), *model.coordinates.items())
        candidates = [likely[named], *groups] if named in likely else groups  # its like first: thousands may come
        group = next((g for g in candidates if difference([g[0], model]) is None), None)
        if group is None:
            group = []
            groups.append(group)
        group.append(model)
        likely.setdefault(named, group)
    count = counting(models, votes)
    counted = [count(group) for group in groups]
    largest = groups[counted.index(max(counted))]
    if 2 * max(counted) <= fsum(counted):
        raise InputError(f"the sites do not describe the same things, and no majority does. {wrong}")
    others = [model for group in groups if group is not largest for model in group]
    return {model.site: difference([largest[0], model]) or wrong for model in others}


def counting(models: Sequence[LocalModel], votes: Sequence[float] | None) -> Callable[[Sequence[LocalModel]], float]:
    """How many votes some of these models have together: one each, unless `votes` says otherwise."""
    if votes is None:
        return len
    worth = dict(zip(map(id, models), votes, strict=True))
    return lambda some: fsum(worth[id(model)] for model in some)


def difference(models: Sequence[LocalModel]) -> str | None:
    """Why these models cannot be fused, as `fuse` would say it; None if they can."""
    try:
        check_units(models)
        kind_of(models).arrange(models)
    except InputError as wrong:
        return str(wrong)
    except Exception as wrong:  # whatever one site sends, the others go on
        return f"it cannot be compared with the others ({type(wrong).__name__}: {first_line(wrong)})."
    return None


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
    fails, the member that completes it is left out. Largest is not proved: no single
    member can be added.

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
