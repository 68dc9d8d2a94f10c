"""Where a record comes from: commit, date, versions and settings, in one key of every JSON file of figures.

python experiments/provenance.py             # which records do not say where they come from
python experiments/provenance.py --fill      # take it from the history of the file, and say that it was so
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import subprocess
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
KEY, PARTS = "provenance", ("commit", "date", "versions", "settings")
LIBRARIES = ("numpy", "scipy", "scikit-learn", "numba", "hmmlearn", "tomotopy")
NOT_INSTALLED = "not installed"
NO_RECORDS = ("expected.json",)
"""Files of figures to compare with, taken from a record that lies beside them."""

UNKNOWN = {"not recorded": "the run did not say; the study's README does, as far as it is known"}

SAID = ("seeds", "seed", "first_seed", "draws", "cases", "catalogue", "quick", "what", "data")
"""Settings that some records have under names of their own."""


def provenance(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Of a run that happens now: the commit of the library, the day, versions, and what the run was told."""
    return {
        "commit": commit(),
        "date": datetime.now(UTC).date().isoformat(),
        "versions": versions(),
        "settings": dict(settings),
    }


def commit() -> str:
    """The last commit that changed the library which is measured, and whether it has changes that no commit has."""
    import modelweld

    home = Path(str(modelweld.__file__)).parent
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


def keep(path: Path, rows: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
    """Write figures with where they come from."""
    content = {KEY: provenance(settings), **{name: value for name, value in rows.items() if name != KEY}}
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


def records() -> Iterator[Path]:
    """All JSON files of figures in the repository."""
    for folder in ("experiments", "benchmarks"):
        found = sorted((ROOT / folder).rglob("*.json"))
        yield from (path for path in found if path.name not in NO_RECORDS and "tasks" not in path.parts)


def lacking(path: Path) -> list[str]:
    """What a record does not say of where it comes from, in the one key or by names of its own."""
    record = json.loads(path.read_text(encoding="utf-8"))
    said = {**by_own_names(record), **record.get(KEY, {})}
    return [part for part in PARTS if not said.get(part)]


def by_own_names(record: Mapping[str, Any]) -> dict[str, Any]:
    """What a record that is put together elsewhere (benchmarks, hostile, directions) says of where it comes from."""
    versions = record.get("versions", {})
    return {
        "commit": record.get("commit") or versions.get("commit"),
        "date": record.get("date"),
        "versions": {k: v for k, v in versions.items() if k not in ("commit", "modelweld")},
        "settings": {name: record[name] for name in SAID if name in record},
    }


def from_history(path: Path) -> dict[str, Any]:
    """Where a record comes from that did not say so itself: of its last commit, and what it says in other places."""
    said = by_own_names(json.loads(path.read_text(encoding="utf-8")))
    last, day = git("log", "-1", "--format=%h %cs", "--", str(path)).split()
    asked = git("show", f"{last}:constraints.txt")
    pinned = {name: v for name, v in re.findall(r"^([\w-]+)==([\w.]+)", asked, re.MULTILINE) if name in LIBRARIES}
    return {
        "commit": said["commit"] or f"at most {last}",
        "date": said["date"] or day,
        "versions": said["versions"] or pinned or UNKNOWN,
        "settings": said["settings"] or UNKNOWN,
        "filled in": f"from the record and from commit {last}, which holds it: the run did not say all of it",
    }


def fill(path: Path) -> None:
    """Add to a record what its history tells."""
    record = json.loads(path.read_text(encoding="utf-8"))
    told = {**from_history(path), **{part: said for part, said in record.pop(KEY, {}).items() if said}}
    path.write_text(as_text({KEY: told, **record}), encoding="utf-8")


def git(*words: str, folder: Path = ROOT) -> str:
    """What git says about a repository."""
    run = subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=False)
    return run.stdout.strip()


def main() -> None:
    """List or fill."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fill", action="store_true", help="take what is missing from the history of the file")
    parser.add_argument("paths", nargs="*", type=Path, help="these; default: all")
    options = parser.parse_args()
    for path in [p.resolve() for p in options.paths] or records():
        missing = lacking(path)
        if missing:
            print(path.relative_to(ROOT), ", ".join(missing))
            if options.fill:
                fill(path)


if __name__ == "__main__":
    main()
