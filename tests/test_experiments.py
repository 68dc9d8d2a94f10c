"""The experiments run: their figures are measured elsewhere, by hand."""

import json
from pathlib import Path

import numpy as np
import pytest

from programs import printed_by

pytestmark = pytest.mark.slow
EXPERIMENTS = Path(__file__).parents[1] / "experiments"


PRINTED = [
    ("mixtures/run.py", ["--smoke", "--jobs", 1], ["| ours, density |"]),
    ("directions/run.py", ["--smoke", "--jobs", 1], ["| cosine 0.95 | fuse(sites, Directions(axial=True)) | 1.000 |"]),
    (
        "streams/run.py",
        ["--smoke", "--jobs", 1, "--only", "still"],
        ["| still | fuse(batches, Directions()) | 1.000 |"],
    ),
    ("time/run.py", ["--smoke", "--jobs", 1], ["| ARI, fuse(groups, times=times) | 1.000 | 1.000 |"]),
    ("planned_topics/run.py", ["--smoke", "--jobs", 1], ["| fuse(models) |", "## 20 newsgroups, 2 seeds"]),
    ("families/run.py", ["--smoke", "--jobs", 1], ["| Proportions | 1.000 ±0.000 +0.0 |"]),
    ("hostile/fuzz.py", ["--number", "60", "--out", "record.json"], ["540 inputs, 0 faults"]),  # `make fuzz` has more
    ("hostile/megabyte.py", ["--limit", 10], ["28 files, 0 slow"]),  # seconds: what is quadratic takes minutes
    ("accidents/run.py", ["--smoke", "--jobs", 1], ["| clean |  | 1 of 1 | 0 of 1 |", "| X= of another site | 1 of"]),
]


@pytest.mark.parametrize(("program", "options", "words"), PRINTED)
def test_what_is_printed(program, options, words, tmp_path):
    printed = printed_by(EXPERIMENTS / program, *options, folder=tmp_path)
    assert all(word in printed for word in words)


def test_right(tmp_path):
    printed_by(EXPERIMENTS / "right/run.py", "--smoke", "--out", tmp_path)
    record = json.loads((tmp_path / "results.json").read_text())
    rows = [rows for seeds in record["cells"].values() for rows in seeds.values()]
    assert all(next(iter(methods)) == "fuse(models)" for methods in rows)
    assert all(methods["k-means given K"]["error"] == 0 == methods["no matching"]["ari"] for methods in rows)
    assert not any("failed" in row for methods in rows for row in methods.values())
    assert record["versions"]["commit"]
    overview, *tables = record["tables"]
    assert overview["rows"][0][1] == "fuse(models)"
    assert sum(len(table["rows"]) for table in tables) == len(record["cells"])


def test_verdicts(tmp_path):
    printed_by(EXPERIMENTS / "verdicts/run.py", "--smoke", "--out", tmp_path)
    record = json.loads((tmp_path / "results.json").read_text())
    assert all(len(found) == 2 for found in record["cells"].values())
    assert all(one["worth"] for one in record["cells"]["worth/normal/3/3/half"])
    assert record["versions"]["commit"]
    worth, warned = record["tables"]
    assert len(worth["rows"]) + len(warned["rows"]) == len(record["cells"])


def test_verdicts_about_real_data(tmp_path):
    printed_by(EXPERIMENTS / "verdicts/real.py", "--smoke", "--out", tmp_path)
    cells = json.loads((tmp_path / "results.json").read_text())["cells"]
    assert cells["worth/5/10/shared"][0]["worth"]
    assert not cells["worth/5/10/apart"][0]["worth"]
    assert len(cells["stations/20/day"][0]["warned"]) <= 1


def test_confidences_and_intervals(tmp_path):
    printed = printed_by(EXPERIMENTS / "verdicts/worlds.py", "--smoke", "--out", tmp_path)
    assert "| half J5 D3 | 2 |" in printed
    assert "90 % intervals of K hold" in printed
    record = json.loads((tmp_path / "results.json").read_text())
    assert all(len(found) == 2 for found in record["cells"].values())


def test_poisoning(tmp_path):
    printed_by(EXPERIMENTS / "hostile/poison.py", "--smoke", "--jobs", 1, "--out", tmp_path)
    record = json.loads((tmp_path / "results.json").read_text())
    assert [methods["fuse(sites)"]["ari"] for methods in record["results"].values()] == [[1.0]] * 3
    assert "| 100%, 0.0%, 0 |" in (tmp_path / "tables.md").read_text()


def test_models_trained_again(tmp_path):
    """Two deals of wine: who trained twice is named both times, honest growers never."""
    printed_by(EXPERIMENTS / "hostile/retrained.py", "--smoke", "--out", tmp_path)
    (row,) = json.loads((tmp_path / "results.json").read_text())["tables"][0]["rows"]
    assert row[:3] == ["wine", "0; 0", "2; 0"]
    assert all(cell.endswith("; 0") for cell in row[1:])


def test_membership(tmp_path):
    printed = printed_by(EXPERIMENTS / "hostile/membership.py", "--smoke", "--jobs", 1, "--out", tmp_path)
    cells = json.loads((tmp_path / "results.json").read_text())["results"]
    small, allowed = (np.mean(cells[f"wine / {name}"]["auc"]) for name in SMALL_AND_ALLOWED)
    assert small > allowed + 0.03
    assert "private centres" in printed or "which they are left out" in printed


SMALL_AND_ALLOWED = ("mixture, a component for 6 rows", "the same, as export allows it")


def test_soak(tmp_path):
    printed_by(EXPERIMENTS / "hostile/soak.py", "--smoke", "--out", tmp_path / "soak.json")
    record = json.loads((tmp_path / "soak.json").read_text())
    assert record["fused"] == 24 == sum(record["families"].values())
    assert list(record["laws"])[:3] == ["fuse", "engines", "order"]
    assert record["faults"] == []
