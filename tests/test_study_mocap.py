"""The study of movements: its people, sessions and paths, and quick runs of all of it."""

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
    names = data.activity_names()
    first = {names[a] for a in people[0].activity}
    assert {names[a] for a in people[1].activity} - first == {
        "Box",
        "SideBend",
        "SideReach",
        "ToeTouchTwoHands",
        "UpDown",
    }


def test_the_two_people_have_no_part_in_the_choice(study):
    assert not {"13", "14"} & {take.subject for take in study("data").takes()}


def test_visits_have_the_evidence_of_the_librarys_family(study):
    from modelweld import Moments

    rng = np.random.default_rng(0)
    means, root, n = rng.normal(size=(5, 3)), rng.normal(size=(5, 3, 3)), rng.uniform(0.5, 9, (5, 1))
    values = np.hstack([means, (root @ root.transpose(0, 2, 1)).reshape(5, 9)])
    weight = np.repeat(n, 12, axis=1)
    unit = np.array([1.0, 2.0, 0.5])
    ours = study("visits").Visits(mean=np.full(3, 0.3), strength=0.2, scale=0.7, unit=unit)
    theirs = Moments(mean=np.full(3, 0.3), strength=0.2, freedom=5.0, scale=np.diag(0.7 * unit))
    found = ours.log_evidence(ours.rows(values, None, weight))
    np.testing.assert_allclose(found, theirs.log_evidence(theirs.rows(values, None, weight)))
    sums = ours.rows(values, None, weight)[:4].reshape(2, 2, -1).sum(axis=1)
    assert ours.update(sums).log_evidence(sums).sum() > ours.log_evidence(sums).sum()


@pytest.mark.studies
def test_quick_run(tmp_path):
    scores = quick_run("mocap", tmp_path)["results"]["default restart 8"]["scores"]
    assert scores["means + covariances"]["hamming"] < scores["local models"]["hamming"]


@pytest.mark.studies
def test_choice(study, tmp_path, monkeypatch):
    monkeypatch.setattr("sys.argv", ["choose.py", "--quick", "--jobs", "1", "--out", str(tmp_path)])
    choose = study("choose")
    choose.main(choose.STUDY)
    assert "| means + covariances |" in (tmp_path / "tables.md").read_text()


def test_people_who_are_compared_had_no_part_in_any_choice(study):
    people, sessions = study("people"), study("sessions")
    groups = people.groups(0)
    assert [len(g) for g in groups] == [size for size, number in people.SIZES.items() for _ in range(number)]
    names = {p.name for group in groups for p in group}
    chosen = {p.name.removesuffix(" again") for pair in (*sessions.pairs(0), *sessions.strangers(0)) for p in pair}
    assert not names & chosen
    for group in groups:
        shown = [set(p.activity) for p in group]
        assert all(any(own & other for other in shown if other is not own) for own in shown)


def test_states_named_by_the_truth_are_as_good_as_states_can_be(study):
    named = study("people").named
    path, activity = np.array([0, 0, 0, 1, 1, 2]), np.array([5, 5, 6, 6, 6, 5])
    assert named(path, activity).tolist() == [5, 5, 5, 6, 6, 5]
