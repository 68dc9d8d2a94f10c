"""KMeans, MiniBatchKMeans, GaussianMixture and BayesianGaussianMixture."""

from copy import deepcopy
from dataclasses import dataclass

import numpy as np
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture

from adapted import Adapted


@dataclass(frozen=True)
class Centres(Adapted):
    cls: type

    def fit(self, X, size=3):
        return self.cls(size, n_init=3, random_state=0).fit(X)

    def shuffled(self, model, rng):
        other, order = deepcopy(model), rng.permutation(model.n_clusters)
        other.cluster_centers_ = model.cluster_centers_[order]
        other.labels_ = np.argsort(order)[model.labels_]
        return other

    def answers(self, model, X):
        return model.cluster_centers_[model.predict(X)]

    def in_data_units(self, written, X, pipeline, jacobian):
        scaler, model = (step for _, step in pipeline.steps)
        return written.cluster_centers_, scaler.inverse_transform(model.cluster_centers_)


@dataclass(frozen=True)
class Mixture(Adapted):
    cls: type
    covariance_type: str
    how = "moments"

    def fit(self, X, size=3):
        model = self.cls(
            n_components=size, covariance_type=self.covariance_type, random_state=0, reg_covar=1e-3, n_init=2
        )
        return model.fit(X)

    def told(self, X):
        return {"n": len(X)}

    def shuffled(self, model, rng):
        other, order = deepcopy(model), rng.permutation(len(model.weights_))
        for name in ("weights_", "means_", "covariances_", "precisions_cholesky_"):
            if not (self.covariance_type == "tied" and name in ("covariances_", "precisions_cholesky_")):
                setattr(other, name, getattr(model, name)[order])
        return other

    def answers(self, model, X):
        return model.score_samples(X)

    def in_data_units(self, written, X, pipeline, jacobian):
        return self.answers(written, X), pipeline.score_samples(X) + jacobian


@dataclass(frozen=True)
class Variational(Mixture):
    """Written as a plain mixture, so asked only what both know: its means, weighted."""

    def answers(self, model, X):
        return (model.weights_ / model.weights_.sum()) @ model.means_

    def in_data_units(self, written, X, pipeline, jacobian):
        scaler, model = (step for _, step in pipeline.steps)
        return self.answers(written, X), scaler.inverse_transform(self.answers(model, X)[None])[0]


ADAPTED = {
    "KMeans": Centres(KMeans),
    "MiniBatchKMeans": Centres(MiniBatchKMeans),
    **{f"GaussianMixture {kind}": Mixture(GaussianMixture, kind) for kind in ("full", "tied", "diag", "spherical")},
    **{
        f"BayesianGaussianMixture {kind}": Variational(BayesianGaussianMixture, kind)
        for kind in ("full", "tied", "diag", "spherical")
    },
}
