"""Gross outliers: the honest sites' result is the same as without them, and nothing is lost."""

import numpy as np
import pytest

import modelweld
import simulated_sets as simulate
from modelweld import OutlierWarning, fuse
from modelweld.results.diagnostics import notes


@pytest.mark.parametrize("kind", ["gross", "background"])
@pytest.mark.parametrize("seed", range(3))
def test_honest_sites_are_fused_as_if_alone(kind, seed):
    data = simulate.poisoned(kind, seed=seed)
    honest = [v for v, ok in zip(data.values, data.honest, strict=True) if ok]
    with pytest.warns(OutlierWarning, match=f"site '{len(honest)}'"):
        fusion = fuse(data.values)
    alone = fuse(honest)
    assert fusion.K == alone.K
    assert fusion.objective == alone.objective
    for a, b in zip(fusion.labels, alone.labels, strict=False):
        assert np.array_equal(a, b)
    assert np.array_equal(fusion.atoms[: fusion.K], alone.atoms[: alone.K])
    # and the bad site is still there, each value an atom of its own
    assert np.allclose(fusion.atoms[fusion.labels[-1]], data.values[-1])
    assert (fusion.labels[-1] >= fusion.K).all()
    assert fusion.matching.reasons
    assert {note.site for note in notes.excluded(fusion)} >= {str(len(honest))}


def test_single_rows_are_set_aside_too():
    data = simulate.sparse(15, 10, 6, 0.5, 5.0, 1, 1, seed=0)
    values = [v.copy() for v in data.values]
    values[2][1] = 1e4
    with pytest.warns(OutlierWarning, match="site '2'"):
        fusion = fuse(values)
    row = sum(map(len, values[:2])) + 1
    assert fusion.matching.excluded.tolist() == [row]
    clean = fuse([np.delete(v, 1, axis=0) if j == 2 else v for j, v in enumerate(values)])
    assert fusion.K == clean.K


def test_compiled_jobs_are_protected_too():
    data = simulate.paper_figure(60, 1.0, seed=0)
    values = [*data.values, 1e5 * np.random.default_rng(0).normal(size=(10, 50))]
    with pytest.warns(OutlierWarning, match="site '60'"):
        fusion = fuse(values)
    assert fusion.matching.engine == "compiled"
    assert fusion.K == data.K


def test_it_can_be_switched_off_and_plain_search_does_not_look():
    values = simulate.poisoned("gross", seed=0).values
    assert fuse(values, screens=["duplicates"]).matching.kept is None
    assert fuse(values, search="plain").matching.kept is None
    with pytest.warns(OutlierWarning):
        assert fuse(values, search="plain", screens=["outliers"]).matching.kept is not None


def test_adding_a_bad_site_changes_nothing_for_the_others():
    data = simulate.poisoned("gross", seed=1)
    alone = fuse(data.values[:-1])
    with pytest.warns(OutlierWarning):
        worse = alone.add(data.values[-1], site="bad")
    assert worse.K == alone.K
    better = worse.remove("bad")
    assert better.K == alone.K
    assert better.objective == pytest.approx(alone.objective, abs=0.01)
    assert better.matching.reasons == ()


@pytest.mark.parametrize("seed", range(4))
def test_a_site_shifted_as_a_whole_is_corrected(seed):
    drawn = simulate.poisoned("shift", seed=seed)
    bad = int(np.flatnonzero(~drawn.honest)[0])
    with pytest.warns(modelweld.SiteEffectWarning, match=f"site '{bad}'"):
        fusion = fuse(drawn.values)
    honest = fuse([v for v, good in zip(drawn.values, drawn.honest, strict=True) if good])
    assert fusion.matching.counts.max() == honest.matching.counts.max() + 1
    assert {effect.site for effect in fusion.site_effects} == {str(bad)}


@pytest.mark.parametrize("name", ["low_J8_D2", "low_J10_D3", "low_J10_D10", "correlated_D10", "standard_errors"])
def test_no_honest_site_is_taken_for_shifted(name):
    for seed in range(300, 306):
        assert fuse(simulate.SETS[name](seed=seed).values).site_effects == []
