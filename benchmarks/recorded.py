"""Times as they are measured here, and what one needs to judge a table of them: commit, date, versions, load.

People fuse a set once. So what the library remembers of one call for the next (most of all spectra of supports it has
met) is forgotten before each: on the same data again and again it was up to half of the time.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
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


def forget() -> None:
    """Empty the library's bounded caches; those without a bound hold what a process learns of its machine."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "modelweld"]:
        for found in list(vars(sys.modules[name]).values()):
            parameters = getattr(found, "cache_parameters", None)
            if parameters is not None and parameters()["maxsize"] is not None:
                found.cache_clear()


def cpu_seconds(job: Callable[[], object]) -> float:
    """CPU time of a job, done as if for the first time."""
    forget()
    begin = process_time()
    job()
    return process_time() - begin


def least_seconds(job: Callable[[], object], repeats: int) -> float:
    """CPU time of the quickest of some repeats: others use the machine, too."""
    return min(cpu_seconds(job) for _ in range(repeats))
