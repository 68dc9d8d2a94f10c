"""The command line as a user runs it: exit codes, one line per problem, nothing lost."""

import csv
import json
import subprocess
import sys

import numpy as np
import pytest

from modelweld import InputError, LocalModel, fuse
from modelweld.cli import main
from modelweld.files import load, save
from modelweld.kinds.mixture import mixture


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    """Run a command in an empty folder: exit code, what it says, what it complains of."""
    monkeypatch.chdir(tmp_path)

    def command(*words):
        monkeypatch.setattr(sys, "argv", ["modelweld", *map(str, words)])
        code = 0
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
        said = capsys.readouterr()
        return code, said.out, said.err

    return command


@pytest.fixture
def sites(run):
    code, _, _ = run("simulate", "--sites", 4, "--atoms", 6)
    assert code == 0
    return [f"sites/site{j}.safetensors" for j in (1, 2, 3, 4)]


def site(path, name, means, features):
    spreads = np.ones((len(means), len(features)))
    save(mixture(means, spreads, np.full(len(means), 20.0), counted=True, features=features, site=name), path)


EXPORT = """
import sys
import numpy as np
from sklearn.mixture import GaussianMixture
import modelweld
from modelweld.export import export

rng = np.random.default_rng(int(sys.argv[1]))
X = np.concatenate([rng.normal(m, 1.0, (60, 2)) for m in ([0, 0], [9, 9], [-9, 5])])
export(GaussianMixture(3, random_state=0).fit(X), sys.argv[2], site=sys.argv[2].split(".")[0], features=["x", "y"], X=X)
"""


def test_from_three_sites_to_labels(run, tmp_path):
    for j, name in enumerate(("north", "south", "east")):
        done = subprocess.run(
            [sys.executable, "-c", EXPORT, str(j), f"{name}.safetensors"], cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
    assert run("validate", "*.safetensors")[0] == 0
    code, said, complained = run("fuse", "*.safetensors", "--out", "fused.safetensors", "--report", "page.html")
    assert (code, complained) == (0, "")
    assert "3 components from 9" in said
    assert (tmp_path / "page.html").read_text().lower().startswith("<!doctype html>")
    (tmp_path / "new.csv").write_text("name,y,x\na,0.1,0\nb,9,9.2\nc,5,-9\n")
    code, _, complained = run("apply", "fused.safetensors", "new.csv", "--out", "labels.csv")
    assert code == 0, complained
    rows = list(csv.DictReader((tmp_path / "labels.csv").read_text().splitlines()))
    assert len({row["label"] for row in rows}) == 3
    assert all(float(row["probability"]) > 0.99 and np.isfinite(float(row["score"])) for row in rows)


def test_json_is_what_the_fusion_has(run, sites):
    code, said, _ = run("fuse", *sites, "--json")
    assert code == 0
    fusion = fuse([load(path) for path in sites])
    content = json.loads(said)
    assert content["sets"]["atom"]["K"] == fusion.K
    assert content["objective"] == pytest.approx(fusion.objective)
    assert json.loads(run("report", "fusion.safetensors", "--json")[1])
    assert json.loads(run("inspect", "fusion.safetensors", "--json")[1])["sites"] == [
        "site1",
        "site2",
        "site3",
        "site4",
    ]
    assert json.loads(run("inspect", sites[0], "--json")[1])["arrays"]["values"]["axes"] == ["atom", None]
    assert {row["model"] for row in json.loads(run("adapters", "--json")[1])} >= {"sklearn.KMeans"}


def test_sites_leave_and_come_back(run, sites):
    run("fuse", *sites)
    assert run("remove", "fusion.safetensors", "site2", "--out", "less.safetensors")[0] == 0
    assert run("add", "less.safetensors", sites[1], "--out", "again.safetensors")[0] == 0
    code, said, _ = run("compare", "fusion.safetensors", "again.safetensors", "--json")
    assert code == 0
    assert json.loads(said)["atom"]["ari"] == 1.0
    assert load("less.safetensors").sites == ["site1", "site3", "site4"]


def test_nothing_is_overwritten_without_force(run, sites, tmp_path):
    run("fuse", *sites, "--report", "page.html")
    before = (tmp_path / "fusion.safetensors").read_bytes()
    code, _, complained = run("fuse", *sites)
    assert (code, complained.count("\n")) == (1, 1)
    assert "--force" in complained
    assert (tmp_path / "fusion.safetensors").read_bytes() == before
    assert run("report", "fusion.safetensors", "--out", "page.html")[0] == 1
    assert run("add", "fusion.safetensors", sites[0])[0] == 1
    assert run("fuse", *sites, "--force")[0] == 0


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("fuse", "missing.safetensors"), "missing.safetensors"),
        (("fuse", "none*.safetensors"), "no file matches"),
        (("fuse", "torn.safetensors", "good.safetensors"), "torn.safetensors"),
        (("fuse", "good.safetensors", "other.safetensors"), "lacks 'x'"),
        (("fuse", "good.safetensors", "good.safetensors", "twin.safetensors"), "comes more than once"),
        (("fuse", "good.safetensors", "--copies", "perhaps"), "auto, yes or no"),
        (("fuse", "good.safetensors", "--search", "wild"), "'auto', 'plain' or 'thorough'"),
        (("fuse", "good.safetensors", "--out", "no/such/folder.safetensors"), "no folder"),
        (("inspect", "torn.safetensors"), "torn.safetensors"),
        (("validate", "torn.safetensors", "good.safetensors"), "torn.safetensors"),
        (("validate", "good.safetensors", "other.safetensors"), "lacks 'x'"),
        (("report", "good.safetensors"), "not a fusion"),
        (("add", "good.safetensors", "good.safetensors", "--out", "new.safetensors"), "not a fusion"),
        (("remove", "fused.safetensors", "nobody", "--out", "new.safetensors"), "no site 'nobody'"),
        (("apply", "fused.safetensors", "missing.csv"), "missing.csv"),
        (("apply", "fused.safetensors", "short.csv"), "header and at least one row"),
        (("apply", "fused.safetensors", "other.csv"), "no column 'x'"),
        (("apply", "fused.safetensors", "words.csv"), "line 2, column 'y'"),
        (("compare", "fused.safetensors", "good.safetensors"), "not a fusion"),
        (("export", "missing.skops"), "missing.skops"),
    ],
)
def test_bad_input_is_one_line(run, tmp_path, words, says):
    run("adapters")  # goes to the folder
    site("good.safetensors", "good", [[0.0, 0.0], [9.0, 9.0]], ["x", "y"])
    site("twin.safetensors", "good", [[0.0, 0.0]], ["x", "y"])
    site("other.safetensors", "other", [[0.0, 0.0]], ["y", "z"])
    save(fuse([load("good.safetensors"), load("good.safetensors").with_(site="b")]), "fused.safetensors")
    (tmp_path / "torn.safetensors").write_bytes((tmp_path / "good.safetensors").read_bytes()[:100])
    (tmp_path / "short.csv").write_text("x,y\n")
    (tmp_path / "other.csv").write_text("a,y\n1,2\n")
    (tmp_path / "words.csv").write_text("x,y\n1,many\n")
    kept = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    code, _, complained = run(*words)
    assert code == 1
    assert complained.count("\n") == 1
    assert complained.startswith("error: ")
    assert says in complained
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == kept


def test_wrong_usage_is_code_two(run):
    assert run("fuse")[0] == 2
    assert run("melt")[0] == 2


def test_names_cannot_command_the_terminal(run):
    with pytest.raises(InputError, match="printable characters"):
        save(LocalModel({"v": [[0.0]]}, {"v": ("atom", None)}, site="x\x1b[31mred"), "odd.safetensors")
    code, _, complained = run("inspect", "x\x1b[31mred.safetensors")
    assert code == 1
    assert "\x1b" not in complained


def test_help_is_there_for_every_command(run):
    code, said, _ = run("--help")
    assert code == 0
    at_a_site, later = ["export", "inspect", "validate"], ["add", "remove", "compare"]
    for command in [*at_a_site, "fuse", "report", "apply", *later, "simulate", "demo", "adapters"]:
        assert command in said
        assert run(command, "--help")[0] == 0
