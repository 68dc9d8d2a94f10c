"""Every command that writes, killed at any moment: afterwards there is the old file or the new one, whole.

python experiments/hostile/kills.py                   # 1,000 kills -9, about an hour on one processor
python experiments/hostile/kills.py --smoke           # one of each command
python experiments/hostile/kills.py --disk            # instead: the disk is full after so many bytes, at every writer

Commands run in processes that have loaded everything already (a server forks), so that most kills fall into the work
and the writing. A kill comes after a random share of the time the command takes; every second one as soon as a part of
a file is there, up to two milliseconds later.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
import resource
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from study import asked  # isort: skip; first: it sets the threads

import numpy as np

import modelweld
from modelweld import cli
from modelweld.files import limits
from modelweld.kinds.mixture import mixture
from provenance import keep

COMMANDS = {
    "export": ("export", "points.csv", "--out", "out.safetensors", "--centres"),
    "fuse": ("fuse", "sites", "--out", "out.safetensors"),
    "fuse --report": ("fuse", "sites", "--out", "other.safetensors", "--report", "out.html"),
    "report": ("report", "fusion.safetensors", "--out", "out.html"),
    "add": ("add", "fusion.safetensors", "late.safetensors", "--out", "out.safetensors"),
    "remove": ("remove", "fusion.safetensors", "s1", "--out", "out.safetensors"),
    "apply": ("apply", "fusion.safetensors", "points.csv", "--out", "out.csv"),
    "model": ("model", "fusion.safetensors", "--out", "out.joblib"),
}
"""Command -> its words; each writes the file called out, and replaces one."""

SOON = 0.002
"""Seconds after a part of a file is seen within which every second kill falls."""


def main() -> None:
    """Run, print what was found, and write the record."""
    given = asked(
        __doc__,
        number=(1000, "kills in all"),
        seed=(0, "draws when kills come"),
        disk=(False, "fill the disk instead of killing"),
        smoke=(False, "one of each command"),
        out=({"type": lambda name: Path(name).resolve()}, "a JSON file for the record"),
    )
    warnings.simplefilter("ignore")
    number = len(COMMANDS) if given.smoke else given.number
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        rows = disk_rows() if given.disk else kill_rows(number, random.Random(given.seed))
        os.chdir("/")
    for row in rows:
        print(", ".join(f"{name} {value}" for name, value in row.items()))
    broken = sum(int(row["broken"]) for row in rows)
    what = "full disks" if given.disk else "kills"
    print(f"{sum(int(row['times']) for row in rows):,} {what}, {broken} broken files")
    if given.out:
        keep(given.out, {"rows": rows, "broken": broken}, {"seed": given.seed, "number": number})
    sys.exit(bool(broken))


def make_files() -> None:
    """Sites, a fusion of them, a site that is late, and points to label."""
    rng = np.random.default_rng(0)
    Path("sites").mkdir()
    for j in range(5):
        means = rng.normal([[0, 0], [9, 9], [-9, 9]], 0.5)
        model = mixture(means, np.ones((3, 2)), [90.0, 80, 70], counted=True, site=f"s{j}", features=["age", "bmi"])
        model.facts["library"] = "sklearn.mixture.GaussianMixture"
        modelweld.files.save(model, f"sites/s{j}.safetensors" if j < 4 else "late.safetensors")
    modelweld.fuse(sorted(map(str, Path("sites").iterdir()))).save("fusion.safetensors")
    lines = "\n".join(",".join(map(str, row)) for row in rng.normal(0, 9, (2000, 2)))
    Path("points.csv").write_text(f"age,bmi\n{lines}\n")


def kill_rows(number: int, draw: random.Random) -> list[dict[str, object]]:
    """What is there after kills, by command."""
    make_files()
    rows = []
    for i, (name, words) in enumerate(COMMANDS.items()):
        out = written_by(words)
        times = number // len(COMMANDS) + (i < number % len(COMMANDS))
        began = time.monotonic()
        assert waited(begun((*words, "--force"))) == 0, name
        took, old = time.monotonic() - began, f"old {name}".encode()
        found = Counter(killed(words, out, old, draw, took, at_once=k % 2 == 0) for k in range(times))
        left = parts()
        age(left)
        assert waited(begun((*words, "--force"))) == 0, name
        rows.append({"command": name, "times": times, **{w: found[w] for w in ("old", "new", "broken", "ended first")}})
        rows[-1] |= {"left behind": len(left), "left after the next": len(parts())}
        rows[-1]["broken"] = found["broken"] + len(parts())
    return rows


def killed(words: tuple[str, ...], out: Path, old: bytes, draw: random.Random, took: float, *, at_once: bool) -> str:
    """What is at `out` after a command that was to replace what is there was killed."""
    out.write_bytes(old)
    before = set(parts())
    child = begun((*words, "--force"))
    if at_once:
        until = time.monotonic() + 3 * took
        while time.monotonic() < until and set(parts()) <= before and os.waitid(os.P_PID, child, ENDED) is None:
            pass
        time.sleep(draw.uniform(0, SOON))
    else:
        time.sleep(draw.uniform(0, took))
    os.kill(child, signal.SIGKILL)
    ended = waited(child) == 0
    data = out.read_bytes()
    if data == old:
        return "old"
    if not is_whole(out, data):
        print(f"{words}: {len(data)} bytes, sha256 {hashlib.sha256(data).hexdigest()}", file=sys.stderr)
        return "broken"
    return "ended first" if ended else "new"


ENDED = os.WEXITED | os.WNOHANG | os.WNOWAIT


def written_by(words: tuple[str, ...]) -> Path:
    """The file called out."""
    return Path(next(word for word in words if word.startswith("out.")))


def begun(words: tuple[str, ...], limit: int | None = None) -> int:
    """A child that runs a command, quietly, and may not be able to write more than so many bytes to a file."""
    child = os.fork()
    if child:
        return child
    code = 70
    try:
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        sys.argv = ["modelweld", *words]
        cli.main()
        code = 0
    except SystemExit as end:
        code = int(end.code or 0)
    finally:
        os._exit(code)


def waited(child: int) -> int:
    """The exit code of a child; minus the signal that ended it."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def is_whole(path: Path, data: bytes) -> bool:
    """Whether a file is all that it was to be."""
    match path.suffix:
        case ".safetensors":
            with contextlib.suppress(modelweld.InputError):
                return modelweld.load(path) is not None
            return False
        case ".html":
            return data.rstrip().endswith(b"</html>")
        case ".csv":
            return data.count(b"\n") == 2001 and data.endswith(b"\n")
        case _:
            import joblib

            with contextlib.suppress(Exception):
                return joblib.load(path) is not None  # our own, written a moment ago
            return False


def parts() -> list[Path]:
    """What killed writers left."""
    return list(Path().glob(f"{limits.PART}*"))


def age(left: list[Path]) -> None:
    """Make leftovers old enough to be taken for a killed writer's."""
    for part in left:
        os.utime(part, (time.time() - 2 * limits.LEFT,) * 2)


def disk_rows() -> list[dict[str, object]]:
    """What is there after the disk was full: no file may grow beyond so many bytes, and none beyond the smallest."""
    make_files()
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # the write fails instead, as on a full disk
    rows = []
    for name, words in COMMANDS.items():
        out = written_by(words)
        assert waited(begun((*words, "--force"))) == 0, name
        size, found = out.stat().st_size, Counter[str]()
        for limit in (0, 1, size // 2, size - 1):
            out.write_bytes(b"old")
            code = waited(begun((*words, "--force"), limit))
            old = out.read_bytes() == b"old"
            found["told" if code == 1 else "not told"] += 1
            found["old" if old else "broken"] += 1
        rows.append({"command": name, "times": 4, "old": found["old"], "told": found["told"]})
        rows[-1]["broken"] = found["broken"] + found["not told"] + len(parts())
    return rows


if __name__ == "__main__":
    main()
