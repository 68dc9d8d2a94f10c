"""Columns and masks of plain values: names of features, by which sites are aligned, and entries that were not seen."""

import numpy as np
import pytest
from sklearn.mixture import GaussianMixture

import modelweld
from modelweld import InputError


class Table:
    """What pandas and polars have in common; like polars' it is no array by itself."""

    def __init__(self, values, columns):
        self.values, self.columns = np.asarray(values), columns

    def to_numpy(self):
        return self.values


NAMES = ["bill", "mass", "wing"]
ATOMS = np.array([[40.0, 3_700.0, 190.0], [48.0, 5_000.0, 217.0], [49.0, 3_800.0, 196.0]])


def centres(j):
    return ATOMS * np.random.default_rng(j).normal(1, 0.01, ATOMS.shape)


def named(model_of=np.asarray, order=(0, 1, 2)):
    """Four islands, the last with its columns in another order."""
    orders = [(0, 1, 2)] * 3 + [order]
    return [Table(model_of(centres(j))[:, list(o)], [NAMES[i] for i in o]) for j, o in enumerate(orders)]


def test_tables_are_aligned_by_their_columns():
    straight, mixed = modelweld.fuse(named()), modelweld.fuse(named(order=(2, 1, 0)))
    assert mixed.K == straight.K == 3
    assert np.array_equal(mixed.atoms, straight.atoms)
    assert np.array_equal(straight.atoms, modelweld.fuse([centres(j) for j in range(4)]).atoms)
    assert mixed._fit.models[0].coordinates["feature"] == tuple(NAMES)  # the order that most sites have


def test_a_table_is_added_by_its_columns():
    fusion = modelweld.fuse(named()[:3]).add(Table(centres(3)[:, ::-1], NAMES[::-1]))
    assert fusion.K == 3
    assert (fusion.counts == 4).all()


def test_columns_that_are_mere_numbers_are_no_names():
    tables = [Table(centres(j), range(3)) for j in range(4)]
    assert "feature" not in modelweld.fuse(tables)._fit.models[0].coordinates
    tables[0] = centres(0)
    assert modelweld.fuse(tables).K == 3


@pytest.mark.parametrize("unnamed", [lambda x: x, lambda x: Table(x, range(3)), lambda x: x.tolist()])
def test_named_and_unnamed_sites_are_not_taken_by_position(unnamed):
    with pytest.raises(InputError, match=r"site '1' does not name its features and others do.*features="):
        modelweld.fuse([Table(centres(0), NAMES), unnamed(centres(1)), Table(centres(2), NAMES)])


def test_nor_are_models():
    rng = np.random.default_rng(0)
    fits = [GaussianMixture(1).fit(rng.normal(size=(50, 2))) for _ in range(3)]
    sites = [modelweld.read(fit, features=["x", "y"] if j else None, n=50) for j, fit in enumerate(fits)]
    with pytest.raises(InputError, match="site '0' does not name its features"):
        modelweld.fuse(sites)
    fusion = modelweld.fuse(sites[1:])
    with pytest.raises(InputError, match="does not name its features"):
        fusion.add(sites[0])


def test_fused_models_have_the_columns_in_the_order_of_most_sites():
    rng = np.random.default_rng(0)
    X = rng.normal([5.0, -5.0], 1.0, (90, 2))
    sites = [modelweld.read(GaussianMixture(1).fit(X[j::3]), n=30, features=["z", "a"]) for j in range(2)]
    sites.append(modelweld.read(GaussianMixture(1).fit(X[2::3, ::-1]), n=30, features=["a", "z"]))
    for order in ([0, 1, 2], [2, 0, 1]):
        model = modelweld.fuse([sites[j] for j in order]).model()
        assert model.feature_names_in_.tolist() == ["z", "a"]
        assert np.allclose(model.means_, X.mean(0), atol=0.1)


def test_masked_entries_were_not_seen():
    masked = np.ma.masked_array(centres(0), mask=[[0, 0, 0], [0, 0, 1], [0, 0, 0]])
    masked.data[1, 2] = 9e9
    fusion = modelweld.fuse([masked, *(centres(j) for j in range(1, 4))])
    assert fusion.K == 3
    assert fusion._fit.models[0].weight["values"].tolist() == [[1, 1, 1], [1, 1, 0], [1, 1, 1]]
    assert np.allclose(fusion.atoms.max(0), ATOMS.max(0), rtol=0.05)


@pytest.mark.parametrize("weight", [{}, {"v": 2.0}])
def test_masked_entries_of_a_model_were_not_seen_either(weight):
    masked = np.ma.masked_array(centres(0), mask=[[0, 0, 0], [0, 0, 1], [0, 0, 0]])
    masked.data[1, 2] = np.nan
    model = modelweld.LocalModel({"v": masked}, {"v": ("atom", None)}, weight=weight)
    w = weight.get("v", 1.0)
    assert model.weight["v"].tolist() == [[w, w, w], [w, w, 0], [w, w, w]]
    assert model.arrays["v"][1, 2] == 0
    whole = modelweld.LocalModel({"v": np.ma.masked_array(centres(0))}, {"v": ("atom", None)})
    assert not whole.weight


def test_tables_of_pyarrow_are_aligned_by_their_columns():
    """They were fused by position: ten atoms for three."""
    pyarrow = pytest.importorskip("pyarrow")
    tables = [pyarrow.table(dict(zip(NAMES, centres(j).T, strict=True))).select(np.roll(NAMES, j)) for j in range(3)]
    fusion = modelweld.fuse([tables[0], tables[1], tables[2].to_batches()[0]])
    assert fusion.K == 3
    assert set(fusion._fit.models[0].coordinates["feature"]) == set(NAMES)
    words = tables[0].append_column("kind", [["a", "b", "c"]])
    with pytest.raises(InputError, match=r"^site 0: column 'kind' is not of numbers: found 'a'. Leave it out"):
        modelweld.fuse([words, tables[1]])


def test_columns_of_words_are_named():
    words = np.column_stack([centres(0).astype(object), ["Adelie", "Gentoo", "Chinstrap"]])
    with pytest.raises(InputError, match=r"^site 1: column 'kind' is not of numbers: found 'Adelie'. Leave it out"):
        modelweld.fuse([Table(centres(1), NAMES), Table(words, [*NAMES, "kind"])])
    numbers = Table(centres(0).astype(object), NAMES)
    assert np.array_equal(modelweld.read(numbers, centres=True).arrays["values"], centres(0))


def test_columns_of_the_data_are_names_for_models_that_have_none():
    X = np.concatenate([np.random.default_rng(k).normal(m, 1.0, (40, 3)) for k, m in enumerate(ATOMS)])
    model = GaussianMixture(3, random_state=0).fit(X)
    local = modelweld.read(model, X=Table(X, NAMES), units={"mass": "g"})
    assert local.coordinates["feature"] == tuple(NAMES)
    assert local.facts["units"] == {"mass": "g"}
    assert "feature" not in modelweld.read(model, X=X).coordinates
    assert modelweld.read(model, X=Table(X, NAMES), features=["a", "b", "c"]).coordinates["feature"] == ("a", "b", "c")
    with pytest.raises(InputError, match="there is no feature 'age'"):
        modelweld.read(model, X=Table(X, NAMES), units={"age": "years"})
