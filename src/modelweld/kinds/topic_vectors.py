"""Topics as places in an embedding of documents that all sites share, with the words by which people know them.

Arrays: `directions (topic, .)`, mean embeddings of topics' documents divided by their lengths, which are matched, and
`lengths (topic)`; `counts (topic)`, documents of each topic; `words (topic, word)`, its words, as shares that add up to
as many as its documents have of the site's words. Of documents that are in no topic, where there are such, `outlier
(.)`, their mean embedding, and `outlier_words (word)`; the fact `outliers` is their number. All others are auxiliary.

A mean over many documents is better known than one over few: directions weigh as much as their topics have documents.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from modelweld.core.values import Array, Key
from modelweld.errors import InputError
from modelweld.families import Directions, Family
from modelweld.inputs.local_model import LocalModel, name_axes
from modelweld.kinds.fused_parts import common_facts
from modelweld.kinds.kind import Facts, Kind, lay_out
from modelweld.kinds.layout import Layout, whole
from modelweld.kinds.topics import check_named

if TYPE_CHECKING:
    from modelweld.results.fit_result import FitResult

HOWS = {
    "counts": "the mean embedding of all documents of a topic, wherever they are",
    "atoms": "the directions that were matched, in which every site counts the same",
}
"""Ways to make fused parameters, the default first."""

ARRAYS = {
    "directions": ("topic", ""),
    "lengths": ("topic",),
    "counts": ("topic",),
    "words": ("topic", "word"),
    "outlier": ("",),
    "outlier_words": ("word",),
}
"""Axes of all arrays; "" is a coordinate without names."""


def topic_vectors(
    vectors: ArrayLike,
    counts: ArrayLike,
    words: ArrayLike,
    vocabulary: Sequence[str],
    *,
    outlier: tuple[ArrayLike, ArrayLike, int] | None = None,
    labels: Sequence[str] | None = None,
    site: str = "",
    settings: Mapping[str, Any] | None = None,
    facts: Facts | None = None,
) -> LocalModel:
    """Topics as they leave a site.

    Parameters
    ----------
    vectors : array (K, D)
        Mean embedding of each topic's documents.
    counts : array (K,)
        Documents of each topic; its direction is weighed by them.
    words : array (K, V)
        How much each word has a part in each topic: numbers, or shares times documents.
    vocabulary : sequence of str
        The words. Sites need not have the same.
    outlier : (array (D,), array (V,), int), optional
        Mean embedding, words and number of documents that are in no topic.
    labels : sequence of str, optional
        What people call the topics.
    site : str, optional
        Name of the site.
    settings : mapping, optional
        Of the model that is to be written.
    facts : mapping, optional
        What else is needed to write it again.

    Examples
    --------
    >>> import modelweld
    >>> north = topic_vectors([[9.0, 1.0], [1.0, 9.0]], [30, 10], [[30.0, 0.0], [0.0, 10.0]], ["oil", "tea"])
    >>> south = topic_vectors([[1.0, 8.0]], [20], [[16.0, 4.0]], ["tea", "rum"])
    >>> fused = modelweld.fuse([north, south]).parameters()
    >>> fused.coordinates["word"], fused.arrays["words"].tolist(), fused.arrays["counts"].tolist()
    (('oil', 'rum', 'tea'), [[0.0, 4.0, 26.0], [30.0, 0.0, 0.0]], [30.0, 30.0])
    """
    found = np.asarray(vectors, dtype=np.float64)
    if found.ndim != 2:
        raise InputError(f"topic_vectors: vectors is an array (topics, dimensions); found shape {found.shape}.")
    lengths = np.linalg.norm(found, axis=1)
    if not (lengths > 0).all():
        raise InputError("topic_vectors: a vector of length zero has no direction; leave such a topic out.")
    arrays = {"directions": found / lengths[:, None], "lengths": lengths, "counts": counts, "words": words}
    if outlier is not None:
        arrays |= {"outlier": outlier[0], "outlier_words": outlier[1]}
    return LocalModel(
        **lay_out(arrays, ARRAYS, ["directions"], "topic", word=vocabulary),
        weight={"directions": counts},
        site=site,
        partial=["word"],
        kind="topic-vectors",
        facts={
            **(facts or {}),
            "outliers": 0 if outlier is None else int(outlier[2]),
            "labels": [] if labels is None else [str(label) for label in labels],
            "settings": dict(settings or {}),
        },
    )


class TopicVectors(Kind):
    """Topics with places in an embedding."""

    name = "topic-vectors"
    plural = "topic models"
    hows = HOWS
    marginal = False
    counted = "documents"
    shown = ()

    def layout(self, model: LocalModel) -> Layout:
        """What such topics must look like."""
        return Layout(
            sets=("topic",),
            arrays=ARRAYS,
            needed=("directions", "lengths", "counts", "words"),
            positive=("lengths",),
            not_negative=("counts", "words", "outlier_words"),
            facts={"outliers": whole},
        )

    def harmonise(self, models: Sequence[LocalModel]) -> list[LocalModel]:
        """All with words that have names, and with a place of documents in no topic if some have one."""
        check_named(models)
        if len({"outlier" in model.arrays for model in models}) == 1:
            return list(models)
        return [model if "outlier" in model.arrays else _with_none(model) for model in models]

    def families(self, models: Sequence[LocalModel]) -> dict[Key, Family]:
        """By directions."""
        return {"directions": Directions()}

    def fuse(self, fusion: FitResult, how: str) -> LocalModel:
        """One topic per atom, over all words that any site has."""
        models = fusion.models
        counts = fusion.total("counts")
        vectors = fusion.array("directions") * fusion.average("lengths")[:, None]
        if how == "counts":
            vectors = _means(fusion, counts, vectors)
        outlier = None
        if "outlier" in models[0].arrays:
            number = np.array([float(model.facts["outliers"]) for model in models])
            share = number / max(number.sum(), 1.0)
            place = share @ np.stack([np.asarray(model.arrays["outlier"]) for model in models])
            outlier = place, fusion.total("outlier_words"), int(number.sum())
        return topic_vectors(
            vectors,
            counts,
            fusion.total("words"),
            models[0].coordinates["word"],
            outlier=outlier,
            labels=_labels(fusion),
            settings=common_facts(models).get("settings"),
            facts=common_facts(models),
        )

    def words(self, fusion: FitResult, set_name: str) -> tuple[Array, Sequence[str]] | None:
        """Words that a topic has more often than others have: numbers times how rare the word is elsewhere."""
        words = fusion.total("words")
        return c_tf_idf(words)[0], fusion.models[0].coordinates["word"]


def c_tf_idf(words: Array, *, bm25: bool = False, rooted: bool = False) -> tuple[Array, Array]:
    """Class-based TF-IDF of words (topics, words), and how rare each word is: the logarithm of 1 + mean / its number.

    `bm25` and `rooted` are BERTopic's `bm25_weighting` and `reduce_frequent_words`.

    Examples
    --------
    >>> scores, rarity = c_tf_idf(np.array([[3.0, 1.0], [0.0, 4.0]]))
    >>> scores.round(2).tolist(), rarity.round(2).tolist()
    ([[0.64, 0.15], [0.0, 0.59]], [0.85, 0.59])
    """
    number, mean = np.maximum(words.sum(axis=0), np.finfo(float).tiny), float(words.sum(axis=1).mean())
    rarity = np.log(1 + np.maximum(mean - number + 0.5, 0.0) / (number + 0.5)) if bm25 else np.log(mean / number + 1)
    rarity = np.where(words.any(axis=0), rarity, 0.0)
    shares = words / np.maximum(words.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    return (np.sqrt(shares) if rooted else shares) * rarity, rarity


def _with_none(model: LocalModel) -> LocalModel:
    """The same, with a place of no documents."""
    D, V = np.shape(model.arrays["directions"])[1], len(model.coordinates["word"])
    return model.with_(
        arrays={**model.arrays, "outlier": np.zeros(D), "outlier_words": np.zeros(V)},
        axes={**name_axes(model), "outlier": (None,), "outlier_words": ("word",)},
        auxiliary=[*model.auxiliary, "outlier", "outlier_words"],
    )


def _means(fusion: FitResult, counts: Array, otherwise: Array) -> Array:
    """Means of embeddings of all documents of each topic; of topics without any, `otherwise`."""
    total = np.zeros(otherwise.shape)
    for labels, model in zip(fusion.labels, fusion.models, strict=True):
        directions, lengths, own = (np.asarray(model.arrays[name]) for name in ("directions", "lengths", "counts"))
        np.add.at(total, labels, directions * (lengths * own)[:, None])
    there = (counts > 0) & (np.linalg.norm(total, axis=1) > 0)
    return np.where(there[:, None], total / np.where(there, counts, 1.0)[:, None], otherwise)


def _labels(fusion: FitResult) -> list[str] | None:
    """What the site with most documents of a topic calls it; None unless all sites name theirs."""
    if not all(model.facts.get("labels") for model in fusion.models):
        return None
    best: dict[int, tuple[float, str]] = {}
    for atoms, model in zip(fusion.labels, fusion.models, strict=True):
        for atom, number, label in zip(atoms, np.asarray(model.arrays["counts"]), model.facts["labels"], strict=True):
            best[int(atom)] = max(best.get(int(atom), (-1.0, "")), (float(number), str(label)))
    return [best[atom][1] for atom in sorted(best)]
