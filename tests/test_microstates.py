"""Microstates of pycrostates: what the contract of adapters (test_adapters.py) does not ask."""

import numpy as np
import pytest

import modelweld

pytestmark = pytest.mark.microstates


@pytest.fixture(scope="module")
def subjects():
    """Fitted models of three subjects, channels of the last in another order, with places."""
    import mne
    from pycrostates.cluster import ModKMeans
    from pycrostates.io import ChData, ChInfo

    from adapted.pycrostates_models import ADAPTED, CHANNELS

    case, found = ADAPTED["ModKMeans"], {}
    montage = mne.channels.make_standard_montage("biosemi16")
    for j in range(3):
        X, order = case.data(np.random.default_rng(j)), np.arange(8)[:: -1 if j == 2 else 1]
        info = mne.create_info([CHANNELS[i] for i in order], 100.0, "eeg").set_montage(montage)
        model = ModKMeans(4, n_init=5, random_state=j)
        model.fit(ChData(X[:, order].T, ChInfo(info=info)), verbose="ERROR")
        found[f"subject {j}"] = model
    return found


def test_maps_are_matched_by_names_of_channels(subjects):
    fusion = modelweld.fuse(subjects)
    assert (fusion.K, fusion.counts.tolist()) == (4, [3] * 4)
    model = subjects["subject 2"]
    at = [model.info["ch_names"].index(name) for name in fusion.model().info["ch_names"]]
    own, fused = model.cluster_centers_[:, at], fusion.model().cluster_centers_
    assert np.abs((own * fused[fusion.labels[2]]).sum(1)).min() > 0.99
    assert fusion.parameters.total("counts").sum() == sum(len(model.labels_) for model in subjects.values())


def test_fused_maps_are_saved_and_know_where_channels_are(subjects, tmp_path):
    from pycrostates.io import read_cluster

    fused = modelweld.fuse(subjects).model()
    fused.save(tmp_path / "fused_pycrostates.fif")
    again = read_cluster(tmp_path / "fused_pycrostates.fif")
    assert np.allclose(again.cluster_centers_, fused.cluster_centers_)
    first = subjects["subject 0"]
    for name, channel in zip(fused.info["ch_names"], fused.info["chs"], strict=True):
        expected = first.info["chs"][first.info["ch_names"].index(name)]["loc"][:3]
        assert np.allclose(channel["loc"][:3], expected)


def test_places_stay_at_home_if_asked(subjects):
    sent = [modelweld.read(model, places=False, site=name) for name, model in subjects.items()]
    assert sent[0].facts["settings"]["places"] == {}
    fused = modelweld.fuse(sent).model()
    assert np.isfinite(fused.cluster_centers_).all()
    assert fused.info.get_montage() is None


def test_a_model_without_maps_is_refused():
    from pycrostates.cluster import ModKMeans

    with pytest.raises(modelweld.InputError, match="no maps"):
        modelweld.read(ModKMeans(4))
