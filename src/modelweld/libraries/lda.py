"""scikit-learn's LatentDirichletAllocation; also what topic models of tomotopy are written as."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from modelweld.errors import InputError
from modelweld.inputs.local_model import LocalModel
from modelweld.kinds.topics import topics

if TYPE_CHECKING:
    from sklearn.decomposition import LatentDirichletAllocation


def read(
    model: LatentDirichletAllocation,
    *,
    tokens: float | None = None,
    X: ArrayLike | None = None,
    features: Sequence[str] | None = None,
) -> LocalModel:
    """Expected numbers of each word in each topic: `components_` without the prior's pseudo-counts.

    Parameters
    ----------
    model : fitted LatentDirichletAllocation
        After `fit`, its numbers are those of the site's documents.
    tokens : float, optional
        Number of words in the site's documents, all occurrences. Needed after `partial_fit` alone, which scales numbers
        up to `total_samples` documents.
    X : array or sparse matrix, optional
        The site's documents, to count their words here.
    features : sequence of str, optional
        The words, one per column: ``vectorizer.get_feature_names_out()``. Without them, all sites must have the same
        words in the same order.
    """
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(model, "components_")
    if not hasattr(model, "bound_") and tokens is None and X is None:
        raise InputError(
            "a LatentDirichletAllocation that only saw partial_fit does not know how many words it saw: say so, by "
            "read(model, tokens=X.sum()), with X all its documents."
        )
    prior = float(model.topic_word_prior_)
    words = np.maximum(np.asarray(model.components_, dtype=np.float64) - prior, 0.0)
    total = float(np.sum(X)) if tokens is None and X is not None else tokens
    if total is not None:
        words = words * (total / max(float(words.sum()), np.finfo(float).tiny))
    facts = {"named_columns": hasattr(model, "feature_names_in_")}
    return topics(words, features, alpha=float(model.doc_topic_prior_), eta=prior, facts=facts)


def write(local: LocalModel, like: str) -> LatentDirichletAllocation:
    """A LatentDirichletAllocation with these topics; `vocabulary_`, for a CountVectorizer, says what its columns are.

    It has one pseudo-count for all topics and one for all words: the averages. `bound_`, the perplexity of training
    documents, is not known (NaN).
    """
    from scipy.special import digamma
    from sklearn.decomposition import LatentDirichletAllocation

    words, alpha, eta = (np.asarray(local.arrays[name]) for name in ("words", "alpha", "eta"))
    model = LatentDirichletAllocation(
        len(words), doc_topic_prior=float(alpha.mean()), topic_word_prior=float(eta.mean())
    )
    model.doc_topic_prior_, model.topic_word_prior_ = model.doc_topic_prior, model.topic_word_prior
    model.components_ = words + model.topic_word_prior_
    total = model.components_.sum(axis=1, keepdims=True)
    model.exp_dirichlet_component_ = np.exp(digamma(model.components_) - digamma(total))
    model.n_features_in_ = words.shape[1]
    model.n_batch_iter_, model.n_iter_, model.bound_ = 1, 0, np.nan
    model.random_state_ = np.random.RandomState(0)  # of the kind that the class itself keeps
    if "word" in local.coordinates:
        names = local.coordinates["word"]
        model.vocabulary_ = {name: column for column, name in enumerate(names)}
        if local.facts.get("named_columns"):
            model.feature_names_in_ = np.array(names, dtype=object)
    return model
