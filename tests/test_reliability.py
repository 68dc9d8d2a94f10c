"""What docs say was tried against modelweld is what the records hold, figure by figure; no record has a fault."""

import json
import re
from pathlib import Path

import pytest

from studies import importing

ROOT = Path(__file__).parents[1]
HOSTILE = ROOT / "experiments/hostile"


def record(name):
    return json.loads((HOSTILE / name).read_text(encoding="utf-8"))


def text(name):
    return re.sub(r"\s+", " ", (ROOT / name).read_text(encoding="utf-8"))


@pytest.fixture
def tell(monkeypatch):
    for load in importing(monkeypatch, "hostile"):
        yield load("tell")


def test_tables_are_what_records_say(tell):
    for page in tell.PAGES:
        assert len(tell.PLACE.findall(page.read_text(encoding="utf-8"))) == 2
        assert tell.written(page) == page.read_text(encoding="utf-8")


def test_nothing_was_lost_that_is_not_explained():
    docs = text("docs/reliability.md")
    assert all(
        row["cpu"] < 1 and row["said"].startswith(("read", "refused")) for row in record("megabyte.json")["rows"]
    )
    assert record("kills.json")["broken"] == record("disk.json")["broken"] == 0
    assert sum(row["left after the next"] for row in record("kills.json")["rows"]) == 0
    assert all(row["old"] == row["told"] == row["times"] for row in record("disk.json")["rows"])
    assert all(f"seed {fault['seed']}" in docs for fault in record("soak.json")["faults"])
    assert all(f"seed {fault['seed']}" in docs for fault in record("record.json")["faults"])


def test_what_broke_once_is_tested():
    """Nineteen findings, each with tests that are there."""
    rows = re.findall(r"^\| (\d+) \| .*\| (.*) \|$", (ROOT / "docs/reliability.md").read_text(encoding="utf-8"), re.M)
    assert [int(number) for number, _ in rows] == list(range(1, 20))
    for _, tests in rows:
        named = re.findall(r"`(test_\w+\.py)(?:::(test_\w+))?`", tests)
        assert named
        for file, test in named:
            assert f"def {test}" in (ROOT / "tests" / file).read_text(encoding="utf-8")


def test_who_was_there():
    """Every row of the record stands in docs/privacy.md."""
    recorded = record("membership/results.json")["tables"][0]["rows"]
    docs = (ROOT / "docs/privacy.md").read_text(encoding="utf-8")
    assert len(recorded) == 10
    assert all(f"| {' | '.join(row)} |" in docs for row in recorded)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("SECURITY.md", "Report what you find privately"),
        ("docs/federate.md", "Who may reach the scheduler may run code"),
        ("docs/federate.md", "Client, Security"),
        ("examples/dask_shards.py", "who reaches a scheduler without `Security` may run code"),
        ("docs/reliability.md", "out of reach of the vulnerability service"),
    ],
)
def test_what_a_stranger_must_know_is_written(name, says):
    """There was neither a word on how to report, nor on what an open scheduler means."""
    assert says in text(name)
