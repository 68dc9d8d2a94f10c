"""Sparse Gaussian processes: the three ways to fuse them, their laws, and what may leave a site."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern, RationalQuadratic, WhiteKernel

from modelweld import BetaBernoulli, InputError, fuse, read
from modelweld.kinds import gp_natural as natural
from modelweld.kinds.gp_natural import NAMES, Kernel, SparseGP, evidence
from modelweld.kinds.sparse_gp import sparse_gp
from modelweld.libraries import write
from modelweld.libraries.processes import FEWEST_ROWS

NOISE = 0.05
KERNEL = 2.0 * RBF(1.0) + WhiteKernel(NOISE)


@pytest.fixture
def rng():
    return np.random.default_rng(5)


def function(X):
    return np.sin(2 * X[:, 0]) + 0.5 * X[:, -1]


def drawn(rng, rows, low=-3.0, high=3.0, features=1):
    X = rng.uniform(low, high, (rows, features))
    return X, function(X) + rng.normal(0, np.sqrt(NOISE), rows)


def exact(X, y, kernel=KERNEL, **options):
    return GaussianProcessRegressor(kernel, **{"optimizer": None, **options}).fit(X, y)


def process(rng, M=5, D=2, name="rbf", mean=0.7):
    """Any sparse process."""
    Z = rng.normal(size=(M, D)) * 2
    kernel = Kernel(rng.uniform(0.5, 2, D), 3.0, name)
    data = rng.normal(size=(8, D)) * 2
    A = np.linalg.solve(kernel(Z, Z), kernel(Z, data))
    S = np.linalg.inv(np.linalg.inv(kernel(Z, Z)) + A @ A.T / 0.3)
    return SparseGP(Z, rng.normal(size=M), S, kernel, mean, 0.1)


# --- the predictor and what learning climbs against plain formulas


@pytest.mark.parametrize("name", NAMES)
def test_kernels_are_those_of_scikit_learn(rng, name):
    X, Y, scales = rng.normal(size=(4, 3)), rng.normal(size=(5, 3)), np.array([0.5, 1.0, 3.0])
    theirs = RBF(scales) if name == "rbf" else Matern(scales, nu=float(name[-2]) / 2)
    assert np.allclose(Kernel(scales, 2.0, name)(X, Y), 2.0 * theirs(X, Y))


def test_predictions_are_the_conditional_gaussian(rng):
    gp, X = process(rng), rng.normal(size=(6, 2))
    K, k = gp.kernel(gp.inputs, gp.inputs), gp.kernel(X, gp.inputs)
    A = k @ np.linalg.inv(K)
    mean, std = gp.predict(X, return_std=True)
    assert np.allclose(mean, gp.mean + A @ (gp.values - gp.mean))
    assert np.allclose(std**2, 3.0 + gp.noise - np.diag(A @ (K - gp.covariance) @ A.T))
    assert np.allclose(mean, gp.predict(X))


@pytest.mark.parametrize("name", NAMES)
def test_evidence_is_the_density_of_what_was_said(rng, name):
    from scipy.linalg import block_diag
    from scipy.stats import multivariate_normal

    gps = [process(rng, M, name=name) for M in (5, 3, 4)]
    factors, kernel, mean = [natural.factor_of(gp) for gp in gps], Kernel(np.array([1.0, 1.5]), 2.0, name), 0.3
    everywhere, R = np.concatenate([f.inputs for f in factors]), block_diag(*(f.R for f in factors))
    y = np.concatenate([f.y for f in factors])
    covariance = R @ kernel(everywhere, everywhere) @ R.T + np.eye(len(y))
    expected = multivariate_normal(mean * R.sum(1), covariance).logpdf(y) + 0.5 * len(y) * np.log(2 * np.pi)
    assert evidence(factors, kernel, mean)[0] == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("name", NAMES)
def test_slopes_of_the_evidence_are_derivatives(rng, name):
    factors = [natural.factor_of(process(rng, M, name=name)) for M in (5, 3, 4)]

    def at(x):
        return evidence(factors, Kernel(np.exp(x[:2]), float(np.exp(x[2])), name), x[3])

    x = np.array([0.2, 0.5, 0.3, 0.4])
    assert np.allclose(at(x)[1], approx_fprime(x, lambda v: at(v)[0], 1e-6), rtol=1e-3, atol=1e-3)


def test_the_kernel_is_learned_from_what_differs_between_sites(rng):
    """Sites on a line: within each the function is a constant, and only all together tell how fast it changes."""
    sites = []
    for x in np.linspace(0, 10, 12):
        X = np.column_stack([np.full(40, x), rng.uniform(0, 1, 40)])
        sites.append(read(exact(X, np.sin(x) + rng.normal(0, 0.1, 40), 1.0 * RBF([50.0, 50.0]) + WhiteKernel(0.01))))
    scales = fuse(sites, prior=BetaBernoulli(1.0, 12.0)).model(kernel="learned").kernel.lengthscales
    assert 1 < scales[0] < 4


# --- natural fusion


def test_one_site_gives_back_itself(rng):
    local = read(exact(*drawn(rng, 60)), points=8)
    own, fused = write(local), fuse([local]).model()
    X = np.linspace(-4, 4, 50)[:, None]
    for a, b in zip(fused.predict(X, return_std=True), own.predict(X, return_std=True), strict=True):
        assert np.allclose(a, b, atol=1e-6)


def test_halves_of_the_data_are_nearly_the_whole(rng):
    X, y = drawn(rng, 120)
    halves = [read(exact(X[i::2], y[i::2]), points=15) for i in range(2)]
    whole, new = exact(X, y), np.linspace(-2.8, 2.8, 60)[:, None]
    mean, std = whole.predict(new, return_std=True)
    found, spread = fuse(halves).model(how="natural").predict(new, return_std=True)
    assert np.abs(found - mean).max() < 0.1 * mean.std()
    assert np.allclose(spread, std, rtol=0.05)


def test_sites_of_different_regions_are_joined(rng):
    data = [drawn(rng, 60, low, low + 2, features=2) for low in (-3.0, -1.0, 1.0)]
    options = {"optimizer": "fmin_l_bfgs_b", "normalize_y": True}
    sites = [exact(X, y, 1.0 * RBF([1.0, 3.0]) + WhiteKernel(0.1), **options) for X, y in data]
    local = [read(site, points=15) for site in sites]
    fusion = fuse(local, prior=BetaBernoulli(1.0, gamma0=15.0))
    X = np.concatenate([drawn(rng, 40, low, low + 2, features=2)[0] for low in (-3.0, -1.0, 1.0)])

    def error(model):
        return np.sqrt(np.mean((model.predict(X) - function(X)) ** 2))

    alone = min(map(error, sites))
    fused = {how: error(fusion.model(how=how)) for how in ("natural", "spahm")}
    assert max(fused.values()) < alone / 2
    assert fused["natural"] == min(fused.values())
    # few atoms expected: points of all regions are matched by their values alone, and averages lie between regions
    misled = fuse(local, prior=BetaBernoulli())
    assert misled.K < fusion.K
    assert error(misled.model(how="spahm")) > alone
    assert error(misled.model(how="natural")) < 1.1 * fused["natural"]


def test_a_kernel_all_sites_agree_on_is_kept(rng):
    fusion = fuse([read(exact(*drawn(rng, 60)), points=8) for _ in range(3)])
    assert fusion.model().kernel.lengthscales.tolist() == [1.0]
    assert fusion.model(kernel="learned").kernel.lengthscales.tolist() != [1.0]
    with pytest.raises(InputError, match=r"kernel is 'auto'.*found 'best'"):
        fusion.model(kernel="best")


def test_negative_eigenvalues_by_rounding_do_no_harm(rng):
    X, y = drawn(rng, 60)
    local = read(exact(X, y), points=8)
    S = np.array(local.arrays["covariance"])
    w, V = np.linalg.eigh(S)
    broken = local.with_(arrays={**local.arrays, "covariance": (V * np.append(-5e-7, w[1:])) @ V.T})
    found = fuse([broken, read(exact(*drawn(rng, 60)), points=8)]).model().predict(X, return_std=True)
    assert np.isfinite(found).all()
    assert np.sqrt(np.mean((found[0] - function(X)) ** 2)) < 0.2


def test_many_points_of_a_smooth_process_do_no_harm(rng):
    """Kernel matrices of numerical rank five: directions without variance must not count as known."""
    data = [drawn(rng, 150, features=2) for _ in range(3)]
    smooth = [exact(X, y, 4.0 * RBF([1.5, 500.0]) + WhiteKernel(NOISE)) for X, y in data]
    fused = fuse([read(site, points=50) for site in smooth]).model(kernel="learned")
    X = drawn(rng, 100, features=2)[0]
    worst = max(np.mean((site.predict(X) - function(X)) ** 2) for site in smooth)
    assert np.mean((fused.predict(X) - function(X)) ** 2) < worst


# --- the paper's way


def test_matched_values_are_averaged_and_known_better(rng):
    Z = np.arange(4.0)[:, None] * 3
    facts = {"lengthscales": 1.0, "outputscale": 4.0, "noise": 0.1}
    sites = [sparse_gp(Z, 2 * Z[:, 0] + off, **facts) for off in (0.1, -0.1, 0.0)]
    fused = fuse(sites).model(how="spahm")
    assert np.allclose(fused.predict(Z), 2 * Z[:, 0], atol=0.05)
    assert np.allclose(np.diag(fused.covariance), 0.01 / 3, rtol=0.05)


@pytest.mark.filterwarnings("ignore::modelweld.DuplicateWarning")  # copies are what the law is about
def test_without_covariances_the_papers_way_is_left(rng):
    X, y = drawn(rng, 60)
    full = read(exact(X, y), points=8)
    bare = sparse_gp(
        full.arrays["inputs"], full.arrays["values"], lengthscales=1.0, outputscale=2.0, noise=NOISE, site="bare"
    )
    fusion = fuse([full, bare])
    assert np.allclose(fusion.model().predict(X), write(full).predict(X), atol=1e-5)
    with pytest.raises(InputError, match=r"'natural' needs covariances.*how='spahm' does without"):
        fusion.model(how="natural")


# --- what leaves a site


@pytest.mark.parametrize("rows", ["scattered", "grid", "duplicates", "outlier", "two values"])
def test_no_inducing_input_is_a_training_row(rng, rows):
    X = {
        "scattered": rng.normal(size=(90, 2)),
        "grid": np.stack(np.meshgrid(np.arange(9.0), np.arange(9.0)), -1).reshape(-1, 2),
        "duplicates": np.repeat(rng.normal(size=(30, 2)), 3, axis=0),
        "outlier": np.concatenate([rng.normal(size=(30, 2)), [[1e6, 1e6]]]),
        "two values": rng.integers(0, 2, (40, 3)).astype(float),
    }[rows]
    y = rng.normal(size=len(X))
    Z = np.asarray(read(exact(X, y)).arrays["inputs"])
    assert 0 < len(Z) <= len(np.unique(X, axis=0)) // FEWEST_ROWS
    assert len(np.unique(Z, axis=0)) == len(Z)
    assert not (Z[:, None, :] == X).all(-1).any()


def test_at_most_fifty_inputs_leave_whatever_the_order_of_rows(rng):
    X, y = drawn(rng, 400, features=2)
    order, found = rng.permutation(400), read(exact(X, y)).arrays["inputs"]
    assert len(found) == 50
    assert np.array_equal(read(exact(X[order], y[order])).arrays["inputs"], found)
    assert len(read(exact(X, y), points=20).arrays["inputs"]) == 20


def test_a_sparse_copy_is_near_the_exact_process(rng):
    X, y = drawn(rng, 150)
    model, new = exact(X, 30 + 7 * y, 1.0 * RBF(1.0) + WhiteKernel(0.1), normalize_y=True), drawn(rng, 50)[0]
    found, expected = write(read(model)).predict(new, return_std=True), model.predict(new, return_std=True)
    assert np.allclose(found[0], expected[0], atol=0.05)
    assert np.allclose(found[1], expected[1], rtol=0.01)


# --- what is refused


@pytest.mark.parametrize(
    "kernel",
    [
        RationalQuadratic(),
        RBF() + Matern(),
        RBF() * RBF(),
        RBF() + ConstantKernel(2.0),
        DotProduct() + WhiteKernel(),
        RBF() ** 2,
        Matern(nu=1.0),
        WhiteKernel(),
    ],
)
def test_other_kernels_are_refused(rng, kernel):
    with pytest.raises(InputError, match=r"one RBF or Matern.*Found"):
        read(exact(*drawn(rng, 20), kernel))


def test_kernels_are_multiplied_out(rng):
    kernel = ConstantKernel(2.0) * (3.0 * Matern([1.0], nu=0.5) + WhiteKernel(0.1)) + WhiteKernel(0.2)
    local = read(exact(*drawn(rng, 30), kernel, alpha=0.3))
    assert float(local.arrays["outputscale"]) == pytest.approx(6.0)
    assert float(local.arrays["noise"]) == pytest.approx(0.1 * 2 + 0.2 + 0.3)
    assert local.facts["kernel"] == "matern12"


@pytest.mark.parametrize(
    ("rows", "outputs", "told", "message"),
    [
        ([0.0, 1.0, 1.0], 1, {}, "2 different training rows; at least 3"),
        (range(20), 1, {"points": 0}, "points must be at least 1"),
        (range(20), 2, {}, "several outputs"),
    ],
)
def test_processes_that_cannot_be_read_are_refused(rows, outputs, told, message):
    X = np.array(rows, dtype=float)[:, None]
    with pytest.raises(InputError, match=message):
        read(exact(X, np.sin(X) if outputs == 1 else np.hstack([X, X])), **told)
    with pytest.raises(InputError, match="not fitted"):
        read(GaussianProcessRegressor())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"values": [1.0]}, r"inputs are \(M, D\) and values \(M,\)"),
        ({"covariance": np.eye(3)}, r"covariance of 2 values is \(2, 2\)"),
        ({"lengthscales": 0.0}, "must be positive"),
        ({"noise": -1.0}, "must be positive, noise not negative"),
        ({"kernel": "cosine"}, "found 'cosine'"),
    ],
)
def test_records_are_checked(change, message):
    given = {"inputs": [[0.0], [1.0]], "values": [0.0, 1.0], "lengthscales": 1.0, "outputscale": 1.0, "noise": 0.1}
    with pytest.raises(InputError, match=message):
        sparse_gp(**{**given, **change})


def test_columns_are_found_by_name_and_counted(rng):
    gp = write(sparse_gp([[0.0, 1.0]], [1.0], lengthscales=1.0, outputscale=1.0, noise=0.1, features=["a", "b"]))

    class Frame:
        """As much of a DataFrame as is asked for."""

        def __init__(self, **columns):
            self.columns, self.held = list(columns), columns

        def __getitem__(self, names):
            return np.stack([self.held[name] for name in names], axis=1)

    assert gp.predict(Frame(b=[1.0], c=[9.0], a=[0.0])).tolist() == gp.predict([[0.0, 1.0]]).tolist()
    with pytest.raises(InputError, match=r"lacks \['b'\]"):
        gp.predict(Frame(a=[0.0]))
    with pytest.raises(InputError, match="must have 2 columns"):
        gp.predict([[0.0]])


# --- GPyTorch


@pytest.fixture
def torch_case(rng):
    adapted = pytest.importorskip("adapted.gpytorch_models", exc_type=ImportError)
    case = adapted.ADAPTED["ApproximateGP"]
    return adapted, case, case.data(rng)


@pytest.mark.gp
def test_variational_models_are_read_unwhitened(torch_case):
    import torch

    _, case, X = torch_case
    model = case.fit(X)
    local = read(model, noise=0.1)
    stored = model.variational_strategy._variational_distribution.variational_mean.detach().numpy()
    assert np.abs(stored - local.arrays["values"]).max() > 0.1
    with torch.no_grad():
        there = model(torch.as_tensor(X))
    mean, std = write(local).predict(X, return_std=True)
    assert np.allclose(mean, there.mean, atol=1e-4)
    assert np.allclose(std**2 - 0.1, there.variance, atol=1e-4)


@pytest.mark.gp
def test_reading_leaves_the_model_alone(torch_case):
    import torch

    _, case, X = torch_case
    for training in (True, False):
        model = case.fit(X).float().train(training)
        local = read(model, noise=0.1)
        assert model.training is training
        assert model.variational_strategy.inducing_points.dtype == torch.float32
        assert np.isfinite(fuse([local, local], screens=["outliers"]).model().predict(X)).all()


@pytest.mark.gp
def test_noise_is_read_from_the_likelihood_or_told(torch_case):
    adapted, case, X = torch_case
    model, likelihood = case.fit(X), adapted.gpytorch.likelihoods.GaussianLikelihood()
    likelihood.noise = 0.3
    assert float(read(model, likelihood=likelihood).arrays["noise"]) == pytest.approx(0.3, rel=1e-5)
    with pytest.raises(InputError, match=r"does not hold the variance.*likelihood=likelihood"):
        read(model)


@pytest.mark.gp
def test_inducing_inputs_of_gpytorch_that_are_training_rows_are_refused(torch_case):
    adapted, _, X = torch_case
    case = adapted.ADAPTED["ExactGP, inducing"]
    model = case.made(X[:60], adapted.torch.as_tensor(X[:10]))
    with pytest.raises(InputError, match=r"must not leave.*points=50"):
        read(model)
    Z = np.asarray(read(model, points=10).arrays["inputs"])
    assert len(Z) == 10
    assert not (Z[:, None, :] == X).all(-1).any()


@pytest.mark.gp
def test_other_gpytorch_kernels_and_means_are_refused(torch_case):
    adapted, case, X = torch_case
    model = case.fit(X)
    model.covar_module = adapted.gpytorch.kernels.PeriodicKernel().double()
    with pytest.raises(InputError, match="found a PeriodicKernel"):
        read(model, noise=0.1)
    model = case.fit(X)
    model.mean_module = adapted.gpytorch.means.LinearMean(3).double()
    with pytest.raises(InputError, match="found a LinearMean"):
        read(model, noise=0.1)


@pytest.mark.gp
def test_libraries_fuse_in_one_call(torch_case, rng):
    adapted, case, X = torch_case
    others = [case.data(rng) for _ in range(2)]
    ours = [read(exact(Y, adapted.responses(Y), 2.0 * RBF(2.0) + WhiteKernel(0.1)), points=12) for Y in others]
    fusion = fuse([read(case.fit(X), noise=0.1), *ours])
    assert isinstance(fusion.model(), SparseGP)
    error = fusion.model().predict(others[0]) - adapted.responses(others[0])
    assert np.mean(error**2) < np.var(adapted.responses(others[0]))
