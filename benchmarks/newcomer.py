"""A stranger's path, timed: clone and install, the README's program, the demo, Start's page, a model of one's own.

Commands and programs are those of the pages, as a reader would type them; reading takes longer.

    python benchmarks/newcomer.py            # minutes; writes newcomer.json
    python benchmarks/newcomer.py --smoke    # the README's program alone, with the environment at hand
"""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic

from recorded import record

ROOT = Path(__file__).parents[1]
RECORD = Path(__file__).parent / "newcomer.json"
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

OWN = """
import numpy as np
from skops import io
from sklearn.cluster import KMeans
from sklearn.datasets import load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

X = load_wine().data[:, [0, 6, 9, 12]]
cellar = np.random.default_rng(0).integers(5, size=len(X))
for j in range(5):
    mine = X[cellar == j]
    np.savetxt(f"cellar{j}.csv", mine, "%g", ",", header="alcohol,flavanoids,colour,proline", comments="")
    io.dump(make_pipeline(StandardScaler(), KMeans(3, n_init=5, random_state=0)).fit(mine), f"cellar{j}.skops")
"""
"""Five cellars' wines, k-means at each: what a reader does after the pages, with models of their own."""

FUSED = [
    *(
        f"modelweld export cellar{j}.skops --X cellar{j}.csv --site cellar{j} "
        f"--features alcohol,flavanoids,colour,proline --out cellar{j}.safetensors"
        for j in range(5)
    ),
    "modelweld fuse cellar?.safetensors --out wines.safetensors --report wines.html",
    "modelweld verdict wines.safetensors",
    "modelweld model wines.safetensors --out wines.skops",
]


def blocks(page: Path) -> list[tuple[str, str]]:
    """Blocks of a page, each with its language."""
    return FENCE.findall(page.read_text(encoding="utf-8"))


def typed(page: Path) -> str:
    """All blocks of a page as one program: names live on from block to block, commands go to the shell."""
    program = "import subprocess\n"
    for language, block in blocks(page):
        if language == "python":
            program += block
        if language == "console":
            lines = [line.removeprefix("$ ") for line in block.splitlines() if line.startswith("$ ")]
            program += "".join(f"subprocess.run({line!r}, shell=True, check=True)\n" for line in lines)
    return program


def run(command: list[str] | str, folder: Path, bin: Path) -> None:
    """A command, with the environment's programs first; what it says is shown where it fails."""
    env = {**os.environ, "PATH": f"{bin}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(command, cwd=folder, env=env, shell=isinstance(command, str), capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{command}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")


def timed(part: str, jobs: Callable[[], object]) -> dict[str, object]:
    """Seconds of wall clock and of processors that a part takes."""
    began, before = monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    jobs()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    row = {"part": part, "wall": round(monotonic() - began), "cpu": round(cpu)}
    print(f"{part:44s} {row['wall']:5d} s, CPU {row['cpu']:4d} s", flush=True)
    return row


def path(clone: Path, home: Path) -> Iterator[dict[str, object]]:
    """Part by part, from a clone to a fused model of one's own."""
    bin = clone / ".venv" / "bin"
    readme = dict(blocks(ROOT / "README.md"))["python"]

    def install() -> None:
        run(["git", "clone", "--quiet", str(ROOT), str(clone)], home, bin)
        run([sys.executable, "-m", "venv", ".venv"], clone, bin)
        run([str(bin / "pip"), "install", "--quiet", ".[safe]"], clone, bin)

    yield timed("clone and install, with the extra safe", install)
    yield timed("the README's program", lambda: run([str(bin / "python"), "-c", readme], home, bin))
    yield timed("modelweld demo", lambda: run("modelweld demo", home, bin))
    start = typed(clone / "docs" / "start" / "hospitals.md")
    yield timed("three hospitals, from csv to page", lambda: run([str(bin / "python"), "-c", start], home, bin))

    def own() -> None:
        run([str(bin / "python"), "-c", OWN], home, bin)
        for command in FUSED:
            run(command, home, bin)

    yield timed("a model of one's own, five cellars", own)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        if "--smoke" in sys.argv[1:]:
            program = dict(blocks(ROOT / "README.md"))["python"]
            timed(
                "the README's program", lambda: run([sys.executable, "-c", program], home, Path(sys.executable).parent)
            )
        else:
            rows = list(path(home / "clone", home))
            total = {key: sum(int(str(row[key])) for row in rows) for key in ("wall", "cpu")}
            record(RECORD, "seconds of a stranger's path, part by part", [*rows, {"part": "in all", **total}])
