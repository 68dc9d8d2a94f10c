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


def test_what_was_mended_was_tried_again():
    again = record("record_again.json")
    assert set(again["readers"]) == {"fusion", "slim"}
    assert again["faults"] == []
    assert sum(row["netted"] for row in again["readers"].values()) == 0
    assert f"and {min(row['inputs'] for row in again['readers'].values()):,} others" in text("docs/reliability.md")


def test_earlier_runs_are_told():
    docs = text("docs/reliability.md")
    for name, seeds in (("first", []), ("second", [5097961])):
        run = record(f"record_{name}.json")
        assert f"{min(row['inputs'] for row in run['readers'].values()):,}" in docs
        assert [fault["seed"] for fault in run["faults"]] == seeds
        assert all(f"seed {seed}; mended" in docs for seed in seeds)
        assert sum(row["netted"] for row in run["readers"].values()) == 0
    for name in ("first", "second", "third", "again"):
        soaked = record(f"soak_{name}.json")
        assert f"{soaked['tried']:,} ([soak_{name}.json]" in docs
        assert soaked["faults"] == []
        assert sum(law["differs"] + law["failed"] for law in soaked["laws"].values()) == 0


def test_earlier_records_are_named():
    docs = text("docs/reliability.md")
    earlier = record("record_earlier.json")["rows"]
    assert f"{earlier[0]['inputs']:,} ([record_earlier.json]" in docs
    assert all(row["faults"] == 0 for row in earlier)
    soaked = record("soak_earlier.json")
    assert f"{soaked['fused']} of larger sets" in docs
    assert sum(row["differs"] + row["failed"] for row in soaked["rows"]) == 0


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
    """Every row of docs/privacy.md stands in the records, and every one of theirs there."""
    folders = ("membership", "membership_cancer", "membership_heart")
    recorded = [record(f"{name}/results.json")["tables"][0]["rows"] for name in folders]
    docs = (ROOT / "docs/privacy.md").read_text(encoding="utf-8")
    assert len(recorded[0]) == 10
    for rows in zip(*recorded, strict=True):
        (name,) = {row[0] for row in rows}
        assert f"| {' | '.join([name, *(row[1] for row in rows)])} |" in docs


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
