"""Where a record comes from: commit, date, versions, settings and code, in one key of every JSON file of figures.

The code is that of the modules of the library that a study had loaded: a hash of what each says, words (docstrings,
comments) left out. A test turns red where one is no longer that of today: the study is to be run again, unless it is
exempt with a reason, or the answers that were recorded do not depend on just this change.

python experiments/provenance.py             # which records do not say where they come from, or are of other code
"""

from __future__ import annotations

import ast
import json
import platform
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
KEY, PARTS = "provenance", ("commit", "date", "versions", "settings")
LIBRARIES = ("numpy", "scipy", "scikit-learn", "numba", "hmmlearn", "tomotopy")
NOT_INSTALLED = "not installed"
SAID = ("seeds", "seed", "first_seed", "draws", "cases", "catalogue", "quick", "what", "data")
"""Settings that records of `study.write_record` and of the benchmarks have under names of their own."""

EXEMPT = {"benchmarks": "seconds of one machine, measured again where speed is claimed"}
"""Records, or folders of them, that may be of other code than today's, and why."""

FILLED = "what was measured is asked where densities are made: `mixtures` and `accidents` are of that answer"
HARMLESS: dict[tuple[str, str, str], str] = {
    ("__init__.py", "b2776ce1ddcc", "3109aa12a3b2"): "the package is pickled by its name",
    ("array_stage.py", "ba3aaabf2663", "60e3d7472a1b"): "site effects of plain values are looked for once",
    ("core/board.py", "dc836909889a", "fd1eaa375980"): "values by themselves are scored when they are asked for",
    ("kinds/hmm.py", "54964bbf25b2", "f9f9eee280ac"): FILLED,
    ("kinds/mixture_completion.py", "0fbff3ad9eb1", "6779f970a29c"): FILLED,
    ("kinds/mixture_components.py", "6378e91ad1fd", "eda7cdadeef3"): "one component of one feature: in no study",
    ("kinds/mixture_components.py", "f39912244cf5", "eda7cdadeef3"): FILLED,
}
"""Changes on which no recorded answer depends, and why: a module, what it was and what it is."""


def provenance(settings: Mapping[str, Any], done_with: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Commit and code of the library, of now if nothing else is said, the day, versions, and what the run was told."""
    code = dict(done_with or {"commit": commit(), **code_of(loaded())})
    return {
        "commit": code.pop("commit"),
        "date": datetime.now(UTC).date().isoformat(),
        "versions": versions(),
        "settings": dict(settings),
        "code": code,
    }


def loaded() -> set[str]:
    """Modules of the library that this process has, by their paths in the package."""
    home = library()
    files = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
    return {Path(f).relative_to(home).as_posix() for f in files if f and Path(f).is_relative_to(home)}


def library() -> Path:
    """The folder of the library that is measured."""
    import modelweld

    return Path(str(modelweld.__file__)).parent


def code_of(modules: Iterable[str]) -> dict[str, Any]:
    """A hash of what each of these modules says today, by their paths; of one that is gone, of nothing."""
    return {
        "modules": {name: sha256(without_words(library() / name).encode()).hexdigest()[:12] for name in sorted(modules)}
    }


@cache
def without_words(path: Path) -> str:
    """The lines of a module but its docstrings and comments."""
    if not path.exists():
        return ""
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            lines[node.lineno - 1 : node.end_lineno] = [""] * (node.end_lineno - node.lineno + 1)
    code = (re.sub(r"(^| )\s*# .*", "", line).rstrip() for line in lines)
    return "\n".join(line for line in code if line)


def outdated(path: Path) -> str:
    """What is wrong with the code that a record is of; nothing where it is that of today, or exempt."""
    name = path.relative_to(ROOT).as_posix()
    if any(Path(name).is_relative_to(exempt) for exempt in EXEMPT):
        return ""
    code = json.loads(path.read_text(encoding="utf-8")).get(KEY, {}).get("code")
    if code is None:
        return f"{name} does not say which code it is of: run its study again"
    other = ", ".join(changed(code))
    return f"{name} is of other code ({other}): run its study again" if other else ""


def changed(code: Mapping[str, Any]) -> list[str]:
    """Modules that say something else today, on which answers may depend."""
    was, now = code["modules"], code_of(code["modules"])["modules"]
    return [name for name in was if was[name] != now[name] and (name, was[name], now[name]) not in HARMLESS]


def is_of_today(code: Mapping[str, Any]) -> bool:
    """Do these modules still say the same, as far as answers go?"""
    return not changed(code)


def commit() -> str:
    """The last commit that changed the library which is measured, and whether it has changes that no commit has."""
    home = library()
    changed = " with changes" if git("status", "--porcelain", "--", ".", folder=home) else ""
    return (git("log", "-1", "--format=%h", "--", ".", folder=home) or "unknown") + changed


def versions() -> dict[str, str]:
    """Of Python and of the libraries a study may stand on."""
    found = {"python": platform.python_version()}
    for library in LIBRARIES:
        try:
            found[library] = metadata.version(library)
        except metadata.PackageNotFoundError:
            found[library] = NOT_INSTALLED
    return found


def keep(path: Path, rows: Mapping[str, Any], settings: Mapping[str, Any], **origin: Any) -> None:
    """Write figures with where they come from."""
    content = {KEY: provenance(settings, **origin), **{name: value for name, value in rows.items() if name != KEY}}
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".unfinished")
    unfinished.write_text(as_text(content), encoding="utf-8")
    unfinished.replace(path)


def as_text(content: Mapping[str, Any]) -> str:
    """JSON with a line for each part: short, and differences are seen part by part."""
    return "{\n" + ",\n".join(f"{json.dumps(name)}: {json.dumps(part)}" for name, part in content.items()) + "\n}\n"


def kept(path: Path) -> dict[str, Any]:
    """Figures of a record, without where they come from; none where there is no record."""
    found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return {name: value for name, value in found.items() if name != KEY}


def resumed(path: Path) -> dict[str, Any]:
    """Figures of a record to which others are added: none where it is of other code than today's."""
    code = json.loads(path.read_text(encoding="utf-8")).get(KEY, {}).get("code") if path.exists() else None
    return kept(path) if code and is_of_today(code) else {}


def records() -> Iterator[Path]:
    """All JSON files of figures in the repository."""
    for folder in ("experiments", "benchmarks"):
        found = sorted((ROOT / folder).rglob("*.json"))
        yield from (path for path in found if "tasks" not in path.parts)


def lacking(path: Path) -> list[str]:
    """What a record does not say of where it comes from; tables of benchmarks say it beside their rows."""
    record = json.loads(path.read_text(encoding="utf-8"))
    said = record.get(KEY) or {**record, "settings": record.get("what")}
    return [part for part in PARTS if not said.get(part)]


def git(*words: str, folder: Path = ROOT) -> str:
    """What git says about a repository."""
    run = subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=False)
    return run.stdout.strip()


def main() -> None:
    """List them."""
    for path in records():
        if missing := lacking(path):
            print(path.relative_to(ROOT), "does not say", ", ".join(missing))
        if wrong := outdated(path):
            print(wrong)


if __name__ == "__main__":
    main()
