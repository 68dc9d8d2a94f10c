"""Fusions that load can answer: what their families do not take, or cannot divide by, is refused by name."""

from contextlib import nullcontext
from dataclasses import fields, replace

import numpy as np
import pytest

from modelweld import Directions, Gaussian, InputError, LocalModel, NormalGamma, Rates, fuse, load
from modelweld.files.fusion_file import check_answers
from modelweld.fit.priors.spectrum import Spectrum
from modelweld.inputs.stacks import stack_arrays


@pytest.mark.parametrize(("value", "fine"), [(2.0, True), (-1.0, False), (np.nan, False)])
def test_every_value_is_asked_about_not_the_first_alone(value, fine):
    """A rate that is none, at the last site, failed when another was removed."""
    sites = [np.array([[1.0], [9.0]]) + j / 10 for j in range(4)]
    fusion = fuse(sites, Rates())
    sites[3] = np.array([[1.0], [value]])
    with nullcontext() if fine else pytest.raises(InputError):
        check_answers(sites, fusion.matchings)


@pytest.mark.parametrize("number", [5e-324, 1e-310, 0.0])
def test_what_cannot_be_divided_by_is_no_hyperparameter(number):
    with pytest.raises(InputError, match="noise"):
        Gaussian(noise=number)
    assert Gaussian(noise=1e-300).noise == 1e-300


@pytest.mark.parametrize(("frame", "fine"), [([[1.0, 0.5], [0.0, 2.0]], True), ([[1.0, 2.0], [2.0, 4.0]], False)])
def test_a_frame_without_inverse_is_no_frame(frame, fine):
    """It was refused by the last net alone, as a fault of ours."""
    sites = [np.array([[0.0, 0.0], [9.0, 9.0]]) + j / 10 for j in range(3)]
    fusion = fuse(sites, Gaussian(shape="full"))
    matching = fusion.matching
    families = {key: replace(family, frame=np.array(frame)) for key, family in matching.families.items()}
    turned = {"atom": replace(matching, families=families)}
    with nullcontext() if fine else pytest.raises(InputError, match="is not one of what the sites sent"):
        check_answers(sites, turned)


def with_frame_of_words(slim):
    """Seed 10212270 of the fuzzed slim fusions: the last net alone caught it."""
    (key, family), *_ = slim.families.items()
    return replace(slim, families={key: replace(family, frame="x")})


@pytest.mark.parametrize(
    ("family", "change"),
    [
        (NormalGamma(), lambda slim: replace(slim, pattern=slim.pattern.with_(arrays={"values": np.zeros((0, 7))}))),
        (Gaussian(), lambda slim: replace(slim, prior=Spectrum(c=None))),
        (Gaussian(), with_frame_of_words),
    ],
    ids=["values of another width", "a prior that is no number", "a frame of words"],
)
def test_parts_of_a_slim_fusion_fit_together(tmp_path, family, change):
    slim = fuse([np.array([[0.0, 0.0], [9.0, 9.0]]) + j / 10 for j in range(3)], family).slim()
    path = change(slim).save(tmp_path / "slim.safetensors")
    with pytest.raises(InputError, match=r"its parts do not fit together|of its Spectrum is .None."):
        load(path)


def test_reading_runs_no_fit(tmp_path, monkeypatch):
    """Directions whose hyperparameters are far off took a third of a second, of files of no size."""
    asked = []
    monkeypatch.setattr(Directions, "update", lambda self, sums: asked.append(len(sums)) or self)
    sites = [np.array([[1.0, 0.0], [0.0, 1.0], [-0.6, 0.8]])] * 3
    fusion = fuse(sites, Directions(), screens=["outliers"])
    for whole in (fusion, fusion.slim()):
        asked.clear()
        load(whole.save(tmp_path / "x.safetensors", force=True))
        assert asked == [1]


@pytest.mark.parametrize(("b", "fine"), [(1.0, True), ("1.0", False), (np.nan, False)])
def test_a_prior_of_words_has_no_odds(b, fine):
    """One was refused by the last net alone, as a fault of ours."""
    sites = [np.array([[0.0, 0.0], [9.0, 9.0]]) + j / 10 for j in range(3)]
    matching = fuse(sites).matching
    changed = {"atom": replace(matching, prior=Spectrum(b=b))}
    with nullcontext() if fine else pytest.raises(InputError, match="has no odds"):
        check_answers(sites, changed)


def test_arrays_over_a_set_that_was_never_matched_are_named():
    axes = {"v": ("atom", None)}
    sites = [LocalModel({"v": np.array([[0.0, 0.0], [9.0, 9.0]]) + j / 10}, axes) for j in range(3)]
    fusion = fuse(sites)
    with pytest.raises(InputError, match="'v' runs over 'feature', of which there is no matching"):
        check_answers([site.with_(axes={"v": ("atom", "feature")}) for site in sites], fusion.matchings)


def test_an_atom_of_which_no_density_is_known_is_refused():
    """Its posterior has no positive scale: every value alone had an evidence, and confidences failed."""
    sites = [np.array([[0.0, 0.0], [9.0, 9.0]]) + j / 10 for j in range(3)]
    matching = fuse(sites, Gaussian()).matching
    family = NoAtoms(**{f.name: getattr(matching.families["values"], f.name) for f in fields(Gaussian)})
    with pytest.raises(InputError, match="is not one of what the sites sent"):
        check_answers(sites, {"atom": replace(matching, families={"values": family})})


class NoAtoms(Gaussian):
    """A family that knows the evidence of values and fails at what they add to atoms."""

    def log_predictive(self, rows, sums):
        raise np.linalg.LinAlgError("not positive definite")


def test_noise_below_its_own_floor_is_learned_all_the_same():
    """A file said so; where sites state standard errors the search had bounds without anything between them."""
    axes, error = {"v": ("atom", None)}, {"v": np.full((2, 2), 0.01)}
    sites = [LocalModel({"v": np.array([[0.0, 0.0], [9.0, 9.0]]) + j / 10}, axes, variance=error) for j in range(4)]
    fusion = fuse(sites)
    matching = fusion.matching
    families = {key: replace(family, floor=np.array([1e-320, 1e119])) for key, family in matching.families.items()}
    stack = stack_arrays([site.arrays["v"] for site in sites])
    stack = replace(stack, variance=np.full(stack.values.shape, 0.01))
    learned = families["v"].learn(stack, matching.stacked_labels, None)
    assert np.isfinite(learned.noise).all()


def test_arrays_that_do_not_run_over_a_set_are_not_matched_by_it(tmp_path):
    """A file whose global values were those of another array loaded, and failed when a page was made of it."""
    axes = {"v": ("atom", None), "w": (None, None)}
    sites = [LocalModel({"v": np.array([[0.0, 0.0], [9.0, 9.0]]) + j / 10, "w": np.eye(2)}, axes) for j in range(3)]
    fusion = fuse(sites, {"v": Gaussian()})
    [(set_name, matching)] = fusion.matchings.items()
    fusion.matchings[set_name] = replace(matching, values={"v": matching.values["v"], "w": matching.values["v"]})
    with pytest.raises(InputError, match="its matching of set 'atom' is not of the sites it holds"):
        load(fusion.save(tmp_path / "fusion.safetensors"))


def test_plain_arrays_are_of_one_set_of_one_name(tmp_path):
    """Seed 10146594 of the fuzzed fusions: a set of another name loaded, and failed when it was diagnosed."""
    fusion = fuse([np.array([[0.0, 0.0], [9.0, 9.0]]) + j / 10 for j in range(3)])
    fusion._fit.matchings = {" ": fusion.matching}
    with pytest.raises(InputError, match="its matching of set ' ' is not of the sites it holds"):
        load(fusion.save(tmp_path / "fusion.safetensors"))
