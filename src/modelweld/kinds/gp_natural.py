"""Natural fusion of sparse Gaussian processes: what every site's data said, put on one prior. No data is needed.

A site's q(u) = N(values, covariance) is its prior N(mean, K) times a Gaussian factor, which is what its data said of
its inducing values. Written as observations of unit noise, y = R f(inputs) + e with R^T R = covariance^-1 - K^-1, all
sites' factors together are the data of one Gaussian process: its kernel and mean are those under which they are most
probable (`learned`), and its posterior at the fused inputs, by the variational bound (Titsias, 2009), is
the fused model.

The kernel and mean under which what all sites' data said is most probable. No data is needed.

A factor y = R f(Z) + e (see `natural`) has a Gaussian density under every kernel, in closed form. How fast the
function changes from site to site follows from the factors of several sites together only, so as many of them as can be
afforded are taken jointly. An approximation of this density by few inducing inputs will not do: it takes
what the inputs cannot follow for noise and finds the function too smooth (experiments/temperatures has figures).

A Gaussian process known by its values at inducing inputs: kernels, and predictions.

Covariance functions of Gaussian processes, one lengthscale per feature, with slopes for learning.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, overload

import numpy as np
import scipy
from numpy.typing import ArrayLike

from modelweld.core.values import Array, Index, offsets_of
from modelweld.errors import InputError, check_choice
from modelweld.inputs.local_model import LocalModel

if TYPE_CHECKING:
    from pandas import DataFrame

NAMES = ("rbf", "matern12", "matern32", "matern52")
"""Squared exponential, and Matern of smoothness 1/2, 3/2, 5/2."""

SMALLEST_EIGENVALUE = 1e-10
"""Relative to the largest. Those of smooth kernels fall off exponentially; below this, divided by an eigenvalue and by
its root again, the rounding of a covariance (1e-15 of its size) is worth as much as what data say."""


@dataclass(frozen=True, eq=False)
class Kernel:
    """k(x, y) = outputscale * g(r^2), r^2 = sum over features of ((x - y) / lengthscale)^2.

    Parameters
    ----------
    lengthscales : array (D,)
        Distances over which the function changes, per feature.
    outputscale : float
        Variance of the function.
    name : {"rbf", "matern12", "matern32", "matern52"}
        The function g.

    Examples
    --------
    >>> kernel = Kernel(np.array([1.0, 2.0]), 4.0)
    >>> kernel(np.zeros((1, 2)), np.array([[0.0, 0.0], [1.0, 2.0]])).round(3)     # 4, 4 / e
    array([[4.   , 1.472]])
    """

    lengthscales: Array
    outputscale: float
    name: str = "rbf"

    def __post_init__(self) -> None:
        check_choice("a kernel", self.name, NAMES)

    def __call__(self, X: Array, Y: Array) -> Array:
        """Covariances (rows of X, rows of Y)."""
        return self.outputscale * _shape(self._square_distances(X, Y), self.name)

    def with_slopes(self, X: Array, Y: Array) -> tuple[Array, Callable[[Array], Array]]:
        """Covariances, and what gives the derivatives of ``(weight * k(X, Y)).sum()``, weight (rows of X, rows of Y).

        They are by the logarithms of lengthscales and outputscale, (D + 1,).
        """
        squared = self._square_distances(X, Y)
        shape = _shape(squared, self.name)
        slope = _slope(squared, shape, self.name)
        x, y = X / self.lengthscales, Y / self.lengthscales
        centre = x.mean(axis=0)
        x, y = x - centre, y - centre

        def slopes(weight: Array) -> Array:
            H = weight * slope
            spread = H.sum(1) @ (x * x) + H.sum(0) @ (y * y) - 2 * (x * (H @ y)).sum(0)
            return self.outputscale * np.append(-2 * spread, np.vdot(weight, shape))

        return self.outputscale * shape, slopes

    def _square_distances(self, X: Array, Y: Array) -> Array:
        return np.asarray(scipy.spatial.distance.cdist(X / self.lengthscales, Y / self.lengthscales, "sqeuclidean"))


def _shape(squared: Array, name: str) -> Array:
    """G as a function of r^2."""
    if name == "rbf":
        return np.asarray(np.exp(-0.5 * squared))
    if name == "matern12":
        return np.asarray(np.exp(-np.sqrt(squared)))
    if name == "matern32":
        r = np.sqrt(3 * squared)
        return np.asarray((1 + r) * np.exp(-r))
    r = np.sqrt(5 * squared)
    return np.asarray((1 + r + r * r / 3) * np.exp(-r))


def _slope(squared: Array, shape: Array, name: str) -> Array:
    """The derivative of g by r^2; that of "matern12" is infinite at zero, where its factor (x - y)^2 is zero."""
    if name == "rbf":
        return -0.5 * shape
    if name == "matern12":
        r = np.sqrt(np.where(squared > 0, squared, 1.0))
        return np.where(squared > 0, -0.5 * shape / r, 0.0)
    if name == "matern32":
        return np.asarray(-1.5 * np.exp(-np.sqrt(3 * squared)))
    r = np.sqrt(5 * squared)
    return np.asarray(-5 / 6 * (1 + r) * np.exp(-r))


class Whitened(NamedTuple):
    """A covariance matrix K by its largest eigenvalues: ``colour @ colour.T`` is K, ``white @ white.T`` its inverse."""

    colour: Array
    white: Array


def whiten(K: Array) -> Whitened:
    """The basis in which K is the identity, without the directions in which it has next to no variance.

    They are left out, not given some variance: what is known of them would then seem to come from data.

    Examples
    --------
    >>> basis = whiten(np.array([[4.0, 0.0], [0.0, 1.0]]))
    >>> (basis.white @ basis.white.T).round(12).tolist()
    [[0.25, 0.0], [0.0, 1.0]]
    """
    values, vectors = np.linalg.eigh((K + K.T) / 2)
    kept = values > SMALLEST_EIGENVALUE * values[-1]
    roots, vectors = np.sqrt(values[kept]), vectors[:, kept]
    return Whitened(vectors * roots, vectors / roots)


@dataclass(frozen=True, eq=False, repr=False)
class SparseGP:
    """A Gaussian process f ~ GP(mean, kernel) of which f(inputs) ~ N(values, covariance) is known.

    Parameters
    ----------
    inputs, values, covariance : arrays (M, D), (M,), (M, M)
        Inducing inputs, and what is known of the function there.
    kernel : Kernel
        Its covariance function.
    mean : float
        Its mean.
    noise : float
        Variance of responses about it.
    feature_names_in_ : sequence of str, optional
        Names of the features.

    Notes
    -----
    In the basis that whitens K = kernel(inputs, inputs), with k a row of kernel(X, inputs) in it,

        E f(x) = mean + k a,    Var f(x) = kernel(x, x) - k (1 - B) k^T,

    a and B the whitened values and covariance.

    Examples
    --------
    >>> known = np.zeros((1, 1))
    >>> gp = SparseGP(np.zeros((1, 1)), np.array([3.0]), known, Kernel(np.ones(1), 4.0), mean=1.0, noise=0.25)
    >>> gp.predict([[0.0], [99.0]], return_std=True)         # at the inducing input, and far away
    (array([3., 1.]), array([0.5       , 2.06155281]))
    """

    inputs: Array
    values: Array
    covariance: Array
    kernel: Kernel
    mean: float = 0.0
    noise: float = 0.0
    feature_names_in_: tuple[str, ...] | None = None

    def __repr__(self) -> str:
        M, D = self.inputs.shape
        return f"<SparseGP of {M} points, {D} features, {self.kernel.name}>"

    @property
    def n_features_in_(self) -> int:
        """Number of features."""
        return int(self.inputs.shape[1])

    @cached_property
    def basis(self) -> Whitened:
        """The basis in which the prior of the values is standard."""
        return whiten(self.kernel(self.inputs, self.inputs))

    @cached_property
    def knowledge(self) -> tuple[Array, Array]:
        """Values and covariance in that basis."""
        white = self.basis.white
        return white.T @ (self.values - self.mean), white.T @ self.covariance @ white

    def latent(self, X: Array) -> tuple[Array, Array]:
        """Means and variances of the function itself.

        Parameters
        ----------
        X : array (rows, features)
            Where.
        """
        a, B = self.knowledge
        k = self.kernel(X, self.inputs) @ self.basis.white
        variance = self.kernel.outputscale - (k * (k - k @ B)).sum(axis=1)
        return self.mean + k @ a, np.maximum(variance, 0.0)

    @overload
    def predict(self, X: ArrayLike | DataFrame, return_std: Literal[False] = False) -> Array: ...

    @overload
    def predict(self, X: ArrayLike | DataFrame, return_std: Literal[True]) -> tuple[Array, Array]: ...

    def predict(self, X: ArrayLike | DataFrame, return_std: bool = False) -> Array | tuple[Array, Array]:
        """Expected responses and, if asked for, standard deviations of new responses, their noise included.

        Parameters
        ----------
        X : array (rows, features) or DataFrame
            Where. Columns of a DataFrame are found by name where the sites named their features.
        return_std : bool
            Whether standard deviations are wanted, too.
        """
        mean, variance = self.latent(self._rows(X))
        return (mean, np.sqrt(variance + self.noise)) if return_std else mean

    def _rows(self, X: Any) -> Array:
        names = self.feature_names_in_
        if names is not None and hasattr(X, "columns"):
            missing = [name for name in names if name not in X.columns]
            if missing:
                raise InputError(f"X must have the columns {list(names)}; it lacks {missing}.")
            X = X[list(names)]
        rows = np.asarray(X, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != self.n_features_in_:
            raise InputError(f"X must have {self.n_features_in_} columns; found shape {rows.shape}.")
        return rows


SMALLEST_SHARE = 1e-8
"""Of a prior variance that a site can leave: one ten-thousandth of its deviation, far below what data tell. Where
a covariance has zero or (by rounding) negative eigenvalues, its values are taken as known so well, and no better. And
the precision, in units of the prior's, below which a direction of a factor says nothing and is left out."""

MOST_DOUBT = 0.01
"""Share of its variance that the function may keep at a site's inducing input, given its values at the fused ones. A
twentieth is felt where few sites send few points; less than a hundredth adds points and nothing else."""


class Factor(NamedTuple):
    """What a site's data said: y = R f(inputs) + noise of variance one."""

    inputs: Array
    R: Array
    y: Array


class Posterior(NamedTuple):
    """Of the values at inducing inputs: mean and covariance."""

    values: Array
    covariance: Array


def factor_of(gp: SparseGP, least: float = SMALLEST_SHARE) -> Factor:
    """A site's posterior over its inducing values, divided by its prior.

    Directions of which the data say less than `least` times what the prior says are left out.

    Examples
    --------
    >>> gp = SparseGP(np.zeros((1, 1)), np.array([3.0]), np.array([[0.8]]), Kernel(np.ones(1), 4.0))
    >>> R, y = factor_of(gp)[1:]
    >>> (R.T @ R).round(6).tolist(), (R.T @ y).round(6).tolist()       # 1 / 0.8 - 1 / 4, 3 / 0.8
    ([[1.0]], [3.75])
    """
    a, B = gp.knowledge
    shares, Q = np.linalg.eigh((B + B.T) / 2)
    shares = np.clip(shares, SMALLEST_SHARE, 1.0)
    precision = 1 / shares - 1
    said = precision > least
    shares, Q, root = shares[said], Q[:, said], np.sqrt(precision[said])
    R = (gp.basis.white @ (Q * root)).T
    return Factor(gp.inputs, R, (Q.T @ a) / (shares * root) + R.sum(axis=1) * gp.mean)


def observations(inputs: Array, values: Array, noise: Array) -> Factor:
    """Values seen at the inputs with noise of these variances."""
    precision = 1 / np.sqrt(noise)
    return Factor(inputs, np.diag(precision), precision * values)


def project(factors: Sequence[Factor], kernel: Kernel, mean: float, inputs: Array) -> Posterior:
    """The posterior at `inputs` that is nearest to the one given all factors, by the variational bound."""
    basis = whiten(kernel(inputs, inputs))
    rank = basis.white.shape[1]
    precision, linear = np.eye(rank), np.zeros(rank)
    for Z, R, y in factors:
        A = basis.white.T @ (R @ kernel(Z, inputs)).T
        precision += A @ A.T
        linear += A @ (y - mean * R.sum(axis=1))
    values, vectors = np.linalg.eigh(precision)
    root = basis.colour @ (vectors / np.sqrt(values))
    return Posterior(mean + root @ ((vectors.T @ linear) / np.sqrt(values)), root @ root.T)


def complete(inputs: Array, points: Array, kernel: Kernel) -> Array:
    """The inputs, and those of the points that they leave in doubt, the most doubtful first.

    Averages of matched points stand for these only where the function hardly changes between them.

    Examples
    --------
    >>> complete(np.array([[1.0]]), np.array([[0.9], [8.0], [1.1], [8.1]]), Kernel(np.ones(1), 1.0)).ravel().tolist()
    [1.0, 8.0]
    """
    white = whiten(kernel(inputs, inputs)).white
    known = kernel(points, inputs) @ white
    doubt = 1 - np.square(known).sum(axis=1) / kernel.outputscale
    added: list[int] = []
    while doubt.max() > MOST_DOUBT:
        i = int(doubt.argmax())
        row = kernel(points, points[i : i + 1])[:, 0] - known @ known[i]
        column = row / np.sqrt(doubt[i] * kernel.outputscale)
        known = np.column_stack([known, column])
        doubt = doubt - np.square(column) / kernel.outputscale
        added.append(i)
    return np.concatenate([inputs, points[added]])


def have_same_kernel(sites: Sequence[SparseGP]) -> bool:
    """Whether all sites have the same kernel and mean."""
    return len({(gp.mean, gp.kernel.name, gp.kernel.outputscale, *gp.kernel.lengthscales) for gp in sites}) == 1


def common(sites: Sequence[SparseGP]) -> tuple[Kernel, float]:
    """Kernel and mean halfway between the sites': the most frequent function, medians of its parameters.

    Medians, because a site that cannot tell (a feature that hardly varies there) may send any lengthscale.
    """
    number = Counter(gp.kernel.name for gp in sites)
    name = min(number, key=lambda n: (-number[n], NAMES.index(n)))
    scales = np.median([gp.kernel.lengthscales for gp in sites], axis=0)
    outputscale = float(np.median([gp.kernel.outputscale for gp in sites]))
    return Kernel(scales, outputscale, name), float(np.median([gp.mean for gp in sites]))


def averages(sites: Sequence[SparseGP], labels: Index) -> tuple[Array, Array, Array, float]:
    """Inputs and values of every atom, how many points it has, and the variance of values about it."""
    Z, u = np.concatenate([gp.inputs for gp in sites]), np.concatenate([gp.values for gp in sites])
    K = int(labels.max()) + 1
    number: Array = np.bincount(labels, minlength=K).astype(np.float64)
    inputs = np.stack([np.bincount(labels, column, K) for column in Z.T], axis=1) / number[:, None]
    values: Array = np.bincount(labels, u, K) / number
    left = float(np.square(u - values[labels]).sum())
    return inputs, values, number, left / max(len(u) - K, 1)


def process_of(model: LocalModel) -> SparseGP:
    """The process that a site sent; values without covariance are taken as known."""
    arrays = {name: np.asarray(array) for name, array in model.arrays.items()}
    M, names = len(arrays["values"]), model.coordinates.get("feature")
    return SparseGP(
        arrays["inputs"],
        arrays["values"],
        arrays.get("covariance", np.zeros((M, M))),
        Kernel(arrays["lengthscales"], float(arrays["outputscale"]), model.facts["kernel"]),
        mean=float(arrays["mean"]),
        noise=float(arrays["noise"]),
        feature_names_in_=None if names is None else tuple(names),
    )


LEAST_INFORMATIVE = 0.1
"""Of the prior's precision: directions of which a site's data say less are left out of learning (`factor_of`). Most
directions of most sites are such; they repeat how smooth the site's own kernel is."""

JOINT_POINTS, MOST_POINTS = 3_000, 12_000
"""Inducing inputs of sites whose factors are taken jointly: half a second per step. Sites beyond form further groups,
whose densities are multiplied. Inducing inputs used for learning, of sites spread evenly over the sequence: a kernel is
a dozen numbers."""

WIDEST = 1e3
"""Lengthscales are learned between 1 / WIDEST and WIDEST times the deviation of all sites' inputs: beyond the function
is white or constant in that feature, and the density is flat. The outputscale within WIDEST^2 times its start."""

SMALLEST_STEP = 1e-6
"""Relative gain of a step at which learning ends: a thousandth of a nat where the log density is a thousand."""

Setting = tuple[Kernel, float]
"""Kernel and mean."""


def learn_kernel(factors: Sequence[Factor], starts: Sequence[Setting]) -> Setting:
    """Kernel and mean of the highest evidence, from the most probable of several starts.

    Parameters
    ----------
    factors : sequence of Factor
        Of sites, in an order that does not depend on that of arrival.
    starts : sequence of (Kernel, float)
        Kernels of one name.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> Z = rng.uniform(-5, 5, (60, 1))
    >>> seen = Factor(Z, 10 * np.eye(60), 10 * np.sin(Z[:, 0]) + rng.normal(size=60))     # noise of deviation 0.1
    >>> kernel, mean = learn_kernel([seen], [(Kernel(np.array([9.0]), 1.0), 0.0)])
    >>> bool(1 < kernel.lengthscales[0] < 3)
    True
    """
    factors = factors[:: -(-sum(len(f.inputs) for f in factors) // MOST_POINTS)]
    grouped = list(groups(factors))
    return climb(grouped, max(starts, key=lambda start: sum(evidence(group, *start)[0] for group in grouped)))


def groups(factors: Sequence[Factor]) -> Iterator[list[Factor]]:
    """Neighbours in the sequence, with at most JOINT_POINTS together, or one factor that has more."""
    group: list[Factor] = []
    for factor in factors:
        if group and sum(len(f.inputs) for f in [*group, factor]) > JOINT_POINTS:
            yield group
            group = []
        group.append(factor)
    yield group


def evidence(factors: Sequence[Factor], kernel: Kernel, mean: float) -> tuple[float, Array]:
    """The joint log density of factors, and its slopes by log lengthscales, log outputscale and mean.

    With Z, R and y of all factors, R block-diagonal, G = R k(Z, Z) R^T + 1 and e = y - mean R 1,

        F = -1/2 log|G| - 1/2 e^T G^-1 e.
    """
    points, rows = (offsets_of([len(f[k]) for f in factors]) for k in (0, 2))
    own = [(f.R, slice(*points[j : j + 2]), slice(*rows[j : j + 2])) for j, f in enumerate(factors)]
    Z, ones = np.concatenate([f.inputs for f in factors]), np.concatenate([f.R.sum(axis=1) for f in factors])
    e = np.concatenate([f.y for f in factors]) - mean * ones
    K, slopes = kernel.with_slopes(Z, Z)
    crossed = np.concatenate([R @ K[at] for R, at, _ in own])
    G = np.concatenate([crossed[:, at] @ R.T for R, at, _ in own], axis=1)
    G.flat[:: len(G) + 1] += 1
    factored = scipy.linalg.cho_factor(G, lower=True)
    a = scipy.linalg.cho_solve(factored, e)
    F = -np.log(np.diag(factored[0])).sum() - 0.5 * (e @ a)

    by_G = 0.5 * (np.outer(a, a) - scipy.linalg.cho_solve(factored, np.eye(len(e))))
    by_crossed = np.concatenate([by_G[:, at] @ R for R, _, at in own], axis=1)
    by_K = np.concatenate([R.T @ by_crossed[at] for R, _, at in own])
    return float(F), np.append(slopes(by_K), ones @ a)


def climb(grouped: Sequence[Sequence[Factor]], start: Setting) -> Setting:
    """The highest evidence near a start; the mean is counted in deviations of the function, so that its steps fit."""
    kernel, mean = start
    spread = np.concatenate([f.inputs for group in grouped for f in group]).std(axis=0)
    wide = np.where(spread > 0, spread, kernel.lengthscales)
    deviation, reach = float(np.sqrt(kernel.outputscale)), float(np.log(WIDEST))
    first = np.log(np.clip(kernel.lengthscales, wide / WIDEST, wide * WIDEST))
    about = float(np.log(kernel.outputscale))
    limits = [(x - reach, x + reach) for x in np.log(wide)]
    limits += [(about - 2 * reach, about + 2 * reach), (-np.inf, np.inf)]

    def at(x: Array) -> Setting:
        return Kernel(np.exp(x[:-2]), float(np.exp(x[-2])), kernel.name), float(x[-1] * deviation)

    def loss(x: Array) -> tuple[float, Array]:
        found = [evidence(group, *at(x)) for group in grouped]
        slopes = np.sum([slopes for _, slopes in found], axis=0)
        slopes[-1] *= deviation
        return -sum(F for F, _ in found), -slopes

    x = np.array([*first, about, mean / deviation])
    options = {"ftol": SMALLEST_STEP}
    found = scipy.optimize.minimize(loss, x, jac=True, method="L-BFGS-B", bounds=limits, options=options)
    return at(found.x)
