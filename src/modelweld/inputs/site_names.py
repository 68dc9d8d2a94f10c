"""What sites are called: each name once, so that a word means one site.

The same rule for models, files and the command line. A name that comes twice with other values is a mistake, an update
beside what it was to replace: refused. With the same values it is a copy; it is counted once, as are all sites that
coincide (`screening.duplicates`), and called by a number besides.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from modelweld.errors import InputError
from modelweld.inputs.local_model import LocalModel
from modelweld.inputs.plain_tables import are_arrays


def site_names(given: Sequence[object]) -> list[str]:
    """A name for each of what sites sent: its own, or its number.

    Examples
    --------
    >>> north = LocalModel({"v": [[1.0]]}, {"v": ("atom", None)}, site="north")
    >>> site_names([north, north, [[2.0]]])
    ['north', 'north (2)', '2']
    """
    if are_arrays(given):
        return list(map(str, range(len(given))))
    first: dict[str, LocalModel] = {}
    number: dict[str, int] = {}
    names = []
    for j, model in enumerate(given):
        name = model.site if isinstance(model, LocalModel) else ""
        if not isinstance(model, LocalModel) or not name:
            names.append(str(j))
            continue
        if not _same(first.setdefault(name, model), model):
            raise InputError(
                f"site {name!r} comes more than once, with different values: each site sends one model. Remove or "
                "rename one of them."
            )
        number[name] = number.get(name, 0) + 1
        names.append(name if number[name] == 1 else f"{name} ({number[name]})")
    return names


def _same(one: LocalModel, other: LocalModel) -> bool:
    """Whether two models hold the same numbers, in whatever order: that of a set means nothing."""
    if one is other:
        return True
    roles = [(getattr(one, role), getattr(other, role)) for role in ("arrays", "variance", "weight")]
    return all(
        a.keys() == b.keys()
        and all(np.array_equal(np.sort(a[name], axis=None), np.sort(b[name], axis=None)) for name in a)
        for a, b in roles
    )
