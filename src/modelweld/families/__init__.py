"""How local values scatter about their global one: one file, one family."""

from modelweld.families.base import Family
from modelweld.families.gaussian import Gaussian

__all__ = ["Family", "Gaussian"]
