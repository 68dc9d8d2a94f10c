"""Hidden Markov models: expected numbers, shares, emissions of different kinds."""

from itertools import pairwise

import numpy as np
import pytest

from modelweld import InputError, fuse, read
from modelweld.kinds.hmm import HMM, hmm, shares, shrink_spreads, weigh_states
from modelweld.libraries.hidden_markov import posteriors


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
    moves, states = posteriors(start, move, np.log(density))
    counted = (moves, states[0], states.sum(axis=0))
    for found, expected in zip(counted, brute_force(start, move, density), strict=True):
        assert np.allclose(found, expected)


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
    result = fuse([a, b], screens=["outliers"]).parameters()
    place = [int(np.argmin(np.abs(result.arrays["means"] - m).sum(1))) for m in a.arrays["means"]]
    assert np.allclose(result.arrays["moves"][np.ix_(place, place)], 4 * a.arrays["moves"])
    assert np.allclose(shares(result.arrays["moves"])[np.ix_(place, place)], shares(a.arrays["moves"]))
    assert np.allclose(result.arrays["counts"][place], 4 * a.arrays["counts"])


def test_shrinking_mixes_in_the_average():
    spreads, counts = np.array([[1.0], [4.0]]), np.array([1.0, 2.0])
    assert np.allclose(shrink_spreads(spreads, counts, 1.0), 3.0)
    assert np.allclose(shrink_spreads(spreads, counts, 0.0), spreads)
    with pytest.raises(InputError, match="between 0 and 1"):
        shrink_spreads(spreads, counts, 2.0)


def test_what_cannot_be_fused_is_named():
    rng = np.random.default_rng(4)
    symbols = chain(rng, emissions={"symbols": rng.gamma(1.0, 1.0, (3, 4))})
    with pytest.raises(InputError, match="means and symbols"):
        fuse([chain(rng), symbols])
    fusion = fuse([chain(rng).with_(site="north"), chain(rng, counted=False).with_(site="south")])
    with pytest.raises(InputError, match="site south does not say how many frames"):
        HMM().fuse(fusion._fit, "counts")


def merged(rng, means, zeta=0.9, **options):
    """A counted chain whose fit merged states that are one, as it says by its zeta."""
    K, D = means.shape
    emissions = {"means": means, "covariances": np.stack([np.eye(D)] * K)}
    made = chain(rng, K, D, emissions=emissions, **options)
    return made.with_(facts={**made.facts, "zeta": zeta})


def decided_by(sites):
    """Arrays that decide, and whether a site may hold a state in fragments."""
    fusion = fuse(sites, screens=["outliers"])
    return list(fusion.matching.families), not HMM().holds_atoms_once(fusion._fit.models)


def test_merged_states_of_few_sites_are_matched_by_means_and_covariances_and_whole():
    rng = np.random.default_rng(5)
    means = rng.normal(0, 9, (3, 2))
    sites = [merged(rng, means), merged(rng, means[[1, 2, 0]])]
    assert decided_by(sites) == (["means", "covariances"], False)
    fusion = fuse(sites, screens=["outliers"])
    assert fusion.K == 3
    for model in fusion._fit.models:
        frames = np.asarray(model.arrays["moves"]).sum(0) + np.asarray(model.arrays["starts"])
        assert np.allclose(np.asarray(model.weight["covariances"]).reshape(3, -1)[:, 0], frames)
    assert decided_by([merged(rng, means) for _ in range(4)]) == (["means"], False)  # enough sites to learn noise from


@pytest.mark.parametrize(
    ("fact", "said", "arrays", "fragments"),
    [
        # covariances decide at many sites whose fits found frames correlated
        ("zeta", (0.4, 0.4, 0.4, 0.9), ["means", "covariances"], False),
        ("zeta", (0.4, 0.6, 0.9, 0.9), ["means"], False),
        ("zeta", (0.4, "?", "?", "?"), ["means"], False),
        # states may be fragments where fits do not merge them, or sites say nothing
        ("nothing", (0, 0), ["means"], True),
        ("zeta", (None, 0.9), ["means"], True),
        # correlated frames bring covariances in, and scarce ones shut fragments out
        ("correlation_time", (1.9, 1.9), ["means"], True),
        ("correlation_time", (2.0, 2.1), ["means", "covariances"], True),
        ("correlation_time", (1e3, 1e3), ["means", "covariances"], False),
        ("correlation_time", (1e3, "?"), ["means"], True),
        ("correlation_time", (1e3, None), ["means"], True),
    ],
)
def test_what_sites_say_of_their_frames_chooses_what_decides_and_whether_states_may_be_fragments(
    fact, said, arrays, fragments
):
    rng = np.random.default_rng(7)
    means = rng.normal(0, 9, (3, 2))
    facts = [{"counted": True} | ({} if fact == "zeta" and word is None else {fact: word}) for word in said]
    assert decided_by([merged(rng, means).with_(facts=own) for own in facts]) == (arrays, fragments)


def test_covariances_do_not_fit_means_with_noise():
    rng = np.random.default_rng(6)
    means = rng.normal(0, 9, (3, 2))
    noisy = [m.with_(facts={**m.facts, "noisy": ["means"]}) for m in (merged(rng, means), merged(rng, means))]
    assert decided_by(noisy) == (["means"], True)


@pytest.mark.parametrize("facts", [{}, {"zeta": 1.0}, {"correlation_time": 1e3}])
def test_only_fits_that_may_cut_states_hold_them_in_fragments(facts):
    rng = np.random.default_rng(11)
    truth = rng.normal(0, 9, (5, 2))

    def site(means):
        made = chain(rng, len(means), 2, emissions={"means": means, "covariances": np.stack([np.eye(2)] * len(means))})
        return made.with_(facts={**made.facts, **facts})

    cut = np.vstack([truth, truth[:1] + 0.4])
    fusion = fuse([site(cut), *(site(truth + rng.normal(0, 0.1, truth.shape)) for _ in range(5))])
    assert (len(set(fusion.labels[0].tolist())) == 6) == bool(facts)


def test_correlated_frames_count_for_fewer_however_often_it_is_said():
    rng = np.random.default_rng(12)
    sites = [merged(rng, rng.normal(0, 9, (3, 2))).with_(facts={"counted": True, "correlation_time": 4.0})]
    (once,) = HMM().weigh(sites)
    (twice,) = HMM().weigh([once])
    frames = np.asarray(once.arrays["moves"]).sum(0) + np.asarray(once.arrays["starts"])
    for model in (once, twice):
        assert np.allclose(model.variance["means"][:, 0], 1 / np.maximum(frames / 4, 1))
        assert np.allclose(np.asarray(model.weight["covariances"]).reshape(3, -1)[:, 0], frames / 4)


@pytest.mark.parametrize(("D", "arrays"), [(50, ["means", "covariances"]), (51, ["means"])])
def test_covariances_of_many_features_do_not_decide(D, arrays):
    rng = np.random.default_rng(14)
    sites = [m.with_(facts={**m.facts, "correlation_time": 3.0}) for m in (chain(rng, 3, D), chain(rng, 3, D))]
    assert list(HMM().families(HMM().harmonise(sites))) == arrays


def test_a_covariance_without_volume_tells_nothing():
    rng = np.random.default_rng(9)
    means = rng.normal(0, 9, (3, 2))
    flat = merged(rng, means)
    covariances = np.array(flat.arrays["covariances"])
    covariances[1] = [[1.0, 1.0], [1.0, 1.0]]
    flat = flat.with_(arrays={**flat.arrays, "covariances": covariances})
    weight = np.asarray(weigh_states(flat).weight["covariances"]).reshape(3, -1)[:, 0]
    assert weight[1] == 0 < min(weight[0], weight[2])
    assert fuse([flat, merged(rng, means)]).K == 3


@pytest.mark.hmm
@pytest.mark.parametrize("width", [1, 12])
def test_sites_measure_how_alike_their_frames_are(width):
    from hmmlearn.hmm import GaussianHMM

    rng = np.random.default_rng(10)
    noise = np.apply_along_axis(np.convolve, 0, rng.normal(size=(600, 2)), np.ones(width), "same") / np.sqrt(width)
    X = noise + np.repeat([[0.0, 0.0], [30.0, 30.0]], 300, axis=0)
    model = GaussianHMM(2, random_state=0).fit(X)
    measured = read(model, X=X).facts["correlation_time"]
    assert measured == pytest.approx(width, rel=0.25)
    assert "correlation_time" not in read(model, lengths=[600]).facts


@pytest.mark.hmm
def test_a_state_without_volume_is_refused_with_the_remedy():
    from modelweld.libraries.hidden_markov import write_hmmlearn as write

    flat = hmm(
        np.ones((1, 1)),
        np.ones(1),
        np.ones(1),
        {"means": np.zeros((1, 2)), "covariances": np.ones((1, 2, 2))},
        counted=True,
    )
    with pytest.raises(InputError, match=r"shrink=0\.1"):
        write(flat, "GaussianHMM")
