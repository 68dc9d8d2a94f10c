"""How local values scatter about their global one: one file, one family. docs/families.md says which is for what."""

from modelweld.families.base import Family
from modelweld.families.counts import Counts
from modelweld.families.directions import Directions
from modelweld.families.gaussian import Gaussian
from modelweld.families.moments import Moments
from modelweld.families.normal_gamma import NormalGamma
from modelweld.families.normal_wishart import NormalWishart
from modelweld.families.own.density import from_density
from modelweld.families.proportions import Proportions
from modelweld.families.rates import Rates
from modelweld.families.scatter import Scatter

__all__ = [
    "Counts",
    "Directions",
    "Family",
    "Gaussian",
    "Moments",
    "NormalGamma",
    "NormalWishart",
    "Proportions",
    "Rates",
    "Scatter",
    "from_density",
]
