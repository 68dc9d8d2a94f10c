"""Values of which nothing was seen, and those that repeat another of their site, take no places."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

import modelweld
from modelweld import Fusion, LocalModel, fuse

Values = NDArray[np.float64]

RNG = np.random.default_rng(0)
ATOMS = RNG.normal(0, 10, (4, 3))


def sites(J: int = 6, blind: int = 1, seed: int = 0) -> list[LocalModel]:
    """Noisy atoms, and some rows of weight zero with values that nobody must look at."""
    rng = np.random.default_rng(seed)
    models = []
    for j in range(J):
        values = np.vstack([ATOMS + rng.normal(0, 0.1, ATOMS.shape), rng.normal(0, 10, (blind, 3))])
        weight = np.ones(values.shape)
        weight[4:] = 0
        models.append(LocalModel({"v": values}, {"v": ("atom", None)}, weight={"v": weight}, site=f"s{j}"))
    return models


def seen(models: list[LocalModel]) -> list[LocalModel]:
    return [
        LocalModel({"v": m.arrays["v"][:4]}, {"v": ("atom", None)}, weight={"v": m.weight["v"][:4]}, site=m.site)
        for m in models
    ]


def assert_same_for_what_was_seen(fusion: Fusion, clean: Fusion) -> None:
    assert fusion.K == clean.K == 4
    assert fusion.objective == clean.objective
    assert np.array_equal(fusion.atoms[:4], clean.atoms[:4])
    assert all(np.array_equal(a[:4], b) for a, b in zip(fusion.labels, clean.labels, strict=True))


@pytest.mark.parametrize(
    "options", [{}, {"screens": ["duplicates"]}, {"screens": ["outliers"]}, {"search": modelweld.Search(splits=True)}]
)
@pytest.mark.parametrize(("J", "blind"), [(6, 1), (6, 3), (3, 2)])
def test_the_answer_is_that_of_what_was_seen(options: dict[str, object], J: int, blind: int) -> None:
    models = sites(J, blind)
    fusion, clean = fuse(models, **options), fuse(seen(models), **options)  # type: ignore[arg-type]
    assert_same_for_what_was_seen(fusion, clean)
    assert len(fusion.matching.excluded) == J * blind
    assert len(fusion.matching.reasons) == J
    assert f"{blind} of its {4 + blind} values were not seen" in fusion.matching.reasons[0]
    assert np.array_equal(fusion.counts, fusion.matching.presence.sum(0))


def test_a_site_of_which_nothing_was_seen_is_no_site() -> None:
    models = sites()
    empty = LocalModel({"v": np.ones((3, 3))}, {"v": ("atom", None)}, weight={"v": np.zeros((3, 3))}, site="a")
    fusion = fuse([empty, *seen(models)])
    clean = fuse(seen(models))
    assert fusion.K == clean.K
    assert fusion.objective == clean.objective


def test_duplicates_are_named_by_their_numbers_among_all() -> None:
    models = seen(sites())
    empty = LocalModel({"v": np.ones((3, 3))}, {"v": ("atom", None)}, weight={"v": np.zeros((3, 3))}, site="a")
    with pytest.warns(modelweld.DuplicateWarning):
        fusion = fuse([empty, *models, models[2].with_(site="again")])
    assert fusion.matching.duplicates in ({7: 3}, {3: 7})
    assert fusion.K == 4


def test_it_stays_so_when_sites_come_and_go() -> None:
    models = sites()
    fusion = fuse(models[:5], screens=["duplicates"])
    larger = fusion.add(models[5])
    assert larger.K == 4
    assert not larger.matching.screened
    assert larger.remove("s2").K == 4


def dead(J: int, D: int, rows: int, jitter: float = 0.0, seed: int = 0) -> tuple[list[Values], list[Values]]:
    """Sites of noisy atoms, and the same with rows of zeros before them: units that never learned."""
    rng = np.random.default_rng(seed)
    atoms = rng.normal(0, 10, (8, D))
    alive = [atoms[rng.permutation(8)[:6]] + rng.normal(0, 0.3, (6, D)) for _ in range(J)]
    return alive, [np.vstack([jitter * rng.normal(size=(rows, D)), site]) for site in alive]


@pytest.mark.parametrize("variance", [False, True])
@pytest.mark.parametrize(("J", "rows", "jitter"), [(20, 3, 0.0), (20, 3, 1e-9), (3, 3, 0.0), (6, 30, 0.0)])
def test_dead_units_are_one_atom_and_harm_nobody(J: int, rows: int, jitter: float, variance: bool) -> None:
    alive, sites = dead(J, 5, rows, jitter)
    clean, fusion = (fuse([_model(v, variance) for v in values]) for values in (alive, sites))
    assert fusion.K == clean.K + 1
    assert len(fusion.matching.excluded) == len(clean.matching.excluded) + J * (rows - 1)
    assert sum(f"{rows - 1} of its {rows + 6} values repeat" in why for why in fusion.matching.reasons) == J
    pairs = {*zip(np.concatenate([a[rows:] for a in fusion.labels]), np.concatenate(clean.labels), strict=True)}
    assert len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})


def _model(values: Values, variance: bool) -> LocalModel:
    return LocalModel(
        {"v": values}, {"v": ("atom", None)}, variance={"v": np.full(values.shape, 0.01)} if variance else {}
    )


def test_which_of_repeated_values_is_fitted_does_not_depend_on_the_order() -> None:
    _, sites = dead(6, 3, 3, 1e-9)
    rng = np.random.default_rng(1)
    first = fuse(sites)
    order = rng.permutation(6)
    rows = [rng.permutation(len(sites[j])) for j in order]
    other = fuse([sites[j][r] for j, r in zip(order, rows, strict=True)])
    assert other.objective == pytest.approx(first.objective, rel=1e-12)
    assert all(np.array_equal(other.labels[i], first.labels[j][rows[i]]) for i, j in enumerate(order))


def test_values_that_two_sites_share_do_not_repeat() -> None:
    fusion = fuse([[[0.0, 1.0], [9.0, 9.0]], [[0.0, 1.0], [5.0, -5.0]], [[0.1, 1.0], [9.1, 9.0]]])
    assert len(fusion.matching.excluded) == 0
    assert fusion.matching.reasons == ()


def test_the_paper_and_the_plain_search_take_all_values() -> None:
    _, sites = dead(5, 3, 3)
    for options in ({"preset": "paper"}, {"search": "plain"}):
        assert fuse(sites, **options).matching.kept is None  # type: ignore[arg-type]
