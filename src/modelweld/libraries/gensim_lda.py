"""gensim's LdaModel, and LdaMulticore, which is one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from modelweld.inputs.local_model import LocalModel
from modelweld.kinds.topics import topics

if TYPE_CHECKING:
    from gensim.corpora import Dictionary
    from gensim.models import LdaModel


def read(model: LdaModel, *, features: Sequence[str] | None = None) -> LocalModel:
    """Expected numbers of each word in each topic, and both priors.

    Parameters
    ----------
    model : trained LdaModel
        Words are those of its `id2word`. If it was trained without one, all sites must have the same words in the same
        order, or say `features`.
    features : sequence of str, optional
        The words by their numbers, instead of `id2word`.
    """
    from gensim.utils import FakeDict

    words = np.asarray(model.state.sstats, dtype=np.float64)
    if features is None and not isinstance(model.id2word, FakeDict):
        features = [str(model.id2word.get(i, i)) for i in range(words.shape[1])]
    eta = np.asarray(model.state.eta, dtype=np.float64)  # what its topics are made with; model.eta may have moved on
    eta = eta.mean(axis=0) if eta.ndim == 2 else eta
    facts = {"dtype": np.dtype(model.dtype).name}
    return topics(words, features, alpha=model.alpha, eta=eta, documents=int(model.state.numdocs), facts=facts)


def write(local: LocalModel, like: str) -> LdaModel:
    """An LdaModel with these topics and a Dictionary of all words."""
    from gensim import models
    from gensim.corpora import Dictionary

    words, alpha, eta = (np.asarray(local.arrays[name]) for name in ("words", "alpha", "eta"))
    id2word: dict[int, str] | Dictionary = {i: str(i) for i in range(words.shape[1])}
    if "word" in local.coordinates:
        id2word = Dictionary()
        id2word.token2id = {word: i for i, word in enumerate(local.coordinates["word"])}
    dtype = np.dtype(local.facts.get("dtype", "float64")).type
    model = getattr(models, like)(
        num_topics=len(words), id2word=id2word, alpha=alpha, eta=eta, dtype=dtype, random_state=0
    )
    model.state.sstats[...] = words
    model.state.numdocs = model.num_updates = int(local.facts.get("documents", 0))
    model.sync_state()
    return model
