"""fuse as its users see it: known answers, invariances, borders."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import modelweld
from modelweld import BetaBernoulli, Gaussian, InputError, LocalModel, fuse, simulate
from modelweld.demo.metrics import adjusted_rand

GOLDEN = np.load(Path(__file__).parent / "golden" / "authors.npz")


def golden(case):
    values, group = GOLDEN[f"{case}_values"], GOLDEN[f"{case}_group"]
    sites = [values[group == j] for j in range(group.max() + 1)]
    truth = np.concatenate([GOLDEN[f"{case}_truth"][group == j] for j in range(group.max() + 1)])
    return sites, truth


@pytest.mark.parametrize("engine", ["numpy", "compiled"])
@pytest.mark.parametrize("case", ["case00", "case01", "case02", "case03", "case06", "case07", "case08"])
def test_authors_preset_gives_the_authors_atoms(case, engine):
    fusion = fuse(golden(case)[0], preset="authors", search=modelweld.Search(engine=engine))
    atoms = GOLDEN[f"{case}_authors_atoms"]
    assert len(atoms) == fusion.K
    distance = np.abs(atoms[:, None] - fusion.atoms).max(-1)
    nearest = distance.argmin(1)
    assert len(set(nearest)) == fusion.K
    assert distance.min(1).max() < 1e-8
    assert np.array_equal(fusion.counts[nearest], GOLDEN[f"{case}_authors_counts"])
    learned = [np.mean(fusion.diagnosis.hyperparameters[name]) for name in ("mean", "noise", "spread")]
    assert np.allclose(learned, GOLDEN[f"{case}_authors_hyper"], rtol=1e-8)


@pytest.mark.parametrize(("case", "K"), [("case04", 58), ("case05", 50)])
def test_authors_preset_makes_the_authors_surplus(case, K):
    assert abs(fuse(golden(case)[0], preset="authors").K - K) <= 2


def test_default_on_the_hard_golden_cases():
    sites, truth = golden("case04")
    fusion = fuse(sites)
    assert abs(fusion.K - 49) <= 5
    assert adjusted_rand(truth, fusion.matching.stacked_labels) >= 0.92
    sites, truth = golden("case05")
    fusion = fuse(sites)
    assert fusion.K == 48
    assert adjusted_rand(truth, fusion.matching.stacked_labels) == 1.0


DRAWS = {
    "easy": simulate.sparse(15, 8, 5, 0.5, 6.0, 1, 1, seed=1),
    "hard": simulate.sparse(30, 10, 3, 1.0, 3.0, 1, 1, seed=2),
    "golden": simulate.sparse(40, 12, 50, 10.0, 7.0, 1, 1, seed=3),
}


@pytest.mark.parametrize("engine", ["numpy", "compiled"])
@pytest.mark.parametrize("draw", DRAWS)
def test_order_of_sites_and_rows_does_not_matter(draw, engine):
    values, rng = DRAWS[draw].values, np.random.default_rng(0)
    base = fuse(values, search=modelweld.Search(engine=engine))
    for _ in range(3):
        sites = rng.permutation(len(values))
        rows = [rng.permutation(len(values[j])) for j in sites]
        other = fuse([values[j][r] for j, r in zip(sites, rows, strict=True)], search=modelweld.Search(engine=engine))
        # equal but for the last bit: numpy's own loops depend on where in memory an array begins
        assert other.diagnosis.history == pytest.approx(base.diagnosis.history, rel=1e-12)
        assert np.allclose(other.atoms, base.atoms, rtol=1e-9)
        for j, r, labels in zip(sites, rows, other.labels, strict=True):
            assert np.array_equal(labels, base.labels[j][r])


@pytest.mark.filterwarnings("ignore::modelweld.ModelweldWarning")  # of so few values anybody may be named
@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.integers(0, 4).flatmap(
            lambda n: hnp.arrays(np.float64, (n, 2), elements=st.sampled_from([-2.0, -1.0, 0.0, 1.0, 2.0, 0.1, 7.0]))
        ),
        min_size=1,
        max_size=5,
    ).filter(lambda sites: any(len(s) for s in sites)),
    st.randoms(use_true_random=False),
)
def test_order_does_not_matter_even_among_ties(sites, random):
    base = fuse(sites)
    order = list(range(len(sites)))
    random.shuffle(order)
    rows = [random.sample(range(len(sites[j])), len(sites[j])) for j in order]
    other = fuse([sites[j][r] for j, r in zip(order, rows, strict=True)])
    assert other.objective == pytest.approx(base.objective, rel=1e-12)
    assert np.array_equal(other.counts, base.counts)
    assert np.allclose(other.atoms, base.atoms)
    for engine in ("numpy", "compiled"):
        again = fuse(sites, search=modelweld.Search(engine=engine))
        assert again.diagnosis.converged
        assert (np.diff(again.diagnosis.history) >= -1e-6).all()
        for labels in again.labels:
            assert len(set(labels.tolist())) == len(labels)


@pytest.mark.parametrize("engine", ["numpy", "compiled"])
@pytest.mark.parametrize("shape", ["diagonal", "scalar"])
@pytest.mark.parametrize("draw", DRAWS)
def test_units_do_not_matter(draw, shape, engine):
    values = DRAWS[draw].values
    base = fuse(values, Gaussian(shape=shape), search=modelweld.Search(engine=engine))
    for unit in (1e-6, 1e6, 2.0**40):
        other = fuse([unit * v for v in values], Gaussian(shape=shape), search=modelweld.Search(engine=engine))
        assert np.array_equal(other.matching.stacked_labels, base.matching.stacked_labels)
        assert np.allclose(
            other.diagnosis.hyperparameters["noise"], unit**2 * base.diagnosis.hyperparameters["noise"], rtol=1e-4
        )
    shifted = fuse([v + 1000.0 for v in values], Gaussian(shape=shape), search=modelweld.Search(engine=engine))
    assert np.array_equal(shifted.matching.stacked_labels, base.matching.stacked_labels)


def test_per_dimension_units_do_not_matter():
    values = DRAWS["easy"].values
    units = np.array([1e-5, 1.0, 1e5, 3.0, 1e-2])
    assert np.array_equal(
        fuse([v * units for v in values]).matching.stacked_labels, fuse(values).matching.stacked_labels
    )


def test_same_seed_same_result():
    a, b = (fuse(DRAWS["golden"].values, seed=5) for _ in range(2))
    assert a.diagnosis.history == b.diagnosis.history
    assert np.array_equal(a.matching.stacked_labels, b.matching.stacked_labels)


def test_thorough_search_is_never_worse():
    values = DRAWS["golden"].values
    assert fuse(values, search="thorough").objective >= fuse(values).objective


# --- borders: a defined outcome or a clear error ----------------------------------------------------------------


@pytest.mark.parametrize("engine", ["numpy", "compiled"])
class TestDegenerate:
    def test_one_site_shares_nothing(self, engine):
        fusion = fuse([np.arange(6.0).reshape(3, 2)], search=modelweld.Search(engine=engine))
        assert fusion.K == 3
        assert fusion.counts.tolist() == [1, 1, 1]

    def test_empty_sites_are_kept(self, engine):
        fusion = fuse([np.zeros((0, 2)), [[1.0, 2.0]], [], [[1.0, 2.1]]], search=modelweld.Search(engine=engine))
        assert [len(labels) for labels in fusion.labels] == [0, 1, 0, 1]
        assert fusion.sites == ["0", "1", "2", "3"]

    def test_all_values_equal(self, engine):
        """One atom: the second value of every site repeats the first, and is excluded."""
        fusion = fuse([np.full((2, 3), 4.2)] * 5, search=modelweld.Search(engine=engine))
        assert fusion.K == 1
        assert fusion.counts.tolist() == [5, 5]
        assert np.allclose(fusion.atoms, 4.2)

    def test_a_constant_dimension_is_harmless(self, engine):
        values = DRAWS["easy"].values
        padded = [np.column_stack([v, np.full(len(v), 0.1)]) for v in values]
        base = fuse(values, search=modelweld.Search(engine=engine)).matching.stacked_labels
        assert np.array_equal(fuse(padded, search=modelweld.Search(engine=engine)).matching.stacked_labels, base)

    def test_nothing_in_common(self, engine):
        rng = np.random.default_rng(1)
        sites = [rng.normal(0, 1e3, (1, 4)) for _ in range(3)]
        fusion = fuse(sites, Gaussian(noise=1.0, spread=1e6), search=modelweld.Search(engine=engine))
        assert fusion.K == 3
        assert np.isfinite(fusion.objective)

    def test_one_dimension(self, engine):
        fusion = fuse([[[0.0], [10.0]], [[10.1], [0.1]], [[-0.1], [9.9]]], search=modelweld.Search(engine=engine))
        assert fusion.K == 2

    def test_many_more_dimensions_than_values(self, engine):
        rng = np.random.default_rng(2)
        atoms = rng.normal(0, 1, (3, 2000))
        fusion = fuse(
            [atoms + rng.normal(0, 0.1, atoms.shape) for _ in range(3)], search=modelweld.Search(engine=engine)
        )
        assert fusion.K == 3

    def test_large_and_small_values_are_fine(self, engine):
        values = DRAWS["easy"].values
        base = fuse(values, search=modelweld.Search(engine=engine)).matching.stacked_labels
        for unit in (1e-80, 1e80):
            assert np.array_equal(
                fuse([unit * v for v in values], search=modelweld.Search(engine=engine)).matching.stacked_labels, base
            )

    @pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e300])
    def test_values_that_cannot_be_squared_are_refused(self, engine, bad):
        sites = [np.ones((2, 2)), np.ones((3, 2))]
        sites[1][2, 0] = bad
        with pytest.raises(InputError, match=r"site 1.*finite.*\(2, 0\)"):
            fuse(sites, search=modelweld.Search(engine=engine))

    def test_differences_that_underflow_are_refused(self, engine):
        with pytest.raises(InputError, match="change the units"):
            fuse([np.array([[0.0], [1e-200]]), np.array([[2e-200]])], search=modelweld.Search(engine=engine))


@pytest.mark.parametrize(
    ("sites", "says"),
    [
        ([], "nothing to fuse"),
        ([[], []], "no site sent"),
        ([np.zeros((3, 0))], "no site sent"),
        ([np.zeros((2, 3)), np.zeros((2, 4))], r"site 1.*3 columns.*\(2, 4\)"),
        ([np.zeros(3)], r"site 0.*two axes.*\(L, 1\)"),
        ([np.zeros((2, 2, 2))], "site 0.*two axes"),
        ([np.array([["a", "b"]])], "site 0.*real numbers"),
        ([np.array([[1j]])], "site 0.*real numbers"),
        ([[[1.0], [2.0, 3.0]]], "site 0.*real numbers"),
        ([LocalModel({"v": [[1.0]]}, {"v": ("atom", None)}), np.ones((1, 1))], "site 1.*LocalModels"),
    ],
)
def test_bad_input_is_named(sites, says):
    with pytest.raises(InputError, match=says):
        fuse(sites)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"prior": 3}, "prior"),
        ({"preset": "mine"}, "preset"),
        ({"preset": "paper", "prior": BetaBernoulli()}, "preset"),
        ({"search": modelweld.Search(engine="gpu")}, "engine"),
        ({"search": "deep"}, "search"),
        ({"search": modelweld.Search(max_sweeps=0)}, "max_sweeps"),
        ({"search": modelweld.Search(n_jobs=0)}, "n_jobs"),
        ({"screens": "outliers"}, "screens"),
        ({"families": {"values": Gaussian()}}, "plain arrays"),
    ],
)
def test_bad_options_are_named(options, says):
    with pytest.raises(InputError, match=says):
        fuse([np.eye(2), np.eye(2)], **options)


def test_giving_up_is_said():
    with pytest.warns(modelweld.ConvergenceWarning, match="max_sweeps"):
        fusion = fuse(DRAWS["golden"].values, search=modelweld.Search(max_sweeps=1))
    assert not fusion.diagnosis.converged
    assert "not converged" in repr(fusion)


def test_what_was_given_is_not_changed():
    values = [v.copy() for v in DRAWS["hard"].values]
    for engine in ("numpy", "compiled"):
        fuse(values, search=modelweld.Search(engine=engine))
    assert all(np.array_equal(a, b) for a, b in zip(values, DRAWS["hard"].values, strict=True))


def test_large_jobs_are_compiled_and_small_ones_are_not():
    assert fuse(simulate.sparse(20, 20, 10, 0.5, 5.0, 1, 1, seed=0).values).matching.engine == "numpy"
    assert fuse(simulate.paper_figure(60, 1.0, seed=0).values).matching.engine == "compiled"


def test_importing_imports_nothing_heavy():
    heavy = {"scipy", "sklearn", "numba", "rich", "matplotlib", "hmmlearn", "jax", "torch"}
    code = f"import modelweld, sys; print({heavy!r} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"


def test_a_small_job_waits_for_no_compiler():
    code = (
        "import modelweld, numpy as np, sys; rng = np.random.default_rng(0);"
        "modelweld.fuse([rng.normal(size=(20, 10)) for _ in range(20)]); sys.exit('numba' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
