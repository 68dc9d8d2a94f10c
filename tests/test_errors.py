"""Warnings name the user's own line, whoever inside the package gives them."""

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.mixture import GaussianMixture

import modelweld
from modelweld.errors import ConvergenceWarning, DisclosureWarning, OutlierWarning
from modelweld.site.train import FailureWarning

RNG = np.random.default_rng(0)
HONEST = [RNG.normal(0, 1, (5, 3)) for _ in range(6)]
JUNK = RNG.normal(0, 1e6, (4, 3))
SITES = [modelweld.LocalModel({"v": x}, {"v": ("atom", None)}) for x in [*HONEST, JUNK]]
SHIFTED = [x[:, :8] for x in RNG.normal(0, 9, (12, 8)) + RNG.normal(0, 0.1, (9, 12, 8))]
SHIFTED[-1] = SHIFTED[-1] + 5.0

CALLS = {
    "fuse": (OutlierWarning, lambda: modelweld.fuse([*HONEST, JUNK])),
    "fuse local models": (OutlierWarning, lambda: modelweld.fuse(SITES)),
    "a shifted site": (modelweld.SiteEffectWarning, lambda: modelweld.fuse(SHIFTED)),
    "add": (OutlierWarning, lambda: modelweld.fuse(HONEST).add(JUNK)),
    "estimator": (OutlierWarning, lambda: modelweld.SPAHM().fit(np.concatenate([*HONEST, JUNK]), groups=GROUPS)),
    "sweeps": (ConvergenceWarning, lambda: modelweld.fuse(HONEST, search=modelweld.Search("plain", max_sweeps=1))),
    "partitions": (FailureWarning, lambda: modelweld.train_and_fuse(KMeans(2), {"a": HONEST[0], "b": np.empty(0)})),
    "export": (DisclosureWarning, lambda: modelweld.export(GaussianMixture(1).fit(np.tile(HONEST[0], (9, 1))), None)),
}
GROUPS = np.repeat(np.arange(7), [5] * 6 + [4])


@pytest.mark.parametrize("name", CALLS)
def test_warnings_name_the_line_that_called(name):
    category, call = CALLS[name]
    with pytest.warns(category) as caught:
        call()
    named = {(w.filename, w.lineno) for w in caught if w.category is category}
    assert named == {(__file__, call.__code__.co_firstlineno)}
