"""The sampler of matching and hyperparameters: Geweke's test of joint laws, and what is said of draws."""

import numpy as np
import pytest
from scipy.special import comb
from scipy.stats import beta

import modelweld
from modelweld import BetaBernoulli, Gaussian, InputError, LocalModel, Spectrum
from modelweld.core.board import Board
from modelweld.core.family import with_fields
from modelweld.core.prior import PRIOR_EXTRA, PRIOR_HELD, Fragments
from modelweld.core.values import Stack, offsets_of
from modelweld.results.posterior import confidence, gaussian_moves, metropolis, sampler, sharing_moves
from modelweld.results.posterior.draws import DISAGREE, Posterior, effective_size, split_r_hat
from modelweld.results.posterior.gaussian_moves import GaussianMove
from modelweld.results.posterior.intervals import each_draw, true_values
from modelweld.results.posterior.metropolis import affordable_draws, moves_of
from modelweld.results.posterior.sampler import Chain
from modelweld.results.posterior.sharing_moves import FragmentMove, SharingMove, log_rates


def board_of(values, sizes, variance, weight, shape):
    stack = Stack(values, offsets_of(sizes), variance=variance, weight=weight)
    width = 1 if shape == "scalar" else values.shape[1]
    family = Gaussian(mean=0.0, noise=np.full(width, 0.3), spread=np.full(width, 1.0), shape=shape)
    board = Board([stack], [family.with_scale(np.zeros(values.shape[1]), np.ones(width))], Spectrum())
    return board


CASES = {
    "plain": (False, False, "diagonal"),
    "with errors and weights": (True, True, "diagonal"),
    "one noise": (True, False, "scalar"),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_geweke_of_the_moves_of_values(case):
    """Draws of (hyperparameters, values) by alternating moves with fresh values have the prior's law.

    Labels stay. `log noise` and the others are compared with what is believed of them, first and second moments.
    """
    errors, weights, shape = CASES[case]
    rng = np.random.default_rng(0)
    labels, sizes, D = np.array([0, 1, 0, 2, 0, 1, 3, 0]), [2, 2, 2, 2], 2
    N, H = len(labels), 1 if shape == "scalar" else D
    variance = rng.uniform(0.02, 0.4, (N, D)) if errors else None
    weight = rng.choice([0.5, 1.0, 2.0], (N, D)) if weights else None
    board = board_of(np.zeros((N, D)), sizes, variance, weight, shape).at(labels)
    move = GaussianMove(board, 0)
    move.total, move.family = np.ones(H), with_fields(move.family, floor=np.zeros(H), squares=np.zeros(H), near=0.0)
    move.log_steps[:] = 0.0
    chain, found = Chain(board, rng, [move]), []
    for _ in range(20_000):
        noise, spread = np.exp(move.at)
        atoms = move.mean + np.sqrt(spread) * rng.standard_normal((4, D))
        scatter = move.scale[:, None] * (noise * move.inverse + (0.0 if move.error is None else move.error))
        move.y = atoms[labels] + np.sqrt(scatter) * rng.standard_normal((N, D))
        chain.refit(0, move.family, move._rows(noise))
        move.step(chain, 0.0)
        off = (move.at - move.level[:, None]) / gaussian_moves.WITHIN[:, None]
        found.append([*off.ravel(), *move.level, *move.mean, move.wide, move.scale[0] > 1])
    law, expected = beta(*gaussian_moves.WIDE), [(0.0, 1.0)] * 2 * H
    expected += [*zip(gaussian_moves.LEVEL, gaussian_moves.LEVEL_DEVIATION, strict=True)] + [(0.0, 1.0)] * D
    share = law.mean()
    compare(np.array(found), [*expected, (share, law.std()), (share, np.sqrt(share * (1 - share)))])


def compare(found, expected):
    """Means and variances within their Monte Carlo errors."""
    for c, (mean, deviation) in enumerate(expected):
        if deviation == 0:
            assert (found[:, c] == mean).all()
            continue
        standard = (found[:, c] - mean) / deviation
        for x, value in ((standard, 0.0), (standard**2, 1.0)):
            worth = effective_size(x[None])
            assert worth > 200
            assert abs(x.mean() - value) < 4 * x.std() / np.sqrt(worth)


def believed_shape():
    """Mean and deviation of log a and log b, within their bounds, by drawing many from what is believed."""
    rng = np.random.default_rng(2)
    odds, alike = (
        mean + deviation * rng.standard_normal(2_000_000)
        for mean, deviation in (sharing_moves.HELD, sharing_moves.ALIKE)
    )
    log = np.stack([alike - np.log1p(np.exp(-odds)), alike - np.log1p(np.exp(odds))])
    low, high = sharing_moves.BOUNDS
    log = log[:, ((low <= log) & (log <= high)).all(0)]
    return list(zip(log.mean(1), log.std(1), strict=True))


@pytest.mark.slow
def test_geweke_of_the_moves_of_the_prior():
    """Supports drawn from the spectrum, its parameters from their moves: the parameters have their prior's law."""
    rng = np.random.default_rng(1)
    J = 5
    board = board_of(np.zeros((J, 1)), [1] * J, None, None, "diagonal").at(np.arange(J))
    move, m, found = SharingMove(board), np.arange(1, J + 1), []
    move.log_size, chain = -1.0, Chain(board, rng, [])
    for _ in range(20_000):
        R = log_rates(np.exp(move.at), J, J)
        chain.counts = np.repeat(m, rng.poisson(comb(J, m) * np.exp(R)))
        move.step(chain, 0.0)
        found.append(move.at)
    log_atoms, log_own = (-1.0, sharing_moves.ATOMS_DEVIATION), (sharing_moves.OWN[0] - 1.0, sharing_moves.OWN[1])
    compare(np.array(found), np.array([*believed_shape(), log_atoms, log_own]))


def noisy_sites(errors=False, J=6, seed=0):
    """Sites that share eight atoms, some of them hard to tell apart."""
    rng = np.random.default_rng(seed)
    atoms, sites = rng.normal(0, 2, (8, 2)), []
    for j in range(J):
        held = rng.permutation(8)[:5]
        error = rng.uniform(0.1, 0.6, (5, 1)) * np.ones(2) if errors else np.zeros((5, 2))
        values = atoms[held] + rng.normal(0, 0.4, (5, 2)) + error * rng.normal(size=(5, 2))
        variance = {"values": error**2} if errors else {}
        sites.append(LocalModel({"values": values}, {"values": ("atom", None)}, variance=variance, site=f"s{j}"))
    return sites


def test_hyperparameters_are_drawn_too():
    posterior = modelweld.fuse(noisy_sites(errors=True)).posterior.sample(draws=50, chains=2)
    drawn = posterior.hyperparameters
    assert {"noise", "spread", "mean", "a", "b", "expected_atoms"} <= set(drawn)
    assert drawn["noise"].shape == (2, 50, 2)
    for what in ("noise", "spread", "a", "b"):
        assert drawn[what].std() > 0
    assert modelweld.fuse(noisy_sites()).posterior.sample(draws=8, chains=1, fixed=True).hyperparameters is None


def test_what_a_user_fixed_stays():
    family = Gaussian(noise=0.2, spread=4.0, learning="nothing")
    drawn = (
        modelweld.fuse(noisy_sites(), family, BetaBernoulli(2.0, 3.0))
        .posterior.sample(draws=8, chains=1)
        .hyperparameters
    )
    assert "noise" not in (drawn or {})
    assert "a" not in (drawn or {})  # from four sites on a prior that is not learned is meant
    assert "a" in modelweld.fuse(noisy_sites(J=3), family).posterior.sample(draws=8, chains=1).hyperparameters


def test_order_of_sites_and_rows_does_not_matter():
    given = [site.arrays["values"] for site in noisy_sites()]
    order = [3, 0, 5, 4, 2, 1]
    first, second = modelweld.fuse(given), modelweld.fuse([given[j][::-1] for j in order])
    for j, site in zip(order, second.confidence(), strict=True):
        np.testing.assert_array_equal(first.confidence()[j], site[::-1])


def test_outliers_stay_out_of_the_chains():
    given = [site.arrays["values"] for site in noisy_sites()]
    given[0] = np.vstack([given[0], [[1e6, -1e6]]])
    with pytest.warns(modelweld.OutlierWarning):
        fusion = modelweld.fuse(given)
    assert not fusion.matching.kept[5]
    posterior = fusion.posterior.sample(draws=20, chains=2)
    assert (posterior.labels == posterior.labels[..., [5]]).sum(-1).max() == 1
    assert posterior.hyperparameters["spread"].max() < 1e3
    assert fusion.confidence()[0][5] == 1.0


def test_a_value_is_as_sure_as_the_draws_in_which_it_is_right():
    """Two clear atoms and a value between them, which a draw gives to either or to neither."""
    sites = [[[0.0], [3.0]], [[0.1], [3.1]], [[-0.1], [2.9]], [[0.05], [3.05]], [[1.5]]]
    fusion = modelweld.fuse(
        sites, Gaussian(noise=0.3, spread=4.0, learning="nothing"), search=modelweld.Search(splits=False)
    )
    stated = fusion.confidence()
    assert stated.how == "drawn"
    assert stated[4][0] < 0.9 < min(site.min() for site in stated[:4])
    together = fusion.posterior.draws().co_assignment[8]
    k = fusion.labels[4][0]
    rest = [i for i in range(8) if fusion.matching.stacked_labels[i] == k]
    expected = together[rest].mean() if rest else 1 - together[:8:2].mean() - together[1:8:2].mean()
    assert stated[4][0] == pytest.approx(expected, abs=0.03)


def test_how_confidences_are_computed_is_said():
    fusion = modelweld.fuse(noisy_sites())
    assert fusion.confidence().how == "drawn"
    assert fusion.confidence().r_hat.keys() == {"K", "objective"}
    fixed = fusion.confidence(how="fixed")
    assert fixed.how == "fixed"
    assert "learned hyperparameters" in fixed.meaning
    conditional = fusion.confidence(how="conditional")
    assert conditional.r_hat is None
    assert np.concatenate(conditional).mean() > np.concatenate(fusion.confidence()).mean()  # it is overconfident
    with pytest.raises(InputError, match="'drawn', 'fixed' or 'conditional'"):
        fusion.confidence(how="guessed")


def test_what_is_fixed_has_conditional_confidences():
    rng = np.random.default_rng(0)
    atoms = rng.dirichlet(np.ones(6), 3)
    sites = [rng.multinomial(200, atoms).astype(float) for _ in range(4)]
    fusion = modelweld.fuse(sites, modelweld.Counts(between=500.0, base=1.0, learning="nothing"))
    assert fusion.confidence().how == "conditional"
    with pytest.raises(InputError, match="they are fixed, or no family"):
        fusion.confidence(how="drawn")


def test_more_work_than_seconds_is_conditional(monkeypatch):
    fusion = modelweld.fuse(noisy_sites())
    board = fusion._fit.board()
    assert affordable_draws(board) == confidence.DRAWS
    sweeps = len(board.labels) * (len(board.counts) + 20) * 6 * 2 * sampler.SWEEPS * (1 + sampler.WARM_UP)
    monkeypatch.setattr(metropolis, "MOST_WORK", 60 * sweeps)
    assert affordable_draws(board) in (59, 60)
    monkeypatch.setattr(metropolis, "MOST_WORK", 40 * sweeps)
    assert affordable_draws(board) == 0
    assert fusion.confidence().how == "conditional"


def test_a_site_s_answer_is_between_what_it_sent_and_its_atoms():
    sites = noisy_sites(errors=True)
    fusion = modelweld.fuse(sites)
    for j, site in enumerate(sites):
        found = fusion.posterior.site(j)
        sent, variance = site.arrays["values"], site.variance["values"]
        assert (found.low < found.values).all()
        assert (found.values < found.high).all()
        sure = fusion.confidence()[j] > 0.99
        inside = np.abs(found.values - sent) < 3 * np.sqrt(variance)
        assert inside[sure].all()
        np.testing.assert_array_equal(fusion.posterior.site(site.site).values, found.values)
    narrow, wide = fusion.posterior.site(0, 0.5), fusion.posterior.site(0, 0.99)
    assert (narrow.high - narrow.low < wide.high - wide.low).all()
    with pytest.raises(InputError, match="standard errors"):
        modelweld.fuse(noisy_sites()).posterior.site(0)
    with pytest.raises(InputError, match="between 0 and 1"):
        fusion.posterior.site(0, 90)
    with pytest.raises(InputError, match="no site"):
        fusion.posterior.site("nobody")


def test_what_is_true_at_a_site_is_gauss_s_formula():
    """One draw, two values of an atom: the posterior of the first one's true value by matrices."""
    stack = Stack(np.array([[1.0], [2.5]]), offsets_of([1, 1]), variance=np.array([[0.3], [0.2]]))
    family = Gaussian(mean=0.0, noise=0.5, spread=2.0, inflation=2.0)
    board = Board([stack], [family], BetaBernoulli(), labels=np.array([0, 0]))
    drawn = {what: np.full((1, 4, 1), value) for what, value in (("noise", 0.5), ("spread", 2.0), ("mean", 0.0))}
    labels = np.zeros((1, 4, 2), dtype=np.int64)
    posterior = Posterior(labels, np.ones((1, 4), dtype=np.int64), np.zeros((1, 4)), {}, drawn)
    mean, variance = true_values(next(each_draw(board, posterior)), slice(0, 1))
    true = 2.0 + 0.5 * np.eye(2)  # of the true values: they share the atom
    sent = true + np.diag([0.6, 0.4])
    weights = true[0] @ np.linalg.inv(sent)
    assert mean[0, 0] == pytest.approx(weights @ [1.0, 2.5])
    assert variance[0, 0] == pytest.approx(true[0, 0] - weights @ true[0])


def test_a_new_site_holds_what_many_hold():
    rng = np.random.default_rng(0)
    atoms = rng.normal(0, 5, (4, 3))
    sites = [atoms[held] + rng.normal(0, 0.1, (len(held), 3)) for held in [[0, 1, 2]] * 5 + [[0, 1]] * 3 + [[0, 3]] * 2]
    fusion = modelweld.fuse(sites)
    found = fusion.posterior.new_site()
    held = fusion.counts / 10
    assert np.abs(found.probability - held).max() < 0.15
    assert (np.diff(found.probability[np.argsort(held)]) > 0).all()
    assert 0 < found.unknown < 1
    assert ((found.low < fusion.atoms) & (fusion.atoms < found.high)).all()
    atoms = fusion.posterior.atom_intervals()
    assert (atoms.exists > 0.99).all()
    assert (atoms.high - atoms.low < found.high - found.low).all()


def test_the_share_of_fragments_has_its_law_given_the_fragments():
    """Eight values of which two are further fragments."""
    board = board_of(np.zeros((8, 1)), [4, 4], None, None, "diagonal").at(np.array([0, 0, 1, 2, 0, 1, 1, 2]))
    board.fragments = Fragments(0.1)
    chain, found = Chain(board, np.random.default_rng(0)), np.empty((20_000, 1))
    for t in range(len(found)):
        FragmentMove().step(chain, 0.0)
        found[t] = chain.fragments.delta
    law = beta(PRIOR_EXTRA + 3, PRIOR_HELD + 7)
    compare(found, [(law.mean(), law.std())])


def slow_sites():
    """Twenty sites with standard errors, whose chains take their time."""
    rng = np.random.default_rng(303)
    atoms = rng.normal(0, 2.5, (15, 2))
    sites = []
    for _ in range(20):
        held = rng.permutation(np.flatnonzero(rng.random(15) < 0.5))
        true, se = atoms[held] + rng.normal(0, 0.5, (len(held), 2)), rng.uniform(0.1, 0.6, (len(held), 1)) * np.ones(2)
        values = true + se * rng.normal(size=true.shape)
        sites.append(LocalModel({"v": values}, {"v": ("atom", None)}, variance={"v": se**2}))
    return sites


@pytest.mark.slow
def test_chains_that_disagree_go_on(monkeypatch):
    """From the fit and from all values alone chains disagree at first; run longer they draw from one law."""
    monkeypatch.setattr(sampler, "SWEEPS", 1)
    fusion = modelweld.fuse(slow_sites())
    board, _ = fusion._fit.canonical_board("atom")
    first = []
    for number in range(2):
        chain = Chain(board, np.random.default_rng(number), moves_of(board, fixed=False))
        chain.start(number)
        first.append([float(draw["objective"]) for draw in chain.draw(8, 1)[1]])
    assert split_r_hat(np.array(first)) > DISAGREE
    assert max(fusion.posterior.sample(200, 2, fixed=False).r_hat.values()) < DISAGREE
