"""After a fusion no learned number is better elsewhere: of families and priors, by the default call and by shards."""

from contextlib import suppress
from dataclasses import fields, is_dataclass, replace

import numpy as np
import pytest

import modelweld
from cases import collected
from modelweld import BetaBernoulli, InputError, LocalModel
from modelweld.core.beta_bernoulli import LOG_ALPHA_BOUNDS
from modelweld.core.board import Board
from modelweld.core.values import offsets_of
from modelweld.families.capabilities import name_hyperparameters, row_fields_of
from modelweld.families.directions import Directions
from modelweld.families.own.user_density import UserDensity
from modelweld.fit.priors.spectrum import Spectrum
from modelweld.inputs.sets import stack_of
from modelweld.inputs.stacks import stack_arrays
from modelweld.shards import fuse_shards, group_sites
from modelweld.time.matcher import timeline_of
from sharded import TABLE
from shared.simulate_time import moving_groups

CASES = collected()

STEPS = (0.01, 0.05, 0.5)
"""Shares of a number by which it is moved, either way."""

BOUNDS = {"delta": (0.0, 1.0), "alpha": tuple(np.exp(LOG_ALPHA_BOUNDS))}
"""Between which a number is learned."""

NATS = 1e-3
"""By how much the objective may rise."""

NATS_APART = 0.5
"""By how much where shards learn apart and the mean of what they learn is all there is: standard errors, .08 seen."""


def board_of(fusion, families=None, prior=None, fragments=None):
    """The reference board of a fusion's values at its labels, but for those that say nothing."""
    [(name, matching)] = fusion.matchings.items()
    if isinstance(fusion._fit.given[0], LocalModel):
        stacks = [stack_of(fusion._fit.given, array, name, {}) for array in matching.families]
    else:
        stacks = [stack_arrays(fusion._fit.given)]
    kept = np.ones(len(matching.stacked_labels), dtype=bool) if matching.kept is None else matching.kept
    number = np.diff(np.concatenate([[0], np.cumsum(kept)])[matching.offsets])
    stacks = [stack.take(np.flatnonzero(kept), offsets_of(number[number > 0])) for stack in stacks]
    families, labels = families or list(matching.families.values()), matching.stacked_labels[kept].copy()
    return Board(stacks, families, prior or matching.prior, fragments or matching.splits, labels)


def moved(x):
    """A number or an array, all of it and each entry (of a matrix, those on its diagonal), by every step either way."""
    x = np.asarray(x, dtype=float)
    entries = [(i,) * x.ndim for i in range(len(x))] if x.ndim and x.size > 1 else []
    for factor in (f for step in STEPS for f in (1 + step, 1 / (1 + step))):
        yield x * factor
        for i in entries:
            yield np.where(np.arange(x.size).reshape(x.shape) == np.ravel_multi_index(i, x.shape), x * factor, x)


def neighbours(family):
    """The family with one of its learned numbers elsewhere, where that may be."""
    of_user = isinstance(family, UserDensity)
    for name, x in name_hyperparameters(family).items():
        if x is None or name == "reference" or not np.isfinite(x).all() or (of_user and name not in family.free):
            continue
        for there in moved(x):
            if name == "mean" and isinstance(family, Directions):
                there = there / np.linalg.norm(there)
            if name == "noise" and (there < np.asarray(getattr(family, "floor", 0.0))).any():
                continue
            there = {name: float(there) if there.ndim == 0 else there}
            yield name, replace(family, h={**family.hyper, **there}) if of_user else replace(family, **there)


def numbers_moved(of):
    """A prior, or a law of fragments, with one of its numbers elsewhere, where that may be."""
    for name in [f.name for f in fields(of) if isinstance(getattr(of, f.name), float)] if is_dataclass(of) else []:
        for there in moved(getattr(of, name)):
            low, high = BOUNDS.get(name, (0.0, np.inf))
            with suppress(InputError):
                if not low < there < high:
                    continue
                yield name, replace(of, **{name: float(there)})


def short(fusion):
    """By how many nats the objective of a fusion rises at most, and what rises it."""
    board, found = board_of(fusion), [(0.0, "nothing")]
    at = board.objective()
    for i, family in enumerate(board.families):
        for name, other in neighbours(family):
            families = [*board.families[:i], other, *board.families[i + 1 :]]
            found.append((board_of(fusion, families).objective() - at, name))
    for part in ("prior", "fragments"):
        for name, other in numbers_moved(getattr(board, part)):
            found.append((board_of(fusion, **{part: other}).objective() - at, f"{part}: {name}"))
    return max(found)


def sites_of(case, J=9, K=6):
    """Sites with some of K atoms each."""
    rng = np.random.default_rng(1)
    holders = [rng.permutation(J)[: rng.integers(4, J)] for _ in range(K)]
    drawn, site = case.draw([len(x) for x in holders], rng), np.concatenate(holders)
    for rows in (np.flatnonzero(site == j) for j in range(J)):
        beside = {name: {"v": x[rows]} for name in ("variance", "weight") if (x := getattr(drawn, name)) is not None}
        yield LocalModel({"v": drawn.values[rows]}, {"v": ("atom", None)}, **beside)


def check(fusion, nats=NATS):
    rise, what = short(fusion)
    assert board_of(fusion).objective() == pytest.approx(fusion.objective, abs=1e-5)
    assert rise <= nats, what


@pytest.mark.parametrize(
    "prior", ["auto", BetaBernoulli(learning=True), Spectrum()], ids=["auto", "learned", "spectrum"]
)
@pytest.mark.parametrize("name", [pytest.param(name, marks=case.marks) for name, case in CASES.items()])
def test_no_learned_number_is_better_elsewhere(name, prior):
    case = CASES[name]
    check(modelweld.fuse(list(sites_of(case)), case.family, prior, screens=["duplicates"]))


@pytest.mark.parametrize("name", TABLE)
def test_nor_of_more_sites(name):
    case = TABLE[name]
    check(modelweld.fuse(case.sites(0), case.family))


@pytest.mark.parametrize("name", TABLE)
def test_nor_in_shards_but_for_what_each_learns_alone(name):
    case = TABLE[name]
    sites = group_sites(case.sites(0))
    fused = fuse_shards(sites, case.family)
    fusion = fused.to_fusion()
    [family] = fusion.matching.families.values()
    check(fusion, NATS_APART if fused.changing and not row_fields_of(family) else NATS)


def test_nor_the_share_of_fragments():
    rng = np.random.default_rng(0)
    atoms = rng.normal(0, 20, (6, 3))
    held = [np.append(k := rng.permutation(6)[:4], k[:2]) for _ in range(10)]
    fusion = modelweld.fuse([rng.normal(atoms[k], 1.0) for k in held], search=modelweld.Search(splits=True))
    assert fusion.matching.delta > 0
    check(fusion)


def test_nor_in_time():
    drawn = moving_groups(2, T=12, D=3, alive=5.0, drift=2.0)
    fusion = modelweld.fuse(drawn.groups, times=drawn.times)
    [(key, family)], prior = fusion.matching.families.items(), fusion.matching.prior

    def objective(family, prior):
        matching = replace(fusion.matching, families={key: family}, prior=prior)
        return timeline_of(matching, stack_arrays(drawn.groups), drawn.times)[0].objective()

    at, found = objective(family, prior), [(0.0, "nothing")]
    assert at == pytest.approx(fusion.objective, abs=1e-6)
    found += [(objective(other, prior) - at, name) for name, other in neighbours(family)]
    found += [(objective(family, other) - at, name) for name, other in numbers_moved(prior)]
    rise, what = max(found)
    assert rise <= NATS, what
