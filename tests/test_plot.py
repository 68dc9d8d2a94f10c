"""Figures show the fusion's own numbers, on axes of their own or on those given."""

import numpy as np
import pytest

import modelweld
from modelweld.report.plot import Plot
from modelweld.results.posterior.confidence import SURE
from simulated_sets import over_segmented, poisoned

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

pytestmark = pytest.mark.plot

METHODS = ("sharing", "atoms", "objective", "confidence")


@pytest.fixture(scope="module")
def fusion():
    return modelweld.fuse(over_segmented(seed=1).values, search=modelweld.Search(splits=True))


@pytest.fixture(autouse=True)
def _no_figures_left():
    yield
    plt.close("all")


@pytest.mark.parametrize("name", METHODS)
def test_a_figure_is_drawn_on_the_axes_given_or_on_its_own(fusion, name):
    figure, ax = plt.subplots()
    assert getattr(Plot(fusion), name)(ax=ax) is ax
    assert ax.has_data()
    own = getattr(Plot(fusion), name)()
    assert own.get_title()
    for drawn in (figure, own.figure):
        drawn.canvas.draw()


def test_the_matrix_is_the_presence(fusion):
    image = np.asarray(Plot(fusion).sharing(order="given").images[0].get_array())
    assert np.array_equal(image > 0, fusion.matching.presence)


def test_likeness_only_reorders(fusion):
    image = np.asarray(Plot(fusion).sharing().images[0].get_array())
    assert sorted((image > 0).sum(1)) == sorted(fusion.matching.presence.sum(1))
    assert sorted((image > 0).sum(0)) == sorted(fusion.matching.presence.sum(0))


def test_the_objective_is_the_history(fusion):
    line = Plot(fusion).objective().lines[0]
    assert np.array_equal(line.get_ydata(), fusion.diagnosis.history)


def test_confidences_are_the_fusions_own(fusion):
    stated = np.concatenate(fusion.confidence())[fusion.matching.stacked_labels < fusion.K]
    ax = Plot(fusion).confidence()
    assert np.array_equal(ax.lines[0].get_ydata(), np.sort(stated))
    assert ax.get_title().startswith(f"{(stated < SURE).sum()} of {len(stated)}")


def test_what_is_set_aside_is_not_on_the_map():
    with pytest.warns(modelweld.OutlierWarning):
        fusion = modelweld.fuse(poisoned("gross").values)
    dots, rings = Plot(fusion).atoms().collections[-2:]
    assert len(dots.get_offsets()) == (fusion.matching.stacked_labels < fusion.K).sum()
    assert len(rings.get_offsets()) == fusion.K


def test_two_features_are_the_axes_with_their_units_and_atoms_have_colours():
    rng = np.random.default_rng(0)
    atoms = np.array([[60.0, 140.0], [40.0, 110.0], [75.0, 170.0]])
    coordinates = {"feature": ["age", "pressure"]}
    sites = [
        modelweld.LocalModel(
            {"values": atoms[: 2 + (j == 0)] + rng.normal(0, 0.5, (2 + (j == 0), 2))},
            {"values": ("atom", "feature")},
            coordinates=coordinates,
            facts={"units": {"age": "years"}},
        )
        for j in range(3)
    ]
    ax = Plot(modelweld.fuse(sites)).atoms()
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("age (years)", "pressure")
    rings = ax.collections[-1].get_edgecolors()
    assert len({tuple(colour) for colour in rings}) == 3
    assert np.allclose(rings[2, :3], 0x8A / 255)  # one site alone


def test_an_order_that_is_none_is_refused(fusion):
    with pytest.raises(modelweld.InputError, match="order is"):
        Plot(fusion).sharing(order="random")
