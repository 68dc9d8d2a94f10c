"""Groups in time: the exact joint density by brute force, monotone steps, and the static model as a limit."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from modelweld.core.board import Board
from modelweld.core.moments import Hyperparameters
from modelweld.core.values import Stack, offsets_of
from modelweld.families import Drift, Gaussian
from modelweld.fit.priors.birth_death import BirthDeath, Lifespans
from modelweld.fit.priors.spectrum import Spectrum
from modelweld.inputs.stacks import stack_arrays
from modelweld.time.chains import Chains, effects_of, log_evidence
from modelweld.time.matcher import arrange_in_time, run
from modelweld.time.timeline import Timeline, Walk, link, smooth
from shared.simulate_time import moving_groups

MOMENTS = np.array([0.0, 0.7, 0.7, 2.0, 5.0])
"""Irregular, two groups at one time."""


def lifespans(presence, times):
    """First and last slots and counts of atoms, from which groups (K, J) hold them."""
    slot = np.unique(times, return_inverse=True)[1]
    first = np.where(presence, slot, int(slot.max(initial=0)) + 1).min(1)
    return Lifespans(first, np.where(presence, slot, -1).max(1), presence.sum(1))


def patterns(J: int) -> np.ndarray:
    """All ways in which J groups can hold an atom."""
    return np.array([held for held in product([False, True], repeat=J) if any(held)])


def rate_of_life(prior: BirthDeath, held: np.ndarray, times: np.ndarray, born: int, dies: int) -> float:
    """Of one pattern, by atoms that live from one slot of time to another."""
    slots = np.unique(times)
    stays = np.exp(-prior.hazard * np.diff(slots))
    start = prior.alive if born == 0 else prior.alive * (1 - stays[born - 1])
    lives = float(np.prod(stays[born:dies])) * (1.0 if dies == len(slots) - 1 else 1 - stays[dies])
    inside = (times >= slots[born]) & (times <= slots[dies])
    if held[~inside].any():
        return 0.0
    return start * lives * float(np.where(held, prior.held, 1 - prior.held)[inside].prod())


def log_rate_by_hand(prior: BirthDeath, held: np.ndarray, times: np.ndarray) -> float:
    """Of one pattern: births and deaths summed one by one."""
    T = len(np.unique(times))
    return float(np.log(sum(rate_of_life(prior, held, times, b, d) for b in range(T) for d in range(b, T))))


def log_rates(prior: BirthDeath, presence: np.ndarray) -> np.ndarray:
    """Of atoms that these groups hold (K, J), as the class's equation has them."""
    ends, spans = prior.ends(), lifespans(presence, prior.times)
    return ends.opening[spans.first] + ends.closing[spans.last] + spans.counts * prior.log_odds


@pytest.mark.parametrize("hazard", [0.0, 0.3, 4.0])
def test_rates_of_lives_are_sums_over_births_and_deaths(hazard: float) -> None:
    prior = BirthDeath(3.0, 0.6, hazard).condition_on(MOMENTS)
    every = patterns(len(MOMENTS))
    expected = [log_rate_by_hand(prior, held, MOMENTS) for held in every]
    assert np.allclose(log_rates(prior, every), expected)
    assert np.isclose(prior.ends().seen, np.exp(expected).sum())


def test_probability_of_being_alive_is_that_of_all_lives() -> None:
    prior = BirthDeath(3.0, 0.6, 0.3)
    held = np.array([[False, True, False, False, False]])
    spans = lifespans(held, MOMENTS)
    whole = np.exp(log_rates(prior.condition_on(MOMENTS), held))[0]
    for time, slot in ((0.0, 0), (0.7, 1), (2.0, 2), (5.0, 3)):
        # those that live then: as if one more group, which always sees, had come at that time
        lives = product(range(slot + 1), range(slot, 4))
        certain = sum(rate_of_life(prior, held[0], MOMENTS, born, dies) for born, dies in lives)
        assert np.isclose(prior.condition_on(MOMENTS).living(spans, time)[0], certain / whole)
    later = prior.condition_on(MOMENTS).living(spans, 7.0)[0]
    assert np.isclose(later, np.exp(-0.6) * prior.condition_on(MOMENTS).living(spans, 5.0)[0])
    between = prior.condition_on(MOMENTS).living(spans, 3.0)[0]
    assert (
        prior.condition_on(MOMENTS).living(spans, 5.0)[0] < between < prior.condition_on(MOMENTS).living(spans, 2.0)[0]
    )


def test_lives_are_learned_and_never_made_less_probable() -> None:
    drawn = moving_groups(1, T=60, alive=20.0, held=0.7, life=12.0)
    K = len(drawn.paths)
    presence = np.zeros((K, 60), dtype=bool)
    for j, labels in enumerate(drawn.labels):
        presence[labels, j] = True
    presence, sizes = presence[presence.any(1)], presence.sum(0)
    first = BirthDeath(5.0, 0.5, 0.01).condition_on(drawn.times)
    spans = lifespans(presence, drawn.times)
    learned = first.learn_in_time(spans)
    assert learned.log_prob_in_time(spans, sizes) > first.log_prob_in_time(spans, sizes)
    again = learned.learn_in_time(spans)
    assert again.log_prob_in_time(spans, sizes) >= learned.log_prob_in_time(spans, sizes)
    for name, truth in (("alive", 20.0), ("held", 0.7), ("hazard", 1 / 12)):
        assert 0.8 < getattr(learned, name) / truth < 1.25


def values_in_time(seed: int = 0, *, gaps: bool = True) -> tuple[Stack, np.ndarray, np.ndarray]:
    """Twelve values of three atoms, with standard errors, some not seen, at irregular times."""
    rng = np.random.default_rng(seed)
    values, variance, weight = (
        rng.normal(size=(12, 2)),
        rng.uniform(0.1, 1.0, (12, 2)),
        rng.integers(1, 4, (12, 2)) * 1.0,
    )
    weight[2, 0] = weight[7] = 0.0
    times = np.sort(rng.uniform(0, 5, 12)) if gaps else np.zeros(12)
    return Stack(values, offsets_of([1] * 12), variance, weight), times, rng.permutation(np.arange(12) % 3)


FAMILY = Drift(mean=[0.2, -0.1], noise=[0.5, 0.8], spread=[2.0, 1.0], inflation=0.7, memory=3.0)


def log_density(family, values, times, variance=None, weight=None) -> float:
    """Of the values (L, D) of one atom at these times (L,): the definition."""
    own = family.value_variances(values, variance, weight)
    together = np.exp(-np.abs(np.subtract.outer(times, times)) / family.memory)
    value = 0.0
    for d, (mean, spread, _) in enumerate(np.broadcast(family.mean, family.spread, values[0])):
        seen = np.isfinite(own[:, d])
        covariance = spread * together[np.ix_(seen, seen)] + np.diag(own[seen, d])
        value += multivariate_normal(np.full(seen.sum(), mean), covariance).logpdf(values[seen, d])
    return value


@pytest.mark.parametrize("memory", [0.5, 3.0, np.inf])
def test_filter_has_the_density_of_the_gaussian_process(memory: float) -> None:
    from dataclasses import replace

    stack, times, labels = values_in_time()
    family = replace(FAMILY, memory=memory)
    expected = sum(
        log_density(family, stack.values[own], times[own], stack.variance[own], stack.weight[own])
        for own in (labels == k for k in range(3))
    )
    y = np.where(stack.weight > 0, stack.values - family.mean, 0.0)
    variance = family.value_variances(stack.values, stack.variance, stack.weight)
    chains = Chains(labels, times)
    given = y, variance, np.asarray(family.spread), memory
    assert np.isclose(chains.log_evidence(*given), expected)
    value, slopes = chains.with_slopes(*given)
    assert np.isclose(value, expected)
    for found, step in (
        (slopes.spread, (0, 0, 1e-6)),
        (slopes.variance.sum(0), (0, 1e-6, 0)),
        (-slopes.mean, (1e-6, 0, 0)),
    ):
        for d, by in enumerate(np.eye(y.shape[1])):
            ends = [
                chains.log_evidence(*(x + sign * s * by for x, s in zip(given[:3], step, strict=True)), memory)
                for sign in (1, -1)
            ]
            assert np.isclose(found[d], (ends[0] - ends[1]) / 2e-6, rtol=1e-4, atol=1e-4)
    if np.isfinite(memory):
        ends = [chains.log_evidence(*given[:3], memory * np.exp(step)) for step in (1e-6, -1e-6)]
        assert np.isclose(slopes.log_memory, (ends[0] - ends[1]) / 2e-6, rtol=1e-4, atol=1e-4)


def matchings(sizes: list[int]) -> list[np.ndarray]:
    """All matchings of groups of these sizes, as labels."""
    found: list[list[int]] = [[]]
    for size in sizes:
        longer = []
        for labels in found:
            K = max(labels, default=-1) + 1
            for choice in product(range(K + size), repeat=size):
                new = [c for c in choice if c >= K]
                if len(set(choice)) == size and new == list(range(K, K + len(new))):
                    longer.append([*labels, *choice])
        found = longer
    return [np.array(labels, dtype=np.int64) for labels in found]


def tiny(seed: int) -> Timeline:
    """Four groups of one to two values, with everything that is to be learned at what it was drawn by."""
    rng = np.random.default_rng(seed)
    sizes, times = [2, 1, 2, 2], np.array([0.0, 1.0, 1.0, 2.5])
    family = Drift(mean=[0.0], noise=[0.2], spread=[1.0], memory=4.0)
    stack = Stack(rng.normal(size=(sum(sizes), 1)), offsets_of(sizes))
    return Timeline(stack, times, family, BirthDeath(2.0, 0.6, 0.2))


def joint_density(board: Timeline, labels: np.ndarray) -> float:
    """The model by its definition: rates of patterns by hand, and Gaussian processes."""
    from scipy.special import gammaln

    times, value = board.times, 0.0
    for k in np.unique(labels):
        own = labels == k
        held = np.isin(np.arange(len(times)), board.group[own])
        value += log_rate_by_hand(board.prior, held, times)
        value += log_density(board.family, board.stack.values[own], times[board.group[own]])
    seen = sum(np.exp(log_rate_by_hand(board.prior, held, times)) for held in patterns(len(times)))
    return value - seen - float(gammaln(board.sizes + 1.0).sum())


def test_objective_is_the_exact_joint_density() -> None:
    board = tiny(0)
    constant = None
    for labels in matchings(board.sizes.tolist())[::7]:
        board.labels = labels
        difference = board.objective() - joint_density(board, labels)
        constant = difference if constant is None else constant  # log priors of what is learned
        assert np.isclose(difference, constant)


def test_probabilities_of_all_matchings_of_all_sizes_add_up_to_one() -> None:
    prior, times = BirthDeath(0.4, 0.5, 0.5), np.array([0.0, 1.0])
    prior = prior.condition_on(times)
    total = 0.0
    nothing = lifespans(np.zeros((0, 2), dtype=bool), times)
    learned = prior.log_prob_in_time(nothing, np.zeros(2, dtype=np.int64)) + prior.ends().seen
    for sizes in product(range(5), repeat=2):
        for labels in matchings(list(sizes)):
            group = np.repeat([0, 1], sizes)
            presence = np.zeros((labels.max(initial=-1) + 1, 2), dtype=bool)
            presence[labels, group] = True
            total += np.exp(prior.log_prob_in_time(lifespans(presence, times), np.array(sizes)) - learned)
    assert np.isclose(total, 1.0, atol=1e-3)


@pytest.mark.parametrize("seed", range(6))
def test_sweeps_end_at_a_matching_that_brute_force_hardly_beats(seed: int) -> None:
    board = tiny(seed)
    for _ in range(20):
        if board.sweep(np.arange(0)) == 0:
            break
    found, every = board.objective(), []
    for labels in matchings(board.sizes.tolist()):
        board.labels = labels
        every.append(board.objective())
    assert found >= np.sort(every)[-3]
    assert found <= max(every) + 1e-9


def labels_on_the_way(walk: Walk, done: set[int]) -> np.ndarray:
    """The whole matching while a sweep is on its way."""
    board = walk.board
    ahead = ~np.isin(board.group, list(done))
    return np.where(ahead, walk.name[np.where(ahead, board.labels, 0)], board.labels)


@pytest.mark.parametrize("backwards", [False, True])
def test_every_step_of_a_sweep_raises_the_objective_by_what_it_says(backwards: bool) -> None:
    drawn = moving_groups(5, T=10, D=2, alive=5.0, drift=4.0)
    stack, times, _ = arrange_in_time(stack_arrays(drawn.groups), drawn.times // 2)
    family = Drift(mean=np.zeros(2), noise=[0.02] * 2, spread=[1.0] * 2, memory=5.0)
    rng = np.random.default_rng(0)
    labels = np.concatenate([rng.permutation(8)[:size] for size in stack.sizes])
    board = Timeline(stack, times, family, BirthDeath(5.0, 0.7, 0.1), np.unique(labels, return_inverse=True)[1])
    board.backwards = backwards
    before, done, changes = board.objective(), set(), 0
    walk = Walk(board)
    for j in walk.way.groups:
        for step in (link, None):
            changes += link(walk, int(j)) if step else walk.match(int(j))
            if not step:
                done.add(int(j))
            kept = board.labels
            board.labels = np.unique(labels_on_the_way(walk, done), return_inverse=True)[1]
            after = board.objective()
            board.labels = kept
            assert after >= before - 1e-8
            before = after
    assert changes > 5


def test_static_objective_at_infinite_memory_and_certain_life() -> None:
    stack, _, labels = values_in_time(2)
    still = Drift(mean=[0.2, -0.1], noise=[0.5, 0.8], spread=[2.0, 1.0], inflation=0.7)
    static = Gaussian(mean=still.mean, noise=still.noise, spread=still.spread, inflation=0.7)
    prior = BirthDeath(6.0, 0.4, 0.0)
    timed, board = Timeline(stack, np.arange(12.0), still, prior), Board([stack], [static], prior)
    for at in (labels, np.arange(12), np.arange(12) // 2):
        timed.labels = at.copy()
        assert np.isclose(timed.objective(), board.at(at.copy()).objective())


def test_sums_have_the_evidence_of_the_filter_where_atoms_stand_still() -> None:
    rng = np.random.default_rng(3)
    labels, times = rng.integers(0, 4, 30), np.sort(rng.uniform(0, 9, 30))
    labels[:4] = np.arange(4)
    y, weight = rng.normal(size=(30, 2)), rng.choice([0.0, 0.5, 1.0, 2.0], (30, 2))
    chains, at = Chains(labels, times), Hyperparameters(np.zeros(2), np.array([0.3, 0.7]), np.array([1.0, 2.0]))
    plain = np.full(y.shape, at.noise)
    with np.errstate(divide="ignore"):
        weighed = plain / weight
    for w, variance in ((None, plain), (weight, weighed)):
        seen = y if w is None else np.where(w > 0, y, 0.0)
        expected = chains.log_evidence(seen, variance, at.spread, np.inf)
        assert np.isclose(log_evidence(effects_of(seen, w, labels), at), expected)


def test_only_atoms_that_cannot_be_matched_are_out_of_reach() -> None:
    drawn = moving_groups(4, T=25, D=3, alive=6.0, life=6.0)
    stack, times, _ = arrange_in_time(stack_arrays(drawn.groups), drawn.times)
    board = Timeline(stack, times, Drift(mean=0.0, noise=0.01, spread=1.0, memory=80.0), BirthDeath(6.0, 0.8, 1 / 6))
    board.sweep(np.arange(25))
    walk, left_out = Walk(board), 0
    for j in walk.way.groups:
        values = np.arange(board.offsets[j], board.offsets[j + 1])
        walk.ahead[walk.name[board.labels[values]]] = walk.way.after[values]
        there = np.flatnonzero((walk.last >= 0) | (walk.ahead >= 0))
        out = np.setdiff1d(there, walk._within_reach(j, values, np.zeros(0, np.int64)))
        left_out += len(out)
        assert (walk.scores(j, out) < 0).all()
        walk.pass_by(int(j))
    assert left_out > 0


def test_certain_life_is_the_spectrum_whose_atoms_are_held_alike() -> None:
    counts, sizes = np.array([1, 5, 2]), np.full(6, 2)
    held, off = 0.4, []
    for large in (100.0, 500.0):
        spectrum = Spectrum.expecting(held * large, (1 - held) * large, 6.0 * (1 - (1 - held) ** 6), 6)
        steps = spectrum.increments(6) - BirthDeath(6.0, held).increments(6)
        off.append(np.abs(steps).max())
    assert off[1] < off[0] / 4 < 0.05
    assert np.isfinite(BirthDeath(6.0, held).log_prob(counts, sizes))


def test_smoothed_path_is_that_of_the_gaussian_process() -> None:
    stack, times, labels = values_in_time(4)
    stack = Stack(stack.values, stack.offsets, stack.variance)
    board = Timeline(stack, times, FAMILY, BirthDeath(2.0, 0.5, 0.1), labels)
    for time in (-1.0, float(times[4]), 2.2, 9.0):
        place = smooth(board, np.array([1]), np.array([time]))
        own = labels == 1
        noise = FAMILY.value_variances(stack.values, stack.variance)[own]
        for d in range(2):
            spread, mean = np.asarray(FAMILY.spread)[d], np.asarray(FAMILY.mean)[d]
            K = spread * np.exp(-np.abs(np.subtract.outer(times[own], times[own])) / 3.0) + np.diag(noise[:, d])
            k = spread * np.exp(-np.abs(times[own] - time) / 3.0)
            assert np.isclose(place.mean[0, d], mean + k @ np.linalg.solve(K, stack.values[own, d] - mean))
            assert np.isclose(place.variance[0, d], spread - k @ np.linalg.solve(K, k))


def test_a_run_rises_at_every_step_and_finds_what_was_drawn() -> None:
    drawn = moving_groups(1, T=15, drift=2.0, alive=6.0)
    stack, times, order = arrange_in_time(stack_arrays(drawn.groups), drawn.times)
    board, progress = run(stack, times, Drift(), None, np.random.default_rng(0), 200)
    assert progress.converged
    assert (np.diff(progress.history) >= -1e-8).all()
    assert np.isclose(progress.history[-1], board.objective())
    truth = np.concatenate(drawn.labels)[order]
    assert len(np.unique(np.stack([truth, board.labels]), axis=1)[0]) == len(np.unique(truth)) == board.labels.max() + 1
