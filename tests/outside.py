"""What somebody else's package might hold: two model classes, their adapters, and a kind that modelweld does not know.

`test_extending_libraries.py` enters them.
"""

from dataclasses import dataclass, field

import numpy as np

from modelweld.families import Gaussian
from modelweld.inputs.local_model import LocalModel
from modelweld.kinds import Kind
from modelweld.kinds.kind import Layout
from modelweld.kinds.mixture import mixture


@dataclass
class Blobs:
    """Round clusters: a mixture, of which modelweld knows all but this class."""

    centres: np.ndarray
    variances: np.ndarray
    sizes: np.ndarray

    def nearest(self, X):
        """The cluster of every row."""
        return np.square(np.asarray(X)[:, None] - self.centres).sum(-1).argmin(1)


@dataclass
class Tariffs:
    """Prices of some goods in some shops, in no order, with how often each shop was visited."""

    prices: np.ndarray
    visits: np.ndarray
    goods: list[str] = field(default_factory=list)


def read(model, *, features=None):
    """Either of the two."""
    if isinstance(model, Blobs):
        spreads = np.repeat(model.variances[:, None], model.centres.shape[1], axis=1)
        return mixture(model.centres, spreads, model.sizes, counted=True, features=features)
    return LocalModel(
        {"prices": model.prices, "visits": model.visits},
        {"prices": ("shop", "good"), "visits": ("shop",)},
        auxiliary=["visits"],
        coordinates={"good": model.goods},
        kind="tariffs",
    )


def write(local, like):
    """The class named `like`."""
    if like == "Blobs":
        variances = np.asarray(local.arrays["variances"]).mean(axis=1)
        return Blobs(np.asarray(local.arrays["means"]), variances, np.asarray(local.arrays["counts"]))
    prices, visits = (np.asarray(local.arrays[name]) for name in ("prices", "visits"))
    return Tariffs(prices, visits, list(local.coordinates["good"]))


class TariffKind(Kind):
    """Shops, matched by their prices."""

    name = "tariffs"
    plural = "tariffs of shops"
    hows = {"mean": "average prices", "atoms": "prices as the model of their scatter has them"}  # noqa: RUF012
    stands_for_points = False

    def layout(self, model):
        """Prices and visits, neither below zero."""
        axes = {"prices": ("shop", "good"), "visits": ("shop",)}
        return Layout(sets=("shop",), arrays=axes, needed=tuple(axes), not_negative=tuple(axes))

    def families(self, models):
        """By prices, which scatter alike."""
        return {"prices": Gaussian(shape="scalar")}

    def fuse(self, fusion, how, rounded=False):
        """One shop per atom; visits add."""
        prices = fusion.average("prices") if how == "mean" else fusion.array("prices")
        return fusion.models[0].with_(
            arrays={"prices": prices.round() if rounded else prices, "visits": fusion.total("visits")}, site=""
        )

    def words(self, fusion, set_name):
        """Shops are known by what is dear there."""
        return fusion.array("prices"), fusion.models[0].coordinates["good"]

    def concerns(self, model, *, fewest, compared):
        """Shops that were hardly visited."""
        few = int((np.asarray(model.arrays["visits"]) < fewest).sum())
        return [f"{few} shops were visited by few."] if few else []
