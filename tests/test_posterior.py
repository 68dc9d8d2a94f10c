"""Numbers of atoms in draws are comparable with `fusion.K`: what is excluded is not counted."""

import warnings

import numpy as np
import pytest

from modelweld import fuse, simulate
from modelweld.results.posterior.draws import number_of_atoms

DATA = simulate.sparse(12, 10, 4, 0.3, 8.0, 1, 1, seed=1)


def with_outliers():
    """One site a thousand times as wide as the others."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fuse([*DATA.values, 1000 * DATA.values[0]])


def with_groups_of_their_own():
    """Twenty sites that share five atoms, and bring a value each that nobody shares."""
    rng = np.random.default_rng(0)
    atoms = rng.normal(0, 8, (5, 4))
    return fuse([np.vstack([atoms + rng.normal(0, 0.3, (5, 4)), rng.normal(0, 8, (1, 4))]) for _ in range(20)])


@pytest.mark.parametrize("fused", [with_outliers, with_groups_of_their_own])
def test_the_fusion_s_own_matching_has_the_fusion_s_number_of_atoms(fused):
    fusion = fused()
    matching = fusion.matching
    assert number_of_atoms(matching, matching.stacked_labels) == (fusion.K, fusion.shared)
    names = np.random.default_rng(0).permutation(len(matching.counts))  # names of atoms mean nothing
    assert number_of_atoms(matching, names[matching.stacked_labels]) == (fusion.K, fusion.shared)


@pytest.mark.parametrize("fused", [with_outliers, with_groups_of_their_own])
def test_where_the_matching_is_clear_draws_say_what_the_fusion_says(fused):
    fusion = fused()
    posterior = fusion.posterior.sample(draws=10, chains=2, warm_up=5)
    assert posterior.K_probabilities[fusion.K] > 0.8
    low, high = posterior.shared_interval()
    assert low <= fusion.shared <= high


def test_a_draw_without_an_atom_has_one_less():
    fusion = with_outliers()
    labels = fusion.matching.stacked_labels.copy()
    labels[labels == 1] = 0
    assert number_of_atoms(fusion.matching, labels)[0] == fusion.K - 1
