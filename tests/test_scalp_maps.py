"""Components of mne's ICA: what the contract of adapters (test_adapters.py) does not ask."""

import numpy as np
import pytest

import modelweld

pytestmark = pytest.mark.mne


@pytest.fixture
def subjects():
    """ICAs of three subjects, channels of the last in another order."""
    from adapted.mne_ica import ADAPTED, CHANNELS

    case, found = ADAPTED["ICA"], {}
    for j in range(3):
        found[f"subject {j}"] = case.fit(case.data(np.random.default_rng(j), 1000))
    last = found["subject 2"]
    order = np.arange(8)[::-1]
    last.pca_components_ = last.pca_components_[:, order]
    last.ch_names = [CHANNELS[i] for i in order]
    return found


def test_labels_are_written_to_every_subject(subjects):
    fusion = modelweld.fuse(subjects)
    assert (fusion.K, fusion.counts.tolist()) == (3, [3, 3, 3])
    subjects["subject 0"].labels_ = {"eog": [0], "modelweld 7": [1]}
    modelweld.label_components(fusion, subjects)
    assert set(subjects["subject 0"].labels_) == {"eog", "modelweld 0", "modelweld 1", "modelweld 2"}
    for labels, ica in zip(fusion.labels, subjects.values(), strict=True):
        for atom in range(3):
            assert ica.labels_[f"modelweld {atom}"] == np.flatnonzero(labels == atom).tolist()


def test_rare_groups_are_not_written(subjects):
    modelweld.label_components(modelweld.fuse(subjects), subjects, least=4)
    assert all(ica.labels_ == {} for ica in subjects.values())


def test_other_subjects_are_refused(subjects):
    fusion = modelweld.fuse(subjects)
    with pytest.raises(modelweld.InputError, match=r"the fusion is of subjects 'subject 0'.*found 'x'"):
        modelweld.label_components(fusion, {"x": subjects["subject 0"]})


def test_an_ica_that_is_not_fitted_is_refused():
    import mne

    with pytest.raises(modelweld.InputError, match="not fitted"):
        modelweld.read(mne.preprocessing.ICA(3))
