"""Algorithm 1 in shards: more than one machine holds.

`fuse_shards` works in this machine, `fuse_on_dask` on a Dask cluster (loaded when it is asked for); `grouped` makes
shards of a list of sites.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from modelweld.shards.default_call import fuse_shards, grouped
from modelweld.shards.shard_fusion import ShardFusion

if TYPE_CHECKING:
    from modelweld.shards.dask import OnDask, fuse_on_dask

__all__ = ["OnDask", "ShardFusion", "fuse_on_dask", "fuse_shards", "grouped"]


def __getattr__(name: str) -> object:
    if name in ("OnDask", "fuse_on_dask"):
        from modelweld.shards import dask

        return getattr(dask, name)
    raise AttributeError(f"module 'modelweld.shards' has no attribute {name!r}")
