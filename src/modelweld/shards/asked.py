"""What shards can be asked for, and what is said of sites that are not fitted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from modelweld.core.family import Conditional, Family, is_signless
from modelweld.core.prior import BetaBernoulli
from modelweld.core.values import Index
from modelweld.errors import DuplicateWarning, Finding, InputError, SmallShardWarning, warn_user
from modelweld.families import Gaussian
from modelweld.families.capabilities import row_fields_of
from modelweld.fit.priors.birth_death import BirthDeath
from modelweld.fit.screening.screens import describe_oversized
from modelweld.request import Request
from modelweld.shards.engine import Engine
from modelweld.shards.fit import Survey
from modelweld.shards.shard import Shard

FEWEST_SITES_OF_A_SHARD = 32
"""Sites that a shard should have: enough to learn hyperparameters and to find most atoms by itself."""


def check_asked(asked: Request, sweeps: int) -> None:
    """Refuse what has no exact objective; `Request.decide` has refused what `fuse` refuses."""
    if not (asked.families is None or isinstance(asked.families, Family)):
        raise InputError(f"shards are fused by one array: give one Family; found {asked.families!r}.")
    if isinstance(asked.prior, BetaBernoulli) and asked.prior.form != "exact":
        raise InputError(
            f"shards need the exact form of the prior, by which merges are scored; found {asked.prior.form!r}."
        )
    if isinstance(asked.prior, BirthDeath):
        raise InputError("shards are fused without times, and a prior of lives needs some: use modelweld.fuse.")
    if sweeps < 0:
        raise InputError(f"sweeps is a number of polishing sweeps, not negative; found {sweeps}.")


def check_alike(surveys: Sequence[Survey]) -> None:
    """All shards send the same columns of the same array, of a family whose sums say enough; small ones are named."""
    if not surveys:
        raise InputError("there is nothing to fuse: give at least one shard.")
    first = surveys[0]
    for s, x in enumerate(surveys):
        if (x.array, x.columns, x.width) != (first.array, first.columns, first.width):
            raise InputError(
                f"shard {s}: all shards must send the same array with the same columns in the same order. It has "
                f"{x.array or 'plain arrays'} with {x.width} columns {list(x.columns[:5])}, the first shard "
                f"{first.array or 'plain arrays'} with {first.width} columns {list(first.columns[:5])}."
            )
        check_family(x.family, x.changing)
    small = [s for s, x in enumerate(surveys) if len(x.sizes) < FEWEST_SITES_OF_A_SHARD]
    if small and len(surveys) > 1:
        warn_user(
            f"{len(small)} of {len(surveys)} shards have fewer than {FEWEST_SITES_OF_A_SHARD} sites (first of them is "
            f"shard {small[0]} with {len(surveys[small[0]].sizes)}): their own matchings rest on little. Put more "
            "sites into a shard.",
            SmallShardWarning,
        )


def check_family(family: Family, changing: bool) -> None:
    """Refuse a family whose sums do not say enough.

    They do where rows depend on no hyperparameter, or on `row_fields` alone, for which shards state them again.
    """
    sees = isinstance(family, Conditional)
    plain = type(family) is Gaussian and family.shape != "full"
    changes = changing and not (plain or row_fields_of(family))
    moments = getattr(family, "learning", "") == "moments"
    if sees or changes or moments or is_signless(family):
        raise InputError(
            "shards are fused by sums of rows (sufficient statistics): Gaussian with shape 'diagonal' or 'scalar' and "
            "learning by 'likelihood' or 'nothing', NormalGamma, Counts, Directions that are not axial, Rates, "
            f"Proportions, or a family of yours whose rows stay as they are. Found {family!r}; use modelweld.fuse."
        )


def name_aside(
    engine: Engine, surveys: Sequence[Survey], oversized: Sequence[Index], duplicates: Sequence[Index]
) -> list[Finding]:
    """What is said of sites that the centre has not fitted."""
    sizes, found = np.concatenate([x.sizes for x in surveys]), list[Finding]()
    some = [s for s in range(engine.shards) if len(oversized[s]) or len(duplicates[s])]
    names = engine.ask(names_of, some, [(np.concatenate([oversized[s], duplicates[s]]),) for s in some])
    for s, called in zip(some, names, strict=True):
        many = surveys[s].sizes[oversized[s]].tolist()
        said = [describe_oversized(name, size, sizes) for name, size in zip(called, many, strict=False)]
        if len(duplicates[s]):
            said.append(Finding(REPEATED, DuplicateWarning, sorted(called[len(many) :])))
        found += of_shard(s, said)
    return found


def of_shard(s: int, reasons: Sequence[str]) -> list[Finding]:
    """What a shard says, as it is said of all of them."""
    return [Finding(f"shard {s}: {reason}", getattr(reason, "category", None)) for reason in reasons]


REPEATED = " sent what another site sent, to the last bit: they are counted once, unless with screens=['outliers']."


def names_of(shard: Shard, labels: Index, groups: Index) -> list[str]:
    """Names of some of a shard's sites."""
    return [shard.names[j] for j in groups]
