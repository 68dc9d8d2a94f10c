"""Laws of the sticky HDP-HMM: exact on tiny cases, monotone at every step, indifferent to what means nothing."""

import pickle
import re
import warnings
from dataclasses import replace
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import gammaln, logsumexp, roots_jacobi
from sklearn.base import clone

from modelweld import InputError, LocalModel, Moments, Search, fuse, read
from modelweld.demo.metrics import adjusted_rand
from modelweld.errors import ConvergenceWarning, ModelweldWarning
from modelweld.hmm import StickyHDPHMM, window_start, windows
from modelweld.hmm.ascent import Concentrations, Course, Point, Problem, Setting, Sticks, stack_counts
from modelweld.hmm.forward_backward import forward_backward, most_probable
from modelweld.hmm.statistics import LOG_TWO_PI, Emissions, Prior, Statistics, features, log_evidence
from modelweld.hmm.windows import pool_windows, statistics_of
from modelweld.libraries import write

AT = Concentrations(eta=0.5, kappa=10.0, eta0=5.0, gamma=5.0)


def chain(rng, lengths, K, stay=0.95):
    """A path per sequence, one after the other."""
    path = []
    for length in lengths:
        z = int(rng.integers(K))
        for _ in range(length):
            path.append(z)
            if rng.random() > stay:
                z = int(rng.choice([k for k in range(K) if k != z]))
    return np.array(path)


def independent_frames(seed, K=8, D=6, lengths=(300, 300, 300)):
    """Frames that are independent given their states."""
    rng = np.random.default_rng(seed)
    path = chain(rng, lengths, K)
    means = rng.normal(0, 3, (K, D))
    roots = 0.3 * rng.normal(size=(K, D, D)) + 0.7 * np.eye(D)
    return means[path] + np.einsum("tij,tj->ti", roots[path], rng.normal(size=(len(path), D))), path, list(lengths)


def oscillators(seed, K=5, D=4, lengths=(250, 250)):
    """Frames that swing within their states: neighbours resemble each other."""
    rng = np.random.default_rng(seed)
    path, time = chain(rng, lengths, K, stay=0.985), np.arange(sum(lengths))
    means, speed = rng.normal(0, 2, (K, D)), rng.uniform(0.15, 0.35, (K, D))
    phase = rng.uniform(0, 2 * np.pi, (K, D))
    swing = np.sin(speed[path] * time[:, None] + phase[path])
    return means[path] + swing + 0.15 * rng.normal(size=(len(path), D)), path, list(lengths)


def small(seed=0):
    return independent_frames(seed, K=3, D=2, lengths=(60, 50, 70))


def quiet(model, *data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelweldWarning)
        return model.fit(*data)


# the chain


@pytest.fixture
def weights():
    rng = np.random.default_rng(1)
    return np.log(rng.random(3)), np.log(rng.random((3, 3))), 2 * rng.normal(size=(7, 3)), np.array([0, 4, 7])


def paths_of(log_start, log_move, log_density):
    """All paths of one sequence and their log weights."""
    T, K = log_density.shape
    for z in product(range(K), repeat=T):
        moves = sum(log_move[a, b] for a, b in pairwise(z))
        yield z, log_start[z[0]] + moves + sum(log_density[t, k] for t, k in enumerate(z))


def test_forward_backward_equals_enumeration(weights):
    log_start, log_move, log_density, offsets = weights
    states, moves, starts, log_sum = np.zeros((7, 3)), np.zeros((3, 3)), np.zeros(3), 0.0
    for first, end in pairwise(offsets):
        every = list(paths_of(log_start, log_move, log_density[first:end]))
        total = logsumexp([weight for _, weight in every])
        log_sum += total
        for z, weight in every:
            p = np.exp(weight - total)
            starts[z[0]] += p
            for t, k in enumerate(z):
                states[first + t, k] += p
            for a, b in pairwise(z):
                moves[a, b] += p
    found = forward_backward(*weights)
    assert np.allclose(found.states, states)
    assert np.allclose(found.moves, moves)
    assert np.allclose(found.starts, starts)
    assert found.log_sum == pytest.approx(log_sum)


def test_viterbi_equals_enumeration(weights):
    log_start, log_move, log_density, offsets = weights
    expected = []
    for first, end in pairwise(offsets):
        expected += max(paths_of(log_start, log_move, log_density[first:end]), key=lambda found: found[1])[0]
    assert most_probable(*weights).tolist() == expected


def test_compiled_equals_plain_where_numbers_are_extreme(monkeypatch):
    rng = np.random.default_rng(2)
    log_start, log_move = np.log(rng.dirichlet(np.ones(6))), np.log(rng.dirichlet(np.ones(6), 6))
    log_move[0, 1:] = -5000.0  # no way out of state 0 that a float64 holds
    log_density = 400 * rng.normal(size=(90, 6))
    offsets = np.array([0, 1, 40, 90])
    fast = forward_backward(log_start, log_move, log_density, offsets)
    for name in ("_forward", "_backward"):
        compiled = forward_backward.__globals__[name]
        monkeypatch.setitem(forward_backward.__globals__, name, compiled.py_func)
    plain = forward_backward(log_start, log_move, log_density, offsets)
    assert np.isfinite(fast.log_sum)
    for name in ("states", "moves", "starts"):
        assert np.allclose(getattr(fast, name), getattr(plain, name), atol=1e-10)
    assert fast.log_sum == pytest.approx(plain.log_sum, rel=1e-12)
    assert np.allclose(fast.states.sum(axis=1), 1)
    assert fast.moves.sum() + fast.starts.sum() == pytest.approx(90)


# emissions


@pytest.fixture
def frames():
    return np.random.default_rng(3).normal(size=(9, 3)) * [1.0, 2.0, 0.5] + [0.0, 1.0, -1.0]


PRIOR = Prior(np.array([0.5, 1.0, 0.2]), 0.3)


def test_evidence_is_the_product_of_predictive_densities(frames):
    phi, total = features(frames), 0.0
    for t in range(len(frames)):
        seen_so_far = Emissions.of(phi[:t].sum(axis=0)[None], PRIOR)
        total += float(seen_so_far.log_predictive(frames[t : t + 1])[0, 0])
    constant = -0.5 * LOG_TWO_PI * frames.size
    assert log_evidence(phi.sum(axis=0), PRIOR) + constant == pytest.approx(total)


@pytest.mark.parametrize("zeta", [1.0, 0.3])
def test_bound_of_one_state_is_its_evidence(frames, zeta):
    phi = features(frames)
    sums = zeta * phi.sum(axis=0)[None]
    at = Emissions.of(sums, PRIOR)
    bound = zeta * float((phi @ at.coefficients().T).sum()) - at.divergence(PRIOR)
    assert bound == pytest.approx(float(log_evidence(sums, PRIOR)[0]) - 0.5 * zeta * LOG_TWO_PI * frames.size)


# sticks


@pytest.fixture(params=[10.0, 0.0, 0.1], ids=lambda kappa: f"kappa {kappa}")
def stick_case(request):
    rng = np.random.default_rng(4)
    numbers = stack_counts(rng.gamma(0.3, 20.0, (5, 5)), rng.gamma(0.5, 2.0, 5))
    return Sticks(rng.gamma(3.0, 2.0, 5), rng.gamma(3.0, 4.0, 5)), numbers, AT._replace(kappa=request.param)


def test_sticks_rise_at_every_step_and_settle_at_the_top(stick_case):
    sticks, numbers, at = stick_case
    for _ in range(10):
        before, sticks = sticks, sticks.rise(numbers, at)
        assert sticks.objective(numbers, at) >= before.objective(numbers, at)
    top = sticks.settle(numbers, at)
    rival = minimize(
        lambda x: -Sticks(np.exp(x[:5]), np.exp(x[5:])).objective(numbers, at),
        np.log(np.concatenate([sticks.a, sticks.b])),
        method="L-BFGS-B",
    )
    assert top.objective(numbers, at) >= -rival.fun - 1e-7


# the bound


def exact_log_evidence(x, K, at, prior):
    """Of a tiny sequence: all paths summed, shares integrated (Gauss-Jacobi), all else in closed form."""
    phi, T, D = features(x), *x.shape
    nodes, mass = roots_jacobi(120, at.gamma - 1, 0.0)  # Beta(1, gamma) on [-1, 1]
    u, mass = (nodes + 1) / 2, mass / mass.sum()
    grid = np.array(list(product(u, repeat=K)))
    log_mass = np.log(np.array(list(product(mass, repeat=K)))).sum(axis=1)
    beta = np.column_stack([grid, np.ones(len(grid))]) * np.cumprod(
        np.column_stack([np.ones(len(grid)), 1 - grid]), axis=1
    )
    terms = []
    for z in product(range(K), repeat=T):
        sums = np.stack([phi[np.array(z) == k].sum(axis=0) for k in range(K)])
        numbers = np.zeros((K + 1, K + 1))
        numbers[K, z[0]] += 1
        for a, b in pairwise(z):
            numbers[a, b] += 1
        log_path = log_mass.copy()
        for row in range(K + 1):
            alpha = (at.eta0 if row == K else at.eta) * beta + (at.kappa if row < K else 0.0) * np.eye(K + 1)[row]
            total = alpha.sum(axis=1)
            n = numbers[row]
            log_path += gammaln(total) - gammaln(total + n.sum())
            used = n > 0
            log_path += (gammaln(alpha[:, used] + n[used]) - gammaln(alpha[:, used])).sum(axis=1)
        terms.append(logsumexp(log_path) + log_evidence(sums, prior).sum())
    return float(logsumexp(terms)) - 0.5 * T * D * LOG_TWO_PI


@pytest.mark.parametrize("kappa", [10.0, 1.0, 0.0])
def test_bound_is_below_the_exact_log_evidence(kappa):
    x = np.array([[-1.0], [-1.1], [-0.9], [1.0], [1.2]])
    at, prior = AT._replace(kappa=kappa), Prior(np.array([0.05]), 0.1)
    phi = features(x)
    problem = Problem(phi, np.array([0, 5]), Setting(1.0, at, False))
    course = Course(
        problem, Point(statistics_of(np.array([0, 0, 0, 1, 1]), phi, problem.offsets), Sticks.first(2, at), prior)
    )
    course.climb(200, 1e-10)
    exact = exact_log_evidence(x, 2, at, prior)
    assert exact - 6 < course.point.bound < exact


@pytest.mark.parametrize("start", ["windows", "random"])
@pytest.mark.parametrize("zeta", [1.0, 0.3])
@pytest.mark.parametrize("kappa", [10.0, 0.0])
@pytest.mark.parametrize("prior_scale", ["learned", 1.0, 0.05])
def test_bound_never_falls_between_moves(start, zeta, kappa, prior_scale):
    X, _, lengths = small()
    setting = {"start": start, "zeta": zeta, "kappa": kappa, "prior_scale": prior_scale, "tol": 1e-9}
    model = quiet(StickyHDPHMM(9, window=8, random_state=1, max_iter=60, **setting), X, lengths)
    history = model.history_
    assert len(history) > 20
    for before, after in pairwise(history):
        if not after.move:
            assert after.n_states == before.n_states
            assert after.bound >= before.bound - 1e-9 * abs(before.bound)
        elif after.move in ("merge", "delete"):
            assert after.n_states == before.n_states - 1
            assert after.bound > before.bound
    jacobian = zeta * len(X) * np.log(X.std(axis=0)).sum()
    assert model.bound_ == pytest.approx(history[-1].bound - jacobian)


# what is found


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_eight_states_are_found(seed):
    X, path, lengths = independent_frames(seed)
    model = StickyHDPHMM(25, zeta=1.0, random_state=seed).fit(X, lengths)
    assert model.n_states_ == 8
    assert adjusted_rand(path, model.predict(X, lengths)) > 0.97
    assert model.converged_


def test_frames_count_fully_where_they_are_independent():
    X, _, lengths = independent_frames(4, K=5, D=3, lengths=(250, 250))
    model = StickyHDPHMM(15, zeta="auto", random_state=0).fit(X, lengths)
    assert model.zeta_ > 0.95
    assert model.n_states_ == 5


@pytest.mark.parametrize("seed", [0, 1])
def test_frames_count_less_where_they_swing(seed):
    X, path, lengths = oscillators(seed)
    tempered = StickyHDPHMM(20, zeta="auto", random_state=0).fit(X, lengths)
    plain = quiet(StickyHDPHMM(20, zeta=1.0, random_state=0), X, lengths)
    assert tempered.zeta_ < 0.6
    assert tempered.n_states_ < plain.n_states_
    assert adjusted_rand(path, tempered.predict(X, lengths)) > adjusted_rand(path, plain.predict(X, lengths))


def test_the_best_of_several_starts_is_kept():
    X, _, lengths = small()
    setting = {"start": "random", "zeta": 1.0, "random_state": 3}
    one, five = (quiet(StickyHDPHMM(6, n_init=n, **setting), X, lengths) for n in (1, 5))
    assert five.bound_ >= one.bound_


def test_the_papers_setting():
    model = StickyHDPHMM.paper(random_state=1)
    setting = model.get_params()
    assert {"n_states": 20, "kappa": 10.0, "eta": 0.5, "gamma": 5.0, "zeta": 1.0}.items() <= setting.items()
    X, path, lengths = small()
    model.fit(X, lengths)
    assert model.n_states_ == 3
    assert np.allclose(model.prior_scale_, 1.0)
    assert adjusted_rand(path, model.predict(X, lengths)) > 0.95


# what means nothing


def test_units_and_origin_of_features_do_not_matter():
    X, _, lengths = small()
    scale, shift = np.array([1000.0, 0.01]), np.array([-5e4, 3.0])
    here = StickyHDPHMM(9, window=8, random_state=0).fit(X, lengths)
    there = StickyHDPHMM(9, window=8, random_state=0).fit(X * scale + shift, lengths)
    assert (here.predict(X, lengths) == there.predict(X * scale + shift, lengths)).all()
    assert np.allclose(there.means_, here.means_ * scale + shift, rtol=1e-6)
    assert np.allclose(there.covars_, here.covars_ * scale[:, None] * scale, rtol=1e-5)
    jacobian = len(X) * np.log(scale).sum()
    assert there.bound_ == pytest.approx(here.bound_ - here.zeta_ * jacobian, rel=1e-6)
    assert there.score(X * scale + shift, lengths) == pytest.approx(here.score(X, lengths) - jacobian, rel=1e-6)


@pytest.mark.parametrize("start", ["windows", "random"])
def test_order_of_sequences_does_not_matter(start):
    X, _, lengths = small()
    parts = np.split(X, np.cumsum(lengths)[:-1])
    order = [2, 0, 1]
    here = quiet(StickyHDPHMM(9, start=start, window=8, random_state=0), X, lengths)
    there = quiet(
        StickyHDPHMM(9, start=start, window=8, random_state=0),
        np.concatenate([parts[s] for s in order]),
        [lengths[s] for s in order],
    )
    assert there.bound_ == here.bound_
    assert (there.means_ == here.means_).all()


def test_same_seed_same_fit_and_another_seed_another_start():
    X, _, lengths = small()
    fits = [quiet(StickyHDPHMM(9, start="random", zeta=1.0, random_state=s), X, lengths) for s in (0, 0, 1)]
    assert fits[0].history_ == fits[1].history_
    assert fits[0].history_ != fits[2].history_


def test_order_of_states_does_not_matter():
    X, _, lengths = small()
    model = StickyHDPHMM(9, window=8, zeta=1.0, random_state=0).fit(X, lengths)
    order, told = np.array([2, 0, 1]), model.statistics_
    mixed = StickyHDPHMM.from_statistics(
        replace(
            told,
            counts=told.counts[order],
            means=told.means[order],
            covariances=told.covariances[order],
            moves=told.moves[np.ix_(order, order)],
            starts=told.starts[order],
        ),
        share=model.prior_scale_[0] / X[:, 0].var(),
        zeta=1.0,
    )
    assert (order[mixed.predict(X, lengths)] == model.predict(X, lengths)).all()
    assert np.allclose(mixed.predict_proba(X, lengths), model.predict_proba(X, lengths)[:, order])
    assert mixed.score(X, lengths) == pytest.approx(model.score(X, lengths), rel=1e-10)


# what is answered


@pytest.fixture(scope="module")
def fitted():
    X, path, lengths = small()
    return StickyHDPHMM(9, window=8, zeta=0.8, random_state=0).fit(X, lengths), X, path, lengths


def test_statistics_are_those_of_the_frames(fitted):
    model, X, _, lengths = fitted
    told = model.statistics_
    R = model.predict_proba(X, lengths)  # one step on: the ascent has settled to within its tolerance
    assert np.allclose(told.counts, R.sum(axis=0), atol=0.05)
    assert np.allclose(told.means, R.T @ X / R.sum(axis=0)[:, None], atol=0.01)
    assert told.counts.sum() == pytest.approx(len(X))
    assert told.moves.sum() + told.starts.sum() == pytest.approx(len(X))
    assert told.starts.sum() == pytest.approx(len(lengths))
    assert np.allclose(told.visits, told.starts + told.moves.sum(0) - np.diag(told.moves))
    assert np.allclose(told.centre, X.mean(axis=0))
    assert np.allclose(told.unit, X.std(axis=0))


def test_probabilities_are_probabilities(fitted):
    model, X, path, lengths = fitted
    assert np.allclose(model.transmat_.sum(axis=1), 1)
    assert model.startprob_.sum() == pytest.approx(1)
    assert np.allclose(model.predict_proba(X, lengths).sum(axis=1), 1)
    assert (np.diff(model.statistics_.counts) <= 0).all()
    assert (np.linalg.eigvalsh(model.covars_) > 0).all()
    assert (model.predict(X, lengths) == model.predict_proba(X, lengths).argmax(axis=1)).mean() > 0.95
    assert adjusted_rand(path, model.predict(X, lengths)) > 0.95


def test_score_is_the_sum_over_all_paths(fitted):
    model, X, _, _ = fitted
    log_density = model._posterior.emissions.log_predictive((X[:3] - X.mean(0)) / X.std(0)) - np.log(X.std(0)).sum()
    every = paths_of(np.log(model.startprob_), np.log(model.transmat_), log_density)
    assert model.score(X[:3]) == pytest.approx(logsumexp([weight for _, weight in every]))
    assert model.score(X[:7], [3, 4]) == pytest.approx(model.score(X[:3]) + model.score(X[3:7]))


def test_scores_are_densities():
    X, _, lengths = independent_frames(5, K=2, D=1, lengths=(80, 80))
    model = StickyHDPHMM(6, window=8, random_state=0).fit(X, lengths)
    grid = np.linspace(-400, 400, 200_001)[:, None]
    scores = model._posterior.emissions.log_predictive((grid - model._centre) / model._unit) - np.log(model._unit)
    assert np.trapezoid(np.exp(scores) @ model.startprob_, grid[:, 0]) == pytest.approx(1, abs=1e-3)


def test_it_is_an_estimator():
    model = StickyHDPHMM(7, zeta=0.5, random_state=1)
    assert clone(model).get_params() == model.get_params()
    assert model.set_params(kappa=3.0).kappa == 3.0


def test_it_can_be_kept(fitted):
    model, X, _, lengths = fitted
    again = pickle.loads(pickle.dumps(model))
    assert (again.predict(X, lengths) == model.predict(X, lengths)).all()
    assert again.score(X, lengths) == model.score(X, lengths)


# windows


def test_windows_find_the_states():
    X, path, lengths = independent_frames(6, K=4, D=3, lengths=(200, 200))
    found = window_start(X, lengths, 4, window=6, random_state=0)
    assert found.means.shape == (4, 3)
    assert (np.linalg.eigvalsh(found.covars) > 0).all()
    assert adjusted_rand(path, found.labels) > 0.6


def test_long_data_pool_neighbours_first(monkeypatch):
    X, path, _ = independent_frames(7, K=3, D=2, lengths=(200, 150))
    phi = features((X - X.mean(0)) / X.std(0))
    monkeypatch.setattr(windows, "MOST_FRAGMENTS", 15)
    prior = Prior(np.full(2, 0.1), 0.01)
    options = {"window": 5, "phase": 3, "zeta": 1.0, "prior": prior}
    fragments = pool_windows(phi, np.array([0, 200, 350]), 15, **options)
    assert len(np.unique(fragments)) == 15
    assert (np.diff(fragments) >= 0).all()  # in time
    assert fragments[199] != fragments[200]  # within sequences
    assert adjusted_rand(path, pool_windows(phi, np.array([0, 200, 350]), 3, **options)) > 0.6


# bad input


@pytest.mark.parametrize(
    ("X", "lengths", "says"),
    [
        (np.array([[0.0, 1.0], [np.nan, 2.0]]), None, r"finite.*nan in frame 1, feature 0"),
        (np.zeros(5), None, r"shape \(frames, features\).*reshape"),
        (np.zeros((0, 2)), None, r"neither zero"),
        ("words", None, r"real numbers.*str"),
        (np.ones((6, 2)), [3, 2], r"add up to 5, but X has 6"),
        (np.ones((6, 2)), [6, 0], r"at least 1 each"),
        (np.ones((6, 2)), [2.5, 3.5], r"whole numbers"),
        (np.ones((3, 2)), None, r"3 frames are too few for states with 2 features: at least 4"),
        (np.column_stack([np.arange(9.0), np.ones(9)]), None, r"feature 1 is constant"),
    ],
)
def test_bad_sequences_are_refused_in_words(X, lengths, says):
    with pytest.raises(InputError, match=says):
        StickyHDPHMM().fit(X, lengths)


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ({"n_states": 0}, "n_states is a whole number"),
        ({"window": 2.5}, "window is a whole number"),
        ({"zeta": 0}, "zeta is 'auto' or"),
        ({"zeta": "often"}, "zeta is 'auto' or"),
        ({"kappa": -1}, "kappa is a number, not negative"),
        ({"gamma": 0}, "gamma is a positive number"),
        ({"prior_scale": -1.0}, "prior_scale is 'learned' or"),
        ({"start": "luck"}, "start is 'windows' or"),
    ],
)
def test_bad_settings_are_refused_in_words(setting, says):
    with pytest.raises(InputError, match=says):
        StickyHDPHMM(**setting).fit(small()[0])


def test_other_features_are_refused(fitted):
    with pytest.raises(InputError, match="knows 2 features; X has 3"):
        fitted[0].predict(np.zeros((4, 3)))


def test_too_few_states_and_steps_are_said():
    X, _, lengths = small()
    with pytest.warns(ModelweldWarning, match="all 2 states are in use"):
        StickyHDPHMM(2, zeta=1.0, random_state=0).fit(X, lengths)
    with pytest.warns(ModelweldWarning, match="in the first fit, by which zeta is chosen"):
        StickyHDPHMM(2, random_state=0).fit(X, lengths)
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        StickyHDPHMM(9, zeta=1.0, max_iter=1, tol=1e-12, window=8, random_state=0).fit(X, lengths)


# fusion


@pytest.fixture(scope="module")
def two_sites():
    """States 0, 1, 2 at one site, 1, 2, 3 at the other."""
    rng = np.random.default_rng(8)
    means = rng.normal(0, 6, (4, 3))
    sites = []
    for held in ([0, 1, 2], [1, 2, 3]):
        path = np.array(held)[chain(rng, (150, 120), 3)]
        X = means[path] + rng.normal(size=(270, 3))
        sites.append((StickyHDPHMM(8, zeta=1.0, window=8, random_state=0).fit(X, [150, 120]), X, path))
    return sites


def test_fused_models_are_statistics_added(two_sites):
    models = [model for model, _, _ in two_sites]
    fusion = fuse(models)
    fused = fusion.model()
    assert type(fused) is StickyHDPHMM
    assert fused.n_states_ == fusion.K == 4
    told = fused.statistics_
    for k in range(4):
        own = [
            (m.statistics_, int(np.flatnonzero(z == k)[0]))
            for m, z in zip(models, fusion.labels, strict=True)
            if k in z
        ]
        n = sum(s.counts[i] for s, i in own)
        assert told.counts[k] == pytest.approx(n)
        first = sum(s.counts[i] * s.means[i] for s, i in own)
        assert np.allclose(told.means[k], first / n)
        second = sum(s.counts[i] * (s.covariances[i] + np.outer(s.means[i], s.means[i])) for s, i in own)
        assert np.allclose(told.covariances[k], second / n - np.outer(first, first) / n**2)
    assert told.moves.sum() == pytest.approx(sum(m.statistics_.moves.sum() for m in models))
    paths = np.concatenate([path for _, _, path in two_sites])
    found = np.concatenate([fused.predict(X, [150, 120]) for _, X, _ in two_sites])
    assert adjusted_rand(paths, found) > 0.97


@pytest.mark.parametrize("effective", ["frames", "visits"])
@pytest.mark.parametrize("way", ["variance", "equally", "paper", "weight"])
def test_all_ways_to_match(two_sites, way, effective):
    known = "equally" if way == "paper" else way
    sites = [read(model, known=known, effective=effective) for model, _, _ in two_sites]
    if way == "paper":
        fusion = fuse(sites, preset="paper")
    elif way == "weight":
        fusion = fuse(sites, {("means", "covariances"): Moments()})
    else:
        fusion = fuse(sites, search=Search(splits=known == "variance"))
    assert fusion.K == 4
    assert np.isfinite(fusion.model().score(two_sites[0][1]))


def test_what_a_state_is_worth(two_sites):
    model = two_sites[0][0]
    told = model.statistics_
    spread = np.einsum("kii->ki", model.covars_)
    by_frames, by_visits = (read(model, effective=e).variance["means"] for e in ("frames", "visits"))
    assert np.allclose(by_frames, spread / told.counts[:, None])
    assert np.allclose(by_visits, spread / np.maximum(told.visits, 1.0)[:, None])
    assert np.allclose(read(model, known="weight").weight["covariances"][:, 0, 0], told.counts)
    assert not read(model, known="equally").variance


def test_sites_may_differ_in_zeta_and_prior(two_sites):
    (first, _, _), (_, Y, _) = two_sites
    other = StickyHDPHMM(8, zeta=0.5, kappa=5.0, prior_scale=2.0, window=8, random_state=0).fit(Y, [150, 120])
    fused = fuse([first, other]).model()
    assert fused.zeta_ == pytest.approx(0.75)  # as many frames at both
    assert fused.prior_scale == "learned"
    assert fused.kappa == StickyHDPHMM().kappa
    assert read(other).arrays["counts"].sum() == pytest.approx(0.5 * len(Y))


def test_given_scales_are_kept(two_sites):
    sites = [StickyHDPHMM.paper(n_states=8, random_state=0).fit(X, [150, 120]) for _, X, _ in two_sites]
    fused = fuse(sites).model()
    assert np.allclose(fused.prior_scale_, 1.0)
    assert fused.mean_precision == 1e-4


def test_moves_that_were_dropped_do_not_change_what_a_frame_counts(two_sites):
    _, X, _ = two_sites[0]
    model = StickyHDPHMM(8, zeta=0.5, window=8, random_state=0).fit(X, [150, 120])
    sent = read(model)
    moves = np.where(np.asarray(sent.arrays["moves"]) < 5, 0.0, sent.arrays["moves"])
    again = write(sent.with_(arrays={**sent.arrays, "moves": moves}))
    assert again.zeta_ == 0.5
    assert np.allclose(again.means_, model.means_)


def test_what_cannot_be_read_or_written_is_refused(two_sites):
    with pytest.raises(InputError, match="not fitted"):
        read(StickyHDPHMM())
    with pytest.raises(InputError, match="known is"):
        read(two_sites[0][0], known="well")
    with pytest.raises(InputError, match="effective is"):
        read(two_sites[0][0], effective="hours")
    symbols = LocalModel(
        {"symbols": [[1.0, 2.0]], "moves": [[1.0]], "starts": [1.0], "counts": [3.0]},
        {"symbols": ("state", None), "moves": ("state", "state"), "starts": ("state",), "counts": ("state",)},
        kind="hmm",
        facts={"counted": True},
    )
    with pytest.raises(InputError, match="Gaussian emissions"):
        write(symbols, StickyHDPHMM)


def test_statistics_alone_do_not_tell_zeta(fitted):
    with pytest.raises(InputError, match="zeta"):
        StickyHDPHMM.from_statistics(fitted[0].statistics_, zeta="auto")
    with pytest.raises(InputError, match="share is a positive number"):
        StickyHDPHMM.from_statistics(fitted[0].statistics_, zeta=1.0, share=0.0)


@pytest.mark.parametrize("fact", [{"zeta": 2.0}, {"zeta": "half"}, {"kappa": -1.0}, {"share": -1.0}])
def test_facts_that_make_no_sense_are_refused(fitted, fact):
    sent = read(fitted[0])
    with pytest.raises(InputError, match=next(iter(fact))):
        write(sent.with_(facts={**sent.facts, **fact}))


def test_the_guide_runs():
    guide = (Path(__file__).parents[1] / "docs" / "hmm.md").read_text(encoding="utf-8")
    names = {}
    for block in re.findall(r"^```python\n(.*?)^```$", guide, re.MULTILINE | re.DOTALL):
        exec(compile(block, "docs/hmm.md", "exec"), names)
    assert names["model"].n_states_ == 3
    assert names["fused"].n_states_ == 4
    assert names["found"].means.shape == (3, 2)


def test_a_state_of_one_frame_has_no_negative_variance():
    from modelweld.hmm.statistics import Summary, features

    frames = np.random.default_rng(3).normal(0, 50, (40, 6))
    one_each = Statistics(3 * features(frames), np.zeros((40, 40)), np.zeros(40))
    told = Summary.of(one_each, np.zeros(6), np.ones(6))
    assert (np.linalg.eigvalsh(told.covariances + 1e-9 * np.eye(6)) > 0).all()
    assert (np.einsum("kii->ki", told.covariances) >= 0).all()
