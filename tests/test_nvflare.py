"""A round in FLARE's simulator: the bits of `fuse`, and sites that fail, lie or stay away are named and stop nobody."""

import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import modelweld
from modelweld.errors import InputError
from modelweld.federate import Answers, pack
from nvflare_site import MEANS, SILENCE, train

pytestmark = pytest.mark.nvflare

SCRIPT = Path(__file__).parent / "nvflare_site.py"

TIMEOUT = 90
"""Seconds a round may wait for sites: the simulator now and then fails to start the process of one."""

ATTEMPTS = 3
"""Simulations, until one has started all sites."""


@pytest.fixture(scope="module")
def nvflare():
    from modelweld.federate import nvflare

    return nvflare


@pytest.fixture
def run(nvflare, tmp_path):
    """Runs a round in the simulator; gives the server's folder."""
    from nvflare.recipe import SimEnv

    def ran(clients, timeout=TIMEOUT, **options):
        for _ in range(ATTEMPTS):
            shutil.rmtree(tmp_path / "fuse", ignore_errors=True)
            recipe = nvflare.FuseRecipe(train_script=str(SCRIPT), train_args=str(tmp_path), timeout=timeout, **options)
            failed = None
            try:
                recipe.execute(SimEnv(clients=clients, workspace_root=str(tmp_path)))
            except RuntimeError as wrong:
                failed = wrong
            if all((tmp_path / "fuse" / name / "log.txt").exists() for name in clients):
                break
        if failed is not None:
            raise failed
        return tmp_path / "fuse" / "server" / "simulate_job"

    return ran


def test_a_round_gives_the_bits_of_fuse_and_names_who_is_not_in_it(nvflare, run, tmp_path):
    clients = [*MEANS, "failing", "hostile", "impostor", "babbling", "broken"]
    server = run(clients, sites=[*MEANS, "absent"], minimum=3, seed=4)
    expected = modelweld.fuse([train(site).with_(site=site) for site in sorted(MEANS)], seed=4)
    fusion = modelweld.load(server / nvflare.FUSION)
    assert fusion.sites == expected.sites == ["east", "north", "south"]
    assert fusion.objective == expected.objective
    for one, other in zip(fusion.matchings.values(), expected.matchings.values(), strict=True):
        assert np.array_equal(one.stacked_labels, other.stacked_labels)
        assert all(np.array_equal(one.values[key], values) for key, values in other.values.items())
    told = json.loads((server / nvflare.ROUND).read_text())
    assert told["answered"] == fusion.sites
    assert told["missing"] == ["absent"]
    assert sorted(told["refused"]) == ["babbling", "broken", "failing", "hostile", "impostor"]
    assert "RuntimeError" in told["refused"]["failing"]
    assert "finite" in told["refused"]["hostile"]
    assert "calls itself 'north'" in told["refused"]["impostor"]
    assert "safetensors" in told["refused"]["babbling"]
    assert "<html" in (server / nvflare.REPORT).read_text()

    # every site that waits for it gets the fused model, and nothing of any one site's
    fused = expected.parameters()
    for site in [*MEANS, "failing", "hostile"]:
        got = modelweld.load(tmp_path / f"{site}.safetensors")
        assert got.arrays.keys() == fused.arrays.keys()
        assert all(np.array_equal(got.arrays[name], values) for name, values in fused.arrays.items())

    # what a site's error says stays at the site
    own = (tmp_path / "fuse" / "failing" / "log.txt").read_text()
    assert "alice" in own
    kept = [path for path in (tmp_path / "fuse" / "server").rglob("*") if path.is_file()]
    assert not [path for path in kept if path.suffix != ".py" and b"alice" in path.read_bytes()]


def test_a_site_that_says_nothing_is_not_waited_for(nvflare, run, tmp_path):
    """It is named, also where its answer comes in the end, and the others have been fused by then."""
    server = run(["north", "south", "silent"], timeout=SILENCE // 2)
    told = json.loads((server / nvflare.ROUND).read_text())
    assert told["answered"] == modelweld.load(server / nvflare.FUSION).sites == ["north", "south"]
    assert "silent" in [*told["missing"], *told["late"]]


def test_too_few_sites_end_the_job_and_are_named(nvflare, run, tmp_path):
    with pytest.raises(RuntimeError, match="Simulation failed"):
        run(["north", "failing"], sites=["north", "absent"])
    server = tmp_path / "fuse" / "server"
    told = json.loads((server / "simulate_job" / nvflare.ROUND).read_text())
    assert (told["answered"], told["missing"], list(told["refused"])) == (["north"], ["absent"], ["failing"])
    assert not (server / "simulate_job" / nvflare.FUSION).exists()
    log = (server / "log.txt").read_text()
    assert "2 sites are needed to fuse, and 1 can be used" in log


@pytest.fixture
def heard(nvflare):
    """What a controller makes of answers, (sender, Shareable)."""

    def answers(*pairs):
        controller = nvflare.FuseController()
        controller.answers = Answers(expected=["north", "south"])
        for sender, result in pairs:
            task = SimpleNamespace(client=SimpleNamespace(name=sender), result=result)
            controller._take_answer(task, None)
            assert task.result is None
        return controller.answers

    return answers


def said(params):
    from nvflare.app_common.abstract.fl_model import FLModel
    from nvflare.app_common.utils.fl_model_utils import FLModelUtils

    return FLModelUtils.to_shareable(FLModel(params=params))


def reply(code):
    from nvflare.apis.shareable import make_reply

    return make_reply(code)


@pytest.fixture(scope="module")
def model():
    return train("north")


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (lambda: reply("EXECUTION_EXCEPTION"), "sent no model (EXECUTION_EXCEPTION)"),
        (lambda: said({"failed": "ValueError"}), "ValueError"),
        (lambda: said({"failed": "x" * 10_000}), "xxx"),
        (lambda: said({"something": 1}), "sent no model"),
        (lambda: said({"model": "text"}), "travels as bytes"),
        (lambda: said({"model": b"\x00" * 64}), "safetensors"),
        (lambda: reply("OK"), "no message"),
    ],
)
def test_answers_that_cannot_be_used_are_named_and_stop_nobody(heard, model, result, words):
    good = ("south", said({"model": pack(model)}))
    answers = heard(("north", result()), good)
    assert list(answers.models) == ["south"]
    assert words in answers.refused["north"]
    assert len(answers.refused["north"]) < 300


def test_late_answers_are_noted(nvflare):
    controller = nvflare.FuseController()
    controller.process_result_of_unknown_task(SimpleNamespace(name="north"), "train", "", None, None)
    assert controller.answers.late == {"north"}


def test_options_that_cannot_travel_or_that_nobody_knows_are_refused(nvflare):
    with pytest.raises(InputError, match="'serch'"):
        nvflare.FuseRecipe(train_script=str(SCRIPT), serch="plain")
    with pytest.raises(InputError, match=r"\['families'\] is not"):
        nvflare.FuseRecipe(train_script=str(SCRIPT), families=modelweld.Gaussian(), seed=3)


def test_an_exported_job_holds_settings_and_script_but_no_library(nvflare, tmp_path):
    recipe = nvflare.FuseRecipe(train_script=str(SCRIPT), name="round", minimum=3, sites=["north"], search="plain")
    recipe.export(str(tmp_path))
    config = json.loads(next(tmp_path.rglob("config_fed_server.json")).read_text())
    (workflow,) = config["workflows"]
    assert workflow["path"] == "modelweld.federate.nvflare.FuseController"
    assert workflow["args"]["minimum"] == 3
    assert workflow["args"]["sites"] == ["north"]
    assert workflow["args"]["options"] == {"search": "plain"}
    assert [path.name for path in tmp_path.rglob("*.py")] == ["nvflare_site.py"]
