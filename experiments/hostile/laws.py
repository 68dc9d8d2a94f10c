"""What must not change a fusion: laws that say whether two ways to the same answer agree.

Each takes the drawn sites and their fusion and answers "held", "better" (another matching, of a higher objective, where
the law allows it), "tie" (the answer goes to and fro with rounding alone), "differs ..." with what was found, or
nothing where it has nothing to say about such sites.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from drawn_sites import Drawn

from modelweld import Fusion, InputError, LocalModel, Search, load
from modelweld.core.algorithm1 import is_same_partition
from modelweld.fit.screening.unit_table import FAHRENHEIT

CLOSE = 1e-9
"""Relative difference of two objectives that is rounding."""

LEARNED = 1e-6
"""Nats by which two engines' hyperparameters may end apart: they climb by other steps, and end where one gains less
than a ten-millionth. Where every value is an atom of its own noise and spread lie on a ridge that is flat to that."""

UNITS = (1e-3, 2.0**20, 1e6)
"""Factors, of which every draw gets one."""

ELSEWHERE = 1000.0

TO_AND_FRO = range(24)
"""Draws of nudges that are tried where two answers differ: one that goes to and fro between them hangs on rounding, as
where values are whole numbers, or were seen in different cells, and several matches are equally good."""


def engines(sites: Drawn, fusion: Fusion) -> str:
    """Sweeps of the compiled board and the plain one: the same matching; objectives but for rounding, learning."""
    if sites.name not in ("gaussian", "scalar"):
        return ""
    plain, compiled = (sites.fuse(search=Search("plain", engine=engine)) for engine in ("numpy", "compiled"))
    found = _compared(plain, compiled, values=True, rounding=LEARNED + _rounding(sites, plain))
    return found if found == "held" else _tied(sites, plain, found, search=Search("plain", engine="numpy"))


def order(sites: Drawn, fusion: Fusion) -> str:
    """Sites and their rows in another order."""
    rng = np.random.default_rng(0)
    turned = rng.permutation(len(sites.sites))
    rows = [rng.permutation(len(labels)) for labels in fusion.labels]
    other = sites.fuse([_reordered(sites.sites[j], rows[j]) for j in turned])
    back = [other.labels[at][np.argsort(rows[j])] for j, at in enumerate(np.argsort(turned))]
    same = is_same_partition(np.concatenate(fusion.labels), np.concatenate(back))
    return "held" if same and _close(fusion, other) else _difference(fusion, other)


def units(sites: Drawn, fusion: Fusion) -> str:
    """All values in other units; where degrees Fahrenheit were corrected, numbers say what is a temperature."""
    degrees = any(np.isclose(abs(scale), np.log(FAHRENHEIT[0])).any() for scale in _log_scales(fusion))
    if degrees or not sites.has_places:
        return ""
    factor = UNITS[sum(map(len, fusion.labels)) % len(UNITS)]
    found = _compared(fusion, sites.fuse(sites.moved(factor=factor)))
    return found if found == "held" else _tied(sites, fusion, found)


def origin(sites: Drawn, fusion: Fusion) -> str:
    """All values measured from elsewhere; a factor that is corrected is one about the origin, and another elsewhere."""
    if any(scale.any() for scale in _log_scales(fusion)) or not sites.has_places:
        return ""
    found = _compared(fusion, sites.fuse(sites.moved(shift=ELSEWHERE)))
    return found if found == "held" else _tied(sites, fusion, found)


def file(sites: Drawn, fusion: Fusion) -> str:
    """Saved, loaded and saved again."""
    with tempfile.TemporaryDirectory() as folder:
        first, second = (Path(folder, f"{name}.safetensors") for name in "ab")
        fusion.save(first)
        loaded = load(first)
        assert isinstance(loaded, Fusion)
        loaded.save(second)
        same = first.read_bytes() == second.read_bytes()
    return "held" if same and _compared(fusion, loaded, values=True) == "held" else "differs in its bytes"


def visit(sites: Drawn, fusion: Fusion) -> str:
    """A site that comes, and goes again."""
    guest = sites.sites[0]
    guest = guest.with_(site="guest") if isinstance(guest, LocalModel) else guest * 1.0
    after = fusion.add(guest, site="guest").remove("guest")
    found = _compared(fusion, after)
    return "better" if found != "held" and after.objective > fusion.objective else found


def leave(sites: Drawn, fusion: Fusion) -> str:
    """A site that leaves, with all others fused from nothing: what `fuse` makes of them."""
    try:
        others = sites.fuse(sites.sites[1:])
    except InputError:  # nothing would be left
        return ""
    return _compared(others, fusion.remove(0, from_scratch=True), values=True)


LAWS: dict[str, Callable[[Drawn, Fusion], str]] = {
    law.__name__: law for law in (engines, order, units, origin, file, visit, leave)
}


def _log_scales(fusion: Fusion) -> list[np.ndarray]:
    """Factors that were corrected, by set."""
    return [m.effects.log_scale for m in fusion.matchings.values() if m.effects is not None]


def _compared(fusion: Fusion, other: Fusion, *, values: bool = False, rounding: float = 0.0) -> str:
    """Whether two fusions of the same sites have the same matching, with `values` also the same objective."""
    pairs = ((m, other.matchings[name]) for name, m in fusion.matchings.items())
    same = all(is_same_partition(*(np.concatenate(m.labels) for m in pair)) for pair in pairs)
    return "held" if same and (not values or _close(fusion, other, rounding)) else _difference(fusion, other)


def _tied(sites: Drawn, fusion: Fusion, found: str, **options: Any) -> str:
    """What was found, or "tie" if the answer changes away from the fusion's and back again when values are nudged."""
    away = False
    for k in TO_AND_FRO:
        same = _compared(fusion, sites.fuse(sites.nudged(k), **options)) == "held"
        if same and away:
            return "tie"
        away = away or not same
    return found


def _close(fusion: Fusion, other: Fusion, rounding: float = 0.0) -> bool:
    return abs(fusion.objective - other.objective) <= CLOSE * (1 + abs(fusion.objective)) + rounding


def _rounding(sites: Drawn, fusion: Fusion) -> float:
    """What a double holds of squares over the noise.

    Engines add up squares of distances from a common origin in another order, and take from them the squares of means.
    Where sites agree to the last digit, noise is next to nothing, and sums that are 1e9 times as large are known to
    1e9 times the rounding of one.
    """
    values = np.concatenate(sites.sites)
    (family,) = fusion.matching.families.values()
    return float(np.finfo(float).eps * (np.square(values - values.mean(0)) / family.noise).sum())


def _difference(fusion: Fusion, other: Fusion) -> str:
    return f"differs in K {fusion.K} and {other.K}, and objective {fusion.objective:.9g} and {other.objective:.9g}"


def _reordered(site: Any, rows: np.ndarray) -> Any:
    """The site with its values in another order, along every axis that is a set."""
    if not isinstance(site, LocalModel):
        return site[rows]

    def turned(name: str, array: np.ndarray) -> np.ndarray:
        for axis, (set_name, along) in enumerate(zip(site.axes[name], site.along[name], strict=True)):
            if set_name is not None and along is None and axis < array.ndim:
                array = np.take(array, rows, axis)
        return array

    parts = {part: getattr(site, part) for part in ("arrays", "variance", "weight")}
    return site.with_(**{part: {n: turned(n, a) for n, a in named.items()} for part, named in parts.items()})
