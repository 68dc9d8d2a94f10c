"""NormalWishart: both layouts, and what it takes. The laws of all families are in test_families.py."""

import numpy as np
import pytest
from scipy.stats import multivariate_t

import modelweld
from cases.normal_wishart import CASES
from cases.scatter import inverse_wishart, scattered
from modelweld import LocalModel
from modelweld.errors import InputError, TwinWarning
from modelweld.families.wishart.normal_wishart import NormalWishart
from modelweld.inputs.stack import Stack, offsets_of
from modelweld.studies.metrics import adjusted_rand


@pytest.fixture
def rng():
    return np.random.default_rng(3)


def drawn_models(rng, D=2, K=5, J=8, n=50.0, counts=True):
    """Sites that send mean, covariance and number of points of every atom."""
    Sigma = inverse_wishart(K, 8.0, np.eye(D) * 8, rng)
    theta = rng.normal(0, 3, (K, D))
    models = []
    for _ in range(J):
        root = np.linalg.cholesky(Sigma / n)
        means = theta + np.einsum("kij,kj->ki", root, rng.normal(size=(K, D)))
        models.append(
            LocalModel(
                {"means": means, "covariances": scattered(Sigma, np.full(K, n - 1), rng)},
                {"means": ("component", None), "covariances": ("component", None, None)},
                weight={name: np.full(K, n) for name in ("means", "covariances")} if counts else {},
            )
        )
    return models, np.tile(np.arange(K), J)


def test_a_value_alone_is_students_t(rng):
    family = CASES["values"].family
    v = rng.normal(size=(4, 2))
    freedom = family.freedom - 1
    t = multivariate_t(family.mean, family.scale * (1 + 1 / family.strength) / freedom, freedom)
    assert np.allclose(family.log_evidence(family.rows(v)), t.logpdf(v))


@pytest.mark.parametrize("counts", [True, False])
def test_pairs_are_matched_under_a_tuple_key(rng, counts):
    models, truth = drawn_models(rng, counts=counts)
    key = ("means", "covariances")
    fusion = modelweld.fuse(models, {key: NormalWishart(pair=True)})
    assert fusion.K == 5
    assert adjusted_rand(fusion.matching.stacked_labels, truth) == 1.0
    between = fusion.matching.families[key].learned()["between"]
    assert between > 300 if counts else 30 < between < 80


def test_a_mean_counts_without_its_covariance():
    family = CASES["pairs"].family
    values = np.array([[1.0, 2.0, 5.0, 0.0, 0.0, 5.0]])
    few, other = (family.rows(v, None, np.full((1, 6), 3.0)) for v in (values, values * [1, 1, 2, 2, 2, 2]))
    assert np.array_equal(few, other)
    assert few[0, 0] == 1.0
    assert few[0, 1] == pytest.approx(1 / (1 / 3 + 1 / family.between))


def test_values_far_from_zero_lose_no_digits(rng):
    sites = [rng.normal(size=(4, 1)) * [0.1, 0.2] + 5 * np.arange(8).reshape(4, 2) for _ in range(6)]
    near, far = (modelweld.fuse([s + shift for s in sites], NormalWishart()) for shift in (0.0, 1e6))
    assert near.K == far.K == 4
    assert near.objective == pytest.approx(far.objective, abs=1e-3)


def test_values_in_one_direction_do_not_make_it_unbounded():
    line = np.linspace(0, 1, 5)[:, None] * [1.0, 2.0, 3.0]
    fusion = modelweld.fuse([line, line, line], NormalWishart(), twins="independent")
    assert np.isfinite(fusion.objective)
    assert fusion.K == 5


def test_a_scale_whose_determinant_is_rounding_is_not_learned():
    """Three values in four dimensions: the search found 24,000 nats of rounding, and a scale of no definite sign."""
    north, south = np.array([[-2.0, 2, 5, -2], [4, -5, -3, -1]]), np.array([[0.0, 3, 4, 0]])
    fusion = modelweld.fuse([north, south], NormalWishart())
    with pytest.warns(TwinWarning):
        larger = fusion.add(north, site="guest")
    assert np.isfinite(larger.objective)
    (family,) = larger.matching.families.values()
    assert np.linalg.matrix_rank(family.scale, hermitian=True) == 4


def test_covariance_of_an_atom_is_its_values(rng):
    family = NormalWishart(mean=np.zeros(2), strength=1e-6, freedom=4.0, scale=np.eye(2))
    noise = np.array([[2.0, 0.5], [0.5, 1.0]])
    v = rng.multivariate_normal([3.0, 4.0], noise, 20_000)
    assert np.allclose(family.covariance(family.rows(v).sum(0)), noise, atol=0.05)


def test_layouts_are_told_by_the_field():
    six = Stack(np.array([[0.0, 0.0, 1.0, 0.0, 0.0, -1.0]]), offsets_of([1]))
    assert NormalWishart().misfit(six) is None
    assert "positive diagonal; found -1" in NormalWishart(pair=True).misfit(six)[1]
    five = Stack(six.values[:, :5], six.offsets)
    assert "side by side; found 5 columns" in NormalWishart(pair=True).misfit(five)[1]
    assert "as the mean that was given, 2; found 6" in NormalWishart(mean=[0.0, 1.0]).misfit(six)[1]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"strength": 0.0}, "strength is a positive number"),
        ({"mean": [np.inf]}, "mean must be a finite number or one per dimension"),
        ({"learning": "moments"}, "learning is 'likelihood' or 'nothing'"),
    ],
)
def test_hyperparameters_are_checked(arguments, words):
    with pytest.raises(InputError, match=words):
        NormalWishart(**arguments)


@pytest.mark.parametrize("pair", [False, True])
def test_given_hyperparameters_are_kept(rng, pair):
    models, _ = drawn_models(rng)
    given = {"mean": [0.5, 0.5], "strength": 0.1, "freedom": 7.0, "scale": np.eye(2) * 6}
    family = NormalWishart(**given, between=50.0 if pair else None, pair=pair, learning="nothing")
    key = ("means", "covariances") if pair else "means"
    learned = modelweld.fuse(models, {key: family}).matching.families[key].learned()
    for name, value in given.items():
        assert np.allclose(learned[name], value)


def test_where_nothing_is_matched_strength_and_freedom_stay(rng):
    case = CASES["values"]
    drawn = case.draw([1] * 20, rng)
    learned = case.family.learn(drawn.stack, drawn.labels, drawn.sums(case.family))
    assert (learned.strength, learned.freedom) == (case.family.strength, case.family.freedom)
    assert not np.array_equal(learned.scale, case.family.scale)
