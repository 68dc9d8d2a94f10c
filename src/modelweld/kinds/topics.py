"""Topic models: topics over words, with what their Dirichlet priors need.

Arrays: `words (topic, word)`, expected numbers of each word in each topic, without the prior's pseudo-counts;
`counts (topic)`, words in each topic; `alpha (topic)` and `eta (word)`, pseudo-counts of topics in a document and of
words in a topic. Sites need not share a vocabulary: words are aligned by name, and of a word that a site does not have
it says nothing. Topics are matched by `smoothed (topic, word)`, numbers with the prior's pseudo-counts, which the
centre adds again: without them a word that one site has by chance and another has not would tell the two topics apart.
The others are auxiliary.

Topics as places in an embedding of documents that all sites share, with the words by which people know them.

Arrays: `directions (topic, .)`, mean embeddings of topics' documents divided by their lengths, which are matched, and
`lengths (topic)`; `counts (topic)`, documents of each topic; `words (topic, word)`, its words, as shares that add up to
as many as its documents have of the site's words. Of documents that are in no topic, where there are such, `outlier
(.)`, their mean embedding, and `outlier_words (word)`; the fact `outliers` is their number. All others are auxiliary.

A mean over many documents is better known than one over few: directions weigh as much as their topics have documents.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from modelweld.core.values import Array, Key, arrays_of
from modelweld.errors import InputError
from modelweld.families import Counts, Directions, Family
from modelweld.inputs.local_model import LocalModel, name_axes
from modelweld.kinds.fused_parts import check_counted, common_facts
from modelweld.kinds.hmm import shares
from modelweld.kinds.kind import Facts, Kind, lay_out
from modelweld.kinds.layout import Layout, truth, whole
from modelweld.kinds.mixture import mixture
from modelweld.results.fit_result import FitResult

HOWS = {
    "counts": "numbers of words added through the matching: a word that a site does not have was never seen there",
    "atoms": "as many words per topic, distributed like the atoms, which know which words a site could not have seen",
}
"""Ways to make fused parameters, the default first."""

ARRAYS = {
    "words": ("topic", "word"),
    "counts": ("topic",),
    "alpha": ("topic",),
    "eta": ("word",),
    "smoothed": ("topic", "word"),
}
"""Axes of all arrays."""


def topics(
    words: ArrayLike,
    vocabulary: Sequence[str] | None = None,
    *,
    alpha: ArrayLike | None = None,
    eta: ArrayLike | None = None,
    counted: bool = True,
    documents: int = 0,
    site: str = "",
    facts: Facts | None = None,
) -> LocalModel:
    """A topic model as it leaves a site.

    Parameters
    ----------
    words : array (K, V)
        Expected numbers of each word in each topic, or probabilities of words.
    vocabulary : sequence of str, optional
        The words. Without it, all sites must have the same ones in the same order.
    alpha, eta : array (K,) and (V,), or numbers, optional
        Pseudo-counts of topics in a document and of words in a topic; default 1 / K, as most programs have it.
    counted : bool
        Whether `words` are numbers; probabilities say nothing of how many words are behind them.
    documents : int
        How many documents they come from, 0 if not known.
    site : str, optional
        Name of the site.
    facts : mapping, optional
        What is needed to write it again.

    Examples
    --------
    Two sites with one topic in common, of which one does not know bread:

    >>> import modelweld
    >>> north = topics([[60.0, 40.0, 0.0], [0.0, 10.0, 90.0]], ["bread", "water", "oil"])
    >>> south = topics([[20.0, 80.0]], ["water", "oil"])
    >>> fusion = modelweld.fuse([north, south])
    >>> model = fusion.parameters()
    >>> model.coordinates["word"], model.arrays["words"].tolist()
    (('bread', 'oil', 'water'), [[0.0, 170.0, 30.0], [60.0, 0.0, 40.0]])
    """
    words = np.asarray(words, dtype=np.float64)
    if words.ndim != 2:
        raise InputError(f"topics: words is an array (topics, words); found shape {words.shape}.")
    K, V = words.shape
    counts = words.sum(axis=1)
    alpha, eta = (1 / max(K, 1) if prior is None else np.asarray(prior, dtype=np.float64) for prior in (alpha, eta))
    arrays = {"words": words, "counts": counts, "alpha": np.zeros(K) + alpha, "eta": np.zeros(V) + eta}
    return LocalModel(
        **lay_out(arrays, ARRAYS, ["words"], "topic", word=vocabulary),
        weight={"words": (counts > (EMPTY if counted else 0.0)).astype(np.float64)},
        site=site,
        partial=[] if vocabulary is None else ["word"],
        kind="topics",
        facts={**(facts or {}), "counted": counted, "documents": int(documents)},
    )


class Topics(Kind):
    """Topic models."""

    name = "topics"
    plural = "topic models"
    hows = HOWS
    counted = "words"
    shown = ()
    stands_for_points = False
    splits = True

    def layout(self, model: LocalModel) -> Layout:
        """What a topic model must look like."""
        return Layout(
            sets=("topic",),
            arrays=ARRAYS,
            needed=("words", "counts", "alpha", "eta"),
            not_negative=tuple(ARRAYS),
            facts={"counted": truth, "documents": whole},
        )

    def harmonise(self, models: Sequence[LocalModel]) -> list[LocalModel]:
        """With the array they are matched by; sites of which only some name their words are refused."""
        check_named(models)
        return [with_smoothed(model) for model in models]

    def families(self, models: Sequence[LocalModel]) -> dict[Key, Family]:
        """Matched by smoothed words: the more of them, the less do copies of a topic differ."""
        words = np.concatenate([np.asarray(model.arrays["counts"]) for model in models])
        counted = all(model.facts["counted"] for model in models) and (words > EMPTY).any()
        return {"smoothed": Counts(typical=float(words[words > EMPTY].mean()) if counted else 0.0)}

    def fuse(self, fusion: FitResult, how: str) -> LocalModel:
        """One topic per atom, over all words that any site has.

        Pseudo-counts are the sites' averages. A topic that a site lacks has none there, so that the sum of `alpha`, how
        many topics a document mixes, stays what it was.
        """
        models = fusion.models
        check_counted(
            models,
            "site {site} sends probabilities of words, others numbers: multiply its topics by their numbers of words.",
        )
        words = fusion.total("words")
        if how == "atoms":
            deciding = {name for key in fusion.matching.families for name in arrays_of(key)}
            atoms = fusion.array("smoothed" if "smoothed" in deciding else "words")
            words = shares(np.maximum(atoms, 0.0)) * fusion.total("counts")[:, None]
        facts, documents = common_facts(models), sum(int(m.facts.get("documents", 0)) for m in models)
        vocabulary, counted = models[0].coordinates.get("word"), bool(facts["counted"])
        alpha, eta = fusion.total("alpha") / len(models), fusion.average("eta")
        return topics(words, vocabulary, alpha=alpha, eta=eta, counted=counted, documents=documents, facts=facts)

    def move(self, model: LocalModel, arrays: Mapping[str, Array]) -> LocalModel:
        """Numbers of words move by the ratios of those that were matched."""
        if "smoothed" not in arrays:
            return super().move(model, arrays)
        smoothed, words = (np.asarray(model.arrays[name]) for name in ("smoothed", "words"))
        ratio = np.where(smoothed > 0, arrays["smoothed"] / np.where(smoothed > 0, smoothed, 1.0), 1.0)
        follow_atoms = shares(words * ratio) * words.sum(axis=1, keepdims=True)
        return super().move(model, {**arrays, "words": follow_atoms})

    def words(self, fusion: FitResult, set_name: str) -> tuple[Array, Sequence[str]] | None:
        """Numbers of words per topic."""
        if set_name != "topic":
            return None
        numbers = fusion.total("words")
        return numbers, fusion.models[0].coordinates.get("word") or [f"word {i}" for i in range(numbers.shape[1])]

    def concerns(self, model: LocalModel, *, fewest: int, compared: bool) -> list[str]:
        """Rare words."""
        if not (model.facts.get("counted") and "word" in model.coordinates):
            return []
        total = np.asarray(model.arrays["words"]).sum(axis=0)
        rare = int(((total > 0) & (total < fewest)).sum())
        if not rare:
            return []
        what = f"{rare} of {total.size} words occur fewer than {fewest} times"
        return [f"{what}; names of persons are such words. Leave rare words out of the vocabulary (min_df)."]


def embedding_topics(
    centres: ArrayLike, counts: ArrayLike, *, features: Sequence[str] | None = None, site: str = ""
) -> LocalModel:
    """Topics as clusters of word vectors, in an embedding that all sites share: directions, to match by angle.

    They are a mixture: fuse them with ``families={"means": Directions()}`` and get the fused centres, of length one,
    as a k-means model by ``fusion.model("atoms")``. It expects word vectors divided by their lengths.

    Parameters
    ----------
    centres : array (K, D)
        Means of word vectors of length one, such as a k-means model's centres.
    counts : array (K,)
        Words (or occurrences of words) behind each.
    features : sequence of str, optional
        Names of the coordinates of the embedding.
    site : str, optional
        Name of the site.

    Notes
    -----
    A mean of length r of unit vectors x leaves ``E |x - u|^2 = 2 (1 - r)`` about its direction u: the variances.

    Examples
    --------
    >>> import modelweld
    >>> from modelweld.families.directions import Directions
    >>> sites = [embedding_topics([[0.9, 0.1], [0.1, 0.8]], [50, 70]), embedding_topics([[0.1, 0.9]], [40])]
    >>> fusion = modelweld.fuse(sites, families={"means": Directions()})
    >>> [labels.tolist() for labels in fusion.labels]
    [[1, 0], [0]]
    """
    centres = np.asarray(centres, dtype=np.float64)
    length = np.linalg.norm(centres, axis=1, keepdims=True)
    if not (length > 0).all():
        raise InputError("embedding_topics: a centre of length zero has no direction; leave such a topic out.")
    spreads = np.maximum(2 * (1 - length), 0.0) / centres.shape[1] + np.zeros(centres.shape)
    facts = {"class": "sklearn.KMeans"}
    return mixture(centres / length, spreads, counts, counted=False, features=features, site=site, facts=facts)


EMPTY = 0.5
"""Expected words below which a topic is empty: rounded, it has none. It has nothing to be matched by: weight 0."""


def check_named(models: Sequence[LocalModel]) -> None:
    """Refuse sites of which only some name their words."""
    without = [model.site or str(j) for j, model in enumerate(models) if "word" not in model.coordinates]
    if 0 < len(without) < len(models):
        raise InputError(f"site {without[0]} does not name its words, and others do: read(model, features=words).")


def with_smoothed(model: LocalModel) -> LocalModel:
    """The same with `smoothed`, words and the prior's pseudo-counts; probabilities stay what they are."""
    axes, words = name_axes(model), np.asarray(model.arrays["words"])
    if model.facts["counted"]:
        total = words.sum(axis=1, keepdims=True)  # pseudo-counts are no observations
        words = shares(words + np.asarray(model.arrays["eta"])) * total
    return model.with_(
        arrays={**model.arrays, "smoothed": words},
        axes={**axes, "smoothed": axes["words"]},
        weight={**model.weight, "smoothed": model.weight.get("words", np.ones(words.shape))},
        auxiliary=sorted({*model.auxiliary, "words"}),
    )


VECTOR_HOWS = {
    "counts": "the mean embedding of all documents of a topic, wherever they are",
    "atoms": "the directions that were matched, in which every site counts the same",
}
"""Ways to make fused parameters, the default first."""

VECTOR_ARRAYS = {
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
        **lay_out(arrays, VECTOR_ARRAYS, ["directions"], "topic", word=vocabulary),
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
    hows = VECTOR_HOWS
    marginal = False
    counted = "documents"
    shown = ()

    def layout(self, model: LocalModel) -> Layout:
        """What such topics must look like."""
        return Layout(
            sets=("topic",),
            arrays=VECTOR_ARRAYS,
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
