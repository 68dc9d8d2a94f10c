"""The experiments run: their figures are measured elsewhere, by hand."""

import json
import subprocess
import sys
from pathlib import Path

EXPERIMENTS = Path(__file__).parents[1] / "experiments"


def test_strength(tmp_path):
    run = subprocess.run(
        [sys.executable, str(EXPERIMENTS / "strength" / "run.py"), "--smoke", "--out", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr + run.stdout
    results = json.loads((tmp_path / "results.json").read_text())
    assert list(results) == ["tiny_sparse", "tiny_mixtures"]
    assert results["tiny_sparse"]["ours"]["ari"] == [1.0, None]
    tables = (tmp_path / "tables.md").read_text()
    assert all(f"| {name} | {method} | 1 |" in tables for name, rows in results.items() for method in rows)


def test_calibration():
    run = subprocess.run(
        [sys.executable, str(EXPERIMENTS / "calibration" / "run.py"), "--smoke"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr + run.stdout
    assert run.stdout.count("| bin | stated | true | n |") == 4
