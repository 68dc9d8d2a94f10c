"""What all rivals of `fuse` share: groups that are checked, and a Fusion of the labels found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from numpy.typing import ArrayLike

from modelweld.errors import InputError
from modelweld.families import Family
from modelweld.fusion import Fusion
from modelweld.inputs.local_model import Array, check_values
from modelweld.inputs.stack import Index, Key, offsets_of
from modelweld.matching.result import matching_by_labels
from modelweld.priors.beta_bernoulli import BetaBernoulli


def check_groups(groups: Sequence[ArrayLike]) -> tuple[list[Array], Index]:
    """The sites' arrays, and where they begin one below the other."""
    arrays = [check_values(values, f"site {j}") for j, values in enumerate(groups)]
    width = next((a.shape[1] for a in arrays if a.ndim == 2), 0)
    for j, a in enumerate(arrays):
        if a.ndim != 2 or a.shape[1] != width:
            raise InputError(f"site {j}: must have shape (L, {width or 'D'}) like all others; found {a.shape}.")
    if not any(a.size for a in arrays):
        raise InputError("there is nothing to fuse: no site has a row.")
    return arrays, offsets_of([len(a) for a in arrays])


def fusion_of(
    groups: Sequence[ArrayLike],
    offsets: Index,
    labels: Index,
    atoms: Array,
    engine: str,
    *,
    prior: BetaBernoulli | None = None,
    families: Mapping[Key, Family] | None = None,
    objective: float = float("nan"),
) -> Fusion:
    """A Fusion of these labels."""
    matching = matching_by_labels(
        labels, offsets, "values", atoms, engine, prior=prior, families=families, objective=objective
    )
    return Fusion(groups, [str(j) for j in range(len(groups))], {"atom": matching})
