"""What docs say was tried against modelweld is what the records hold, figure by figure; no record has a fault."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
HOSTILE = ROOT / "experiments/hostile"


def record(name):
    return json.loads((HOSTILE / name).read_text(encoding="utf-8"))


def text(name):
    return re.sub(r"\s+", " ", (ROOT / name).read_text(encoding="utf-8"))


def total(name, what):
    return sum(row[what] for row in record(name)["rows"])


def fuzzed():
    return record("record.json")["readers"]


def test_damaged_files():
    readers, docs = fuzzed(), text("docs/reliability.md")
    assert len(readers) == 9
    each = {row["inputs"] for row in readers.values()}
    used, inputs, netted = (sum(row[what] for row in readers.values()) for what in ("used", "inputs", "netted"))
    assert f"| {min(each):,} of each, {inputs:,} in all |" in docs
    assert f"{used:,} of those that were read were used, one failed (below)" in docs
    (fault,) = record("record.json")["faults"]
    assert f"(`{fault['reader']}`, seed {fault['seed']})" in docs
    assert netted == 1
    table = (HOSTILE / "README.md").read_text(encoding="utf-8")
    for reader, row in readers.items():
        figures = " | ".join(f"{row[what]:,}" for what in ("inputs", "read", "used", "refused", "netted", "fault"))
        assert f"| {reader} | {figures} |" in table


def test_later_code_was_tried_again():
    again, soaked, docs = record("again/fuzz.json"), record("again/soak.json"), text("docs/reliability.md")
    assert set(again["readers"]) == set(fuzzed())
    assert again["faults"] == []
    for reader, row in again["readers"].items():
        figures = f"{row['inputs']:,} | {row['cpu_s']:.1f} | {row['slowest_s']} | {row['netted']} | {row['fault']}"
        assert f"| {reader} | {figures} |" in docs
    assert all(str(fault["seed"]) in docs for fault in soaked["faults"])
    assert f"{soaked['tried']:,} ([again/soak.json]" in docs
    assert f"{soaked['refused']} refused, **{len(soaked['faults'])} differences**" in docs


def test_a_megabyte():
    rows = record("megabyte.json")["rows"]
    assert f"| {len(rows)} files | each read or refused within a second of CPU |" in text("docs/reliability.md")
    assert all(row["cpu"] < 1 and row["said"].startswith(("read", "refused")) for row in rows)


def test_kills_and_full_disks():
    docs = text("docs/reliability.md")
    times, ended, left = (total("kills.json", what) for what in ("times", "ended first", "left behind"))
    assert f"| {times:,}, over eight commands; in {ended} the command had ended first |" in docs
    assert f"the old file {total('kills.json', 'old')} times, else the new one, whole; never half; {left} parts" in docs
    assert total("kills.json", "broken") == total("kills.json", "left after the next") == 0
    tried = total("disk.json", "times")
    assert f"| {tried}, four for each of eight commands | {tried} times the old file and an error in one line" in docs
    assert total("disk.json", "old") == total("disk.json", "told") == tried
    assert total("disk.json", "broken") == 0


def test_the_same_answer_by_another_way():
    found, docs = record("soak.json"), text("docs/reliability.md")
    assert sum(law["differs"] + law["failed"] for law in found["laws"].values()) == len(found["faults"]) == 1
    assert f"holds one direction twice (seed {found['faults'][0]['seed']})" in docs
    ties, better = (sum(law.get(what, 0) for law in found["laws"].values()) for what in ("tie", "better"))
    last = found["first_seed"] + found["tried"] - 1
    assert f"**{found['tried']:,} fusions**" in docs
    assert f"seeds {found['first_seed']} to {last}): {found['refused']} refused, no unexplained difference" in docs
    assert f"ties {ties}, better {better}" in docs


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
