"""Hidden Markov models: expected numbers, shares, emissions of different kinds."""

from itertools import pairwise

import numpy as np
import pytest

from modelweld import InputError, fuse
from modelweld.kinds.hmm import HMM, hmm, shares, shrunk
from modelweld.libraries.hmm_counts import posterior_counts, stationary


def chain(rng, K=3, D=2, n=100.0, emissions=None, counted=True):
    moves = rng.dirichlet(np.ones(K), K) * n
    emissions = emissions or {"means": rng.normal(0, 9, (K, D)), "variances": rng.gamma(2.0, 1.0, (K, D))}
    return hmm(moves, rng.dirichlet(np.ones(K)), np.full(K, n), emissions, counted=counted)


def brute_force(start, move, density):
    """Expected numbers by summing over all paths."""
    T, K = density.shape
    moves, starts, counts, total = np.zeros((K, K)), np.zeros(K), np.zeros(K), 0.0
    for path in np.ndindex(*[K] * T):
        p = start[path[0]] * np.prod([density[t, s] for t, s in enumerate(path)])
        p *= np.prod([move[a, b] for a, b in pairwise(path)])
        total += p
        starts[path[0]] += p
        for a, b in pairwise(path):
            moves[a, b] += p
        for s in path:
            counts[s] += p
    return moves / total, starts / total, counts / total


def test_posterior_counts_are_the_sums_over_paths():
    rng = np.random.default_rng(0)
    start, move, density = rng.dirichlet([1, 1, 1]), rng.dirichlet([1, 1, 1], 3), rng.gamma(1.0, 1.0, (5, 3))
    for found, expected in zip(
        posterior_counts(start, move, np.log(density)), brute_force(start, move, density), strict=True
    ):
        assert np.allclose(found, expected)


def test_stationary_is_left_alone_by_moves():
    move = np.random.default_rng(1).dirichlet(np.ones(4), 4)
    assert np.allclose(stationary(move) @ move, stationary(move))


def test_expected_numbers_add_through_the_matching():
    rng = np.random.default_rng(2)
    a = chain(rng)
    order = np.array([2, 0, 1])
    b = hmm(
        3 * a.arrays["moves"][order][:, order],
        a.arrays["starts"][order],
        3 * a.arrays["counts"][order],
        {name: a.arrays[name][order] for name in ("means", "variances")},
        counted=True,
    )
    result = fuse([a, b], twins="independent").fused()
    place = [int(np.argmin(np.abs(result.arrays["means"] - m).sum(1))) for m in a.arrays["means"]]
    assert np.allclose(result.arrays["moves"][np.ix_(place, place)], 4 * a.arrays["moves"])
    assert np.allclose(shares(result.arrays["moves"])[np.ix_(place, place)], shares(a.arrays["moves"]))
    assert np.allclose(result.arrays["counts"][place], 4 * a.arrays["counts"])


def test_variances_meet_covariances():
    rng = np.random.default_rng(3)
    a = chain(rng)
    wide = {"means": a.arrays["means"], "covariances": a.arrays["variances"][:, None, :] * np.eye(2)}
    b = chain(rng, emissions=wide)
    result = fuse([a, b], twins="independent").fused()
    assert result.arrays["covariances"].shape[1:] == (2, 2)


def test_shrinking_mixes_in_the_average():
    spreads, counts = np.array([[1.0], [4.0]]), np.array([1.0, 2.0])
    assert np.allclose(shrunk(spreads, counts, 1.0), 3.0)
    assert np.allclose(shrunk(spreads, counts, 0.0), spreads)
    with pytest.raises(InputError, match="between 0 and 1"):
        shrunk(spreads, counts, 2.0)


def test_what_cannot_be_fused_is_named():
    rng = np.random.default_rng(4)
    symbols = chain(rng, emissions={"symbols": rng.gamma(1.0, 1.0, (3, 4))})
    with pytest.raises(InputError, match="means and symbols"):
        fuse([chain(rng), symbols])
    fusion = fuse([chain(rng).with_(site="north"), chain(rng, counted=False).with_(site="south")])
    with pytest.raises(InputError, match="site south does not say how many frames"):
        HMM().fused(fusion, "counts")


@pytest.mark.hmm
def test_a_state_without_volume_is_refused_with_the_remedy():
    from modelweld.libraries.gaussian_hmm import write

    flat = hmm(
        np.ones((1, 1)),
        np.ones(1),
        np.ones(1),
        {"means": np.zeros((1, 2)), "covariances": np.ones((1, 2, 2))},
        counted=True,
    )
    with pytest.raises(InputError, match=r"shrink=0\.1"):
        write(flat, "GaussianHMM")
