"""What tests of the paper's studies share: files imported from one study at a time, and quick runs of all of it."""

import json
import subprocess
import sys
from html import escape
from pathlib import Path

EXPERIMENTS = Path(__file__).parents[1] / "experiments"


def importing(monkeypatch, name):
    """Give a function that imports files of a study; other studies have files of the same name."""
    folders = (EXPERIMENTS, EXPERIMENTS / name)
    own = [path.stem for folder in folders for path in folder.glob("*.py")]
    for folder in folders:
        monkeypatch.syspath_prepend(folder)
    for module in own:
        monkeypatch.delitem(sys.modules, module, raising=False)
    yield __import__
    for module in own:
        sys.modules.pop(module, None)


def quick_run(name, out):
    """What ``experiments/reproduce.py`` finds in a quick run; figures are drawn, and the page shows them."""
    command = [sys.executable, str(EXPERIMENTS / "reproduce.py"), name, "--quick", "--jobs", "1", "--out", str(out)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr + run.stdout
    record = json.loads((out / "quick" / name / "results.json").read_text())
    for figure in record["figures"]:
        assert (out / "quick" / name / "figures" / figure["file"]).read_text().startswith("<?xml")
    page = (out / "quick" / "page.html").read_text()
    assert page.count("<img") == len(record["figures"])
    assert all(escape(claim["text"]) in page for claim in record["claims"])
    return record
