"""Constants that decide answers: for each a case on either side of its value, so that neither less nor more goes by.

Numbers stand here as such, not as the constants' names: a test that imports a threshold moves with it.
"""

import numpy as np
import pytest

from modelweld import BetaBernoulli, Gaussian, Search, fuse
from modelweld.core.algorithm1 import Run, State
from modelweld.core.match import Plan
from modelweld.core.values import Stack, offsets_of
from modelweld.demo.metrics import adjusted_rand
from modelweld.families.math.start import noise_shares
from modelweld.fit.screening.duplicate_sites import find_duplicates
from modelweld.fit.screening.duplicates import number_values
from modelweld.fit.screening.outliers import find_outliers
from modelweld.fit.search import moves
from modelweld.fit.search.dissolution import dissolve
from modelweld.fit.static_matcher import limits_met
from modelweld.inputs.stacks import stack_arrays
from modelweld.results.diagnostics.pair_scan import place
from modelweld.results.diagnostics.shifts import Shift
from modelweld.results.diagnostics.site_warnings import about_shifts, scatter_of_others
from modelweld.results.fit_result import matching_by_labels

# --- gross outliers (robust.GENEROUS, 2; REACH, 3; REACH_DEVIATIONS, 4) -----------------------------------------


def has_outlier(sites, value):
    """Whether a value is excluded when the first of these sites sends it too, and none of the others is."""
    report = find_outliers(
        [stack_arrays([np.append(sites[0], value)[:, None], *(site[:, None] for site in sites[1:])])]
    )
    assert report.keep.sum() >= sum(map(len, sites))
    return not report.keep.all()


@pytest.mark.parametrize(("value", "outlier"), [(9.0, False), (16.0, True)])
def test_the_limit_is_twice_a_gaussians(value, outlier):
    """No site has a value beyond one deviation; of six hundred Gaussian values none lies beyond 6."""
    assert has_outlier([np.tile([-1.0, 1.0], 15)] * 20, value) is outlier


@pytest.mark.parametrize(("value", "outlier"), [(2.5, False), (3.6, True)])
def test_far_values_are_no_news_where_every_site_has_one(value, outlier):
    """At 1, ten deviations out; the limit is three times that."""
    sites = [np.append(np.tile([-0.01, 0.01], 50), side) for side in (1.0, -1.0) * 5]
    assert has_outlier(sites, value) is outlier


@pytest.mark.parametrize(("value", "outlier"), [(4.8, False), (7.5, True)])
def test_the_more_sites_differ_in_their_furthest_the_farther_a_value_may_lie(value, outlier):
    """Logarithms .3 about 0 have a robust deviation of .44, and four of them are a factor of 5.9."""
    furthest = np.exp([-0.3, 0.0, 0.3] * 4) * ([1.0, -1.0] * 6)
    assert has_outlier([np.append(np.tile([-0.01, 0.01], 50), far) for far in furthest], value) is outlier


# --- where to start (start.CLOSEST, .25; CLOSER, .1; LOUD_SHARE, .85) -------------------------------------------


@pytest.mark.parametrize(
    ("D", "which", "copied", "found"),
    [(1, 0, 5, True), (1, 0, 3, False), (1, 1, 12, True), (1, 1, 8, False), (8, 0, 12, True), (8, 0, 8, False)],
)
def test_noise_is_read_off_the_closest_tenth_and_quarter(D, which, copied, found):
    """Of forty values of either site some are copies, the others 40 apart; many dimensions need the quarter alone."""
    one = 100.0 * np.arange(40)[:, None] * np.ones(D)
    other = one + np.where(np.arange(40) < copied, 0.1, 40.0)[:, None]
    stack = stack_arrays([one, other])
    shares = noise_shares(stack, stack.values.var(0))
    assert len(shares) == (2 if D == 1 else 1)
    assert (shares[which] < 1e-5) is found


def loud_sites(seed, K, D, noise, share):
    """Twelve sites that each hold a share of K atoms of variance 1, and which atoms."""
    rng = np.random.default_rng(seed)
    atoms = rng.normal(size=(K, D))
    held = [rng.permutation(np.flatnonzero(rng.random(K) < share)) for _ in range(12)]
    return [atoms[h] + np.sqrt(noise) * rng.normal(size=(len(h), D)) for h in held], np.concatenate(held)


@pytest.mark.parametrize(
    ("K", "D", "noise", "share"),
    [
        pytest.param(4, 100, 3.0, 0.8, id="less-is-worse"),
        pytest.param(10, 200, 3.0, 0.3, id="more-is-worse"),
    ],
)
def test_one_start_takes_most_of_the_variance_for_noise(K, D, noise, share):
    """Three quarters are noise. Starts at .5 and .7 leave an agreement of .1 and .8 in the first case, .95 and .97 one
    of .75 and .5 in the second."""
    found = []
    for seed in range(5):
        sites, truth = loud_sites(seed, K, D, noise, share)
        found.append(adjusted_rand(truth, fuse(sites).matching.stacked_labels))
    assert np.mean(found) > 0.85


# --- atoms that are dissolved (dissolution.PATIENCE, 12; search.DISSOLVED_UP_TO, 100,000) ---------------------------


class OversizedBoard:
    """Atoms of two values each; without the `surplus`-th the matching is better, once others have answered.

    Until they do it is `behind`.
    """

    margin = 0.0

    def __init__(self, surplus, behind):
        self.surplus, self.behind, self.labels = surplus, behind, np.arange(40) // 2
        self.swept, self.runs, self.asked = False, 0, []

    @property
    def counts(self):
        return np.bincount(self.labels)

    def labels_by_content(self):
        return self.labels

    def holders(self, atom):
        self.asked.append(int(atom))
        return np.flatnonzero(self.labels == atom)

    def release(self, groups):
        self.labels, self.swept = self.labels.copy(), False
        self.labels[groups] = (self.asked[-1] + 1) % 20

    def place_new(self):
        pass

    def sweep(self, order):
        self.swept, self.runs = True, self.runs + 1
        return 0

    def learn(self):
        pass

    def objective(self):
        if self.asked[-1] == self.surplus and self.swept:
            return 1.0
        return -self.behind

    def state(self):
        return State(self.labels.copy(), [], None, None)

    def restore(self, state):
        self.labels = state.labels


@pytest.mark.parametrize(
    ("surplus", "behind", "found"), [(0, 19.0, True), (0, 21.0, False), (11, 19.0, True), (12, 19.0, False)]
)
def test_small_atoms_are_dissolved_one_after_the_other(surplus, behind, found):
    """Twelve in vain end it; sweeps follow only where the matching is at most twenty nats behind."""
    board = OversizedBoard(surplus, behind)
    progress = dissolve(board, 40, np.random.default_rng(0), Run([0.0], [0], True), 10)
    assert progress.history == ([0.0, 1.0] if found else [0.0])
    first = board.asked[: surplus + 1 if found else 12]
    assert first == list(range(len(first)))
    assert (board.runs > 0) == (behind < 20)


@pytest.mark.parametrize(("rounds", "cut_short"), [(3, False), (5, True)])
def test_moves_end_after_so_many_rounds_and_say_so(monkeypatch, rounds, cut_short):
    left = [rounds]

    def split(board):
        left[0] -= 1
        return int(left[0] >= 0)

    monkeypatch.setattr(moves, "MOST_SWEEPS", 4)
    monkeypatch.setattr(moves, "merge", lambda board: 0)
    monkeypatch.setattr(moves, "split", split)
    monkeypatch.setattr(moves, "Board", OversizedBoard)
    board = OversizedBoard(0, 0.0)
    board.asked, board.learn, board.statistics = [0], lambda: None, None
    progress = moves.merge_and_split(board, 3, np.random.default_rng(0), Run([0.0], [0], True), 10)
    assert progress.cut_short is cut_short


@pytest.mark.filterwarnings("ignore::modelweld.ConvergenceWarning")
def test_a_fusion_says_which_bound_on_effort_it_met():
    sites, _ = loud_sites(0, 10, 5, 3.0, 0.5)
    assert any(
        "no sweep without change" in reason for reason in fuse(sites, search=Search(max_sweeps=1)).matching.reasons
    )
    assert limits_met(Run([0.0], [0], True), Plan("auto")) == []
    [said] = limits_met(Run([0.0], [0], True, cut_short=True), Plan("auto"))
    assert "200 rounds" in said


@pytest.mark.parametrize(("behind", "given_up"), [(25.0, False), (35.0, True)])
def test_a_start_is_given_up_if_thirty_sweeps_like_the_last_would_not_do(behind, given_up):
    assert Run([0.0, 4.0, 5.0, 5.0], [9, 9]).is_dominated(5.0 + behind) is given_up


@pytest.mark.parametrize(("apart", "moved"), [(3.0, 1), (3.4, 0)])
def test_no_atom_is_moved_where_every_value_is_where_it_is_by_five_nats(apart, moved, monkeypatch):
    """Half the square of the distance is the lead, all but a fiftieth."""
    tried = []
    monkeypatch.setattr(moves, "dissolve", lambda board, J, rng, progress, *limits: tried.append(J) or progress)
    family = Gaussian(mean=0.0, noise=1.0, spread=1e4, learning="nothing")
    values = [apart / np.sqrt(2) * np.eye(100)] * 50
    fusion = fuse(values, family, BetaBernoulli(), screens=[], search=Search(engine="compiled", splits=False))
    assert (fusion.K, len(tried)) == (100, moved)


# --- values that were sent before (duplicates.COINCIDE, a millionth; FEWEST_OWN, two) --------------------------------


@pytest.mark.parametrize(("off", "same"), [(0.8e-6, True), (1.2e-6, False)])
def test_values_coincide_to_a_millionth_of_the_sites_range(off, same):
    site = np.array([[0.0, 30.0], [7.0, 40.0], [10.0, 60.0]])
    stack = stack_arrays([site, site + np.array([[0.0, 0.0], [10 * off, -30 * off], [0.0, 0.0]])])
    assert (len(np.unique(number_values([stack], [Gaussian()]))) == 3) is same


@pytest.mark.parametrize(("own", "duplicates"), [(1, []), (2, [[0, 4]])])
def test_sites_coincide_if_two_of_their_values_are_nobody_elses(own, duplicates):
    codes, rng = np.arange(3.0)[:, None] * [1.0, 1.0], np.random.default_rng(0)
    site = np.vstack([codes, rng.normal(size=(own, 2))])
    stack = stack_arrays([site, codes, codes[:2], codes[1:], site[::-1]])
    groups, _ = find_duplicates([stack], number_values([stack], [Gaussian()]))
    assert [sorted(group) for group in groups] == duplicates


def test_hardly_a_value_is_parted_from_its_copy_by_four_others():
    """Nor are twenty thousand; next to each other, a few hundred are not."""
    rng = np.random.default_rng(0)
    values = rng.uniform(size=(20_000, 3))
    near = values + rng.uniform(-4e-7, 4e-7, values.shape)
    numbers = number_values([Stack(np.vstack([values, near]), offsets_of([20_000, 20_000]))], [Gaussian()])
    assert np.array_equal(numbers[:20_000], numbers[20_000:])
    assert len(np.unique(numbers)) == 20_000


# --- numbers of atoms (finish.by_count; no threshold, so there are no two sides) --------------------------------


def test_atoms_are_numbered_alike_in_whatever_order_they_come_even_where_first_coordinates_tie():
    values = np.array([[0.0, 2.0, 1.0], [0.0, 1.0, 5.0], [0.0, 1.0, 3.0], [-1.0, 9.0, 9.0]])
    labels, offsets = np.array([0, 1, 2, 3, 0, 1, 2]), np.array([0, 4, 7])
    for seed in range(6):
        order = np.random.default_rng(seed).permutation(4)
        matching = matching_by_labels(np.argsort(order)[labels], offsets, "values", values[order], "none")
        assert matching.values["values"].tolist() == values[[2, 1, 0, 3]].tolist()
        assert matching.stacked_labels.tolist() == [2, 1, 0, 3, 2, 1, 0]


@pytest.mark.parametrize(("share", "asked"), [(0.004, True), (0.025, False)])
def test_all_groups_are_asked_where_the_largest_differ_by_less_than_a_hundredth(share, asked):
    """Two large groups that nearly coincide among many small ones whose noise is a fifth of the total."""
    rng = np.random.default_rng(4)
    large = rng.normal(0, 1, (40, 8))
    atoms = rng.normal(0, np.sqrt(0.8), (10, 8))
    small = [atoms + rng.normal(0, np.sqrt(0.2), (10, 8)) for _ in range(30)]
    near = large + rng.choice([-1, 1], large.shape) * np.sqrt(2 * share)
    shares = noise_shares(stack_arrays([large, near, *small]), np.ones(8))
    assert shares[0] == pytest.approx(share, rel=0.01)
    assert (len(shares) > 1) is asked
    if asked:
        assert 0.1 < shares[1] < 0.4


@pytest.mark.parametrize(("apart", "between"), [(800.0, False), (1250.0, True)])
def test_starts_a_thousand_times_apart_have_one_between(apart, between):
    """Eight dimensions, in which the two largest groups nearly coincide and all others vote for a noise of .2."""
    rng = np.random.default_rng(0)
    atoms = rng.normal(0, np.sqrt(0.8), (10, 8))
    small = [atoms + rng.normal(0, np.sqrt(0.2), (10, 8)) for _ in range(30)]
    large = rng.normal(size=(40, 8))
    _, voted, *_ = noise_shares(stack_arrays([large, large + 1e-3, *small]), np.ones(8))
    near = large + rng.choice([-1, 1], large.shape) * np.sqrt(2 * voted / apart)
    shares = noise_shares(stack_arrays([large, near, *small]), np.ones(8))
    assert len(shares) == 2 + between
    assert shares[-1] == pytest.approx(voted / np.sqrt(apart) if between else voted, rel=0.1)


@pytest.mark.slow
def test_a_thousand_sites_of_one_value_have_three_atoms():
    """Next to each other in an order by content, they are neighbours: the first noise was a millionth of the total."""
    rng = np.random.default_rng(3)
    held = rng.integers(3, size=1000)
    fusion = fuse([[[40.0 * k + rng.normal()]] for k in held])
    assert fusion.K == 3
    assert adjusted_rand(held, np.concatenate(fusion.labels)) == 1.0


# --- verdicts (places.VALUES_PER_AXIS, 4; scatter.LARGEST_SCATTER, 1.3, FEWEST_TO_SCALE, 6;
# sharing.MOST_VALUES, 1,000, MOST_OF_SITE, 200, FEWEST_VALUES, 10, FEWEST_OF_SITE, 5) ---------------------------


@pytest.mark.parametrize(("N", "axes"), [(38, 9), (42, 10), (400, 20)])
def test_four_values_stand_behind_every_axis(N, axes):
    x = np.random.default_rng(0).standard_normal((N, 20))
    assert place(x).points.shape[1] == axes


@pytest.mark.parametrize(("J", "L", "worth"), [(4, 4, None), (2, 4, None), (4, 5, False), (2, 5, False)])
def test_a_no_takes_ten_values_and_five_of_a_site(J, L, worth):
    rng = np.random.default_rng(0)
    family = Gaussian(mean=0.0, noise=1.0, spread=1.0, learning="nothing")
    verdict = fuse([rng.standard_normal((L, 3)) for _ in range(J)], family, screens=["duplicates"]).worth_merging()
    assert verdict.p_value > 0.05
    assert verdict.worth is worth
    assert verdict.sentence.startswith("no verdict: " if worth is None else "no: ")


def of_z(z):
    return [Shift(np.full(1, np.sign(x)), np.full(1, float(x))) for x in z]


@pytest.mark.parametrize(
    ("z", "freedom", "warned"), [(3.2, 10**6, False), (3.4, 10**6, True), (4.4, 10, False), (4.7, 10, True)]
)
def test_the_rate_of_false_alarms_is_divided_by_sites_and_dimensions(z, freedom, warned):
    """Ten sites, one dimension: two-sided .01 / 10 is 3.29 deviations, of a noise that ten values tell 4.59."""
    shifts = of_z([z, *[0.5, -0.5, 1, -1, 0.2, -0.2, 0.7, -0.7, 0]])
    assert (0 in about_shifts(shifts, ["dimension 0"], 0.01, freedom)) is warned


@pytest.mark.parametrize(("others", "scatter"), [((-0.8, 0.8) * 4, 1.0), ((-1, 1) * 4, 1.4826), ((-1, 1) * 2, 1.0)])
def test_six_others_that_scatter_by_a_third_too_much_are_what_a_shift_is_measured_by(others, scatter):
    assert scatter_of_others(np.array([9.0, *others]), 0) == pytest.approx(scatter)
