"""Chains that draw hyperparameters of any family with the matching: against enumeration."""

import numpy as np
import pytest

import modelweld
from modelweld import BetaBernoulli, Gaussian, InputError, LocalModel, NormalGamma, Proportions, Rates
from modelweld.core.board import Board
from modelweld.core.family import with_fields
from modelweld.inputs.stacks import stack_arrays
from modelweld.results.posterior import metropolis, sampler
from modelweld.results.posterior.drawn_fusions import board_of_draw
from modelweld.results.posterior.metropolis import FamilyMove, affordable_draws, moves_of
from modelweld.results.posterior.sampler import Chain
from test_sampler import all_matchings, name

SITES = [np.array([[0.2, 0.9], [0.5, 0.4]]), np.array([[0.3, 0.8]]), np.array([[0.35, 0.6]])]
FAMILIES = {
    "proportions": (Proportions(successes=1.0, failures=1.0, between=20.0), "between"),
    "normal gamma": (NormalGamma(mean=0.5, strength=0.2, shape=2.0, rate=0.05), "rate"),
}


def board_of(family, prior=None, labels=None):
    stack = stack_arrays(SITES)
    return Board([stack], [family], prior or BetaBernoulli(), labels=np.arange(4) if labels is None else labels)


def sampled(board):
    """What moves of the families."""
    return [move for move in moves_of(board, fixed=False) if isinstance(move, FamilyMove)]


def factors(w, at):
    """Factors on what the family has that matter, and what each is believed."""
    logs = np.linspace(-4, 4, 33) * metropolis.WIDE
    off = logs + np.log(at / w.location).mean()
    return np.exp(logs), -0.5 * np.size(w.location) * (off / w.deviation) ** 2


@pytest.mark.parametrize("case", FAMILIES)
def test_matchings_are_visited_as_often_as_they_are_probable_whatever_the_hyperparameter(case):
    family, field = FAMILIES[case]
    board = board_of(family)
    matchings, _, _ = all_matchings(board)
    tables = []
    [w] = [w for w in sampled(board) if w.name == field]
    believed_factors = factors(w, getattr(family, field))
    for factor, believed in zip(*believed_factors, strict=True):
        at = board_of(with_fields(family, **{field: getattr(family, field) * factor}))
        tables.append(all_matchings(at)[1] + believed)
    joint = np.exp(np.array(tables) - np.max(tables))
    probability = joint.sum(0) / joint.sum()
    chain = Chain(board, np.random.default_rng(0), [w])
    found, logs = [], []
    chain.start(0)
    for t in range(3000):
        chain.sweep()
        if t == 200:
            chain.forget()
        if t >= 200:
            found.append(name(chain.labels))
            logs.append(float(np.mean(np.log(np.asarray(getattr(chain.families[0], field)) / getattr(family, field)))))
    frequency = np.array([found.count(m) for m in matchings]) / len(found)
    assert np.abs(frequency - probability).max() < 0.06
    expected = (joint.sum(1) * np.log(believed_factors[0])).sum() / joint.sum()
    assert np.mean(logs) == pytest.approx(expected, abs=0.15 * metropolis.WIDE)


def test_other_families_are_drawn_where_that_takes_seconds(monkeypatch):
    rng = np.random.default_rng(0)
    atoms = rng.gamma(3.0, 3.0, (4, 3))
    sites = [rng.gamma(12.0, atoms / 12) for _ in range(4)]
    monkeypatch.setattr(metropolis, "DRAWS", 12)
    fusion = modelweld.fuse(sites, Rates(kind="gamma"))
    stated = fusion.confidence()
    assert stated.how == "drawn"
    posterior = fusion.posterior.draws()
    assert posterior.hyperparameters["between"].shape == (2, 12, 3)
    assert (np.ptp(posterior.hyperparameters["between"], axis=1) > 0).all()
    assert {"a", "b", "expected_atoms"} <= set(posterior.hyperparameters)
    assert (fusion.posterior.atom_intervals().low < fusion.posterior.atom_intervals().high).all()
    with pytest.raises(InputError, match="one array of Gaussian values"):
        fusion.posterior.new_site()
    board = fusion._fit.board()
    work = (
        len(board.labels)
        * (len(board.counts) + 20)
        * 7
        * metropolis.SLOWER
        * 2
        * sampler.SWEEPS
        * (1 + sampler.WARM_UP)
    )
    monkeypatch.setattr(metropolis, "FEWEST_DRAWS", 12)
    monkeypatch.setattr(metropolis, "MOST_WORK", 13 * work)
    assert affordable_draws(fusion._fit.board()) == 12
    monkeypatch.setattr(metropolis, "MOST_WORK", 11 * work)
    assert affordable_draws(fusion._fit.board()) == 0
    assert modelweld.fuse(sites, Rates(kind="gamma")).confidence().how == "conditional"


def test_what_a_user_fixed_is_not_sampled():
    known = Rates(mean=0.5, concentration=2.0, between=np.inf)
    assert [w.name for w in sampled(board_of(known))] == ["mean", "concentration"]
    assert sampled(board_of(Proportions(1.0, 1.0, between=20.0, learning="nothing"))) == []
    assert sampled(board_of(NormalGamma(0.5, 0.2, 2.0, 0.05)))


def test_hyperparameters_of_all_arrays_are_sampled():
    rng = np.random.default_rng(0)
    places, scales = rng.normal(0, 3.0, (4, 2)), rng.gamma(3.0, 3.0, (4, 1))
    sites = [
        LocalModel(
            {"place": places + rng.normal(0, 0.2, (4, 2)), "scale": rng.gamma(12.0, scales / 12)},
            axes={"place": ("atom", None), "scale": ("atom", None)},
        )
        for _ in range(3)
    ]
    fusion = modelweld.fuse(sites, {"place": Gaussian(), "scale": Rates(kind="gamma")})
    assert [(w.array, w.name) for w in sampled(fusion._fit.board())] == [(1, name) for name in Rates.sampled]
    posterior = fusion.posterior.sample(20, 2, fixed=False)
    assert posterior.hyperparameters["noise 0"].shape == (2, 20, 2)
    assert posterior.hyperparameters["between 1"].shape == (2, 20, 1)
    family, scale = board_of_draw(fusion._fit.board(), posterior, (1, 5), posterior.labels[1, 5]).families
    assert family.noise == pytest.approx(posterior.hyperparameters["noise 0"][1, 5])
    assert scale.between == pytest.approx(posterior.hyperparameters["between 1"][1, 5])


@pytest.mark.parametrize("family", [Rates(kind="gamma"), Proportions(), NormalGamma()])
def test_more_noise_is_expected_where_its_share_is_larger(family):
    stack = stack_arrays(SITES)
    fitted = family.starts(stack)[0]
    little, much = fitted.prior_location(stack, 0.01), fitted.prior_location(stack, 0.3)
    for w in sampled(board_of(fitted)):
        assert w.location == pytest.approx(getattr(fitted.prior_location(stack, metropolis.SHARE), w.name))
    told = "rate" if isinstance(family, NormalGamma) else "between"
    ratio = np.asarray(getattr(much, told)) / np.asarray(getattr(little, told))
    assert (ratio > 1).all() if told == "rate" else (ratio < 1).all()
