"""What was built works: the wheel in an empty environment, the archive's tests from it; and it is small.

python .ci/package.py dist ["marks of the tests to run"]
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tempfile
import venv
from pathlib import Path

MOST_BYTES = 5_000_000
"""Of a source archive: eight megabytes of data stay in the repository."""

TESTS = [f"tests/test_{name}.py" for name in ("public", "readme", "package", "cli", "extending", "gaussian", "pages")]
"""Run from the archive: what a packager would break. Public names, the README's program, the command line with its
files, families and adapters of others, the laws of one family, and every block of the guide, which read data and
examples that must be in it. The whole suite runs from the repository, and from the archive the same way."""

PROGRAM = """
import numpy as np, modelweld
assert ".whl" not in modelweld.__file__ and "site-packages" in modelweld.__file__, modelweld.__file__
rng = np.random.default_rng(0)
atoms = rng.normal(0, 10, (4, 3))
sites = [atoms[held] + rng.normal(0, 0.1, (3, 3)) for held in ([0, 1, 2], [1, 2, 3])]
print(modelweld.__version__, modelweld.fuse(sites))
"""


def check(dist: Path, marks: str = "") -> None:
    """Stop at the first thing that fails."""
    (wheel,), (archive,) = dist.glob("*.whl"), dist.glob("*.tar.gz")
    size = archive.stat().st_size
    print(f"{archive.name}: {size / 1e6:.1f} MB, {wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB", flush=True)
    if size > MOST_BYTES:
        sys.exit(f"the archive has {size:,} bytes, more than {MOST_BYTES:,}: see exclude in pyproject.toml.")
    with tempfile.TemporaryDirectory() as folder:
        empty = Path(folder) / "empty"
        venv.create(empty, with_pip=True)
        python = empty / "bin" / "python"
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, wheel.resolve()], check=True, cwd=folder)
        subprocess.run([python, "-c", PROGRAM], check=True, cwd=folder)
        subprocess.run([empty / "bin" / "modelweld", "--version"], check=True, cwd=folder)
        with tarfile.open(archive) as tar:
            tar.extractall(folder, filter="data")
        unpacked = Path(folder) / archive.name.removesuffix(".tar.gz")
        pytest = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider"]
        env = {**os.environ, "PYTHONPATH": str(unpacked / "src")}
        subprocess.run([*pytest, "-m", marks, *TESTS], check=True, cwd=unpacked, env=env)


if __name__ == "__main__":
    check(Path(sys.argv[1]), *sys.argv[2:])
