"""tomotopy's LDAModel and HDPModel. They cannot be made from parameters: written as scikit-learn's (`lda`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from modelweld.errors import InputError
from modelweld.inputs.local_model import LocalModel
from modelweld.kinds.topics import topics

if TYPE_CHECKING:
    from tomotopy import HDPModel, LDAModel

READ = ("LDAModel", "HDPModel")
"""Others inherit from LDAModel, but their topics are not plain distributions over words with one prior."""


def read(model: LDAModel | HDPModel, *, features: Sequence[str] | None = None) -> LocalModel:
    """Numbers of each word in each topic, as the sampler last had them, and both priors.

    Parameters
    ----------
    model : trained LDAModel or HDPModel
        Words are those it used (`used_vocabs`). Of an HDPModel, topics that are alive.
    features : sequence of str, optional
        Other names for these words.
    """
    own = next(cls.__name__ for cls in type(model).__mro__ if cls.__module__.startswith("tomotopy"))
    if own not in READ:
        raise InputError(
            f"of tomotopy's models {' and '.join(READ)} are read; found {own}. Send its topics as "
            "modelweld.kinds.topics.topics(words, vocabulary)."
        )
    raw = [model.get_topic_word_dist(k, normalize=False) for k in range(model.k)]
    alive = [k for k in range(model.k) if own == "LDAModel" or model.is_live_topic(k)]
    words = np.maximum(np.asarray(raw, dtype=np.float64)[alive] - model.eta, 0.0)
    if int(model.tw) == 0:  # every word weighs one: numbers, but for the rounding of float32
        words = np.rint(words)
    # a Dirichlet process spreads its concentration over topics as they are used
    alpha = model.alpha if own == "LDAModel" else model.alpha * words.sum(axis=1) / words.sum()
    names = list(model.used_vocabs) if features is None else features
    return topics(words, names, alpha=alpha, eta=float(model.eta), documents=len(model.docs))
