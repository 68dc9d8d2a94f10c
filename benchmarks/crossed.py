"""How much of modelweld a call goes through: files entered, their lines of code, and functions.

Lines of code are those of whole files, without blank lines, comments and docstrings: what a reader opens who follows
the call. Everything is called once before it is counted, so that what runs while modules are loaded does not count;
every call has a fusion of its own. The first two calls must stay
below a ceiling (`MOST`), which every run checks.

    python benchmarks/crossed.py            # the table, some ten seconds
    python benchmarks/crossed.py --names    # the files, too, in the order in which they are entered
    python benchmarks/crossed.py --keep now # keep it in crossed.json under this name, with the commit that was counted
    python benchmarks/crossed.py --smoke    # the first two calls alone
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import json
import sys
import tempfile
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import CodeType, FrameType

import numpy as np
from sklearn.mixture import GaussianMixture

import modelweld
from modelweld.cli import app
from modelweld.shards import fuse_shards, group_sites
from recorded import commit, record

ROOT = Path(modelweld.__file__).parent
RECORD = Path(__file__).parent / "crossed.json"

Call = Callable[[modelweld.Fusion, Path], object]


@cache
def places() -> list[np.ndarray]:
    """Rows of six sites, each with four of six heaps."""
    rng = np.random.default_rng(0)
    heaps = rng.normal(0, 6, (6, 3))
    return [np.concatenate([rng.normal(heaps[k], 1, (60, 3)) for k in rng.permutation(6)[:4]]) for _ in range(6)]


@cache
def mixtures() -> list[GaussianMixture]:
    return [GaussianMixture(4, random_state=0).fit(X) for X in places()]


@cache
def centres() -> list[np.ndarray]:
    """Their means, as plain arrays."""
    return [mixture.means_ for mixture in mixtures()]


@cache
def exported(folder: Path) -> list[str]:
    """What the six sites send as files."""
    for j, (mixture, X) in enumerate(zip(mixtures(), places(), strict=True)):
        modelweld.export(mixture, folder / f"site{j}.safetensors", site=f"s{j}", X=X)
    return [str(folder / f"site{j}.safetensors") for j in range(6)]


@cache
def shards() -> list[list[np.ndarray]]:
    """Seventy sites with ten of forty atoms each."""
    rng = np.random.default_rng(1)
    atoms = rng.normal(0, 5, (40, 8))
    return group_sites([atoms[rng.permutation(40)[:10]] + rng.normal(0, 0.3, (10, 8)) for _ in range(70)])


def command(words: list[str]) -> None:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        app(words, standalone_mode=False)


CALLS: dict[str, Call] = {
    "fuse(6 mixtures)": lambda fusion, folder: modelweld.fuse(mixtures()),
    'fuse(preset="paper")': lambda fusion, folder: modelweld.fuse(centres(), preset="paper"),
    "fusion.model()": lambda fusion, folder: fusion.model(),
    "fusion.add(mixture)": lambda fusion, folder: fusion.add(mixtures()[0], site="x"),
    "fusion.confidence()": lambda fusion, folder: fusion.confidence(),
    "fusion.posterior.sample(10)": lambda fusion, folder: fusion.posterior.sample(10, chains=2),
    "fusion.report(path)": lambda fusion, folder: fusion.report(folder / "page.html"),
    "modelweld fuse --report": lambda fusion, folder: command(
        ["fuse", *exported(folder.parent), "--report", f"{folder}/page.html", "--out", f"{folder}/all.safetensors"]
    ),
    "fuse_shards(70 sites)": lambda fusion, folder: fuse_shards(shards()),
}
"""Name -> the call, given a fusion that has not been asked anything and an empty folder."""

MOST = {"fuse(6 mixtures)": (40, 4_000), 'fuse(preset="paper")': (19, 1_625)}
"""Name -> files and lines of code that the call may enter at most: to be lowered."""


def entered(call: Call, fusion: modelweld.Fusion, folder: Path) -> list[CodeType]:
    """Functions of modelweld that a call enters, in the order in which it does."""
    found: dict[CodeType, None] = {}

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and Path(frame.f_code.co_filename).is_relative_to(ROOT):
            found.setdefault(frame.f_code)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        call(fusion, folder)
    finally:
        sys.setprofile(before)
    return list(found)


def crossed(functions: list[CodeType]) -> dict[str, int]:
    """How many files, their lines of code, and functions."""
    files = files_of(functions)
    return {"files": len(files), "lines": sum(map(lines_of_code, files)), "functions": len(functions)}


def lines_of_code(file: Path) -> int:
    """Lines that are neither blank, nor comment, nor docstring."""
    text = file.read_text(encoding="utf-8")
    documented = {
        line
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    lines = enumerate(text.splitlines(), 1)
    return sum(bool(line.strip()) and not line.strip().startswith("#") and i not in documented for i, line in lines)


def files_of(functions: list[CodeType]) -> list[Path]:
    """Files in the order in which they are entered."""
    return list(dict.fromkeys(Path(code.co_filename) for code in functions))


def keep(name: str, calls: dict[str, dict[str, int]]) -> None:
    """Beside what is kept under other names."""
    kept = json.loads(RECORD.read_text(encoding="utf-8"))["rows"] if RECORD.exists() else {}
    rows = {**kept, name: {"commit": commit(ROOT), "calls": calls}}
    record(RECORD, "files, their lines of code, and functions of modelweld that a call enters", rows)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--names", action="store_true")
    parser.add_argument("--keep", metavar="NAME", help="under which to keep the counts in crossed.json")
    parser.add_argument("--smoke", action="store_true")
    asked = parser.parse_args()
    warnings.simplefilter("ignore", modelweld.ModelweldWarning)
    print(f"{'':<26} {'files':>6} {'lines':>7} {'functions':>10}")
    calls = {}
    with tempfile.TemporaryDirectory() as home:
        for name, call in list(CALLS.items())[: 2 if asked.smoke else None]:
            folders = [Path(tempfile.mkdtemp(dir=home)) for _ in range(2)]
            call(modelweld.fuse(mixtures()), folders[0])
            functions = entered(call, modelweld.fuse(mixtures()), folders[1])
            calls[name] = counts = crossed(functions)
            print(f"{name:<26} {counts['files']:>6} {counts['lines']:>7,} {counts['functions']:>10}")
            if name in MOST and (counts["files"] > MOST[name][0] or counts["lines"] > MOST[name][1]):
                raise SystemExit(f"{name}: enters more than {MOST[name][0]} files or {MOST[name][1]:,} lines of code.")
            if asked.names:
                print("   ", " ".join(str(file.relative_to(ROOT).with_suffix("")) for file in files_of(functions)))
    if asked.keep:
        keep(asked.keep, calls)


if __name__ == "__main__":
    main()
