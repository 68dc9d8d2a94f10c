"""Union, reduction and density: what they promise of the fused mixture."""

import numpy as np
import pytest

from modelweld import InputError, fuse
from modelweld.kinds.mixture import mixture
from modelweld.kinds.mixture_completion import merge_components, stack_components
from modelweld.kinds.mixture_density import draw_points, log_likelihood, nearest, statistics
from modelweld.kinds.mixture_reduction import densest, log_volumes, reduce_to


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
    _, spreads, mass = merge_components(*parts, np.unique(labels, return_inverse=True)[1])
    return 0.5 * float((mass * log_volumes(spreads)).sum())


@pytest.fixture(params=[True, False], ids=["variances", "covariances"])
def fusion(request):
    return fuse(sites(np.random.default_rng(4), request.param))


def test_reduction_is_greedy_at_every_step(fusion):
    parts = stack_components(fusion._fit)
    N = len(parts[0])
    path = fusion.density.reduction()
    total = float(parts[2].sum())
    for K in range(N, 1, -1):
        labels = path.labels(K)
        assert labels.max() + 1 == K
        now = cost(parts, labels)
        assert path.losses[K - 1] == pytest.approx((now - cost(parts, np.arange(N))) / total, abs=1e-9)
        if K < 8:
            ways = [cost(parts, np.where(labels == b, a, labels)) for b in range(K) for a in range(b)]
            assert cost(parts, path.labels(K - 1)) == pytest.approx(min(ways), rel=1e-9)


@pytest.mark.filterwarnings("ignore::modelweld.DuplicateWarning")
def test_union_keeps_everything(fusion):
    union = fusion.density.union()
    assert len(union.counts) == sum(len(labels) for labels in fusion.labels)
    model = union.model(how="moments", like="GaussianMixture")
    X = np.random.default_rng(0).normal(0, 3, (20, 3))
    parts = [fuse([m, m]).model(how="moments", like="GaussianMixture") for m in fusion._fit.models]
    weights = np.array([m.arrays["counts"].sum() for m in fusion._fit.models])
    density = sum(w * np.exp(p.score_samples(X)) for w, p in zip(weights / weights.sum(), parts, strict=True))
    assert np.allclose(model.score_samples(X), np.log(density))


def test_reduce_has_k_components_and_keeps_the_points(fusion):
    small = fusion.density.reduce(3).parameters("moments")
    assert small.sizes == {"component": 3}
    assert small.arrays["counts"].sum() == pytest.approx(sum(m.arrays["counts"].sum() for m in fusion._fit.models))


def likelihood(parts, mixture, seed=1):
    """Of many points of the union, which none but the test has seen."""
    return log_likelihood(mixture, *draw_points(parts, np.random.default_rng(seed), 100))


def test_density_is_nearer_to_the_union_than_the_reduction_and_the_matching(fusion):
    parts = stack_components(fusion._fit)
    K = len(fusion.counts)
    found = likelihood(parts, densest(*parts, fusion.matching.stacked_labels, K))
    assert found > likelihood(parts, merge_components(*parts, fusion.density.reduction().labels(K))) - 1e-3
    assert found > likelihood(parts, merge_components(*parts, fusion.matching.stacked_labels)) - 1e-3
    assert fusion.parameters("density").sizes == fusion.parameters("moments").sizes


@pytest.mark.parametrize("diagonal", [True, False])
def test_softening_comes_near_to_em_on_very_many_points(diagonal):
    rng = np.random.default_rng(4)
    wide = np.where(np.arange(40) % 2, 0.02, 1.0)  # wide ones lie across narrow ones
    spreads = wide[:, None] * np.ones(2) if diagonal else wide[:, None, None] * np.array([[1.0, 0.8], [0.8, 1.0]])
    parts = rng.uniform(0, 3, (40, 2)), spreads, np.ones(40)
    start = merge_components(*parts, reduce_to(*parts, 4))
    points, weight = draw_points(parts, np.random.default_rng(2), 40)
    now = start
    for _ in range(20):
        mass, first, second = statistics(now, points, weight)
        means = first / mass[:, None]
        squares = means[:, :, None] * means[:, None, :] if second.ndim == 3 else means**2
        now = means, second / mass.reshape(-1, *[1] * (second.ndim - 1)) - squares, mass
    gain = likelihood(parts, now) - likelihood(parts, start)
    assert gain > 0.003
    assert likelihood(parts, nearest(parts, start)) - likelihood(parts, start) > 0.8 * gain


def test_density_does_not_depend_on_the_order_of_sites():
    local = sites(np.random.default_rng(4), False)
    one, other = (fuse(models).parameters("density") for models in (local, local[::-1]))
    assert all(np.array_equal(one.arrays[name], other.arrays[name]) for name in one.arrays)


@pytest.mark.parametrize("how", ["density", "moments"])
def test_any_number_of_components(fusion, how):
    total = sum(m.arrays["counts"].sum() for m in fusion._fit.models)
    for K in (1, 3, len(fusion.counts)):
        small = fusion.parameters(how, K=K)
        assert small.sizes == {"component": K}
        assert small.arrays["counts"].sum() == pytest.approx(total)
    assert fusion.parameters("density", K=20).sizes == {"component": 20}
    one = fusion.parameters(how, K=1)
    assert np.allclose(
        one.arrays["means"], merge_components(*stack_components(fusion._fit), np.zeros(20, int))[0], atol=1e-6
    )


def test_moments_with_k_merges_atoms_and_leaves_none_out(fusion):
    atoms = merge_components(*stack_components(fusion._fit), fusion.matching.stacked_labels)
    K = len(atoms[0])
    ways = [cost(atoms, np.where(np.arange(K) == b, a, np.arange(K))) for b in range(K) for a in range(b)]
    small = fusion.parameters("moments", K=K - 1)
    spreads = small.arrays["covariances" if "covariances" in small.arrays else "variances"]
    assert 0.5 * small.arrays["counts"] @ log_volumes(spreads) == pytest.approx(min(ways))


@pytest.mark.parametrize("spread", [0.0, 1.0])
def test_collapsed_and_empty_components_keep_their_place(spread):
    local = [mixture([[5.0], [9.0]], [[spread], [1.0]], [5.0, 0.0], counted=True) for _ in range(2)]
    found = fuse(local, screens=["outliers"]).parameters("density")
    assert found.sizes == {"component": 2}
    assert sorted(found.arrays["means"].ravel().round(6).tolist()) == [5.0, 9.0]


def test_wrong_requests_are_named(fusion):
    with pytest.raises(InputError, match=r"K is between 1 and 20; found 21"):
        fusion.density.reduce(21)
    with pytest.raises(InputError, match="for mixtures and k-means"):
        fuse([[[0.0]], [[1.0]]]).density.union()
    with pytest.raises(InputError, match=r"how is one of \['density'"):
        fusion.model(how="magic")
    with pytest.raises(InputError, match=r"20 components: with how='density', K is between 1 and 20; found 21"):
        fusion.model(K=21)
    with pytest.raises(InputError, match="K is between 1 and"):
        fusion.model(how="moments", K=20)
    with pytest.raises(InputError, match="a component per atom"):
        fusion.model(how="atoms", K=2)
