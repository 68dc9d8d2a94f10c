"""Fuse models that were trained apart, from their parameters alone."""

from typing import TYPE_CHECKING, Any

from modelweld.errors import ConvergenceWarning, InputError, ModelweldWarning
from modelweld.export import export
from modelweld.families import (
    Counts,
    Directions,
    Family,
    Gaussian,
    NormalGamma,
    NormalWishart,
    Proportions,
    Rates,
    Scatter,
    from_density,
)
from modelweld.files import load
from modelweld.fuse import fuse
from modelweld.fusion import Fusion
from modelweld.libraries import adapters, read
from modelweld.local import LocalModel
from modelweld.matched import Matching
from modelweld.prior import BetaBernoulli, Prior
from modelweld.quarantine import OutlierWarning
from modelweld.search import OverlapWarning
from modelweld.spectrum import Spectrum

if TYPE_CHECKING:
    from modelweld.estimator import SPAHM

__version__ = "0.1.0.dev0"

__all__ = [
    "SPAHM",
    "BetaBernoulli",
    "ConvergenceWarning",
    "Counts",
    "Directions",
    "Family",
    "Fusion",
    "Gaussian",
    "InputError",
    "LocalModel",
    "Matching",
    "ModelweldWarning",
    "NormalGamma",
    "NormalWishart",
    "OutlierWarning",
    "OverlapWarning",
    "Prior",
    "Proportions",
    "Rates",
    "Scatter",
    "Spectrum",
    "adapters",
    "export",
    "from_density",
    "fuse",
    "load",
    "read",
]


def __getattr__(name: str) -> Any:
    """Load the estimator when it is asked for: scikit-learn takes longer to import than all the rest."""
    if name == "SPAHM":
        from modelweld.estimator import SPAHM

        return SPAHM
    raise AttributeError(f"module 'modelweld' has no attribute {name!r}")
