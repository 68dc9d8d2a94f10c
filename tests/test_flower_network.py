"""A round over a real network: a SuperLink and SuperNodes with TLS and registered keys, on this machine."""

import inspect
import json
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import modelweld
from loopback import Loopback, certificates
from modelweld.federate import pack
from modelweld.kinds.mixture import mixture

pytestmark = pytest.mark.flower

GOOD = ["north", "south", "east"]


def model_of(site):
    """What a site trains: two components or three."""
    rng = np.random.default_rng(sum(map(ord, site)))
    means = np.array([[0.0, 0.0], [9.0, 9.0], [0.0, 9.0]])[: 2 + len(site) % 2]
    means = means + rng.normal(0, 0.1, means.shape)
    return mixture(means, np.ones(means.shape), np.full(len(means), 40.0), counted=True, site=site)


APP = {
    "pyproject.toml": """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "round"
version = "1.0.0"
description = "One round."
license = "BSD-3-Clause"
dependencies = []

[tool.flwr.app]
publisher = "modelweld"

[tool.flwr.app.components]
clientapp = "round.client:app"
serverapp = "round.server:app"

[tool.flwr.app.config]
folder = ""
expected = ""
broken = ""
minimum = 2
timeout = 60.0
gather = 60.0
""",
    "round/__init__.py": "",
    "round/sites.py": f"""\
import numpy as np
from modelweld.kinds.mixture import mixture

{inspect.getsource(model_of)}
""",
    "round/client.py": """\
import time
from pathlib import Path
import numpy as np
from modelweld.federate import flower, pack, round as rounds
from modelweld.files import save
from round.sites import model_of

def train(context):
    site, folder = context.node_config["site"], Path(context.run_config["folder"])
    (folder / f"{site}.began").touch()
    if site == "killed":
        time.sleep(600)
    if site == "late":
        while not (folder / "out" / "fusion.safetensors").exists():
            time.sleep(0.2)
    if site in ("broken", context.run_config["broken"]):
        raise RuntimeError("/data/secret.csv of patient Smith")
    if site == "nan":
        rounds.export = poisoned
    return model_of(site)

def poisoned(model, file, site, **options):
    model.arrays["means"][0, 0] = np.nan
    file.write_bytes(pack(model))

def receive(model, context):
    save(model, Path(context.run_config["folder"], context.node_config["site"] + ".safetensors"))

app = flower.client_app(train, receive=receive)
""",
    "round/server.py": """\
from pathlib import Path
from flwr.serverapp import ServerApp
from modelweld.federate.flower import one_round

app = ServerApp()

@app.main()
def main(grid, context):
    config = context.run_config
    expected = config["expected"].split()
    if "=" in config["expected"]:
        expected = {name: int(node) for name, node in (one.split("=") for one in expected)}
    one_round(
        grid,
        minimum=config["minimum"],
        expected=expected,
        timeout=config["timeout"],
        gather=config["gather"],
        out=Path(config["folder"], "out"),
        search="plain",
    )
""",
}


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    folder = tmp_path_factory.mktemp("app")
    for name, text in APP.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    network = Loopback(tmp_path_factory.mktemp("network"))
    try:
        together(network.start, GOOD)
        yield network
    finally:
        network.stop()
        time.sleep(1)
        assert network.left() == []


def together(start, sites):
    with ThreadPoolExecutor() as pool:
        return dict(zip(sites, pool.map(start, sites), strict=True))


def finished(run, seconds=150):
    """The log of a run that has ended."""
    log, _ = run.communicate(timeout=seconds)
    return log


def check(folder, sites, receiving):
    """The round fused these sites' models as if they were all at hand, and others have the fused model."""
    flat = modelweld.fuse([model_of(site) for site in sorted(sites)], search="plain")
    fusion = modelweld.load(folder / "out" / "fusion.safetensors")
    assert fusion.sites == sorted(sites)
    assert fusion.objective == flat.objective
    assert all(np.array_equal(a, b) for a, b in zip(fusion.labels, flat.labels, strict=True))
    assert np.array_equal(fusion.atoms, flat.atoms)
    have = {file.stem: file.read_bytes() for file in folder.glob("*.safetensors")}
    assert have == dict.fromkeys(receiving, pack(flat.parameters()))


def test_strangers_stay_out(network, tmp_path):
    stranger = network.start("stranger", registered=False)
    deceived = network.start("deceived", ca=certificates(tmp_path)[0])
    assert stranger.wait(60) != 0
    assert deceived.wait(60) != 0
    assert "Failed to activate SuperNode" in network.log("stranger")
    assert "CERTIFICATE_VERIFY_FAILED" in network.log("deceived")


def test_all_well(network, app, tmp_path):
    log = finished(network.run(app, folder=tmp_path, expected=" ".join(GOOD), minimum=3))
    assert "answered: east, north, south" in log
    check(tmp_path, GOOD, GOOD)
    assert json.loads((tmp_path / "out" / "round.json").read_text()) == {
        "answered": sorted(GOOD),
        "missing": [],
        "late": [],
        "refused": {},
    }


def test_too_few(network, app, tmp_path):
    log = finished(network.run(app, folder=tmp_path, expected=" ".join(GOOD), minimum=3, broken="south"))
    told = "answered: east, north; refused: south (it failed; its own log says why)"
    assert f"3 sites are needed to fuse, and 2 can be used: {told}." in log
    assert "secret" not in log + network.log("superlink")
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["round.json"]
    assert not list(tmp_path.glob("*.safetensors"))


def test_one_of_each(network, app, tmp_path):
    odd = together(network.start, ["killed", "late", "nan", "broken"])
    run = network.run(app, folder=tmp_path, expected=" ".join(["north", "south", *odd]), timeout=30.0)
    until = time.monotonic() + 90
    while not (tmp_path / "killed.began").exists() and time.monotonic() < until:
        time.sleep(0.2)
    network.kill(odd["killed"])
    log = finished(run)
    told = json.loads((tmp_path / "out" / "round.json").read_text())
    assert told["answered"] == ["north", "south"]
    assert told["missing"] == ["killed"]
    assert told["late"] == ["late"]
    assert "nan" in told["refused"].pop("nan")
    assert told["refused"] == {
        "broken": "it failed; its own log says why",
        "east": "no site of that name is expected",
    }
    assert not (tmp_path / "east.began").exists()
    check(tmp_path, ["north", "south"], ["north", "south", "late"])
    assert "missing: killed; late: late" in log
    assert "secret" not in log + network.log("superlink")
    assert "secret" in network.log("broken")


def test_names_that_are_bound_to_keys_cannot_be_taken(network, app, tmp_path):
    """Mallory's key is registered, but calls itself as an absent site, and another one as a present site."""
    network.start("mallory", called="west")
    network.start("trudy", called="north")
    bound = {site: network.nodes[site] for site in ("north", "south", "east")} | {"west": 1}
    words = " ".join(f"{name}={node}" for name, node in bound.items())
    finished(network.run(app, folder=tmp_path, expected=words, minimum=3, gather=20.0))
    told = json.loads((tmp_path / "out" / "round.json").read_text())
    assert told["answered"] == ["east", "north", "south"]
    assert told["missing"] == ["west"]
    strangers = {
        f"node {network.nodes[name]}": "its key is none of the expected sites'" for name in ("mallory", "trudy")
    }
    assert strangers.items() <= told["refused"].items()
    assert not (tmp_path / "west.began").exists()
