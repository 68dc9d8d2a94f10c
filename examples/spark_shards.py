"""Shards on Spark: two functions for `mapInPandas`, and the merge between them on the driver.

A partition is a shard, so all rows of a site must lie in one: ``values.repartition(n, "site")``. Frames have a column
`site`, a column `values` with one local parameter (a list of D numbers) per row, and any others, which are auxiliary::

    ask = dict(origin=column_means, prior=BetaBernoulli(), seed=0)      # the same for both jobs
    sums = values.mapInPandas(partial(fused_atoms, **ask), ATOMS).toPandas()
    merged = merge(sums, **ask)                                         # merged.atoms, merged.trace
    labels = values.mapInPandas(partial(placed, merged=merged, **ask), schema_with_atom_as_long)

The second job fuses every partition again, which gives the same labels, and says which global atom they are. There is
no polishing: between jobs nothing stays where it was. The objective after the merge is exact all the same.

A pattern to start from, not a part of the library: it stands on internal modules, and is tested with pandas frames, not
on a Spark cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from modelweld.core.algorithm1 import alternate
from modelweld.core.family import with_fields
from modelweld.core.match import MOST_SWEEPS, Plan
from modelweld.core.prior import Prior
from modelweld.core.values import NOISE_FLOOR, Array, Index, usable_variance
from modelweld.families import Gaussian
from modelweld.shards.centre import Centre
from modelweld.shards.shard import Shard, Summary, fuse_shard, load, summary_of, survey

ATOMS = "shard string, number bigint, count bigint, sums array<double>, sizes array<bigint>"
"""Schema of what `fused_atoms` gives; `sizes`, those of the shard's sites, stands beside its atom 0 only."""


@dataclass(frozen=True, eq=False)
class Merged:
    """Global atoms: `counts` (K,) of sites, `sums` (K, 5 D) of rows, and `places` of each shard's atoms among them."""

    family: Gaussian
    prior: Prior
    counts: Index
    sums: Array
    places: Mapping[str, Index]
    trace: tuple[tuple[str, float], ...]

    @property
    def atoms(self) -> Array:
        """Global values (K, D)."""
        return self.family.estimate(self.sums)


def fused_atoms(frames: Iterable[Any], *, origin: Array, prior: Prior, seed: int = 0) -> Iterator[Any]:
    """For `mapInPandas`: the frames of a partition in, one row per atom of it out."""
    import pandas as pd

    for _, shard in _partition(frames):
        _, summary = _fused(shard, origin, prior, seed)
        sizes: list[Any] = [shard.stack.sizes.tolist(), *([] for _ in summary.counts[1:])]
        columns = {"number": range(len(sizes)), "count": summary.counts, "sums": list(summary.rows), "sizes": sizes}
        yield pd.DataFrame({"shard": _name(shard), **columns})


def merge(sums: Any, *, origin: Array, prior: Prior, seed: int = 0) -> Merged:
    """The atoms of all partitions merged, as in `modelweld.shards.default_call`."""
    shards = dict(list(sums.sort_values(["shard", "number"]).groupby("shard")))
    rows = [np.stack(frame["sums"].tolist()) for frame in shards.values()]
    sizes = np.concatenate([np.asarray(x, dtype=np.int64) for frame in shards.values() for x in frame["sizes"]])
    n, _, total, squares, _ = np.split(np.concatenate(rows).sum(0), 5)
    variance = usable_variance(origin, squares / n - np.square(total / n), np.asarray(origin), pooled=False)
    family = Gaussian(mean=origin, noise=variance, spread=variance, origin=origin, floor=NOISE_FLOOR * variance)
    family = family.update(np.concatenate(rows))
    summaries = [
        Summary(np.arange(len(r)), frame["count"].to_numpy(), r, int(frame["count"].sum()), 0.0)
        for r, frame in zip(rows, shards.values(), strict=True)
    ]
    centre = Centre(summaries, np.arange(len(shards)), family, prior, np.sort(sizes))
    trace = [("shards", centre.objective())]
    centre.release()
    alternate(centre, len(shards), np.random.default_rng(seed), MOST_SWEEPS)
    trace.append(("merge", centre.objective()))
    places = dict(zip(shards, centre.places, strict=True))
    return Merged(centre.family, centre.prior, centre.counts, centre.sums[0], places, tuple(trace))


def placed(frames: Iterable[Any], *, merged: Merged, origin: Array, prior: Prior, seed: int = 0) -> Iterator[Any]:
    """For `mapInPandas`: the frames of a partition with the column `atom`, a row of `merged.atoms`."""
    for table, shard in _partition(frames):
        labels, _ = _fused(shard, origin, prior, seed)
        atoms = shard.as_given(merged.places[_name(shard)][labels])
        yield table.assign(atom=np.concatenate(atoms))


def _partition(frames: Iterable[Any]) -> Iterator[tuple[Any, Shard]]:
    """The rows of a partition site by site, and the shard they are; nothing where there are none."""
    import pandas as pd

    given = [frame for frame in frames if len(frame)]
    if given:
        sites = [site for _, site in pd.concat(given).groupby("site")]
        yield pd.concat(sites), load([np.stack(site["values"].tolist()) for site in sites])


def _fused(shard: Shard, origin: Array, prior: Prior, seed: int) -> tuple[Index, Summary]:
    """The same labels whenever it is asked."""
    labels, learned = fuse_shard(shard, None, Plan(prior, splits=False, search="plain"), seed)
    return labels, summary_of(shard, labels, with_fields(learned.family, origin=np.asarray(origin)))


def _name(shard: Shard) -> str:
    return survey(shard).mark.hex()
