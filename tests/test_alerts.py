"""Every site that a page warns of is counted: in the box at its top, and in its row of the table of sites."""

import re
from dataclasses import replace

import numpy as np
import pytest

import modelweld
from modelweld.cli.messages import spell_options
from modelweld.errors import Finding, sites_named
from modelweld.fit.effects.corrections import SiteEffects
from modelweld.fit.effects.words import describe_effects
from modelweld.fit.screening import duplicate_sites, shared_rows
from modelweld.fit.screening.swapped_columns import describe_swapped
from modelweld.kinds.mixture import mixture
from modelweld.report import numbers_of, page_of
from modelweld.report.text import NOTED

NAMES = ("north", "O'Hara", 'the "old" one', "a\\b", "x' and site 'north", "age", "Zürich", "3")
FACTOR = SiteEffects(np.zeros((1, 1)), np.log([[100.0]]))
SENTENCES = {
    "columns": (1, lambda a: describe_swapped(["'age'", "'pressure'"], a)),
    "units": (1, lambda a: describe_effects(FACTOR, [a], ["'age'"])[0]),
    "duplicates": (3, lambda *names: Finding(duplicate_sites.COINCIDED, None, names)),
    "rows": (2, lambda *names: Finding(shared_rows.SHARED, None, names)),
    "shard": (1, lambda a: f"shard 4: site {a!r}: 1 of 5 values lies far from the others."),
    "nobody": (0, lambda: duplicate_sites.ALL_ALIKE),
}


@pytest.mark.parametrize("sentence", SENTENCES)
@pytest.mark.parametrize("first", range(len(NAMES)))
def test_sentences_say_of_whom_they_are_whatever_sites_are_called(sentence, first):
    number, say = SENTENCES[sentence]
    named = [NAMES[(first + i) % len(NAMES)] for i in range(number)]
    assert sites_named(say(*named), {repr(name): name for name in NAMES}) == named


def box(found):
    return re.search(r"<dt>sites with a warning</dt><dd>([\d,]+)</dd>", page_of(found))


def mixtures(mixed=(), others=()):
    """Seven sites of three groups; of some the two columns are exchanged, of others the second is a hundredfold."""
    rng, sites = np.random.default_rng(0), {}
    for j in range(7):
        means = np.array([[10.0, 100.0], [14.0, 120.0], [18.0, 160.0]]) + rng.normal(0, [0.3, 3.0], (3, 2))
        variances = np.tile([1.0, 100.0], (3, 1))
        if j in mixed:
            means, variances = means[:, ::-1], variances[:, ::-1]
        if j in others:
            means, variances = means * [1.0, 100.0], variances * [1.0, 1e4]
        sites[f"clinic {j}"] = mixture(means, variances, [50, 60, 70], counted=True)
    return sites


@pytest.mark.filterwarnings("ignore::modelweld.ModelweldWarning")
@pytest.mark.parametrize(("mixed", "others"), [((), ()), ((4,), ()), ((), (2,)), ((4,), (2,)), ((1, 4), ())])
def test_sites_with_other_units_or_mixed_up_columns_are_counted(mixed, others):
    found = numbers_of(modelweld.fuse(mixtures(mixed, others)), draws=False)
    bad = {f"clinic {j}" for j in (*mixed, *others)}
    assert bad <= set(found["sets"][0]["warned"])
    assert int(box(found)[1]) >= len(bad)
    assert bad or box(found)[1] == "0"


@pytest.mark.filterwarnings("ignore::modelweld.ModelweldWarning")
def test_everyone_whom_the_page_names_is_counted_once():
    fusion = modelweld.fuse(mixtures((4,)))
    name, matching = fusion._fit.find_set(None)
    before = set(numbers_of(fusion, draws=False)["sets"][0]["warned"])
    more = ("site 'clinic 0': one thing.", "sites 'clinic 0' and 'clinic 6' sent another.", "site 'elsewhere': nobody.")
    fusion.matchings[name] = replace(matching, reasons=(*matching.reasons, *more))
    found = numbers_of(fusion, draws=False)
    after = before | {"clinic 0", "clinic 6"}
    assert set(found["sets"][0]["warned"]) == after
    assert box(found)[1] == str(len(after))
    found["verdict"].update(worth=True, strangers=["clinic 5", "clinic 4"])
    assert box(found)[1] == str(len(after | {"clinic 5", "clinic 4"}))
    found["verdict"].update(worth=False)
    assert box(found)[1] == str(len(after))


@pytest.mark.filterwarnings("ignore::modelweld.ModelweldWarning")
def test_sites_of_alerts_beyond_those_listed_are_counted_too():
    fusion = modelweld.fuse(mixtures())
    name, matching = fusion._fit.find_set(None)
    reasons = ["site 'clinic 0': again."] * NOTED + ["site 'clinic 3': at last."]
    fusion.matchings[name] = replace(matching, reasons=tuple(reasons))
    one = numbers_of(fusion, draws=False)["sets"][0]
    assert len(one["alerts"]) == NOTED
    assert one["warned"] == ["clinic 0", "clinic 3"]


@pytest.mark.filterwarnings("ignore::modelweld.ModelweldWarning")
def test_the_line_in_a_warning_fuses_without_the_site():
    sites = mixtures((4,))
    fusion = modelweld.fuse(sites)
    (reason,) = [text for text in fusion.matching.reasons if "Nothing is" in text]
    line = re.search(r"fusion\.remove\('(.+)', from_scratch=True\)", reason)
    found = fusion.remove(line[1], from_scratch=True)
    assert line[1] == "clinic 4"
    assert found.objective == modelweld.fuse({name: site for name, site in sites.items() if name != line[1]}).objective
    assert not any("Nothing is" in text for text in found.matching.reasons)
    assert "leave it out, modelweld fuse without its file" in spell_options(reason)
