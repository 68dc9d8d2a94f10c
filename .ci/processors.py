"""Tests that compare numbers, as if on other processors: numpy, OpenBLAS and numba choose loops by what they find.

python .ci/processors.py numpy prescott        # or all; what this processor cannot do is left out, and said
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

TESTS = (
    "answers",
    "counts",
    "directions",
    "drawn_directions",
    "engines",
    "families",
    "optimum",
    "rates",
    "shards_default",
)
"""Files of tests that compare numbers."""


def variants() -> dict[str, dict[str, str] | None]:
    """Names of variants, and environments; None where this processor cannot."""
    found = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
    wide = [name for name in found if name == "X86_V4" or name.startswith("AVX512")]
    known = {*found, *np.show_config(mode="dicts")["SIMD Extensions"].get("baseline", [])}
    cache = Path(".pytest_cache", "generic").absolute()
    return {
        "numpy": {"NPY_DISABLE_CPU_FEATURES": " ".join(wide)} if wide else None,
        "prescott": {"OPENBLAS_CORETYPE": "Prescott"},
        "haswell": {"OPENBLAS_CORETYPE": "Haswell"} if known & {"AVX2", "X86_V3"} else None,
        "skylake": {"OPENBLAS_CORETYPE": "SkylakeX"} if wide else None,
        "generic": {"NUMBA_CPU_NAME": "generic", "NUMBA_CACHE_DIR": str(cache)},
    }


def main() -> int:
    """Run the tests in each variant asked for; the number of those in which some fail."""
    mark, *asked = sys.argv[1:]
    failed = 0
    for name, environment in variants().items():
        if name not in asked and asked != ["all"]:
            continue
        if environment is None:
            print(f"{name}: not on this processor", flush=True)
            continue
        print(f"{name}: {environment}", flush=True)
        command = [sys.executable, "-m", "pytest", "--quiet", "--numprocesses", "2", "-m", mark]
        files = [f"tests/test_{file}.py" for file in TESTS]
        failed += subprocess.run([*command, *files], env={**os.environ, **environment}, check=False).returncode != 0
    return failed


if __name__ == "__main__":
    sys.exit(main())
