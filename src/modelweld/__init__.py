"""Fuse models that were trained apart, from their parameters alone."""

from modelweld.libraries import adapters, read
from modelweld.errors import ConvergenceWarning, InputError, ModelweldWarning
from modelweld.families import Family, Gaussian
from modelweld.fuse import fuse
from modelweld.fusion import Fusion
from modelweld.local import LocalModel
from modelweld.matched import Matching
from modelweld.prior import BetaBernoulli, Prior
from modelweld.quarantine import OutlierWarning
from modelweld.search import OverlapWarning
from modelweld.spectrum import Spectrum

__version__ = "0.1.0.dev0"

__all__ = [
    "BetaBernoulli",
    "ConvergenceWarning",
    "Family",
    "Fusion",
    "Gaussian",
    "InputError",
    "LocalModel",
    "Matching",
    "ModelweldWarning",
    "OutlierWarning",
    "OverlapWarning",
    "Prior",
    "Spectrum",
    "adapters",
    "fuse",
    "read",
]
