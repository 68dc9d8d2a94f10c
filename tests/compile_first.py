"""Compile what tests call, once, while style and types are looked at: two processes of tests would both compile it.

python tests/compile_first.py sweeps chains

`make test` calls it, a process for each word; without it tests pass as well, two minutes later.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
import conftest  # where tests keep compiled code
import numpy as np

import modelweld
from modelweld import Counts, Directions, LocalModel, NormalGamma
from modelweld.families import Gaussian
from modelweld.families.math import log_rising_compiled


def sites(J: int) -> list[np.ndarray]:
    """Sites of some of twelve positive values in three features."""
    rng = np.random.default_rng(0)
    atoms = rng.uniform(2, 9, (12, 3))
    return [(atoms + rng.normal(0, 0.3, atoms.shape))[rng.permutation(12)[:7]] for _ in range(J)]


def with_errors(values: np.ndarray) -> LocalModel:
    """What a site sends that states standard errors."""
    return LocalModel({"v": values}, {"v": ("atom", None)}, variance={"v": np.full(values.shape, 0.01)})


def sweeps() -> None:
    """Sweeps of one Gaussian array, with and without standard errors."""
    for shape in ("diagonal", "scalar"):
        modelweld.fuse(sites(8), Gaussian(shape=shape), search=modelweld.Search("thorough", engine="compiled"))
        modelweld.fuse([with_errors(site) for site in sites(60)], Gaussian(shape=shape))


def chains() -> None:
    """Chains of matchings and hyperparameters: of one Gaussian array, and of other families."""
    for fusion in (modelweld.fuse(sites(3)), modelweld.fuse([with_errors(site) for site in sites(3)])):
        fusion.posterior.sample(4)
    unit = [site / np.linalg.norm(site, axis=1, keepdims=True) for site in sites(3)]
    counts = [np.floor(site) for site in sites(3)]
    for values, family in ((unit, Directions()), (sites(3), NormalGamma()), (counts, Counts())):
        modelweld.fuse(values, family).posterior.sample(4, fixed=False)
    log_rising_compiled.log_rising_pairs(counts[0], counts[1])


if __name__ == "__main__":
    for part in sys.argv[1:]:
        {"sweeps": sweeps, "chains": chains}[part]()
    print(f"compiled {' and '.join(sys.argv[1:])} into {conftest.CACHES.name}")
