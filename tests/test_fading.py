"""Atoms of compositions and directions that move: approximations, by how much they are off, and what they are for."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.stats import beta, betabinom, binom

import modelweld
from modelweld.core.values import Stack, offsets_of
from modelweld.families import Counts, Directions, FadingCounts, FadingDirections
from modelweld.fit.priors.birth_death import BirthDeath
from modelweld.kinds.topics import topics
from modelweld.time.chains import Chains
from modelweld.time.motion import Fading
from modelweld.time.timeline import Timeline

COUNTS = FadingCounts(base=[1.5, 2.5], between=np.inf, memory=8.0)
SPHERE = FadingDirections(mean=[1.0, 0.0, 0.0], concentration=20.0, base_concentration=0.0, memory=8.0)


def unit_vectors(seed: int, number: int) -> np.ndarray:
    drawn = np.random.default_rng(seed).normal(size=(number, 3))
    return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


def some_rows(family: FadingCounts | FadingDirections, number: int = 5) -> np.ndarray:
    if isinstance(family, FadingCounts):
        return family.rows(np.random.default_rng(0).integers(1, 30, (number, 2)).astype(float))
    return family.rows(unit_vectors(0, number))


@pytest.mark.parametrize("family", [COUNTS, SPHERE], ids=lambda f: type(f).__name__)
def test_two_steps_are_one_and_no_step_is_none(family):
    rows = some_rows(family)
    a, b = np.full(5, 0.8), np.full(5, 0.5)
    assert np.allclose(family.fade(family.fade(rows, a), b), family.fade(rows, a * b))
    assert np.array_equal(family.fade(rows, np.ones(5)), rows)
    assert np.allclose(family.fade(rows, np.zeros(5)), 0.0, atol=1e-9)


def test_an_expected_composition_goes_back_as_that_of_a_stationary_path():
    rows = some_rows(COUNTS)
    start = np.asarray(COUNTS.base) / np.sum(COUNTS.base)
    phi = np.linspace(0.1, 0.9, 5)
    expected = start + phi[:, None] * (COUNTS.estimate(rows) - start)
    assert np.allclose(COUNTS.estimate(COUNTS.fade(rows, phi)), expected)


def test_a_mean_cosine_falls_as_that_of_a_random_step():
    rng = np.random.default_rng(1)
    rows = SPHERE.rows(np.array([[0.0, 0.0, 1.0]]))

    def cosine(sums: np.ndarray) -> float:
        return float(np.mean(SPHERE.draw_atoms(np.repeat(sums, 40_000, axis=0), rng)[:, 2]))

    assert cosine(SPHERE.fade(rows, np.array([0.6]))) == pytest.approx(0.6 * cosine(rows), abs=0.01)


@pytest.mark.parametrize("family", [COUNTS, SPHERE], ids=lambda f: type(f).__name__)
def test_evidence_is_that_of_the_family_where_nothing_fades(family):
    from modelweld.core.family import with_fields

    values = np.random.default_rng(0).integers(1, 30, (6, 2)) * 1.0 if family is COUNTS else unit_vectors(3, 6)
    labels = np.array([0, 1, 0, 0, 1, 0])
    still = with_fields(family, memory=np.inf)
    stack = Stack(values, offsets_of([1] * 6))
    rows = family.rows(values)
    expected = sum(float(family.log_evidence(rows[labels == k].sum(0))) for k in (0, 1))
    assert Fading(stack, still).log_evidence(Chains(labels, np.arange(6.0))) == pytest.approx(expected)
    at_once = Fading(stack, family).log_evidence(Chains(labels, np.zeros(6)))
    assert at_once == pytest.approx(expected)


def exact_path_evidence(successes: list[int], trials: int, a: float, b: float, M: int) -> float:
    """Of a share that follows the Beta chain x' | m ~ Beta(a + m, b + M - m), m ~ Binomial(M, x): by quadrature."""
    grid = (np.arange(800) + 0.5) / 800
    weight = beta.pdf(grid, a, b) / len(grid)
    m = np.arange(M + 1)
    step = beta.pdf(grid[:, None], a + m, b + M - m)  # (x', m)
    there = binom.pmf(m, M, grid[:, None])  # (x, m)
    value = 0.0
    for i, k in enumerate(successes):
        if i:
            weight = step @ (there.T @ weight) / len(grid)
        weight = weight * binom.pmf(k, trials, grid)
        value += float(np.log(weight.sum()))
        weight /= weight.sum()
    return value


@pytest.mark.parametrize(("M", "off"), [(400, 0.35), (40, 0.2), (10, 0.65)])
def test_discounted_evidence_is_near_that_of_the_path(M, off):
    """Against the exact answer: the error, in nats of seven values, grows as atoms move faster."""
    a, b, trials, seen = 1.5, 2.5, 20, [12, 13, 10, 9, 12, 6, 5]
    exact = exact_path_evidence(seen, trials, a, b, M)
    memory = -1 / np.log(M / (a + b + M))
    family = FadingCounts(base=[a, b], between=np.inf, memory=memory)
    values = np.array([[k, trials - k] for k in seen], dtype=float)
    stack = Stack(values, offsets_of([1] * 7))
    found = Fading(stack, family).log_evidence(Chains(np.zeros(7, dtype=np.int64), np.arange(7.0)))
    assert abs(found - exact) < off
    still = float(Counts(base=[a, b], between=np.inf).log_evidence(family.rows(values).sum(0)))
    assert abs(found - exact) < abs(still - exact)


def test_the_first_value_has_its_exact_density():
    stack = Stack(np.array([[7.0, 3.0]]), offsets_of([1]))
    found = Fading(stack, COUNTS).log_evidence(Chains(np.zeros(1, dtype=np.int64), np.zeros(1)))
    assert found == pytest.approx(float(betabinom.logpmf(7, 10, 1.5, 2.5)))


def drifting_topics(seed: int, T: int = 14, V: int = 40, M: int = 300) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Numbers of words in four topics that move; one ends half way, another begins."""
    rng = np.random.default_rng(seed)
    a = np.full(V, 6.0 / V)
    theta = rng.dirichlet(a + 0.05, 5)
    groups, labels = [], []
    for t in range(T):
        if t:
            theta = np.array([rng.dirichlet(a + rng.multinomial(M, x) + 1e-9) for x in theta])
        own = rng.permutation([0, 1, 2, 3 if t < T // 2 else 4])
        groups.append(np.array([rng.multinomial(200, theta[k]) for k in own], dtype=float))
        labels.append(own)
    return groups, labels


@pytest.fixture(scope="module")
def topics_in_time():
    groups, labels = drifting_topics(0)
    words = [f"w{i}" for i in range(groups[0].shape[1])]
    models = [topics(group, words) for group in groups]
    return modelweld.fuse(models, times=[f"{2000 + t}" for t in range(len(groups))]), labels


def test_topics_that_move_are_followed(topics_in_time):
    fusion, labels = topics_in_time
    truth, found = np.concatenate(labels), np.concatenate(fusion.labels)
    assert len(np.unique(np.stack([truth, found]), axis=1)[0]) == len(np.unique(truth)) == fusion.K == 5
    assert np.isfinite(fusion.diagnosis.hyperparameters["memory"])
    assert (np.diff(fusion.diagnosis.history) >= -1e-8).all()


def test_what_one_asks_of_topics_in_time(topics_in_time, tmp_path):
    fusion, _ = topics_in_time
    path = fusion.timeline.path(0)
    assert np.allclose(path.values.sum(1), 1.0)
    assert ((path.low >= 0) & (path.low <= path.values) & (path.values <= path.high) & (path.high <= 1)).all()
    ahead, far = fusion.timeline.forecast("2014"), fusion.timeline.forecast("2060")
    assert (ahead.high - ahead.low).mean() > (path.high - path.low).mean()  # a site differs from its atom
    assert np.allclose(far.values.sum(1), 1.0)
    model = fusion.timeline.at("2003").parameters()
    assert model.kind == "topics"
    assert model.arrays["words"].shape == (4, 40)
    fusion.save(tmp_path / "f.safetensors")
    again = modelweld.load(tmp_path / "f.safetensors")
    assert np.array_equal(again.timeline.path(0).values, path.values)
    larger = fusion.add(fusion._fit.models[-1].with_(site="", time=None), time="2014", refit=False)
    assert sorted(larger.labels[-1]) == sorted(set(larger.labels[-2]))


def test_directions_that_move_are_followed():
    rng = np.random.default_rng(4)
    places, groups, labels = rng.normal(size=(4, 16)), [], []
    for _ in range(6):
        places = places + 0.35 * rng.normal(size=places.shape)
        order = rng.permutation(4)
        values = places[order] + 0.1 * rng.normal(size=places.shape)
        groups.append(values / np.linalg.norm(values, axis=1, keepdims=True))
        labels.append(order)
    models = [modelweld.LocalModel({"v": g}, {"v": ("k", None)}) for g in groups]
    fusion = modelweld.fuse(models, families={"v": Directions()}, times=range(6))
    truth, found = np.concatenate(labels), np.concatenate(fusion.labels)
    assert len(np.unique(np.stack([truth, found]), axis=1)[0]) == fusion.K == 4
    assert np.isfinite(fusion.diagnosis.hyperparameters["memory"])
    assert np.allclose(np.linalg.norm(fusion.timeline.path(0).values, axis=1), 1.0)


def test_networks_and_other_values_are_refused_with_the_remedy():
    rates = [modelweld.LocalModel({"v": np.ones((2, 3))}, {"v": ("k", None)}) for _ in range(3)]
    with pytest.raises(modelweld.InputError, match="leave the times out"):
        modelweld.fuse(rates, families={"v": modelweld.Rates()}, times=[1, 2, 3])
    with pytest.raises(modelweld.InputError, match="axial"):
        modelweld.fuse(rates, families={"v": Directions(axial=True)}, times=[1, 2, 3])


def test_a_walk_that_leads_down_is_taken_back():
    groups, _ = drifting_topics(1, T=8, M=30)
    stack = Stack(np.vstack(groups), offsets_of([len(g) for g in groups]))
    family = FadingCounts(base=np.full(40, 0.15), between=100.0, memory=3.0, counted=True)
    labels = np.random.default_rng(0).integers(0, 3, len(groups)).repeat(4) * 4 + np.tile(np.arange(4), len(groups))
    board = Timeline(
        stack, np.arange(8.0), family, BirthDeath(4.0, 0.8, 0.05), np.unique(labels, return_inverse=True)[1]
    )
    before = board.objective()
    for _ in range(6):
        board.sweep(np.arange(0))
        assert board.objective() >= before
        before = board.objective()


def test_a_site_sent_twice_at_one_time_is_counted_once_and_named():
    from shared.simulate_time import moving_groups

    drawn = moving_groups(2, T=12, D=3, alive=5.0)
    plain = modelweld.fuse(drawn.groups, times=drawn.times)
    groups, times = [*drawn.groups, drawn.groups[4][::-1]], [*drawn.times, 4.0]
    with pytest.warns(modelweld.DuplicateWarning, match="'4' and '12'"):
        twice = modelweld.fuse(groups, times=times)
    assert twice.objective == pytest.approx(plain.objective)
    assert np.array_equal(twice.labels[12], twice.labels[4][::-1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        unchanged = modelweld.fuse([*drawn.groups, drawn.groups[-1]], times=[*drawn.times, 12.0])  # the next day
    assert unchanged.K == plain.K
    assert twice.remove(12).K == plain.K


def test_gross_outliers_and_rows_never_seen_stay_out_of_the_fit():
    from shared.simulate_time import moving_groups

    drawn = moving_groups(2, T=12, D=3, alive=5.0)
    plain = modelweld.fuse(drawn.groups, times=drawn.times)
    groups = [*drawn.groups[:7], np.vstack([drawn.groups[7], [[1e4, 0.0, 0.0]]]), *drawn.groups[8:]]
    with pytest.warns(modelweld.OutlierWarning, match="site '7'"):
        fusion = modelweld.fuse(groups, times=drawn.times)
    assert fusion.K == plain.K
    assert fusion.diagnosis.hyperparameters["memory"] == pytest.approx(plain.diagnosis.hyperparameters["memory"])


@pytest.mark.parametrize("ahead", [6, 30])
def test_a_stream_has_the_labels_of_groups_added_one_by_one(ahead):
    from shared.simulate_time import moving_groups

    drawn = moving_groups(5, T=10 + ahead, D=3, alive=5.0, life=8.0, drift=2.0)
    fusion = modelweld.fuse(drawn.groups[:10], times=drawn.times[:10])
    stream, larger, known = fusion.timeline.stream(), fusion, {}
    for j in range(10, 16):
        larger = larger.add(drawn.groups[j], time=drawn.times[j], refit=False)
        for ours, theirs in zip(stream.add(drawn.groups[j], drawn.times[j]), larger.labels[j], strict=True):
            first = next((i, v) for i, own in enumerate(larger.labels) for v, k in enumerate(own) if k == theirs)
            assert known.setdefault(int(ours), first) == first  # one number of the stream, one chain of the fusion
    alive = larger.timeline.lifetimes().alive
    forgotten = len(alive) - len(stream.atoms)
    assert np.allclose(np.sort(stream.alive), np.sort(alive)[forgotten:])
    assert (np.sort(alive)[:forgotten] < 1e-9).all()
    assert (forgotten > 0) == (ahead == 6)
    for j in range(16, 10 + ahead):
        stream.add(drawn.groups[j], drawn.times[j])
    with pytest.raises(modelweld.InputError, match="forwards"):
        stream.add(drawn.groups[0], 0.0)
