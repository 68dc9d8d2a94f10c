"""Local models: the border, several arrays, several sets, auxiliary arrays, variance and weight."""

import numpy as np
import pytest

from modelweld import Gaussian, InputError, LocalModel, fuse


def mixture(means, counts, site="", **beside):
    return LocalModel(
        {"means": means, "counts": counts},
        {"means": ("component", None), "counts": ("component",)},
        auxiliary=["counts"],
        site=site,
        **beside,
    )


AXES = {"v": ("atom", None)}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (({"v": np.eye(2)}, {}), "needs its axes"),
        (({"v": np.zeros((2, 2, 2))}, AXES), r"3 axes but \('atom', None\) names 2"),
        (({"v": np.eye(2)}, AXES, {"w": 1.0}), r"no \['w'\]"),
        (({"v": np.eye(2)}, AXES, {"v": -1.0}), "variance of 'v'.*negative"),
        (({"v": np.eye(2)}, AXES, {}, {"v": np.ones(3)}), r"weight of 'v'.*\(2, 2\).*\(3,\)"),
        (({"v": [[np.nan, 1.0]]}, AXES), r"array 'v'.*finite.*\(0, 0\)"),
        (({"v": [["x"]]}, AXES), "real numbers"),
        (({"v": np.eye(2), "n": np.ones(3)}, {**AXES, "n": ("atom",)}), "set 'atom' has 2.*but 3"),
    ],
)
def test_the_border_names_rule_and_fact(arguments, says):
    with pytest.raises(InputError, match=says):
        LocalModel(*arguments, site="north")
    with pytest.raises(InputError, match="north"):
        LocalModel(*arguments, site="north")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"weight": 3}, r"weight must be a dict of .*weight=\{'means': 3\}; found 3"),
        ({"variance": 0.5}, "variance must be a dict.*found 0.5"),
        ({"weight": [1.0, 2.0]}, "weight must be a dict.*found a list"),
        ({"auxiliary": "counts"}, r"auxiliary must be a list of .*\['counts'\]; found 'counts'"),
        ({"partial": 2}, "partial must be a list.*found 2"),
        ({"coordinates": ["age"]}, "coordinates must be a dict.*found a list"),
        ({"coordinates": {"feature": 3}}, "coordinates of 'feature' must be a list.*found 3"),
        ({"facts": 3}, "facts must be a dict.*found 3"),
        ({"site": 5}, "site must be a word; found 5"),
        ({"kind": None}, "kind must be a word; found None"),
        ({"arrays": [[1.0, 2.0]]}, "arrays must be a dict.*found a list"),
        ({"arrays": {1: [[1.0]]}}, "keys of arrays must be words.*found 1"),
        ({"axes": ("atom", None)}, "axes must be a dict.*found a tuple"),
        ({"axes": {"v": "atom"}}, "axes of 'v' must be a list.*found 'atom'"),
    ],
)
def test_a_field_of_another_type_is_refused_with_how_it_is_written(given, says):
    with pytest.raises(InputError, match=says):
        LocalModel(**{"arrays": {"v": np.eye(2)}, "axes": AXES, **given})


def test_local_models_give_what_plain_arrays_give():
    rng = np.random.default_rng(0)
    arrays = [rng.normal(0, 5, (4, 3)) for _ in range(5)]
    models = [LocalModel({"v": a}, AXES) for a in arrays]
    a, b = fuse(arrays), fuse(models)
    assert a.objective == b.objective
    assert np.array_equal(a.atoms, b.atoms)


def test_counts_ride_along_and_add():
    a = mixture([[0.0, 0.0], [9.0, 9.0]], [10.0, 20.0], "a")
    b = mixture([[9.1, 8.9], [0.1, 0.0], [-30.0, 4.0]], [5.0, 6.0, 7.0], "b")
    fusion = fuse([a, b])
    assert fusion.sites == ["a", "b"]
    assert fusion.K == 3
    by_place = {
        tuple(np.round(m).astype(int)): n for m, n in zip(fusion.atoms, fusion.parameters.total("counts"), strict=True)
    }
    assert by_place[(0, 0)] == 16.0
    assert by_place[(9, 9)] == 25.0
    assert sorted(fusion.parameters.average("counts").tolist()) == [7.0, 8.0, 12.5]


def test_several_arrays_of_one_set_decide_together():
    # the means alone cannot tell the two components apart, the scales can
    rng = np.random.default_rng(1)
    axes = {"means": ("component", None), "scales": ("component",)}
    sites = []
    for _ in range(6):
        order = rng.permutation(2)
        means = np.zeros((2, 2)) + rng.normal(0, 0.1, (2, 2))
        scales = np.array([1.0, 8.0])[order] + rng.normal(0, 0.1, 2)
        sites.append(LocalModel({"means": means, "scales": scales}, axes))
    fusion = fuse(sites)
    assert fusion.K == 2
    assert np.allclose(np.sort(fusion.parameters.estimate("scales").ravel()), [1.0, 8.0], atol=0.3)
    with pytest.raises(InputError, match="several arrays"):
        _ = fusion.atoms
    alone = fuse(sites, {"scales": Gaussian()})
    assert np.array_equal(alone.matching.presence.sum(0), [6, 6])
    assert list(alone.matching.values) == ["scales"]


def test_weights_are_sent_by_all_sites_or_by_none():
    sites = [LocalModel({"v": [[0.0, 1.0]]}, AXES, weight=w, site=s) for s, w in (("a", {"v": 5.0}), ("b", {}))]
    with pytest.raises(InputError, match=r"array 'v': some sites send a weight, but not 'b'"):
        fuse(sites)


def test_standard_errors_tell_how_far_a_value_may_stray():
    """The same distance is a copy for an uncertain value and a stranger for a certain one."""
    rng = np.random.default_rng(4)
    atoms = np.array([[0.0, 0.0], [6.0, 6.0], [-6.0, 6.0]])
    precise = [LocalModel({"v": atoms + rng.normal(0, 0.1, atoms.shape)}, AXES, {"v": 1e-4}) for _ in range(8)]
    stray = [[2.0, 2.0]]
    sure = fuse([*precise, LocalModel({"v": stray}, AXES, variance={"v": 1e-4})])
    unsure = fuse([*precise, LocalModel({"v": stray}, AXES, variance={"v": 4.0})])
    assert sure.counts.tolist() == [8, 8, 8, 1]
    assert unsure.counts.tolist() == [9, 8, 8]
    # and an uncertain value hardly moves the atom it joins
    joined = unsure.atoms[unsure.labels[-1][0]]
    assert np.abs(joined).max() < 0.15


@pytest.mark.parametrize(
    ("second", "families", "says"),
    [
        (LocalModel({"w": np.eye(2)}, {"w": ("atom", None)}), None, "same arrays"),
        (LocalModel({"v": np.ones((2, 3))}, AXES), None, "fixed coordinates"),
        (LocalModel({"v": np.eye(2)}, AXES), {"x": Gaussian()}, "x"),
        (LocalModel({"v": np.eye(2)}, AXES), {"v": 3}, "Family"),
        (LocalModel({"v": np.eye(2)}, AXES), {"atom": 3}, "must map"),
        (LocalModel({"v": np.eye(2)}, AXES), {"atom": {}}, "no array decides"),
    ],
)
def test_models_that_do_not_fit_are_refused(second, families, says):
    with pytest.raises(InputError, match=says):
        fuse([LocalModel({"v": np.eye(2)}, AXES), second], families)


def test_a_model_without_sets_has_nothing_to_match():
    with pytest.raises(InputError, match="nothing to match"):
        fuse([LocalModel({"bias": np.ones(3)}, {"bias": (None,)})] * 2)


def test_riding_everything_is_refused():
    model = LocalModel({"v": np.eye(2)}, AXES, auxiliary=["v"])
    with pytest.raises(InputError, match="must not be auxiliary"):
        fuse([model, model])


@pytest.mark.filterwarnings("ignore::modelweld.DuplicateWarning")
def test_unknown_array_is_named():
    with pytest.raises(InputError, match="'w'"):
        fuse([LocalModel({"v": np.eye(2)}, AXES)] * 2).parameters.estimate("w")


def test_sites_without_values_may_send_a_variance():
    empty = [LocalModel({"v": np.zeros((0, 2))}, AXES, variance={"v": 1.0}) for _ in range(3)]
    assert fuse(empty).K == 0
