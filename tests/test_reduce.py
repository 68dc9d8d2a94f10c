"""Union, reduction and exchange: what they promise of the fused density."""

import numpy as np
import pytest

from modelweld import InputError, fuse
from modelweld.exchange import Heaps, exchanged
from modelweld.kinds.mixture import merged, mixture, stacked
from modelweld.reduce import log_volumes
from modelweld.stack import group_of_rows


def sites(rng, diagonal, J=5, L=4, D=3):
    means = rng.normal(0, 3, (6, D))
    found = []
    for _ in range(J):
        held = rng.choice(6, L, replace=False)
        spreads = rng.gamma(2.0, 0.5, (L, D))
        if not diagonal:
            A = rng.normal(0, 0.5, (L, D, D))
            spreads = spreads[:, None, :] * np.eye(D) + A @ np.swapaxes(A, 1, 2)
        found.append(mixture(means[held] + rng.normal(0, 0.5, (L, D)), spreads, rng.integers(5, 99, L), counted=True))
    return found


def cost(parts, labels):
    _, spreads, mass = merged(*parts, np.unique(labels, return_inverse=True)[1])
    return 0.5 * float((mass * log_volumes(spreads)).sum())


@pytest.fixture(params=[True, False], ids=["variances", "covariances"])
def fusion(request):
    return fuse(sites(np.random.default_rng(4), request.param))


def test_reduction_is_greedy_at_every_step(fusion):
    parts = stacked(fusion.models)
    N = len(parts[0])
    path = fusion.reduction()
    total = float(parts[2].sum())
    for K in range(N, 1, -1):
        labels = path.labels(K)
        assert labels.max() + 1 == K
        now = cost(parts, labels)
        assert path.losses[K - 1] == pytest.approx((now - cost(parts, np.arange(N))) / total, abs=1e-9)
        if K < 8:
            ways = [cost(parts, np.where(labels == b, a, labels)) for b in range(K) for a in range(b)]
            assert cost(parts, path.labels(K - 1)) == pytest.approx(min(ways), rel=1e-9)


def test_union_keeps_everything(fusion):
    union = fusion.union()
    assert len(union.counts) == sum(len(labels) for labels in fusion.labels)
    model = union.model(how="moments", like="GaussianMixture")
    X = np.random.default_rng(0).normal(0, 3, (20, 3))
    parts = [fuse([m, m]).model(how="moments", like="GaussianMixture") for m in fusion.models]
    weights = np.array([m.arrays["counts"].sum() for m in fusion.models])
    density = sum(w * np.exp(p.score_samples(X)) for w, p in zip(weights / weights.sum(), parts, strict=True))
    assert np.allclose(model.score_samples(X), np.log(density))


def test_reduce_has_k_components_and_keeps_the_points(fusion):
    small = fusion.reduce(3).fused("moments")
    assert small.sizes == {"component": 3}
    assert small.arrays["counts"].sum() == pytest.approx(sum(m.arrays["counts"].sum() for m in fusion.models))


def test_exchange_lowers_the_cost_and_keeps_one_per_site(fusion):
    rng = np.random.default_rng(1)
    parts = stacked(fusion.models)
    groups = group_of_rows(fusion.matching.offsets)
    labels = np.concatenate([rng.permutation(6)[: len(m)] for m in fusion.labels])
    found = exchanged(*parts, labels, groups)
    assert cost(parts, found) < cost(parts, labels)
    assert len(np.unique(np.stack([found, groups]), axis=1).T) == len(found)
    assert set(found) == set(labels)
    assert np.array_equal(exchanged(*parts, found, groups), found)


def test_heaps_know_their_cost(fusion):
    parts = stacked(fusion.models)
    labels = fusion.matching.stacked_labels
    heaps = Heaps(*parts, labels)
    assert heaps.costs.sum() == pytest.approx(cost(parts, labels))
    heaps.move(0, int(labels[1]))
    assert heaps.costs.sum() == pytest.approx(cost(parts, heaps.labels))


def test_density_is_no_worse_than_moments(fusion):
    parts, labels = stacked(fusion.models), fusion.matching.stacked_labels
    assert cost(parts, exchanged(*parts, labels, group_of_rows(fusion.matching.offsets))) <= cost(parts, labels) + 1e-9
    assert fusion.fused("density").sizes == fusion.fused("moments").sizes


def test_wrong_requests_are_named(fusion):
    with pytest.raises(InputError, match=r"K is between 1 and 20; found 21"):
        fusion.reduce(21)
    with pytest.raises(InputError, match="for mixtures and k-means"):
        fuse([[[0.0]], [[1.0]]]).union()
    with pytest.raises(InputError, match=r"how is one of \['density'"):
        fusion.model(how="magic")
