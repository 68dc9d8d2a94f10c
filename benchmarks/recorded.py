"""What one needs to judge a table of times: commit, date, versions and the machine's load, kept beside its rows."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from time import process_time

LIBRARIES = ("numpy", "scipy", "numba", "scikit-learn")


def record(path: Path, what: str, rows: Sequence[object] | Mapping[str, object], **others: object) -> None:
    """Keep a table, and others beside it."""
    content = {
        "commit": commit(),
        "date": datetime.now(UTC).date().isoformat(),
        "versions": {"python": platform.python_version()} | {name: version(name) for name in LIBRARIES},
        "load": [round(x, 1) for x in os.getloadavg()],
        "processors": os.cpu_count(),
        "what": what,
        "rows": rows,
    } | others
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def commit(folder: Path = Path(__file__).parent) -> str:
    """What is measured: the commit of the clone that a folder is in."""
    git = ["git", "rev-parse", "--short", "HEAD"]
    found = subprocess.run(git, capture_output=True, text=True, cwd=folder)
    return found.stdout.strip() or "unknown"


def least_seconds(job: Callable[[], object], repeats: int) -> float:
    """CPU time of the quickest of some repeats: others use the machine, too."""
    times = []
    for _ in range(repeats):
        begin = process_time()
        job()
        times.append(process_time() - begin)
    return min(times)
