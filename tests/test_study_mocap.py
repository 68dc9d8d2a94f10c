"""The study of movements: its people, segmentations and stick figures, and a quick run of all of it."""

import numpy as np
import pytest

from studies import importing, quick_run


@pytest.fixture
def study(monkeypatch):
    yield from importing(monkeypatch, "mocap")


def test_two_people_with_three_sequences_each(study):
    data = study("data")
    people = data.two_people()
    assert [p.lengths.tolist() for p in people] == [[382, 205, 251], [446, 387, 387]]
    everyone = data.pooled(people)
    ends = np.cumsum(everyone.lengths)
    for begin, end in zip([0, *ends[:-1]], ends, strict=True):
        np.testing.assert_allclose(everyone.X[begin:end].mean(axis=0), 0.0, atol=0.3)  # as published
    names = data.held()["activity_names"]
    first, second = ({str(names[a]) for a in p.activity} for p in people)
    assert second - first == {"Box", "SideBend", "SideReach", "ToeTouchTwoHands", "UpDown"}


def test_everyone_of_a_group_shares_an_activity_with_someone(study):
    data = study("data")
    groups = data.groups(0)
    assert [len(g) for g in groups] == [size for size, number in data.SIZES.items() for _ in range(number)]
    assert {p.name for g in groups for p in g} <= set(data.UNSEEN)
    assert not {"13", "14"} & set(data.UNSEEN)
    for group in groups:
        shown = [set(p.activity) for p in group]
        assert all(any(own & other for other in shown if other is not own) for own in shown)


def test_a_path_is_its_runs(study):
    segmentations, path = study("segmentations"), np.array([0, 0, 0, 9, 9, 2])
    assert segmentations.unpacked(segmentations.runs(path)).tolist() == path.tolist()


def test_bones_keep_their_lengths_and_a_foot_stands_on_the_ground(study):
    data, drawing = study("data"), study("drawing")
    for frame in data.two_people()[1].X[::100]:
        *lines, head = drawing.bones(frame)
        assert len(lines) == 5
        assert min(line[3, 1] for line in (lines[2], lines[4])) == pytest.approx(0.0)  # an ankle
        assert head[:, 1].max() < 1.1
        for line in (lines[2], lines[4]):
            assert np.linalg.norm(np.diff(line[1:4], axis=0), axis=1).max() < 1.2 * drawing.BONES["shank"]


@pytest.mark.studies
def test_quick_run(tmp_path):
    scores = quick_run("mocap", tmp_path)["results"]["default/0"]["scores"]
    assert scores["fuse(models)"]["hamming"] < scores["no matching"]["hamming"]
