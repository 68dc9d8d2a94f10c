"""Coordinates that sites name: put into one order by name, with weight zero where a site lacks some.

A coordinate that must be complete (features of a network) has the same names everywhere, in any order, and the fused
model has that of most sites; else the sites do not measure the same things and are refused, with the difference. So are
sites that name it among others that do not. Where a kind of model allows it, a site may lack features of the others
(below). Of a partial one (words, classes) every site sends what it has: the fused model has them all, and what a
site lacks has weight zero there.

Sites that lack features of the others have no say there (weight zero), and it is said who lacks what. A site states it
(`read(model, lacks=[...])`), or its names say so: one that has at least half of all features and none of its own lacks
the others. A site that lacks some *and* has others that no other site has may mean the same by other words, so it is
refused until it says which.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from modelweld.core.values import Array
from modelweld.errors import SHOWN, Finding, InputError, NamesWarning, some
from modelweld.inputs.local_model import LocalModel, derive


def same_but_for_case(lacking: Iterable[str], found: Iterable[str]) -> str:
    """Which names would be those that are missing, if capitals, blanks and underscores did not count; in words.

    Examples
    --------
    >>> same_but_for_case(["blood pressure"], ["Blood_Pressure", "age"])
    " ('Blood_Pressure' differs in capitals or blanks only: rename it)"
    """
    plain = {"".join(c for c in name.casefold() if c.isalnum()): name for name in found}
    alike = [
        plain[key] for name in sorted(lacking) if (key := "".join(c for c in name.casefold() if c.isalnum())) in plain
    ]
    verb = "differ" if len(alike) > 1 else "differs"
    return f" ({some(alike)} {verb} in capitals or blanks only: rename it)" if alike else ""


def check_lacking(models: Sequence[LocalModel], coordinate: str) -> None:
    """Refuse sites of which it cannot be said that they merely lack some names."""
    known = Counter(name for m in models for name in m.coordinates.get(coordinate, ()))
    odd: list[tuple[int, int, str]] = []
    for j, model in enumerate(models):
        found = set(model.coordinates.get(coordinate, known))
        lacks, alone = known.keys() - found, {name for name in found if known[name] == 1}
        if lacks and (alone or 2 * len(found) < len(known)):
            has = f" and has {some(alone)}, which no other site has" if alone else f", more than half of {len(known)}"
            what = f"it lacks {some(lacks)}{has}{same_but_for_case(lacks, alone)}"
            odd.append((len(lacks) + len(alone), j, what))
    if odd:
        _, j, what = max(odd)
        site, remedy = models[j].site or j, "Rename those that mean the same, or state read(model, lacks=[...])"
        raise InputError(f"site {site}: its {coordinate}s are not those of the others: {what}. {remedy}.")


def spell_lacking(models: Sequence[LocalModel], coordinate: str) -> list[Finding]:
    """Which sites lack what, of those that do not say so themselves; what one of several has alone is said of it.

    Examples
    --------
    >>> a = LocalModel({"v": [[1.0, 2.0]]}, {"v": (None, "feature")}, site="a", coordinates={"feature": ["x", "y"]})
    >>> b = LocalModel({"v": [[1.0]]}, {"v": (None, "feature")}, site="b", coordinates={"feature": ["x"]})
    >>> spell_lacking([a, b], "feature")[0][:52]
    "feature 'y' is not measured at 'b': it has no say in"
    >>> spell_lacking([a, b, b.with_(site="c")], "feature")[0][:34]
    "site 'a' alone has feature 'y': no"
    """
    named = [
        (m.site or str(j), {*m.coordinates[coordinate]}) for j, m in enumerate(models) if coordinate in m.coordinates
    ]
    known = sorted(set().union(*(names for _, names in named))) if named else []
    lacking = {name: [site for site, names in named if name not in names] for name in known}
    alone = {
        name: next(site for site, own in named if name in own)
        for name, sites in lacking.items()
        if len(sites) == len(named) - 1 > 1
    }
    rest = (
        "no other site informs it. Rename it or leave it out there, or let the others state read(model, lacks=[...])."
    )
    found = [Finding(f" alone has {coordinate} {name!r}: {rest}", NamesWarning, [site]) for name, site in alone.items()]
    lacking = {name: sites for name, sites in lacking.items() if sites and name not in alone}
    parts = [f"{coordinate} {name!r} is not measured at {some(sites)}" for name, sites in lacking.items()]
    if not parts:
        return found
    more = f" (and {len(parts) - SHOWN} more {coordinate}s)" if len(parts) > SHOWN else ""
    who = "it has" if sum(map(len, lacking.values())) == 1 else "they have"
    text = f"{'; '.join(parts[:SHOWN])}{more}: {who} no say in it (weight zero); read(model, lacks=[...]) states that."
    return [*found, Finding(text, NamesWarning)]


def check_measured(models: Sequence[LocalModel], coordinate: str) -> None:
    """Refuse a name of which no site of these, which are aligned, has seen anything."""
    seen = np.zeros(len(models[0].coordinates.get(coordinate, ())), dtype=bool)
    for model in models:
        for name, along in model.along.items():
            if coordinate in along and name not in model.auxiliary:
                if name not in model.weight:
                    return
                seen |= np.moveaxis(np.asarray(model.weight[name]), along.index(coordinate), -1).any(
                    axis=tuple(range(len(along) - 1))
                )
    unknown = {name for name, found in zip(models[0].coordinates.get(coordinate, ()), seen, strict=True) if not found}
    if unknown:
        raise InputError(f"no site has measured {coordinate} {some(unknown)}: leave it out at all sites.")


def with_lacking(model: LocalModel, names: Sequence[str], coordinate: str = "feature") -> LocalModel:
    """The model with further features, of which it has seen nothing.

    Examples
    --------
    >>> site = LocalModel({"v": [[1.0]]}, {"v": ("atom", "feature")}, coordinates={"feature": ["x"]})
    >>> with_lacking(site, ["y"]).weight["v"].tolist()
    [[1.0, 0.0]]
    """
    own = tuple(model.coordinates.get(coordinate, ()))
    if not own:
        raise InputError(f"lacks: the site's {coordinate}s have no names to tell what it lacks: add features=[...].")
    both = set(own) & set(map(str, names))
    if both:
        raise InputError(f"lacks: the site has {some(both)}; name {coordinate}s that it has not.")
    return set_names(model, coordinate, (*own, *dict.fromkeys(map(str, names))), lacking=True)


def with_units(model: LocalModel, units: Mapping[str, str]) -> LocalModel:
    """The model, with the units of its features stated.

    Examples
    --------
    >>> site = LocalModel({"v": [[1.0]]}, {"v": ("atom", "feature")}, coordinates={"feature": ["age"]})
    >>> with_units(site, {"age": "years"}).facts
    {'units': {'age': 'years'}}
    """
    unknown = [name for name in units if name not in model.coordinates.get("feature", ())]
    if unknown:
        raise InputError(f"units are given by feature, but there is no feature {unknown[0]!r}; name them: features=...")
    return model.with_(facts={**model.facts, "units": {str(name): str(unit) for name, unit in units.items()}})


def set_names(model: LocalModel, coordinate: str, names: tuple[str, ...], *, lacking: bool) -> LocalModel:
    """A model whose coordinate has these names, in this order; with weights, if some site lacks some of them."""
    place = {name: i for i, name in enumerate(names)}
    where = np.array([place[name] for name in model.coordinates[coordinate]], dtype=np.int64)

    def spread(values: Array, axis: int) -> Array:
        wide = np.zeros((*values.shape[:axis], len(names), *values.shape[axis + 1 :]))
        wide[(slice(None),) * axis + (where,)] = values
        return wide

    if lacking:
        concerned = [n for n, along in model.along.items() if coordinate in along and n not in model.weight]
        model = derive(model, weight={**model.weight, **{n: np.ones(np.shape(model.arrays[n])) for n in concerned}})
    return model.with_(**change_axes(model, coordinate, spread), coordinates={**model.coordinates, coordinate: names})


def change_axes(model: LocalModel, called: str, change: Callable[[Array, int], Array]) -> dict[str, dict[str, Array]]:
    """Arrays, variances and weights, with a change along every axis that is this set or coordinate."""

    def along_axes(values: Array, name: str) -> Array:
        for axis, named in enumerate(zip(model.axes[name], model.along[name], strict=True)):
            values = change(values, axis) if called in named else values
        return values

    return {
        role: {name: along_axes(np.asarray(values), name) for name, values in getattr(model, role).items()}
        for role in ("arrays", "variance", "weight")
    }


def choose_names(model: LocalModel, coordinate: str, names: Sequence[str], *, all_of_them: bool) -> LocalModel:
    """The model with these of its names, in this order: for Gaussians, the marginal distribution.

    Examples
    --------
    >>> site = LocalModel({"v": [[1.0, 2.0]]}, {"v": ("atom", "feature")}, coordinates={"feature": ["x", "y"]})
    >>> choose_names(site, "feature", ["y"], all_of_them=False).arrays["v"].tolist()
    [[2.0]]
    """
    own, wanted = list(model.coordinates.get(coordinate, ())), list(map(str, names))
    unknown = [name for name in wanted if name not in own]
    if unknown or len(set(wanted)) < len(wanted) or not wanted:
        known = some(own) if own else "names, and these have none"
        raise InputError(f"{coordinate}s are chosen among {known}, each once; found {some(wanted)}.")
    if all_of_them and len(wanted) < len(own):
        raise InputError(f"a {model.kind} needs all of its {coordinate}s; {some(set(own) - set(wanted))} is not there.")
    where = np.array([own.index(name) for name in wanted])
    parts = change_axes(model, coordinate, lambda values, axis: np.take(values, where, axis=axis))
    return model.with_(**parts, coordinates={**model.coordinates, coordinate: wanted})


def _check_named(models: Sequence[LocalModel], coordinate: str) -> None:
    """Refuse sites that do not name what others do: taken by position, columns may be mixed up without a word."""
    known = next(m for m in models if coordinate in m.coordinates)
    along = {name: known.axes[name] for name, spelt in known.along.items() if coordinate in spelt}
    without = [
        m.site or str(j)
        for j, m in enumerate(models)
        if coordinate not in m.coordinates and any(m.axes.get(name) == axes for name, axes in along.items())
    ]
    if without:
        remedy = {"feature": "read(model, features=[...]), or a table with named columns", "word": "features=[...]"}
        raise InputError(
            f"site {some(without)} does not name its {coordinate}s and others do: their order may differ. Name them "
            f"at all sites, or at none: {remedy.get(coordinate, f'coordinates={{{coordinate!r}: [...]}}')}."
        )


def _check_same(models: Sequence[LocalModel], coordinate: str) -> None:
    """Refuse sites that lack names others have."""
    first = next(m for m in models if coordinate in m.coordinates)
    wanted = set(first.coordinates[coordinate])
    for j, model in enumerate(models):
        found = set(model.coordinates.get(coordinate, wanted))
        if found != wanted:
            what = f"it lacks {some(wanted - found)} and has {some(found - wanted)} instead"
            raise InputError(
                f"site {model.site or j}: its {coordinate}s are not those of site {first.site or 0}: {what}"
                f"{same_but_for_case(wanted - found, found - wanted)}. Rename those that mean the same; with "
                f"partial=[{coordinate!r}] at every site, what a LocalModel lacks counts as not seen."
            )


def align_coordinate(
    sent: Sequence[LocalModel], models: Sequence[LocalModel], coordinate: str, may_lack: bool
) -> list[LocalModel]:
    """The models, some of whose coordinates are aligned, with this one aligned by the names that sites `sent`."""
    _check_named(sent, coordinate)
    named = [m for m in sent if coordinate in m.coordinates]
    lists = Counter(tuple(m.coordinates[coordinate]) for m in named)
    if len(lists) == 1:
        return list(models)
    names = tuple(sorted(set().union(*lists)))
    if not all(coordinate in m.partial for m in named):
        (check_lacking if may_lack else _check_same)(sent, coordinate)
        most = min(lists, key=lambda known: (-len(known), -lists[known], known))
        names = (*most, *(name for name in names if name not in most))
    lacking = any(len(known) < len(names) for known in lists)
    return [m if coordinate not in m.coordinates else set_names(m, coordinate, names, lacking=lacking) for m in models]
