"""Hyperparameters that make no sense are refused by name, whichever the family."""

import numpy as np
import pytest

from modelweld import (
    Counts,
    Directions,
    Factors,
    Gaussian,
    InputError,
    Moments,
    NormalGamma,
    Proportions,
    Rates,
    Scatter,
)

COVARIANCE = [[1.0, 2.0], [2.0, 1.0]]

WRONG = [
    (Gaussian, {"shape": "round"}, "shape"),
    (Gaussian, {"learning": "magic"}, "learning"),
    (Gaussian, {"noise": 0.0}, "positive"),
    (Gaussian, {"spread": [-1.0, 1.0]}, "positive"),
    (Gaussian, {"mean": np.inf}, "finite"),
    (Gaussian, {"noise": [1.0, 2.0], "shape": "scalar"}, "one noise"),
    (Factors, {"mean": 1.0}, "about zero"),
    (Factors, {"shape": "full"}, "full covariances"),
    (Directions, {"mean": [1.0, 1.0]}, "length 1.41421"),
    (Directions, {"mean": [[1.0]]}, r"shape \(1, 1\)"),
    (Directions, {"concentration": 0.0}, "one positive number; found 0"),
    (Directions, {"concentration": np.ones(2)}, "one positive number"),
    (Directions, {"base_concentration": -1.0}, "zero or one positive number; found -1"),
    (Directions, {"learning": "moments"}, "'likelihood' or 'nothing'"),
    (Scatter, {"learning": "moments"}, "learning is 'likelihood' or 'nothing'"),
    (Scatter, {"between": 0.0}, "between is a positive number"),
    (Scatter, {"scale": np.ones(3)}, r"matrix \(D, D\)"),
    (Scatter, {"scale": COVARIANCE}, "must be a covariance"),
    (Scatter, {"scale": np.eye(3), "freedom": 2.0}, "exceed D - 1 = 2"),
    (Scatter, {"freedom": np.nan}, "finite number"),
    (Moments, {"strength": 0.0}, "strength is a positive number"),
    (Moments, {"mean": [np.inf]}, "mean must be a finite number or one per dimension"),
    (Moments, {"learning": "moments"}, "learning is 'likelihood' or 'nothing'"),
    (Moments, {"scale": COVARIANCE}, "the scale must be a covariance"),
    (NormalGamma, {"shape": 0.0}, "shape must be a positive number"),
    (NormalGamma, {"mean": [np.nan]}, "mean must be a finite number"),
    (NormalGamma, {"learning": "moments"}, "learning is 'likelihood' or 'nothing'"),
    (Rates, {"kind": "normal"}, "Rates: "),
    (Rates, {"learning": "moments"}, "Rates: "),
    (Rates, {"shape": 1.0}, "Rates: "),
    (Rates, {"kind": "gamma", "shape": -1.0}, "Rates: "),
    (Rates, {"kind": "gamma", "between": np.inf}, "Rates: "),
    (Rates, {"mean": 0.0}, "Rates: "),
    (Rates, {"between": [1.0, np.inf]}, "Rates: "),
    (Rates, {"concentration": np.nan}, "Rates: "),
    (Proportions, {"learning": "moments"}, "Proportions: "),
    (Proportions, {"between": 0.0}, "Proportions: "),
    (Proportions, {"between": [1.0, 2.0]}, "Proportions: "),
    (Proportions, {"successes": -1.0}, "Proportions: "),
    (Counts, {"base": [1.0, -1.0]}, "Counts"),
    (Counts, {"between": 0.0}, "Counts"),
    (Counts, {"learning": "magic"}, "Counts"),
]


@pytest.mark.parametrize(("family", "given", "says"), WRONG)
def test_hyperparameters_are_checked(family, given, says):
    with pytest.raises(InputError, match=says):
        family(**given)
