"""Figures that docs/start/why.md gives stand in the records that it names."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROWS = [line.split("|") for line in (ROOT / "docs" / "start" / "why.md").read_text(encoding="utf-8").splitlines()]
MEASURED = [row for row in ROWS if len(row) > 3 and row[-2].strip().startswith("`experiments/")]
FIGURE = re.compile(r"-?\d+\.\d+")


def figures(row):
    return [figure for cell in row[2:-2] for figure in FIGURE.findall(cell)]


@pytest.mark.parametrize("row", MEASURED, ids=lambda row: row[1].strip()[:40])
def test_figures_are_those_of_the_record(row):
    record = (ROOT / row[-2].strip(" `")).read_text(encoding="utf-8")
    assert len(figures(row)) >= 3
    assert [figure for figure in figures(row) if not re.search(rf"(?<![\d.]){re.escape(figure)}(?!\d)", record)] == []


def test_there_are_rows():
    assert len(MEASURED) >= 8
