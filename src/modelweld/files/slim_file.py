"""A SlimFusion as a file: sums per atom, hyperparameters, and the pattern that further sites must follow."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from modelweld.core.family import Family, log_predictive, log_prior
from modelweld.core.values import Array, Key, arrays_of
from modelweld.errors import InputError
from modelweld.files.fusion_file import FAMILIES, PRIORS, describe_families, from_fields, has_odds, in_fields, key_of
from modelweld.files.limits import AGAIN
from modelweld.files.manifest import SLIM, Ledger, as_text, describe, rebuild
from modelweld.files.tensors import Entry, Tensor, Tensors, save_as, storable
from modelweld.inputs.local_model import check_finite
from modelweld.inputs.sets import stack_of

if TYPE_CHECKING:
    from modelweld.revision.slim_fusion import SlimFusion


def save_slim(slim: SlimFusion, path: str | os.PathLike[str], *, force: bool) -> Path:
    """Write a slim fusion."""
    return save_as(path, lambda: _content(slim), force=force)


def _content(slim: SlimFusion) -> tuple[dict[str, Tensor], str]:
    """Tensors and manifest of a slim fusion."""
    pattern, tensors = describe(slim.pattern, "pattern/")
    families, own = describe_families(slim.families, "families/")
    for i, entry in enumerate(families):
        entry["sums"] = f"sums/{i}"
    numbers = {"counts": storable(slim.counts), "sizes": storable(slim.sizes), "names": storable(slim.names)}
    tensors |= own | {f"sums/{i}": storable(sums) for i, sums in enumerate(slim.sums.values())} | numbers
    content = {
        "pattern": pattern,
        "families": families,
        "prior": in_fields(slim.prior, PRIORS, lambda field, array: field),
        "counts": "counts",
        "sizes": "sizes",
        "names": "names",
        "opened": slim.opened,
    }
    return tensors, as_text(SLIM, content, tensors)


def load_slim(file: Tensors, manifest: Entry) -> SlimFusion:
    """The slim fusion that was saved."""
    from modelweld.revision.slim_fusion import SlimFusion

    ledger = Ledger(file, manifest["sha256"])
    families: dict[Key, Family] = {}
    sums: dict[Key, Array] = {}
    for one in manifest["families"]:
        families[key_of(one["key"])] = from_fields(one["family"], FAMILIES, ledger)
        sums[key_of(one["key"])] = ledger.reals(one["sums"], 2)
    slim = SlimFusion(
        pattern=rebuild(manifest["pattern"], ledger),
        families=families,
        sums=sums,
        prior=from_fields(manifest["prior"], PRIORS, ledger),
        counts=ledger.integers(manifest["counts"]),
        sizes=ledger.integers(manifest["sizes"]),
        names=ledger.integers(manifest["names"]),
        opened=manifest["opened"],
    )
    ledger.check_all_read()
    for key, found in slim.sums.items():
        check_finite(found, f"sums of {key!r}")
    with suppress(TypeError, ValueError, ArithmeticError, IndexError, AttributeError):  # words, values of another width
        if _whole(slim):
            return slim
    raise InputError(f"its parts do not fit together. {AGAIN}")


@np.errstate(all="ignore")
def _whole(slim: SlimFusion) -> bool:
    """Whether the parts are of one matching: every value of a site at an atom, every atom held and named once."""
    J, K, names = len(slim.sizes), len(slim.counts), slim.names
    arrays = [name for key in slim.families for name in arrays_of(key)]
    return bool(
        sorted(arrays) == sorted(slim.pattern.arrays)
        and len(slim.pattern.sizes) == 1
        and set(slim.pattern.sizes.values()) == {0}
        and J > 0
        and has_odds(slim.prior, J)
        and slim.sizes.min() >= 0
        and (np.diff(slim.sizes) >= 0).all()
        and 0 <= slim.opened <= np.iinfo(np.int32).max
        and slim.counts.sum() == slim.sizes.sum()
        and (K == 0 or (slim.counts.min() > 0 and slim.counts.max() <= J))
        and len(names) == K
        and (K == 0 or (names[0] >= 0 and names[-1] < slim.opened and (np.diff(names) > 0).all()))
        and all(len(sums) == K and _answers(slim, key) for key, sums in slim.sums.items())
    )


def _answers(slim: SlimFusion, key: Key) -> bool:
    """Whether the family of this key makes rows like those summed, scores a value at every atom, and learns of one."""
    (set_name,) = slim.pattern.sizes
    stack, family, sums = stack_of([slim.pattern], key, set_name, {}), slim.families[key], slim.sums[key]
    if family.rows(stack.values, stack.variance, stack.weight).shape[1] != sums.shape[1]:
        return False
    if not len(sums):
        return True
    value = family.estimate(sums[:1])
    rows = family.rows(value, None, None if stack.weight is None else np.ones_like(value))
    learned = family.update(rows)  # of one value: no fit
    found = log_predictive(family, rows, sums), family.log_evidence(sums), log_prior(learned)
    return value.shape[1:] == stack.values.shape[1:] and all(np.isfinite(x).all() for x in found)
