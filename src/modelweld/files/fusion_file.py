"""A Fusion as a file: the sites' models, the matching of every set, hyperparameters; bit for bit, and no code.

A fusion is taken apart here, and its parts are read again; `modelweld.load` puts them together.

Whether the parts of a loaded fusion can answer: families and prior are asked once, so that nothing fails later.

Families and priors by name and fields. Files name classes of these tables; nothing else is ever built.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from modelweld.core.beta_bernoulli import BetaBernoulli
from modelweld.core.family import (
    Family,
    condition_on,
    find_misfit,
    log_predictive,
    log_prior,
    sum_by_atom,
    with_hyperprior,
)
from modelweld.core.matching import Matching
from modelweld.core.prior import Prior
from modelweld.core.values import Array, Index, Key, Stack, arrays_of
from modelweld.errors import InputError
from modelweld.families import FAMILIES as FAMILIES
from modelweld.files.limits import AGAIN
from modelweld.files.manifest import FUSION, Ledger, as_text, describe, rebuild
from modelweld.files.tensors import Entry, Number, Spelt, Tensor, Tensors, save_as, storable
from modelweld.fit.effects.corrections import SiteEffects
from modelweld.fit.priors.birth_death import BirthDeath
from modelweld.fit.priors.spectrum import Spectrum
from modelweld.inputs.local_model import LocalModel, check_finite
from modelweld.inputs.sets import stack_of
from modelweld.inputs.stacks import stack_arrays
from modelweld.results.fit_result import FitResult

PRIORS: dict[str, type[Prior]] = {cls.__name__: cls for cls in (BetaBernoulli, BirthDeath, Spectrum)}

HELD: dict[str, tuple[type, ...]] = {"float": (float, int), "ArrayLike": (float, int, np.ndarray), "bool": (bool,)}
"""What fields of these types hold in files; those of other types are checked by their class."""

Made = TypeVar("Made")


def in_fields(thing: object, table: Mapping[str, object], keep: Callable[[str, NDArray[np.generic]], str]) -> Entry:
    """A family or prior as class and fields; arrays are kept as tensors, `keep(field, array)` giving their names.

    Examples
    --------
    >>> in_fields(BetaBernoulli(gamma0=2.0), PRIORS, lambda name, array: name)["fields"]
    {'alpha': 1.0, 'gamma0': 2.0, 'form': 'exact', 'learning': False}
    """
    name = type(thing).__name__
    if table.get(name) is not type(thing) or not is_dataclass(thing):
        raise InputError(
            f"a fusion with a {name} of your own (or from_density) cannot be saved: its functions are code, and files "
            f"hold none; {', '.join(sorted(table))} can, and families that modelweld.families.register was given. Keep "
            "the sites' files and fuse them again instead."
        )
    found: dict[str, object] = {}
    for field in fields(thing):
        value = getattr(thing, field.name)
        found[field.name] = (
            {"tensor": keep(field.name, value)} if isinstance(value, np.ndarray) else number(value, field.name)
        )
    return {"class": name, "fields": found}


def from_fields(
    entry: Entry, table: Mapping[str, Callable[..., Made]], tensor: Callable[[str], NDArray[np.generic]]
) -> Made:
    """The family or prior that class and fields describe."""
    cls = table.get(entry["class"])
    if cls is None or not is_dataclass(cls):
        raise InputError(
            f"it speaks of a {entry['class'][:40]!r}, which is not known here: known are {', '.join(sorted(table))}. "
            "A newer modelweld may know it; a family of one's own is known once it is registered "
            "(modelweld.families.register)."
        )
    unknown = sorted(set(entry["fields"]) - {field.name for field in fields(cls)})
    if unknown:
        raise InputError(f"a {entry['class']} has no {unknown[0][:40]!r}. A newer modelweld may know it.")
    given = {
        name: tensor(value["tensor"]) if isinstance(value, dict) and "tensor" in value else back(value)
        for name, value in entry["fields"].items()
    }
    for field in fields(cls):
        (kind, _, otherwise), value = str(field.type).partition(" | "), given.get(field.name)
        if field.name in given and not (isinstance(value, HELD.get(kind, object)) or (value is None and otherwise)):
            raise InputError(
                f"{field.name!r} of its {entry['class']} is {str(value)[:40]!r}, which it cannot be. {AGAIN}"
            )
    try:
        thing = table[entry["class"]](**given)
    except InputError:
        raise
    except (TypeError, ValueError, AttributeError):
        raise InputError(f"the fields of its {entry['class']} are not what they should be. Save it again.") from None
    for name, value in given.items():  # checks may round (a direction is divided by its length): bit for bit
        made = getattr(thing, name)
        if isinstance(value, np.ndarray) and np.shape(made) == value.shape and made.dtype == value.dtype:
            object.__setattr__(thing, name, value)
    return thing


def number(value: object, what: str) -> object:
    """A field as JSON has it; numbers that JSON lacks are spelt out."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, float):
        return real(value)
    if value is None or isinstance(value, (bool, int, str)):
        return value
    raise InputError(f"field {what!r} cannot be saved: found {value!r}.")


def back(value: Any) -> Any:
    """The way back of `number` and `real`."""
    return float(value["float"]) if isinstance(value, dict) else value


def real(value: float) -> Number:
    """A real number as JSON has it."""
    return value if math.isfinite(value) else {"float": str(value)}


def save_fusion(fusion: FitResult, path: str | os.PathLike[str], *, force: bool) -> Path:
    """Write a fusion with everything it knows, the sites' own parameters included."""
    return save_as(path, lambda: content_of(fusion), force=force)


def content_of(fusion: FitResult) -> tuple[dict[str, Tensor], str]:
    """Tensors and manifest of a fusion."""
    lists: dict[tuple[str, ...], int] = {}
    given, tensors = _describe_given(fusion, lists)
    matchings = []
    for i, (set_name, matching) in enumerate(fusion.matchings.items()):
        entry, own = _describe_matching(set_name, matching, f"matchings/{i}/")
        matchings.append(entry)
        tensors |= own
    names = [list(names) for names in lists]
    asked = {"settings": fusion.settings} if fusion.settings else {}
    content = {"sites": list(fusion.sites), "lists": names, **given, "matchings": matchings, **asked}
    return tensors, as_text(FUSION, content, tensors)


def _describe_given(fusion: FitResult, lists: dict[tuple[str, ...], int]) -> tuple[Entry, dict[str, Tensor]]:
    """The same of what the sites sent; names along their coordinates are entered into `lists`."""
    if not any(isinstance(model, LocalModel) for model in fusion.given):
        stack = stack_arrays(fusion.given)
        content = {"values": "sites/values", "offsets": "sites/offsets"}
        return content, {"sites/values": storable(stack.values), "sites/offsets": storable(stack.offsets)}
    tensors: dict[str, Tensor] = {}
    models = []
    for j, model in enumerate(fusion.models):
        entry, own = describe(model, f"sites/{j}/")
        for coordinate in entry["coordinates"]:  # sites are aligned: almost all have the same names
            coordinate["list"] = lists.setdefault(tuple(coordinate.pop("names")), len(lists))
        models.append(entry)
        tensors |= own
    return {"models": models}, tensors


def _describe_matching(set_name: str, m: Matching, prefix: str) -> tuple[Entry, dict[str, Tensor]]:
    tensors = {
        "labels": m.stacked_labels,
        "offsets": m.offsets,
        "counts": m.counts,
        "history": np.asarray(m.history, dtype=np.float64),
        "changes": np.asarray(m.changes, dtype=np.int64),
        **({} if m.kept is None else {"kept": m.kept}),
        **({} if m.effects is None else {"effects": np.stack(m.effects)}),
        **{f"values/{i}": values for i, values in enumerate(m.values.values())},
    }
    families, own = describe_families(m.families, f"{prefix}families/")
    entry: Entry = {
        "set": set_name,
        **{name: f"{prefix}{name}" for name in ("labels", "offsets", "counts", "history", "changes")},
        "families": families,
        "values": [{"key": _spell(key), "tensor": f"{prefix}values/{i}"} for i, key in enumerate(m.values)],
        "prior": None if m.prior is None else in_fields(m.prior, PRIORS, lambda field, array: field),
        "objective": real(float(m.objective)),
        "converged": bool(m.converged),
        "engine": m.engine,
        "delta": float(m.delta),
        "kept": None if m.kept is None else f"{prefix}kept",
        **({} if m.effects is None else {"effects": f"{prefix}effects"}),
        "reasons": list(m.reasons),
        "screened": m.screened,
    }
    if m.duplicates is not None:
        entry["duplicates"] = [{"site": int(site), "first": int(first)} for site, first in m.duplicates.items()]
    return entry, own | {prefix + name: storable(tensor) for name, tensor in tensors.items()}


def describe_families(families: Mapping[Key, Family], prefix: str) -> tuple[list[Entry], dict[str, Tensor]]:
    """Families by array as class and fields, and their tensors by name."""
    tensors: dict[str, Tensor] = {}
    entries: list[Entry] = []
    for i, (key, family) in enumerate(families.items()):

        def keep(field: str, array: Tensor, i: int = i) -> str:
            tensors[f"{prefix}{i}/{field}"] = storable(array)
            return f"{prefix}{i}/{field}"

        entries.append({"key": _spell(key), "family": in_fields(family, FAMILIES, keep)})
    return entries, tensors


def _spell(key: Key) -> Spelt:
    return key if isinstance(key, str) else list(key)


def key_of(spelt: Spelt) -> Key:
    """The way back: an array, or several."""
    return spelt if isinstance(spelt, str) else tuple(spelt)


def load_fusion(file: Tensors, manifest: Entry) -> FitResult:
    """The fit that was saved."""
    ledger = Ledger(file, manifest["sha256"])
    given = _read_given(manifest, ledger)
    J = len(manifest["sites"])
    if len(given) != J:
        raise InputError(f"it names {J} sites but holds {len(given)}. {AGAIN}")
    matchings = {entry["set"]: _matching(entry, ledger, J) for entry in manifest["matchings"]}
    ledger.check_all_read()
    axes = given[0].axes if given and isinstance(given[0], LocalModel) else {"values": ("atom", None)}
    for set_name, matching in matchings.items():
        known = {name for name, sets in axes.items() if set_name in sets}
        used = {name for key in (*matching.families, *matching.values) for name in arrays_of(key)}
        sizes = [model.sizes.get(set_name) if isinstance(model, LocalModel) else len(model) for model in given]
        if np.diff(matching.offsets).tolist() != sizes or not used <= known:
            raise InputError(f"its matching of set {set_name!r} is not of the sites it holds. {AGAIN}")
    check_answers(given, matchings)
    return FitResult(given, manifest["sites"], matchings, manifest.get("settings", {}))


def _read_given(manifest: Entry, ledger: Ledger) -> list[LocalModel] | list[Array]:
    """What the sites sent: models, or plain arrays."""
    if "models" in manifest:
        lists = manifest["lists"]
        for entry in manifest["models"]:
            for coordinate in entry["coordinates"]:
                if coordinate.get("list", len(lists)) < len(lists):
                    coordinate["names"] = lists[coordinate["list"]]
        return [rebuild(entry, ledger) for entry in manifest["models"]]
    if not {"values", "offsets"} <= set(manifest):
        raise InputError(f"it holds neither the sites' models nor their arrays. {AGAIN}")
    values = ledger.reals(manifest["values"], 2)
    check_finite(values, "the sites' values")
    offsets = _offsets(ledger, manifest["offsets"], len(values))
    return [values[a:b] for a, b in pairwise(offsets.tolist())]


def _offsets(ledger: Ledger, name: str, N: int) -> Index:
    offsets = ledger.integers(name)
    if len(offsets) == 0 or offsets[0] != 0 or offsets[-1] != N or (np.diff(offsets) < 0).any():
        raise InputError(f"tensor {name!r} must rise from 0 to {N}. {AGAIN}")
    return offsets


def _matching(entry: Entry, ledger: Ledger, J: int) -> Matching:
    labels, counts = ledger.integers(entry["labels"]), ledger.integers(entry["counts"])
    N, K = len(labels), len(counts)
    offsets = _offsets(ledger, entry["offsets"], N)
    values = {key_of(one["key"]): ledger.reals(one["tensor"], 2) for one in entry["values"]}
    kept = None if entry["kept"] is None else ledger.truths(entry["kept"])
    effects = SiteEffects(*ledger.reals(entry["effects"], 3)) if "effects" in entry else None
    fits = (
        len(offsets) == J + 1
        and (N == 0 or (labels.min() >= 0 and labels.max() < K))
        and (counts >= 0).all()
        and all(len(v) == K for v in values.values())
        and (kept is None or (len(kept) == N and int((~kept).sum()) <= K))
        and (effects is None or len(effects.offset) == J)
        and all(
            0 <= j < J for duplicate in entry.get("duplicates", []) for j in (duplicate["site"], duplicate["first"])
        )
    )
    if not fits:
        raise InputError(f"the parts of its matching of set {entry['set'][:40]!r} do not fit together. {AGAIN}")
    return Matching(
        stacked_labels=labels,
        offsets=offsets,
        counts=counts,
        families={key_of(one["key"]): from_fields(one["family"], FAMILIES, ledger) for one in entry["families"]},
        values=values,
        prior=None if entry["prior"] is None else from_fields(entry["prior"], PRIORS, ledger),
        objective=float(back(entry["objective"])),
        history=tuple(ledger.reals(entry["history"], 1).tolist()),
        changes=tuple(ledger.integers(entry["changes"]).tolist()),
        converged=entry["converged"],
        engine=entry["engine"],
        delta=float(entry["delta"]),
        kept=kept,
        reasons=tuple(entry["reasons"]),
        effects=effects,
        screened=entry.get("screened", kept is not None),
        duplicates={duplicate["site"]: duplicate["first"] for duplicate in entry["duplicates"]}
        if "duplicates" in entry
        else None,
    )


def check_answers(given: Sequence[LocalModel] | Sequence[Array], matchings: Mapping[str, Matching]) -> None:
    """Refuse families whose hyperparameters are of other values than the sites sent, and priors without odds."""
    for set_name, matching in matchings.items():
        for key in matching.families:
            try:
                stack = _stack(given, key, set_name, matchings)
            except KeyError as axis:
                raise InputError(f"{key!r} runs over {axis}, of which there is no matching. {AGAIN}") from None
            if not _answers(stack, key, matching):
                raise InputError(f"its family of {key!r} is not one of what the sites sent. {AGAIN}")
        if matching.prior is not None and not has_odds(matching.prior, len(matching.offsets) - 1):
            raise InputError(f"the prior of set {set_name!r} has no odds. {AGAIN}")


def has_odds(prior: Prior, J: int) -> bool:
    """Whether a prior knows the odds of every number of J groups."""
    try:
        return bool(np.isfinite(prior.as_probability().increments(J)).all())
    except (TypeError, ValueError, ArithmeticError):  # a word where a number belongs
        return False


def _stack(
    given: Sequence[LocalModel] | Sequence[Array], key: Key, set_name: str, matchings: Mapping[str, Matching]
) -> Stack:
    models = [model for model in given if isinstance(model, LocalModel)]
    return stack_of(models, key, set_name, matchings) if models else stack_arrays(given)


@np.errstate(all="ignore")
def _answers(stack: Stack, key: Key, matching: Matching) -> bool:
    """Whether the family of this key takes and scores all of these values, and places them among the global ones."""
    if not len(stack.values):
        return True
    try:
        family = condition_on(matching.families[key], stack)
        if find_misfit(family, stack) is not None:
            return False
        rows = family.rows(stack.values, stack.variance, stack.weight)
        wide = key not in matching.values or matching.values[key].shape[1:] == family.estimate(rows[:1]).shape[1:]
        sums = sum_by_atom(rows, matching.stacked_labels, len(matching.counts))
        learned = with_hyperprior(family, stack).update(rows[:1])  # as later sites will; of one value: no fit
        found = rows, family.log_evidence(rows), log_predictive(family, rows[:1], sums), log_prior(learned)
        return wide and all(np.isfinite(x).all() for x in found)
    except (TypeError, ValueError, ArithmeticError):  # words, shapes of other values, a frame without inverse
        return False
