"""Which sites describe something else than most do: another kind of model, other features, other units."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import fsum

from modelweld.errors import InputError
from modelweld.files.file_errors import first_line
from modelweld.inputs.alignment import check_units
from modelweld.inputs.local_model import LocalModel
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
