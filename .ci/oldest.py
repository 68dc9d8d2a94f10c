"""The oldest versions that pyproject.toml allows, as requirements: what `make oldest` installs.

python .ci/oldest.py
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def oldest() -> list[str]:
    """Every dependency at its lower bound."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [re.sub(r"\s*>=\s*", "==", line.split(",")[0]) for line in project["dependencies"]]


if __name__ == "__main__":
    print("\n".join(oldest()))
