"""Data of the repository that several studies read."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np

DATA = Path(__file__).parents[1] / "data"


def stored(folder: str, arrays: str, table: str) -> tuple[Any, list[dict[str, str]]]:
    """A folder's arrays by name, and the rows of its table."""
    with (DATA / folder / table).open(newline="", encoding="utf-8") as file:
        return np.load(DATA / folder / arrays), list(csv.DictReader(file))
