"""BERTopic models, put together: what the contract of adapters (test_adapters.py) does not ask, and the guide."""

import re
from pathlib import Path

import numpy as np
import pytest

from modelweld import InputError, export, fuse, load, read
from modelweld.kinds.topics import topic_vectors

GUIDE = (Path(__file__).parents[1] / "docs" / "bertopic.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def case():
    from adapted.bertopic_models import ADAPTED

    return ADAPTED["BERTopic"]


@pytest.fixture(scope="module")
def fitted(case):
    """Data and models of three sites."""
    rng = np.random.default_rng(4)
    data = [case.data(rng) for _ in range(3)]
    return data, [case.fit(X, 4) for X in data]


@pytest.mark.bertopic
def test_the_guide_runs(case, fitted):
    data, models = fitted
    names = dict(zip(("model_a", "model_b", "model_c"), models, strict=True))
    names |= {"documents": case.documents(data[0]), "embeddings": data[0]}
    for block in BLOCKS:
        exec(compile(block, "docs/bertopic.md", "exec"), names)
    assert names["fused"].topic_sizes_ == {k: int(n) for k, n in enumerate(names["fusion"].parameters.total("counts"))}
    assert len(names["own"]) == len(data[0])
    assert np.mean(np.array(names["topics"]) == names["own"]) > 0.95


@pytest.mark.bertopic
def test_embeddings_are_those_of_all_documents(fitted):
    data, models = fitted
    fusion = fuse(models)
    own = np.concatenate([labels[model.topics_] for labels, model in zip(fusion.labels, models, strict=True)])
    means = np.array([np.concatenate(data)[own == k].mean(axis=0) for k in range(fusion.K)])
    fused = fusion.model()
    assert fusion.K == 4
    assert np.allclose(fused.topic_embeddings_, means)
    assert sum(fused.topic_sizes_.values()) == sum(map(len, data))
    assert not np.allclose(fusion.model(how="atoms").topic_embeddings_, means)


@pytest.mark.bertopic
def test_words_are_those_of_all_documents(case, fitted):
    """Numbers behind c-TF-IDF are found again: fused scores are those of one model of all documents, nearly."""
    from bertopic import BERTopic
    from bertopic.cluster import BaseCluster
    from bertopic.dimensionality import BaseDimensionalityReduction

    data, models = fitted
    fusion = fuse(models)
    own = np.concatenate([labels[model.topics_] for labels, model in zip(fusion.labels, models, strict=True)])
    pooled = BERTopic(umap_model=BaseDimensionalityReduction(), hdbscan_model=BaseCluster())
    pooled.fit([d for X in data for d in case.documents(X)], np.concatenate(data), y=own)
    fused, order = fusion.model(), [int(np.bincount(own[np.array(pooled.topics_) == t]).argmax()) for t in range(4)]
    assert np.array_equal(
        fused.vectorizer_model.get_feature_names_out(), pooled.vectorizer_model.get_feature_names_out()
    )
    assert np.allclose(fused.c_tf_idf_.toarray()[order], pooled.c_tf_idf_.toarray(), rtol=0.05, atol=1e-3)
    assert fused.get_topic_info()["Count"].tolist() == list(fused.topic_sizes_.values())


@pytest.mark.bertopic
def test_topics_in_none_are_put_together(fitted):
    data, models = fitted
    sites = []
    for model, X in zip(models, data, strict=True):
        local = read(model, most=6)
        place = (X.mean(axis=0), np.ones(len(local.coordinates["word"])), 10)
        vectors = local.arrays["directions"] * local.arrays["lengths"][:, None]
        names, settings = local.coordinates["word"], local.facts["settings"]
        words, counts = local.arrays["words"], local.arrays["counts"]
        about = {"class": "bertopic.BERTopic"}
        sites.append(topic_vectors(vectors, counts, words, names, outlier=place, settings=settings, facts=about))
    fused = fuse([*sites[:2], read(models[2], most=6)]).model()
    assert fused.topic_sizes_[-1] == 20
    assert np.allclose(fused.topic_embeddings_[0], (data[0].mean(axis=0) + data[1].mean(axis=0)) / 2)
    again = read(fused)
    assert again.facts["outliers"] == 20
    assert again.sizes == {"topic": 4}


@pytest.mark.bertopic
def test_models_without_ctfidf_are_known_by_their_words(fitted):
    from copy import copy

    _, models = fitted
    bare = copy(models[0])
    bare.c_tf_idf_ = None
    shown = {word for pairs in models[0].topic_representations_.values() for word, _ in pairs if word}
    assert set(read(bare).coordinates["word"]) == shown
    bare.topic_embeddings_ = None
    with pytest.raises(InputError, match="no topic_embeddings_"):
        read(bare)


@pytest.mark.bertopic
def test_fused_models_are_fused_again_and_saved(fitted, tmp_path):
    _, models = fitted
    fused = fuse(models[:2]).model()
    fused.set_topic_labels([f"theme {k}" for k in range(4)])
    assert read(fused).facts["labels"] == ["theme 0", "theme 1", "theme 2", "theme 3"]
    fusion = fuse([fused, models[2]])
    assert fusion.K == 4
    assert fusion.model().custom_labels_ is None  # not all have them
    export(models[0], tmp_path / "site.safetensors", site="north")
    assert load(tmp_path / "site.safetensors").kind == "topic-vectors"


def test_labels_are_those_of_the_site_with_most_documents():
    north = topic_vectors([[1.0, 0.0]], [30], [[30.0]], ["oil"], labels=["Fuel"])
    south = topic_vectors([[0.9, 0.1], [0.0, 1.0]], [20, 5], [[20.0], [5.0]], ["oil"], labels=["Oil", "Other"])
    assert fuse([north, south]).parameters().facts["labels"] == ["Fuel", "Other"]


def test_vectors_of_length_zero_are_refused():
    with pytest.raises(InputError, match="length zero has no direction"):
        topic_vectors([[0.0, 0.0]], [30], [[30.0]], ["oil"])
    with pytest.raises(InputError, match="found shape"):
        topic_vectors([1.0, 0.0], [30], [[30.0]], ["oil"])
