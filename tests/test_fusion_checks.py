"""Fusions that load can answer: what their families do not take, or cannot divide by, is refused by name."""

import numpy as np
import pytest

from modelweld import Gaussian, InputError, Rates, fuse
from modelweld.files.fusion_checks import check_answers


@pytest.mark.parametrize(("value", "fine"), [(2.0, True), (-1.0, False), (np.nan, False)])
def test_every_value_is_asked_about_not_the_first_alone(value, fine):
    """A rate that is none, at the last site, failed when another was removed."""
    sites = [np.array([[1.0], [9.0]]) + j / 10 for j in range(4)]
    fusion = fuse(sites, Rates())
    sites[3] = np.array([[1.0], [value]])
    if fine:
        check_answers(sites, fusion.matchings)
    else:
        with pytest.raises(InputError):
            check_answers(sites, fusion.matchings)


@pytest.mark.parametrize("number", [5e-324, 1e-310, 0.0])
def test_what_cannot_be_divided_by_is_no_hyperparameter(number):
    with pytest.raises(InputError, match="noise"):
        Gaussian(noise=number)
    assert Gaussian(noise=1e-300).noise == 1e-300
