"""How local values scatter about their global one, by what they are. docs/families.md says which family is for what.

A family is a class and one line here; saving, loading and proposing follow from its `register`.
"""

from modelweld.core.family import Family as Family
from modelweld.families.capabilities import FAMILIES as FAMILIES
from modelweld.families.capabilities import register as register
from modelweld.families.counts import Counts as Counts
from modelweld.families.directions import Directions as Directions
from modelweld.families.factors import Factors as Factors
from modelweld.families.fading import Drift as Drift
from modelweld.families.fading import FadingCounts as FadingCounts
from modelweld.families.fading import FadingDirections as FadingDirections
from modelweld.families.normal_gamma import NormalGamma as NormalGamma
from modelweld.families.own.user_density import from_density as from_density
from modelweld.families.rates import Proportions as Proportions
from modelweld.families.rates import Rates as Rates
from modelweld.families.real_values import Gaussian as Gaussian
from modelweld.families.wishart.scatter import Moments as Moments
from modelweld.families.wishart.scatter import Scatter as Scatter
