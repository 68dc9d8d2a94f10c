"""The benchmarks run: their figures are measured elsewhere, by hand."""

from pathlib import Path

import pytest

from programs import printed_by

pytestmark = pytest.mark.slow
BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.mark.parametrize(
    ("script", "option", "says"),
    [
        ("speed.py", "--smoke", "ratio"),
        ("scale.py", "smoke", "ARI 1.0000"),
        ("families.py", "--smoke", "ratio"),
        ("startup.py", "--smoke", "ratio"),
        ("jobs.py", "--smoke", "5 sites with standard errors"),
        ("growth.py", "--smoke", "reduction: exponent"),
        ("bare.py", "--smoke", "| 10 sites, 261 parameters |"),
        ("against.py", "--smoke", "1 sets: 1 same"),
        ("crossed.py", "--smoke", "fuse(6 mixtures)"),
        ("newcomer.py", "--smoke", "README's program"),
    ],
)
def test_smoke(script, option, says):
    assert says in printed_by(BENCHMARKS / script, option)
