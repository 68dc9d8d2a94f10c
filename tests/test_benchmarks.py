"""The benchmarks run: their figures are measured elsewhere, by hand."""

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.mark.parametrize(
    ("script", "option", "says"),
    [
        ("speed.py", "--smoke", "ratio"),
        ("scale.py", "smoke", "ARI 1.0000"),
        ("families.py", "--smoke", "ratio"),
        ("startup.py", "--smoke", "ratio"),
    ],
)
def test_smoke(script, option, says):
    run = subprocess.run(
        [sys.executable, str(BENCHMARKS / script), option], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    assert says in run.stdout
