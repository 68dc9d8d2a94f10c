"""The command line as a user runs it: exit codes, one line per problem, nothing lost."""

import contextlib
import csv
import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.mixture import GaussianMixture

from modelweld import LocalModel, export, fuse
from modelweld.files import load, save
from modelweld.kinds.hmm import hmm
from modelweld.kinds.mixture import mixture
from modelweld.progress import COMPILING
from test_files import unchecked


@pytest.fixture
def sites(run):
    code, _, _ = run("simulate", "--sites", 4, "--atoms", 6)
    assert code == 0
    return [f"sites/site{j}.safetensors" for j in (1, 2, 3, 4)]


def site(path, name, means, features):
    spreads = np.ones((len(means), len(features)))
    save(mixture(means, spreads, np.full(len(means), 20.0), counted=True, features=features, site=name), path)


def test_from_three_sites_to_labels(run, tmp_path):
    for j, name in enumerate(("north", "south", "east")):
        rng = np.random.default_rng(j)
        X = np.concatenate([rng.normal(m, 1.0, (60, 2)) for m in ([0, 0], [9, 9], [-9, 5])])
        model = GaussianMixture(3, random_state=0).fit(X)
        export(model, tmp_path / f"{name}.safetensors", site=name, features=["x", "y"], X=X)
    assert run("validate", "*.safetensors")[0] == 0
    code, said, complained = run("fuse", "*.safetensors", "--out", "fused.safetensors", "--report", "page.html")
    assert (code, complained.removeprefix(f"{COMPILING}.\n")) == (0, "")
    assert "3 components, 3 of them shared by several sites, from 9" in said
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
    shared = json.loads(run("inspect", "fusion.safetensors", "--json", "--confidence")[1])["sharing"]["atom"]
    assert shared["sites"] == fusion.counts.tolist()
    assert np.allclose(shared["expected"], fusion.posterior.sharing().expected)
    assert "sites expected" in run("inspect", "fusion.safetensors", "--confidence")[1]
    assert json.loads(run("inspect", sites[0], "--json")[1])["arrays"]["values"]["axes"] == ["atom", None]
    assert {row["model"] for row in json.loads(run("adapters", "--json")[1])} >= {"sklearn.KMeans"}


def test_a_verdict_is_the_fusions_in_words(run, sites):
    run("fuse", *sites)
    verdict = load("fusion.safetensors").worth_merging()
    code, said, _ = run("verdict", "fusion.safetensors")
    assert code == 0
    assert said.startswith("Yes: ")
    assert verdict.sentence[1:] in said
    assert "same few centres" in said
    content = json.loads(run("verdict", "fusion.safetensors", "--json")[1])
    assert (content["p_value"], content["worth"]) == (verdict.p_value, True)
    assert [site["p_value"] for site in content["sites"]] == [site.p_value for site in verdict.sites]
    one = content["sets"]["atom"]
    assert (one["judged"], one["warnings"], content["notes"]) == (True, [], [])
    assert all(line[1:] in said for line in one["certainty"]["sentences"])


def test_a_verdict_says_how_many_and_how_sure(run):
    rng = np.random.default_rng(3)
    atoms = rng.normal(0, 3, (8, 2))
    for name in "abcd":
        values = rng.permutation(atoms)[:6] + rng.normal(0, 0.5, (6, 2))  # groups overlap
        save(LocalModel({"v": values}, {"v": ("atom", None)}, site=name), f"{name}.safetensors")
    run("fuse", "?.safetensors")
    fusion = load("fusion.safetensors")
    found = json.loads(run("verdict", "fusion.safetensors", "--json")[1])["sets"]["atom"]["certainty"]
    sure = np.concatenate(fusion.confidence())
    drawn = fusion.posterior.draws()
    assert (found["K"], found["shared"]) == (fusion.K, fusion.shared)
    assert found["K_interval"] == list(drawn.K_interval(0.9))
    assert found["shared_interval"] == list(drawn.shared_interval(0.9))
    assert 0 < found["unsure"] == (sure < 0.8).sum() < found["matches"] == 24
    worst = found["least"][0]
    assert worst["confidence"] == sure.min() == fusion.confidence()["abcd".index(worst["site"])][worst["row"]]
    assert worst["atom"] == fusion.labels["abcd".index(worst["site"])][worst["row"]]
    said = run("verdict", "fusion.safetensors")[1]
    K, shared = ("{} to {}".format(*found[name]) for name in ("K_interval", "shared_interval"))
    assert f"{fusion.K} groups, {fusion.shared} of them shared by several sites; with a probability" in said
    assert f"their true number is {K} and that of shared ones {shared}, without what is excluded" in said
    assert f"{found['unsure']} of the 24 matches are less than 80 % sure. The least sure: group" in said
    assert f"group {worst['row']} of site '{worst['site']}' in group {worst['atom']} (" in said
    assert "do not agree" not in said


def test_strangers_get_a_no(run, tmp_path):
    rng = np.random.default_rng(0)
    for name in "abc":
        save(LocalModel({"v": rng.normal(size=(9, 3))}, {"v": ("atom", None)}, site=name), f"{name}.safetensors")
    run("fuse", "?.safetensors")
    _, said, _ = run("verdict", "fusion.safetensors")
    first, *_, second = said.strip().split("\n")
    assert first.startswith("No: values of different sites lie no closer together than chance explains")
    assert "the uncertainty of these numbers is not stated without evidence of sharing" in said
    assert second == "With fewer than four sites there is no majority that could say who is off: sites are not judged."


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


SITE_FILES = {  # files that are no site's model, and what is said of each
    "missing.safetensors": "no such file",
    "empty.safetensors": "it is empty",
    "torn.safetensors": "only a part of one",
    "changed.safetensors": "its SHA-256 differs",
    "noise.safetensors": "no safetensors file",
    "zip.safetensors": "looks like a zip archive",
    "model.pkl": "never read here",
    "folder.safetensors": "it is not a file",
    "strange.safetensors": "array 'means' of a mixture has the axes",
    "notes.txt": "files are",
}
FUSION_FILES = {**SITE_FILES, "good.safetensors": "not a fusion"} | {
    "strange.safetensors": "array 'means' of a mixture"
}
WITH_SITES = {"slim.safetensors": "without the sites' values"}


def everywhere():
    """Every command that reads a file, with every file that is not what it wants."""
    for name, says in SITE_FILES.items():
        yield ("inspect", name), says
        yield ("validate", name, "good.safetensors"), says
        yield ("fuse", "good.safetensors", name), says
        yield ("add", "fused.safetensors", name, "--out", "new.safetensors"), says
        if name != "model.pkl":
            yield ("export", name, "--out", "new.safetensors"), says
    for name, says in {**FUSION_FILES, **WITH_SITES}.items():
        yield ("verdict", name), says
        yield ("report", name, "--out", "page.html"), says
        yield ("report", name, "--json"), says
        yield ("remove", name, "good", "--out", "new.safetensors"), says
        yield ("apply", name, "points.csv"), says
        yield ("model", name, "--out", "fused.skops"), says
        yield ("compare", name, "fused.safetensors"), says
        yield ("compare", "fused.safetensors", name), says
        if name not in WITH_SITES:
            yield ("add", name, "good.safetensors", "--out", "new.safetensors"), says


MIXED_UP = [
    (("fuse", "none*.safetensors"), "no file matches"),
    (("fuse", "fused.safetensors"), "it is a fusion, not a site's model"),
    (("fuse", "good.safetensors", "other.safetensors"), "lacks 'x'"),
    (("fuse", "good.safetensors", "chain.safetensors"), "different kinds"),
    (("fuse", "good.safetensors", "./good.safetensors"), "is named more than once"),
    (("fuse", "good.safetensors", "duplicate.safetensors"), "comes more than once, with different values"),
    (("fuse", "good.safetensors", "--family", "normal"), "--family is one of Gaussian, Factors, Directions"),
    (("fuse", "good.safetensors", "--prior", "flat"), "--prior is one of auto, BetaBernoulli, Spectrum"),
    (("fuse", "good.safetensors", "--preset", "ours"), "preset"),
    (("fuse", "good.safetensors", "--splits", "perhaps"), "auto, yes, no"),
    (("fuse", "good.safetensors", "--search", "wild"), "'auto', 'plain' or 'thorough'"),
    (("fuse", "good.safetensors", "--screens", "twice"), "some of 'duplicates', 'outliers'"),
    (("fuse", "good.safetensors", "--out", "no/such/folder.safetensors"), "no folder"),
    (("fuse", "good.safetensors", "--out", "fusion.txt"), "something.safetensors"),
    (("fuse", "good.safetensors", "--report", "old.html", "--out", "new.safetensors"), "is there already"),
    (("fuse", "good.safetensors", "--report", "fused.safetensors", "--out", "new.safetensors", "--force"), "HTML page"),
    (("report", "fused.safetensors", "--out", "page.png"), "Call it 'page.html'"),
    (("validate", "good.safetensors", "other.safetensors"), "lacks 'x'"),
    (("validate", "good.safetensors", "duplicate.safetensors"), "comes more than once"),
    (("validate", "fused.safetensors"), "it is a fusion"),
    (("add", "fused.safetensors", "good.safetensors", "--out", "new.safetensors"), "there is a site 'good' already"),
    (("add", "fused.safetensors", "other.safetensors", "--out", "new.safetensors"), "lacks 'x'"),
    (("add", "fused.safetensors", "chain.safetensors", "--out", "new.safetensors"), "different kinds do not fuse"),
    (("add", "slim.safetensors", "chain.safetensors", "--out", "new.safetensors"), "must send"),
    (("add", "fused.safetensors", "duplicate.safetensors"), "--force"),
    (("remove", "fused.safetensors", "nobody", "--out", "new.safetensors"), "no site 'nobody'"),
    (("apply", "fused.safetensors", "missing.csv"), "missing.csv"),
    (("apply", "fused.safetensors", "good.safetensors"), "UTF-8"),
    (("apply", "fused.safetensors", "short.csv"), "header and at least one row"),
    (("apply", "fused.safetensors", "other.csv"), "no column 'x'"),
    (("apply", "fused.safetensors", "twice.csv"), "column 'x' comes twice"),
    (("apply", "fused.safetensors", "words.csv"), "line 2, column 'y'"),
    (("apply", "fused.safetensors", "ragged.csv"), "line 3, column 'y'"),
    (("apply", "fused.safetensors", "points.csv", "--how", "magic"), "how is one of"),
    (("apply", "fused.safetensors", "points.csv", "--out", "good.safetensors"), "is there already"),
    (("apply", "arrays.safetensors", "points.csv"), "these sites sent arrays, not models"),
    (("model", "fused.safetensors", "--out", "good.safetensors"), "is there already"),
    (("model", "fused.safetensors", "--out", "fused.onnx"), "fused models are written as .skops"),
    (("model", "fused.safetensors", "--out", "new.safetensors"), "not written as .safetensors"),
    (("model", "fused.safetensors", "--out", "fused.skops", "--how", "magic"), "how is one of"),
    (("model", "fused.safetensors", "--out", "fused.skops", "--features", "x,z"), "chosen among 'x', 'y'"),
    (("model", "arrays.safetensors", "--out", "fused.skops"), "these sites sent arrays, not models"),
    (("compare", "fused.safetensors", "strangers.safetensors"), "no site"),
    (("verdict", "fused.safetensors", "--level", "2"), "between 0 and 1"),
    (("export", "missing.skops"), "missing.skops"),
    (("export", "torn.skops"), "torn.skops"),
    (("export", "good.safetensors", "--features", "a,b", "--out", "new.safetensors"), "says everything itself"),
    (("export", "good.safetensors", "--out", "fused.safetensors"), "is there already"),
    (("export", "good.safetensors", "--out", "new.safetensors", "--units", "x"), "feature=unit"),
    (("export", "good.safetensors", "--out", "new.safetensors", "--lacks", "x"), "the site has 'x'"),
    (("export", "good.safetensors", "--out", "new.safetensors", "--X", "points.txt"), "a .csv or a .npy file"),
]


@pytest.fixture
def shelf(run, full_shelf, tmp_path):
    """A copy of the shelf, in the folder where commands run."""
    shutil.copytree(full_shelf, tmp_path, dirs_exist_ok=True)
    return tmp_path


@pytest.fixture(scope="module")
def full_shelf(tmp_path_factory):
    """A folder with good, wrong, torn, changed, mixed-up and hostile files."""
    folder = tmp_path_factory.mktemp("shelf")
    with contextlib.chdir(folder):
        fill(folder)
    return folder


def fill(folder):
    site("good.safetensors", "good", [[0.0, 0.0], [9.0, 9.0]], ["x", "y"])
    site("duplicate.safetensors", "good", [[0.0, 0.0]], ["x", "y"])
    site("other.safetensors", "other", [[0.0, 0.0]], ["y", "z"])
    good = load("good.safetensors")
    save(fuse([good, good.with_(site="b")], screens=["outliers"]), "fused.safetensors")
    save(fuse([good.with_(site="c"), good.with_(site="d")], screens=["outliers"]), "strangers.safetensors")
    save(
        fuse([good.with_(variance={}), good.with_(site="b", variance={})], screens=["outliers"]).slim(),
        "slim.safetensors",
    )
    save(fuse([[[0.0, 0.0]], [[0.1, 0.0]]]), "arrays.safetensors")
    ones = np.ones((2, 2))
    chain = hmm(ones * 9, np.ones(2), ones[0] * 18, {"means": 9 * np.eye(2), "variances": ones}, counted=True)
    save(chain.with_(site="chain"), "chain.safetensors")
    whole = (folder / "good.safetensors").read_bytes()
    content = {
        "empty.safetensors": b"",
        "torn.safetensors": whole[:100],
        "changed.safetensors": whole[:-1] + bytes([whole[-1] ^ 1]),
        "noise.safetensors": bytes(range(256)) * 4,
        "zip.safetensors": b"PK\x03\x04" + bytes(50),
        "torn.skops": b"PK\x03\x04" + bytes(50),
        "model.pkl": b"\x80\x04.",
        "notes.txt": b"hello",
        "old.html": b"<p>old</p>",
        "short.csv": b"x,y\n",
        "other.csv": b"a,y\n1,2\n",
        "twice.csv": b"x,y,x\n1,2,3\n",
        "words.csv": b"x,y\n1,many\n",
        "ragged.csv": b"x,y\n1,2\n3\n",
        "points.csv": b"x,y\n0,0\n",
    }
    for name, data in content.items():
        (folder / name).write_bytes(data)
    (folder / "folder.safetensors").mkdir()
    strange = LocalModel(
        {"means": [1.0], "variances": [[1.0, 1.0]], "counts": [9.0]},
        {"means": ("component",), "variances": ("component", None), "counts": ("component",)},
        kind="mixture",
        facts={"counted": True},
        site="strange",
    )
    unchecked(folder / "strange.safetensors", strange)


@pytest.mark.parametrize(
    ("words", "says"), [*everywhere(), *MIXED_UP], ids=lambda x: x if isinstance(x, str) else " ".join(x)
)
def test_bad_input_is_one_line_and_nothing_is_lost(run, shelf, words, says):
    kept = {path.name: path.read_bytes() for path in shelf.iterdir() if path.is_file()}
    code, _, complained = run(*words)
    assert code == 1
    assert complained.count("\n") == 1, complained
    assert complained.startswith("error: ")
    assert says in complained
    assert {path.name: path.read_bytes() for path in shelf.iterdir() if path.is_file()} == kept


def test_a_slim_fusion_is_looked_at_and_grows(run, shelf):
    code, said, _ = run("inspect", "slim.safetensors")
    assert code == 0
    assert "slim fusion of 2 sites" in said
    assert "2 components (2 shared) from 4" in said
    assert json.loads(run("inspect", "slim.safetensors", "--json")[1])["sites at each atom"] == [2, 2]
    late = load("good.safetensors").with_(site="late", variance={})
    save(late, "late.safetensors")
    code, said, complained = run("add", "slim.safetensors", "late.safetensors", "--out", "more.safetensors")
    assert (code, complained) == (0, "")
    assert "slim fusion of 3 sites" in said
    assert load("more.safetensors").counts.tolist() == [3, 3]


def test_a_model_is_exported_from_skops(run, tmp_path):
    from skops.io import dump

    run("adapters")
    X = np.random.default_rng(0).normal(size=(300, 2)) + np.repeat([[0, 0], [9, 9]], 150, axis=0)
    dump(KMeans(2, n_init=1, random_state=0).fit(X), tmp_path / "model.skops")
    code, said, complained = run("export", "model.skops", "--site", "north", "--features", "x, y", "--noise", 0.5)
    assert (code, complained) == (0, "")
    assert "What leaves north: mixture (sklearn.KMeans" in said
    model = load("site.safetensors")
    assert model.coordinates["feature"] == ("x", "y")
    assert (np.asarray(model.variance["means"]) >= 0.25).all()
    small = KMeans(2, n_init=1, random_state=0).fit(np.concatenate([X[:40], [[99.0, 99.0]]]))
    dump(small, tmp_path / "small.skops")
    code, _, complained = run("export", "small.skops", "--out", "small.safetensors")
    assert (code, complained.count("\n")) == (1, 1)
    assert "--allow-small" in complained
    assert not (tmp_path / "small.safetensors").exists()
    assert run("export", "small.skops", "--out", "small.safetensors", "--allow-small")[0] == 0


def test_progress_is_shown_on_a_terminal_and_nowhere_else(run, sites, tmp_path):
    words = [sys.executable, "-m", "modelweld", "fuse", *sites, "--force"]
    code, quiet, complained = run(*words[3:])
    assert (code, complained.removeprefix(f"{COMPILING}.\n")) == (0, "")
    near, far = os.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    with subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=far, env=environment) as watched:
        os.close(far)
        shown = b""
        with contextlib.suppress(OSError):  # the end of a terminal
            while part := os.read(near, 65536):
                shown += part
        os.close(near)
        assert watched.stdout.read().decode() == quiet
    assert watched.returncode == 0
    assert b"fusing" in shown
    assert b"0:00:0" in shown  # time gone by


def test_wrong_usage_is_code_two(run):
    assert run("fuse")[0] == 2
    assert run("melt")[0] == 2


def test_names_cannot_command_the_terminal(run):
    code, _, complained = run("inspect", "x\x1b[31mred.safetensors")
    assert code == 1
    assert "\x1b" not in complained


def test_help_is_there_for_every_command(run):
    code, said, _ = run("--help")
    assert code == 0
    at_a_site, later = ["export", "inspect", "validate"], ["add", "remove", "compare"]
    others = ["simulate", "demo", "reproduce", "adapters"]
    for command in [*at_a_site, "fuse", "verdict", "report", "model", "apply", *later, *others]:
        assert command in said
        assert run(command, "--help")[0] == 0


@pytest.fixture
def fused(run, tmp_path):
    for j, name in enumerate(("north", "south", "east")):
        site(tmp_path / f"{name}.safetensors", name, [[0.1 * j, 0.0], [9.0, 9.0 + 0.1 * j]], ["age", "dose"])
    assert run("fuse", "*.safetensors", "--out", "fusion.safetensors")[0] == 0
    return tmp_path


TABLES = {
    "commas": "age,dose\n0.5,0\n9,9.5\n",
    "semicolons": "age;dose\n0.5;0\n9;9.5\n",
    "decimal commas": 'dose;age\n0;0,5\n"9,5";9\n',
    "tabs and blanks": " age \tdose\n0,5\t0\n9\t9,5\n",
}


@pytest.mark.parametrize("table", TABLES)
def test_tables_of_any_spreadsheet_and_from_a_pipe(fused, run, monkeypatch, table):
    (fused / "commas.csv").write_text(TABLES["commas"])
    (fused / "points.csv").write_text(TABLES[table])
    expected = run("apply", "fusion.safetensors", "commas.csv")[1]
    assert expected.count("\n") == 3
    assert run("predict", "fusion.safetensors", "points.csv")[1] == expected
    with (fused / "points.csv").open() as pipe:
        monkeypatch.setattr("sys.stdin", pipe)
        assert run("apply", "fusion.safetensors", "-")[1] == expected


def test_a_comma_that_separates_is_no_decimal_one(fused, run):
    (fused / "points.csv").write_text('age,dose\n"1,234",5\n')
    assert "a finite number is needed; found '1,234'" in run("apply", "fusion.safetensors", "points.csv")[2]


SLIPS = [
    (("apply", "fusion.safetensors", "case.csv"), "'AGE' differs in capitals or blanks only"),
    (("apply", "fusion.safetensors", "points.csv", "--how", "densit"), "Did you mean 'density'?"),
    (("apply", "fusion.safetensors", "missing.csv", "--out", "points.csv"), "missing.csv"),
    (("fuse", "north.safetensors", "south.safetensors", "--family", "Gauss", "--force"), "Did you mean 'Gaussian'?"),
    (("fuse", "nothere.safetensors"), "nothere.safetensors"),
    (("fuse", "broken.skops", "--out", "new.safetensors"), "modelweld export broken.skops"),
    (("export", "broken.skops", "--out", "new.safetensors"), "it is no whole .skops file"),
    (("model", "nothere.safetensors", "--out", "points.csv"), "nothere.safetensors"),
]


@pytest.mark.parametrize(("command", "says"), SLIPS)
def test_slips_are_answered_with_what_was_meant(fused, run, command, says):
    (fused / "case.csv").write_text("AGE,dose\n0.5,0\n")
    (fused / "points.csv").write_text(TABLES["commas"])
    (fused / "broken.skops").write_bytes(b"PK\x03\x04 and no more")
    code, _, complained = run(*command)
    assert (code, says in complained) == (1, True), complained


def test_numbers_of_points_are_positive_and_one_site_is_warned_of(fused, run):
    assert run("export", "north.safetensors", "--n", -5, "--out", "new.safetensors")[0] == 2
    assert "this is one site" in run("fuse", "north.safetensors", "--out", "one.safetensors")[2]


def test_lines_of_the_help_are_whole(run):
    assert "..." not in run("--help")[1].partition("Commands:")[2]


def test_a_model_card_says_what_was_fused_and_how_sure_that_is(fused, run):
    code, _, complained = run(
        "model", "fusion.safetensors", "--out", "fused.joblib", "--card", "card.md", "--licence", "mit"
    )
    assert code == 0, complained
    card = (fused / "card.md").read_text()
    assert card.startswith("---\nlibrary_name: sklearn\nlicense: mit\n")
    assert all(word in card for word in ("2 groups (2 shared)", "'north'", "| age |", "## How sure", "## Limits"))
    assert run("model", "fusion.safetensors", "--out", "again.joblib", "--card", "card.md")[0] == 1
