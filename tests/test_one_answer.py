"""An odd site among six clean ones has one answer and one warning, whichever way it comes."""

import warnings

import numpy as np
import pytest

import modelweld
from modelweld.errors import DuplicateWarning, ModelweldWarning, OutlierWarning, SiteEffectWarning
from modelweld.shards import fuse_shards

RNG = np.random.default_rng(0)
ATOMS = RNG.normal(0, 6, (6, 4))
CLEAN = [ATOMS + RNG.normal(0, 0.3, ATOMS.shape) for _ in range(6)]
ODD = {
    "oversized": (OutlierWarning, RNG.normal(0, 6, (600, 4))),
    "near copy": (DuplicateWarning, CLEAN[2] + RNG.normal(0, 0.003, ATOMS.shape)),
    "shifted": (SiteEffectWarning, ATOMS + RNG.normal(0, 0.3, ATOMS.shape) + 5.0),
}
APART = [0, 1, 2, 3, 4, 5]
WAYS = {
    "fuse": lambda odd: modelweld.fuse([*CLEAN, odd]),
    "times, one": lambda odd: modelweld.fuse([*CLEAN, odd], times=[0] * 7),
    "times, several": lambda odd: modelweld.fuse([*CLEAN, odd], times=[*APART, 2]),
    "add": lambda odd: modelweld.fuse(CLEAN).add(odd),
    "add, one time": lambda odd: modelweld.fuse(CLEAN, times=[0] * 6).add(odd, time=0),
    "add, several times": lambda odd: modelweld.fuse(CLEAN, times=APART).add(odd, time=2),
    "shards": lambda odd: fuse_shards([[*CLEAN, odd]]).to_fusion(),
}


# atoms may have moved from one time to another: a site alone at its time is no case of a shift
CASES = [(odd, way) for odd in ODD for way in WAYS if not (odd == "shifted" and "several" in way)]


@pytest.mark.parametrize(("odd", "way"), CASES)
def test_an_odd_site_has_one_answer_and_one_warning(odd, way):
    category, site = ODD[odd]
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        fusion = WAYS[way](site)
    warned = [w for w in found if issubclass(w.category, ModelweldWarning)]
    assert [w.category for w in warned] == [category]
    assert "'6'" in str(warned[0].message)
    assert str(warned[0].message) in fusion.matching.reasons
    assert len(ATOMS) == fusion.K
    assert all(len(np.unique([labels[k] for labels in fusion.labels[:6]])) == 1 for k in range(len(ATOMS)))
    assert fusion.matching.duplicates == ({6: 2} if odd == "near copy" else fusion.matching.duplicates)
    fitted = odd == "near copy" or (odd == "shifted" and way != "shards")  # shards correct nothing
    assert len(fusion.matching.excluded) == (0 if fitted else len(site))


@pytest.mark.parametrize("way", WAYS)
def test_a_clean_site_is_warned_of_by_nobody(way):
    fusion = WAYS[way](ATOMS + np.random.default_rng(1).normal(0, 0.3, ATOMS.shape))
    assert (fusion.K, fusion.matching.reasons) == (len(ATOMS), ())
