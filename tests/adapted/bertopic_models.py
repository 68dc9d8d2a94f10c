"""BERTopic, on documents of words in three heaps whose embeddings are handed in."""

from copy import deepcopy

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.cluster import KMeans

from adapted import ROWS, Adapted

WORDS = np.array([[f"{theme}{i}" for i in range(6)] for theme in ("sea", "sky", "sand", "snow")])


class Topics(Adapted):
    marker = "bertopic"
    named = ""
    scales = False
    itself = 1e-6
    exactly = 1e-2  # of c-TF-IDF, in which BERTopic cuts the mean number of words off to a whole number

    def data(self, rng, rows=ROWS):
        """Embeddings (rows, 5): directions about four that are far apart; their themes are the largest of the first."""
        theme = rng.choice(4, rows, p=rng.dirichlet([5.0] * 4))
        return np.eye(5)[theme] + 0.1 * rng.normal(size=(rows, 5))

    def documents(self, X):
        rng = np.random.default_rng(abs(int(X.sum() * 1e6)) % 2**32)
        return [" ".join(rng.choice(WORDS[t], 8)) + " water" for t in X[:, :4].argmax(axis=1)]

    def fit(self, X, size=3):
        from bertopic import BERTopic
        from bertopic.dimensionality import BaseDimensionalityReduction

        model = BERTopic(
            umap_model=BaseDimensionalityReduction(),
            hdbscan_model=KMeans(size, n_init=3, random_state=0),
            top_n_words=5,
        )
        return model.fit(self.documents(X), X)

    def shuffled(self, model, rng):
        other, order = deepcopy(model), rng.permutation(len(model.topic_sizes_))
        other.topic_embeddings_ = np.asarray(model.topic_embeddings_)[order]
        other.topic_sizes_ = {t: model.topic_sizes_[k] for t, k in enumerate(order)}
        other.c_tf_idf_ = csr_matrix(model.c_tf_idf_.toarray()[order])
        other.topic_representations_ = {t: model.topic_representations_[k] for t, k in enumerate(order)}
        return other

    def answers(self, model, X):
        """What stands in the c-TF-IDF of each document's topic, found by cosines as a loaded model does."""
        from bertopic.cluster import BaseCluster

        asked = deepcopy(model)
        asked.hdbscan_model = BaseCluster()
        topics, cosines = asked.transform(["?"] * len(X), X)
        order = np.argsort(model.vectorizer_model.get_feature_names_out())
        scores = model.c_tf_idf_.toarray()[np.array(topics) + model._outliers][:, order]
        return np.column_stack([cosines, scores])


ADAPTED = {"BERTopic": Topics()}
