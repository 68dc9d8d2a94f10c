"""`modelweld fuse --keep-going`: whatever a file holds, the others are fused, and who was left out is named."""

import json

import numpy as np
import pytest

from modelweld import LocalModel, load
from modelweld.files import save
from test_cli import sites

__all__ = ["sites"]  # a fixture

AXES = {"v": ("atom", None)}


def odd(path, **fields):
    """A site that describes something else than simulated ones do."""
    save(LocalModel(axes=AXES, **{"arrays": {"v": [[1.0, 2.0]]}, **fields}), path)
    return path


def damaged(path):
    path.write_bytes(b"\x08" + b"\x00" * 40)
    return path


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(damaged, id="no file of ours"),
        pytest.param(lambda path: path, id="not there"),
        pytest.param(lambda path: odd(path, site="odd"), id="another model"),
    ],
)
def test_the_others_are_fused_and_the_culprit_is_named(run, sites, tmp_path, make):
    bad = make(tmp_path / "bad.safetensors")
    code, _, complained = run("fuse", *sites, bad)
    assert (code, complained.count("\n")) == (1, 1)
    code, said, complained = run("fuse", *sites, bad, "--keep-going", "--json", "--report", "page.html")
    assert code == 3
    assert f"left out: {bad}: " in complained
    content = json.loads(said)
    assert list(content["refused"]) == [str(bad)]
    run("fuse", *sites, "--out", "alone.safetensors")
    fused, alone = load("fusion.safetensors"), load("alone.safetensors")
    assert fused.sites == alone.sites == content["sites"]
    assert fused.objective == alone.objective


def test_without_a_culprit_nothing_changes(run, sites):
    assert run("fuse", *sites, "--keep-going") == run("fuse", *sites, "--force")


def test_where_nothing_can_be_used_there_is_no_fusion(run, tmp_path):
    damaged(tmp_path / "a.safetensors")
    code, _, complained = run("fuse", "a.safetensors", "--keep-going")
    assert (code, complained.count("\n")) == (1, 1)
    assert "a.safetensors" in complained
    assert not (tmp_path / "fusion.safetensors").exists()


def test_one_site_of_a_table_is_left_out_by_its_name(run, tmp_path):
    (tmp_path / "a.csv").write_text("age,site\n1,n\n9,n\n2,s\n8,s\n1.5,e\n")
    (tmp_path / "b.csv").write_text("age,site\n3,n\n7,w\n")
    code, said, _ = run("fuse", "a.csv", "b.csv", "--centres", "--keep-going", "--json")
    assert code == 3
    assert set(json.loads(said)["refused"]) == {"a.csv, site 'n'", "b.csv, site 'n'"}


@pytest.fixture
def four_files(tmp_path):
    rng = np.random.default_rng(0)
    atoms = rng.normal(0, 9, (3, 2))
    for j in range(4):
        save(LocalModel({"v": atoms + rng.normal(0, 0.1, (3, 2))}, AXES, site=f"s{j}"), tmp_path / f"{j}.safetensors")


def fused_with(run, folder, head, rows):
    """What is said where a table of these lines is fused with the files that are there."""
    (folder / "table.csv").write_text("\n".join([head, *rows]) + "\n")
    code, said, complained = run("fuse", "*.safetensors", "table.csv", "--centres", "--keep-going", "--json")
    assert code == 3
    return json.loads(said), complained


@pytest.mark.parametrize("strangers", [5, 60])
def test_a_table_of_many_sites_has_one_vote(run, four_files, tmp_path, strangers):
    """Its sites outnumbered the files of all others, and shut them out."""
    rows = [f"t{j},{x},{x + 1},{x + 2}" for j in range(strangers) for x in (0.0, 5.0)]
    content, complained = fused_with(run, tmp_path, "site,a,b,c", rows)
    assert content["sites"] == ["s0", "s1", "s2", "s3"]
    assert list(content["refused"]) == ["table.csv"]
    assert content["refused"]["table.csv"].startswith(f"none of its {strangers} sites can be used. The first: ")
    assert complained.count("left out") == 1


@pytest.mark.parametrize("taken", [1, 2, 4])
def test_a_table_that_takes_the_names_of_several_files_is_out(run, four_files, tmp_path, taken):
    """Of two files with one name neither can be known to be right; of five of which one contests all others, one is."""
    rows = [f"s{j},{x},{x + 1}" for j in range(taken) for x in (0.0, 5.0)]
    content, _ = fused_with(run, tmp_path, "site,a,b", rows)
    assert content["sites"] == [f"s{j}" for j in range(1 if taken == 1 else 0, 4)]
    assert list(content["refused"]) == (["0.safetensors", "table.csv"] if taken == 1 else ["table.csv"])
