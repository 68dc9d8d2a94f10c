"""The core is the paper's method: it runs with all other zones absent, and gives what the paper's preset gives."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np

import modelweld
from simulated_sets import sparse

CORE = Path(modelweld.__file__).parent / "core"
ALONE = """
import json, sys
from importlib.abc import MetaPathFinder

import numpy as np


class OnlyTheCore(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        zone = name.split(".")[1] if name.startswith("modelweld.") else "core"
        if zone not in ("core", "errors", "progress"):
            raise ImportError(name)


sys.meta_path.insert(0, OnlyTheCore())
from modelweld.core.gaussian import Gaussian
from modelweld.core.match import fit
from modelweld.core.beta_bernoulli import BetaBernoulli
from modelweld.core.values import SetValues, Stack, offsets_of

groups = [np.array(group) for group in json.load(sys.stdin)]
values = np.concatenate(groups)
stack = Stack(values, offsets_of([len(group) for group in groups]))
family = Gaussian(mean=0.0, noise=1.0, spread=1.0, learning="moments")
data = SetValues([stack], [family], ["values"], [str(j) for j in range(len(groups))], None, np.arange(len(values)))
matching = fit(data, BetaBernoulli(form="paper"), 11, np.random.default_rng(0))
print(json.dumps([matching.stacked_labels.tolist(), matching.objective]))
"""


def test_the_core_alone_gives_the_papers_answer():
    sites = sparse(8, 5, 4, 0.3, 3.0, 1.0, 1.0, seed=2).values
    run = subprocess.run(
        [sys.executable, "-c", ALONE], input=json.dumps([v.tolist() for v in sites]), capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    labels, objective = json.loads(run.stdout)
    fusion = modelweld.fuse(sites, preset="paper")
    assert np.array_equal(labels, fusion.matching.stacked_labels)
    assert objective == fusion.objective


def test_the_core_is_eleven_files():
    assert len([file for file in CORE.glob("*.py") if file.name != "__init__.py"]) == 11
