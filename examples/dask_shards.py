"""Shards on a Dask cluster: ``pip install "modelweld[dask]"``, then ``python examples/dask_shards.py``.

Four machines hold the files of 32 sites each, every site with some of twelve centres in five dimensions. Workers read
and fuse their own files; the client sees sums, never a centre of a site. Here the machines are processes and the
files are written first, and no other user reaches them; with a cluster of yours, `client` is a
`Client("tls://scheduler:8786", security=Security(...))`, since who reaches a scheduler without `Security` may run code
there (docs/federate.md), and the paths are those that its workers see.
"""

import tempfile
from pathlib import Path

import numpy as np
from distributed import Client, LocalCluster

import modelweld
from modelweld import LocalModel
from modelweld.files import save
from modelweld.shards import fuse_on_dask

MACHINES, SITES, CENTRES, DIMENSIONS = 4, 32, 12, 5


def write(folder: Path) -> list[list[Path]]:
    """Files of sites, machine by machine."""
    rng = np.random.default_rng(0)
    centres = rng.normal(0, 10, (CENTRES, DIMENSIONS))
    shards = []
    for machine in range(MACHINES):
        files = []
        for site in range(SITES):
            held = rng.permutation(CENTRES)[: rng.integers(3, 9)]
            values = centres[held] + rng.normal(size=(len(held), DIMENSIONS))
            name = f"machine{machine}-site{site:02}"
            model = LocalModel({"centres": values}, {"centres": ("cluster", None)}, site=name)
            files.append(save(model, folder / f"{name}.safetensors"))
        shards.append(files)
    return shards


def main() -> None:
    """Fuse on four workers, and show that one process would have said the same."""
    with tempfile.TemporaryDirectory() as folder:
        shards = write(Path(folder))
        options = {"threads_per_worker": 1, "dashboard_address": None}
        with LocalCluster(n_workers=MACHINES, **options) as cluster, Client(cluster) as client:
            fused = fuse_on_dask(client, shards)
            print(f"{len(fused.sizes)} sites, {fused.sizes.sum()} centres -> {fused.K} (true: {CENTRES})")
            for stage, objective in fused.trace:
                print(f"  objective after {stage:<11}{objective:14.3f}")
            print(f"  bytes to the workers {fused.moved.down:,}, from them {fused.moved.up:,}")
            print("  labels of the first site:", fused.labels(0)[0])
        flat = modelweld.fuse([file for shard in shards for file in shard])
        print(f"flat: {flat.K} atoms, objective {flat.objective:.3f} (its own weak prior of the noise)")


if __name__ == "__main__":
    main()
