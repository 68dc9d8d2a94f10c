"""Shards on a Dask cluster: the same bits for any number of workers, also when one of them is killed."""

import os
import signal
import sys
from contextlib import contextmanager
from functools import partial
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest

from modelweld import BetaBernoulli, simulate
from modelweld.core.board import Board
from modelweld.inputs.stacks import stack_arrays
from modelweld.shards import OnDask, fuse_on_dask
from modelweld.shards.default_call import fuse_shards, group_sites, run
from modelweld.shards.shard import load, propose

pytestmark = [
    pytest.mark.dask,
    pytest.mark.filterwarnings("default"),  # what a cluster says of ports and of workers that die is not ours
]

EXAMPLE = Path(__file__).parents[1] / "examples" / "spark_shards.py"
SD = 6.0  # loud enough for polishing to have work


def spark_example():
    spec = spec_from_file_location("spark_shards", EXAMPLE)
    module = sys.modules["spark_shards"] = module_from_spec(spec)  # its dataclass looks itself up there
    spec.loader.exec_module(module)
    return module


def sites_of(seed=0):
    return [np.asarray(v) for v in simulate.sparse(10, 128, 15, SD, np.sqrt(50), 1, 1, seed=seed).values]


@pytest.fixture(scope="module")
def shards():
    return group_sites(sites_of())


@pytest.fixture(scope="module")
def here(shards):
    fused = fuse_shards(shards)
    assert sum(fused.changed) > 0
    return fused


@contextmanager
def cluster_of(workers):
    from distributed import Client, LocalCluster

    options = {"processes": True, "threads_per_worker": 1, "dashboard_address": None, "silence_logs": 50}
    with LocalCluster(n_workers=workers, **options) as cluster, Client(cluster) as client:
        yield client


@pytest.fixture(params=[2, 4], scope="module")
def cluster(request):
    with cluster_of(request.param) as client:
        yield client, request.param


@pytest.fixture
def client(cluster):
    """All workers are there: one that was killed by an earlier test is on its way back for a while."""
    client, workers = cluster
    client.wait_for_workers(workers, timeout=60)
    return client


def brought(path, log):
    """The sites of a shard, from a file; the reader's process id is left behind."""
    with log.open("a") as file:
        file.write(f"{path.name} {os.getpid()}\n")
    with np.load(path) as arrays:
        return [arrays[name] for name in arrays.files]


@pytest.fixture
def stored(shards, tmp_path):
    """Functions that bring the shards from files, and the log of who has read them."""
    log = tmp_path / "log"
    for s, shard in enumerate(shards):
        np.savez(tmp_path / f"{s}.npz", *shard)
    return [partial(brought, tmp_path / f"{s}.npz", log) for s in range(len(shards))], log


def received(client):
    """Bytes that workers have received from each other."""
    logs = client.run(lambda dask_worker: sum(entry["total"] for entry in dask_worker.transfer_incoming_log))
    return sum(logs.values())


@pytest.mark.parametrize("keep", [True, False])
def test_workers_give_the_bits_of_one_process(client, here, stored, keep):
    sources, log = stored
    fused = fuse_on_dask(client, sources, keep=keep)
    assert fused.trace == here.trace
    assert np.array_equal(fused.atoms, here.atoms)
    for s in range(len(sources)):
        assert [x.tolist() for x in fused.labels(s)] == [x.tolist() for x in here.labels(s)]
    readers = {line.split()[1] for line in log.read_text().splitlines()}
    assert str(os.getpid()) not in readers  # the client has never seen a value
    assert len(readers) > 1


def drawn(seed):
    """Many sites of few atoms, drawn where they are needed."""
    rng = np.random.default_rng(seed)
    atoms = 9.0 * np.arange(6)[:, None] + np.zeros(20)
    return [atoms[rng.permutation(6)[:3]] + rng.normal(size=(3, 20)) for _ in range(300)]


def test_values_stay_where_they_are(client):
    before = received(client)
    fused = fuse_on_dask(client, [partial(drawn, seed) for seed in range(4)], keep=False)
    values = 8 * 20 * fused.sizes.sum()
    assert fused.K == 6
    assert fused.moved.up + fused.moved.down < values / 4  # to and from the client
    assert received(client) - before < values / 4  # and between workers


def test_shards_may_be_delayed_or_given(client, shards, here):
    from dask import delayed

    assert fuse_on_dask(client, [delayed(list)(shard) for shard in shards]).trace == here.trace
    assert fuse_on_dask(client, shards).to_fusion().objective == here.objective


class Killing(OnDask):
    """Kills a worker that holds a shard, just before shards are asked for proposals for the first time."""

    killed = None

    def _change(self, function, which, arguments):
        if function is propose and self.killed is None:
            pids = self.client.run(os.getpid)
            [address, *_] = self.client.who_has(self.held[0])[self.held[0].key]
            self.killed = pids[address]
            os.kill(self.killed, signal.SIGKILL)
        return super()._change(function, which, arguments)


def test_a_worker_that_is_killed_in_mid_run_is_survived(client, here, stored):
    sources, log = stored
    engine = Killing(client, sources)
    fused = run(engine)
    assert engine.killed not in client.run(os.getpid).values()
    read = [line.split()[0] for line in log.read_text().splitlines()]
    assert len(read) > len(sources)  # what was lost has been read again
    assert fused.trace == here.trace
    assert np.array_equal(fused.atoms, here.atoms)


def test_a_file_that_cannot_be_read_at_first_is_tried_again(client, here, stored, tmp_path):
    sources, _ = stored

    def moody():
        mark = tmp_path / "tried"
        if not mark.exists():
            mark.touch()
            raise OSError("the file system has its moments")
        return sources[0]()

    assert fuse_on_dask(client, [moody, *sources[1:]]).trace == here.trace


def holders(client, engine):
    """Workers that hold a shard."""
    return {address for who in client.who_has(engine.held).values() for address in who}


def test_shards_are_spread_over_the_workers(client, shards, stored):
    engine = OnDask(client, stored[0])
    for _ in range(2):  # Dask chooses who reads a shard, and may pass a worker over; from then on none is idle
        engine.ask(held_here, range(engine.shards), [()] * engine.shards)
    assert holders(client, engine) == set(client.nthreads())
    assert all(len(load(shard).sites) >= 32 for shard in shards)


def held_here(shard, labels):
    return len(shard.sites)


class Growing(OnDask):
    """Half of the workers join just before shards are asked for proposals for the first time."""

    grown = False

    def _change(self, function, which, arguments):
        if function is propose and not self.grown:
            self.grown = True
            self.client.cluster.scale(4)
            self.client.wait_for_workers(4, timeout=60)
        return super()._change(function, which, arguments)


@pytest.mark.parametrize("keep", [True, False])
def test_workers_that_join_late_get_their_share(here, stored, keep):
    sources, log = stored
    with cluster_of(2) as client:
        engine = Growing(client, sources, keep)
        fused = run(engine)
        assert fused.trace == here.trace
        assert np.array_equal(fused.atoms, here.atoms)
        assert len(client.nthreads()) == 4
        if keep:
            engine.ask(held_here, range(engine.shards), [()] * engine.shards)  # Dask may have passed one over
            assert holders(client, engine) == set(client.nthreads())
            assert len(log.read_text().splitlines()) == len(sources)  # they moved, and were not read again


def test_functions_for_map_in_pandas_give_the_merge_of_shards(shards):
    """Spark hands the frames of a partition over a few at a time; pandas alone does so here."""
    import pandas as pd

    sites = [(f"{s}-{j}", v) for s, shard in enumerate(shards) for j, v in enumerate(shard)]
    rows = [pd.DataFrame({"site": name, "values": list(v), "number": np.arange(len(v))}) for name, v in sites]
    partitions = [
        [pd.concat(rows[a : a + 10]), pd.concat(rows[a + 10 : a + 32]), rows[0][:0]] for a in range(0, len(rows), 32)
    ]
    values = np.concatenate([v for _, v in sites])
    ask = {"origin": values.mean(0), "prior": BetaBernoulli(), "seed": 0}
    spark = spark_example()
    sums = pd.concat([out for frames in [*partitions, []] for out in spark.fused_atoms(iter(frames), **ask)])
    assert len(sums) < len(values) / 5
    merged = spark.merge(sums.sample(frac=1, random_state=0), **ask)
    placed = pd.concat([out for frames in partitions for out in spark.placed(iter(frames), merged=merged, **ask)])
    held = placed.set_index(["site", "number"])["atom"]
    labels = [held[name].sort_index().to_numpy() for name, _ in sites]
    board = Board([stack_arrays([v for _, v in sites])], [merged.family], merged.prior)
    board.restore((np.concatenate(labels), [merged.family], merged.prior, None))
    assert board.objective() == pytest.approx(merged.trace[-1][1], abs=1e-6)
    assert merged.trace[-1][1] > merged.trace[0][1]
    here = fuse_shards(shards, prior=BetaBernoulli(), search="plain", sweeps=0)
    assert merged.trace[-1][1] == pytest.approx(here.objective, rel=1e-3)
    assert np.array_equal(np.sort(merged.counts), np.sort(here.counts))
