"""What topics are matched by: numbers of words with the prior's pseudo-counts, or square roots of probabilities."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from modelweld.errors import InputError
from modelweld.inputs.alignment import align
from modelweld.inputs.local_model import Array, LocalModel
from modelweld.kinds.base import named_axes
from modelweld.kinds.hmm import shares

EMPTY = 0.5
"""Expected words below which a topic is empty: rounded, it has none. It has nothing to be matched by: weight 0."""


def axes_of(named: bool) -> dict[str, tuple[str | None, ...]]:
    """Of the arrays every site sends; `named` says whether its words have names."""
    word = "word" if named else None
    return {"words": ("topic", word), "counts": ("topic",), "alpha": ("topic",), "eta": (word,)}


def seen(counts: Array, counted: bool) -> Array:
    """Weight 1 of topics that have words, 0 of empty ones."""
    return (counts > (EMPTY if counted else 0.0)).astype(np.float64)


def check_named(models: Sequence[LocalModel]) -> None:
    """Refuse sites of which only some name their words."""
    without = [model.site or str(j) for j, model in enumerate(models) if "word" not in model.coordinates]
    if 0 < len(without) < len(models):
        raise InputError(
            f"site {without[0]} does not say what its words are, others do: they cannot be aligned. Use "
            "read(model, features=words), with one word per column."
        )


def with_smoothed(model: LocalModel) -> LocalModel:
    """The same with `smoothed`, words and the prior's pseudo-counts; probabilities stay what they are."""
    axes, words = named_axes(model), np.asarray(model.arrays["words"])
    if model.facts["counted"]:
        total = words.sum(axis=1, keepdims=True)  # pseudo-counts are no observations
        words = shares(words + np.asarray(model.arrays["eta"])) * total
    return model.with_(
        arrays={**model.arrays, "smoothed": words},
        axes={**axes, "smoothed": axes["words"]},
        weight={**model.weight, "smoothed": model.weight.get("words", np.ones(words.shape))},
        riding=sorted({*model.riding, "words"}),
    )


def with_roots(models: Sequence[LocalModel]) -> list[LocalModel]:
    """The same topic models with `roots (topic, word)`, square roots of probabilities, by which they then match.

    These are unit vectors, for the family `Directions`. One word cannot be unseen in a direction: a word that a site
    does not have has probability zero there.

    Parameters
    ----------
    models : sequence of LocalModel
        Of this kind, all that are to be fused: their words are aligned here.

    Examples
    --------
    >>> import modelweld
    >>> from modelweld.kinds.topics import topics
    >>> north = topics([[60.0, 40.0, 0.0], [0.0, 10.0, 90.0]], ["bread", "water", "oil"])
    >>> south = topics([[20.0, 80.0]], ["water", "oil"])
    >>> fusion = modelweld.fuse(with_roots([north, south]))
    >>> [labels.tolist() for labels in fusion.labels]
    [[1, 0], [0]]
    """
    result = []
    check_named(models)
    for model in align(models):
        axes = axes_of("word" in model.coordinates)
        there = seen(np.asarray(model.arrays["counts"]), bool(model.facts["counted"]))
        result.append(
            model.with_(
                arrays={**model.arrays, "roots": np.sqrt(shares(np.asarray(model.arrays["words"])))},
                axes={**axes, "roots": axes["words"]},
                weight={**model.weight, "roots": there},
            )
        )
    return result
