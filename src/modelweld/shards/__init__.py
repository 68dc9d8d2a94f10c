"""Algorithm 1 in shards: more than one machine holds.

`fuse_shards` works in this machine, `fuse_on_dask` on a Dask cluster; `group_sites` makes shards of a list of sites.
"""

from modelweld.shards.default_call import fuse_on_dask, fuse_shards, group_sites
from modelweld.shards.engine import OnDask
from modelweld.shards.shard_fusion import ShardFusion

__all__ = ["OnDask", "ShardFusion", "fuse_on_dask", "fuse_shards", "group_sites"]
