"""Cells of many donors: AnnData in, the same names of clusters at every donor out."""

import numpy as np
import pytest

import modelweld

pytestmark = pytest.mark.anndata

GENES = [f"gene {g}" for g in range(6)]


def donor(kinds, seed, *, offset=0.0, cells=40, genes=GENES):
    """Cells of these types, clustered under names of the donor's own; the last cell has no cluster."""
    import anndata
    import pandas as pd

    rng = np.random.default_rng(seed)
    own = np.repeat(kinds, cells)
    X = 8.0 * np.random.default_rng(99).normal(size=(5, len(GENES)))[own] + rng.normal(size=(len(own), len(GENES)))
    X = (X + offset)[:, [GENES.index(gene) for gene in genes]]
    names = pd.Categorical([*(str(k + seed) for k in own[:-1]), None])
    obs = pd.DataFrame({"leiden": names, "type": own}, index=[f"cell {i}" for i in range(len(own))])
    return anndata.AnnData(X, obs=obs, var=pd.DataFrame(index=genes), obsm={"X_rep": X[:, :3]})


@pytest.fixture
def donors():
    return {
        name: donor(kinds, j)
        for j, (name, kinds) in enumerate({"a": [0, 1, 2], "b": [1, 2, 3], "c": [0, 3, 4]}.items())
    }


@pytest.mark.parametrize("use_rep", [None, "X_rep"])
def test_clusters_have_the_same_names_everywhere(donors, use_rep):
    fusion = modelweld.fuse_cells(donors, "leiden", use_rep=use_rep)
    assert (fusion.K, fusion.sites) == (5, ["a", "b", "c"])
    names = {}
    for cells in donors.values():
        assert list(cells.obs["modelweld"].cat.categories) == [str(k) for k in range(5)]
        for kind, name in zip(cells.obs["type"][:-1], cells.obs["modelweld"][:-1], strict=True):
            assert names.setdefault(kind, name) == name
        assert cells.obs["modelweld"].isna().tolist() == [False] * (cells.n_obs - 1) + [True]
        assert (cells.obs["modelweld_confidence"][:-1] > 0.9).all()
        assert cells.uns["modelweld"]["key"] == "leiden"
    assert len(set(names.values())) == 5


def test_a_batch_effect_is_corrected():
    held = [[0, 1, 2, 3], [1, 2, 3, 4], [0, 1, 3, 4], [0, 2, 3, 4]]
    shifted = {str(j): donor(kinds, j, offset=9.0 * (j == 2)) for j, kinds in enumerate(held)}
    with pytest.warns(modelweld.SiteEffectWarning, match="site '2'"):
        assert modelweld.fuse_cells(shifted, "leiden").K == 5


def test_genes_are_aligned_by_name(donors):
    donors["b"] = donor([1, 2, 3], 1, genes=GENES[::-1])
    assert modelweld.fuse_cells(donors, "leiden").K == 5
    donors["b"] = donor([1, 2, 3], 1, genes=GENES[1:])
    with pytest.warns(modelweld.NamesWarning, match="'gene 0'"):
        assert modelweld.fuse_cells(donors, "leiden").K == 5
    donors["b"].var_names = [f"other {g}" for g in range(5)]
    with pytest.raises(modelweld.InputError, match="lacks 'gene"):
        modelweld.fuse_cells(donors, "leiden")


def test_the_answer_is_written_to_disk_and_read_again(donors, tmp_path):
    import anndata

    modelweld.fuse_cells(donors, "leiden", added="common")
    donors["a"].write_h5ad(tmp_path / "a.h5ad")
    again = anndata.read_h5ad(tmp_path / "a.h5ad")
    assert again.obs["common"].equals(donors["a"].obs["common"])
    assert again.uns["common"]["use_rep"] == "X"


def test_what_is_lacking_is_named(donors):
    with pytest.raises(modelweld.InputError, match="donor 'a': obs has no 'louvain'; it has 'leiden', 'type'"):
        modelweld.fuse_cells(donors, "louvain")
    with pytest.raises(modelweld.InputError, match="donor 'a': obsm has no 'X_pca'; it has 'X_rep'"):
        modelweld.fuse_cells(donors, "leiden", use_rep="X_pca")
    with pytest.raises(modelweld.InputError, match="AnnData by name"):
        modelweld.fuse_cells(list(donors.values()), "leiden")
    donors["b"].obs["leiden"] = "0"
    with pytest.raises(modelweld.InputError, match=r"donor 'b': labels tell.*all labelled rows are '0'"):
        modelweld.fuse_cells(donors, "leiden")


def test_components_of_two_pcas_are_refused(donors):
    for j, cells in enumerate(donors.values()):
        cells.obsm["X_pca"] = cells.X[:, :2]
        cells.varm["PCs"] = np.eye(6)[:, :2] + (j == 2)
    with pytest.raises(modelweld.InputError, match=r"'a' and 'c' are coordinates of two PCAs.*Fit one PCA"):
        modelweld.fuse_cells(donors, "leiden", use_rep="X_pca")
