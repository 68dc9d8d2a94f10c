"""Differential privacy with OpenDP: the statement is OpenDP's own, the noise is as large as it says, it travels."""

import numpy as np
import pytest

from modelweld import InputError, fuse
from modelweld.files import load
from modelweld.site.export import export
from modelweld.site.private import COUNT_STEPS, SENSITIVITY, STEPS, private_centres

pytestmark = pytest.mark.dp

CENTRES = np.array([[0.0, 0.0], [9.0, 9.0], [-9.0, 5.0]])


def rows(seed=0, n=400):
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.normal(centre, 1.0, (n, 2)) for centre in CENTRES + 0.2])


def test_the_noise_is_what_the_statement_needs_and_no_more():
    import opendp.prelude as dp

    dp.enable_features("contrib")
    model = private_centres(rows(), CENTRES, clip=4.0, epsilon=1.0, delta=1e-6)
    n = np.asarray(model.arrays["counts"])[:, None]
    scale = float((np.sqrt(np.asarray(model.variance["values"])) * n * STEPS / 4.0).mean())
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="f64")

    def spent(scale):
        return dp.c.make_zCDP_to_approxDP(dp.m.make_gaussian(*space, scale)).map(SENSITIVITY).epsilon(1e-6)

    assert spent(scale * 1.0001) <= 1.0
    assert spent(scale * 0.99) > 1.0


def test_the_noise_is_as_large_as_its_variance_says():
    X, drawn = rows(), []
    exact = [X[400 * k : 400 * k + 400].mean(axis=0) for k in range(3)]
    for _ in range(60):
        model = private_centres(X, CENTRES, clip=10.0, epsilon=1.0, delta=1e-6)
        off = np.asarray(model.arrays["values"]) - exact
        drawn.append(off / np.sqrt(np.asarray(model.variance["values"])))
    assert np.std(drawn) == pytest.approx(1.0, abs=0.15)  # 360 draws, five of their standard errors
    assert abs(np.mean(drawn)) < 0.3


def test_the_statement_travels_and_sites_fuse(tmp_path):
    files = []
    for j in range(4):
        model = private_centres(rows(j), CENTRES, clip=4.0, epsilon=1.0, delta=1e-6, features=["x", "y"], site=f"s{j}")
        export(model, tmp_path / f"{j}.safetensors")
        files.append(tmp_path / f"{j}.safetensors")
        said = load(files[-1]).facts["privacy"]
        assert (said["epsilon"], said["delta"], said["neighbours"]) == (1.0, 1e-6, "one row added or removed")
    fusion = fuse(files)
    assert fusion.K == 3
    assert fusion.parameters.total("counts").sum() == pytest.approx(4 * 1200, rel=0.05)


def test_centres_with_too_few_rows_are_left_out():
    model = private_centres(rows(n=3), CENTRES, clip=4.0, epsilon=0.1, delta=1e-6)
    limit = 4 * SENSITIVITY / COUNT_STEPS  # at least: the scale at epsilon 0.1 exceeds the sensitivity
    assert (np.asarray(model.arrays["counts"]) > limit).all()


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 1e-6), (1000.0, 1e-6), (1.0, 0.0), (1.0, 1.0)])
def test_statements_that_say_nothing_are_refused(epsilon, delta):
    with pytest.raises(InputError, match="epsilon is between"):
        private_centres(rows(), CENTRES, clip=4.0, epsilon=epsilon, delta=delta)
