"""The report: its numbers are the fusion's, its page is one well-formed file in which nothing a site sends can act."""

import json
import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser

import numpy as np
import pytest

import modelweld
from modelweld import Counts, Directions, Gaussian, NormalGamma, Proportions, Rates
from modelweld.kinds.class_table import class_table
from modelweld.kinds.hmm import hmm
from modelweld.kinds.mixture import mixture
from modelweld.kinds.mixture_completion import merge_components, stack_components
from modelweld.kinds.sparse_gp import sparse_gp
from modelweld.kinds.topics import topics
from modelweld.report import numbers_of, page_of, write_report
from modelweld.report.coordinates import deviations, gather_values, order_by_likeness, plane
from modelweld.results.posterior import confidence, metropolis
from shared.baselines import kmeans_matching
from shared.simulate_time import moving_groups
from simulated_sets import over_segmented, poisoned, sparse

HOSTILE = "<script>alert('x')</script><img src=x onerror=alert(1)> \"&amp; </script>"
VOID = {"meta", "input", "br", "img", "link", "hr"}


class Structure(HTMLParser):
    """Elements must nest; ids, references to ids, attributes that load or act, and text are collected."""

    def __init__(self, html):
        super().__init__(convert_charrefs=True)
        self.open, self.ids, self.refers, self.attributes, self.tags, self.text = [], [], [], [], [], {}
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        for name, value in attrs:
            self.attributes.append((tag, name, value))
            if name == "id":
                self.ids.append(value)
            if name in ("aria-labelledby", "for", "list"):
                self.refers.append(value)
        if tag not in VOID:
            self.open.append((tag, dict(attrs).get("id")))

    def handle_endtag(self, tag):
        assert self.open, tag
        assert self.open.pop()[0] == tag

    def handle_data(self, data):
        where = next((i for _, i in reversed(self.open) if i), self.open[-1][0] if self.open else "")
        self.text[where] = self.text.get(where, "") + data


@pytest.fixture(scope="module", autouse=True)
def short_chains():
    """What stands on a page does not depend on how many draws it rests on; how good they are is test_joint's to ask."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(confidence, "DRAWS", confidence.FEWEST_DRAWS)
        patch.setattr(metropolis, "DRAWS", confidence.FEWEST_DRAWS)
        yield


def plain():
    return modelweld.fuse(sparse(8, 5, 4, 0.3, 3.0, 1.0, 1.0, seed=2).values)


def hostile():
    rng = np.random.default_rng(0)
    centres = rng.normal(0, 8, (4, 2))
    sites = [
        mixture(centres[k] + rng.normal(0, 0.2, (3, 2)), np.ones((3, 2)), [50, 60, 70], counted=True, site=site,
                features=[HOSTILE, "b"])
        for site, k in ((HOSTILE, [0, 1, 2]), ("north", [1, 2, 3]), ("south", [0, 2, 3]))
    ]  # fmt: skip
    return modelweld.fuse(sites)


def outliers():
    with pytest.warns(modelweld.OutlierWarning):
        return modelweld.fuse(poisoned("gross").values)


def in_fragments():
    return modelweld.fuse(over_segmented(seed=1).values, search=modelweld.Search(splits=True))


def chains():
    rng = np.random.default_rng(1)
    means, sites = rng.normal(0, 6, (5, 2)), []
    for _ in range(4):
        held = rng.permutation(5)[:4]
        emissions = {"means": means[held] + rng.normal(0, 0.1, (4, 2)), "variances": np.ones((4, 2))}
        sites.append(hmm(rng.uniform(1, 50, (4, 4)), np.ones(4), np.full(4, 99.0), emissions, counted=True))
    return modelweld.fuse(sites)


def word_models():
    rng = np.random.default_rng(2)
    atoms = rng.dirichlet(np.full(60, 0.1), 5)
    words = [f"w{i}" for i in range(60)]
    return modelweld.fuse(
        [topics(rng.multinomial(900, atoms[rng.permutation(5)[:4]]).astype(float), words) for _ in range(4)]
    )


def processes():
    rng = np.random.default_rng(3)
    Z, sites = rng.uniform(0, 10, (9, 2)), []
    for _ in range(4):
        z = Z[rng.permutation(9)[:6]] + rng.normal(0, 0.05, (6, 2))
        sites.append(sparse_gp(z, np.sin(z[:, 0]), lengthscales=1.0, outputscale=1.0, noise=0.1))
    return modelweld.fuse(sites)


def layers():
    rng = np.random.default_rng(4)
    sites = [
        modelweld.LocalModel(
            {"W0": rng.normal(size=(3, 4)), "W1": rng.normal(size=(4, 2))}, {"W0": (None, "h0"), "W1": ("h0", "h1")}
        )
        for _ in range(3)
    ]
    return modelweld.fuse(sites)


def in_time():
    drawn = moving_groups(2, T=6, D=2, alive=3.0)
    return modelweld.fuse(drawn.groups, times=[f"2024-0{1 + int(t)}" for t in drawn.times])


FUSIONS = {
    "arrays": plain,
    "hostile names": hostile,
    "outliers": outliers,
    "fragments": in_fragments,
    "hmm": chains,
    "topics": word_models,
    "gp": processes,
    "several sets": layers,
    "baseline": lambda: kmeans_matching([[[0.0], [9.0]], [[9.2], [0.2], [5.0]]], 3),
    "in time": in_time,
    "one value": lambda: modelweld.fuse([[[1.0, 2.0]]]),
    "an empty site": lambda: modelweld.fuse([np.zeros((0, 2)), [[1.0, 2.0]], [[1.1, 2.0], [7.0, 7.0]]]),
}


@pytest.fixture(scope="module", params=FUSIONS)
def fusion(request):
    return FUSIONS[request.param]()


@pytest.fixture(scope="module")
def found(fusion):
    return numbers_of(fusion)


def test_numbers_are_the_fusions(fusion, found):
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert found["J"] == len(fusion.sites)
    assert found["sites"] == fusion.sites
    assert [one["name"] for one in found["sets"]] == list(fusion.matchings)
    for one in found["sets"]:
        matching = fusion.matchings[one["name"]]
        assert one["K"] == matching.K
        assert one["labels"] == matching.stacked_labels.tolist()
        assert one["counts"] == matching.counts.tolist()
        assert one["sizes"] == np.diff(matching.offsets).tolist()
        assert one["set_aside_number"]["all"] == len(matching.excluded)
        assert one["fit"]["history"] == list(matching.history)
        values = gather_values(fusion, one["name"])
        columns = [values.columns.index(name) for name in one["columns"]]
        assert np.allclose(np.array(one["atoms"]), values.atoms[:, columns], rtol=1e-5, atol=0)
        assert sorted(one["order"]["sites"]) == list(range(len(fusion.sites)))
        assert sorted(one["order"]["atoms"]) == list(range(len(matching.counts)))


def test_scores_are_the_fusions(fusion, found):
    if fusion.timeline.times is not None or not all(m.families for m in fusion.matchings.values()):
        assert found["verdict"] is None
        assert len(found["notes"]) == 3
        return
    verdict = fusion.worth_merging()
    assert found["verdict"]["gain"] == verdict.gain
    assert [s["gain"] for s in found["verdict"]["sites"]] == [s.gain for s in verdict.sites]
    for one in found["sets"]:
        sure = np.concatenate(fusion.confidence(one["name"]))
        assert np.allclose(one["confidence"], sure, rtol=1e-3)
        diagnosed = fusion.diagnosis.sites(one["name"])
        assert [d["warning"] for d in one["diagnostics"]] == [d.warning for d in diagnosed]
        assert [d["score"] for d in one["diagnostics"]] == [d.score for d in diagnosed]
        confidences = [match["confidence"] for match in one["doubtful"]]
        assert confidences == sorted(confidences)
        assert one["doubtful_number"] >= len(confidences)
        for match in one["doubtful"]:
            site = fusion.confidence(one["name"])[fusion.sites.index(match["site"])]
            assert site[match["row"]] == match["confidence"]
            assert match["confidence"] + match["other_probability"] <= 1 + 1e-9


def test_the_page_is_one_well_formed_file(found):
    structure = Structure(page_of(found))
    assert len(structure.ids) == len(set(structure.ids))
    assert set(structure.refers) <= set(structure.ids)
    acting = [(tag, name) for tag, name, _ in structure.attributes if name.startswith("on") or name in ("src", "style")]
    assert acting == []
    links = [value for tag, name, value in structure.attributes if name in ("href", "action", "data")]
    assert links == ["#main"]
    assert not {"link", "iframe", "img", "object", "base"} & set(structure.tags)
    assert structure.tags.count("script") == 2
    page = page_of(found).replace("http://www.w3.org/2000/svg", "")
    assert not [words for words in ("http:", "https:", "url(", "@import") if words in page]
    assert json.loads(structure.text["numbers"]) == found
    policy = next(value for _, name, value in structure.attributes if name == "content" and "default-src" in value)
    for tag in ("style", "script"):
        text = structure.text[tag]
        assert f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'" in policy


def test_a_hostile_name_stays_text():
    found = numbers_of(hostile())
    html = page_of(found, title=HOSTILE)
    assert HOSTILE not in html
    assert "<img" not in html
    structure = Structure(html)
    assert structure.tags.count("script") == 2
    assert structure.text["title"] == HOSTILE
    carried = json.loads(structure.text["numbers"])
    assert carried["sites"][0] == HOSTILE
    assert carried["sets"][0]["columns"][0] == HOSTILE
    fusion = plain()
    fusion._fit.settings = {HOSTILE: {HOSTILE: [HOSTILE]}}
    assert "<img" not in page_of(numbers_of(fusion))


def test_figures_and_sentences_stand_in_the_page():
    fusion = outliers()
    html = page_of(numbers_of(fusion))
    structure = Structure(html)
    text = " ".join(structure.text.values())
    assert f"{fusion.K} groups ({fusion.shared} shared) in the models of {len(fusion.sites)} sites" in text
    assert f"{len(fusion.matching.excluded)} are excluded" in text
    assert fusion.worth_merging().sentence[1:] in text
    assert numbers_of(fusion)["sets"][0]["alerts"][0]["text"] == fusion.matching.reasons[0]
    for symbol in ("σ", "σ₀", "μ₀", "γ₀", "α"):
        assert symbol in text


def test_lives_and_paths_on_the_page_are_the_fusions():
    fusion = in_time()
    found = numbers_of(fusion)
    told, lives = found["sets"][0]["time"], fusion.timeline.lifetimes()
    assert told["newest"] == "2024-06"
    assert told["names"][0] == "2024-01"
    for k in range(fusion.K):
        assert (told["first"][k], told["last"][k]) == (str(lives.first[k]), str(lives.last[k]))
        assert told["alive"][k] == pytest.approx(lives.alive[k], abs=1e-4)
        path, own = fusion.timeline.path(k), told["paths"][k]
        steps = len(own["times"])
        for name in ("values", "low", "high"):
            drawn = np.array(own[name])[:, [told["columns"].index(f"dim {d}") for d in range(2)]]
            assert np.allclose(drawn, getattr(path, name)[:steps], rtol=1e-3, atol=1e-9)
        assert np.allclose(found["sets"][0]["groups"]["means"][k], fusion.atoms[k], rtol=1e-4)
    assert told["sentence"] in page_of(found)
    assert numbers_of(fusion.timeline.at("2024-03"))["sets"][0]["time"] is None


def test_distances_in_time_are_from_where_the_atom_was():
    times = np.arange(8.0)
    sites = [[[t, 0.0], [5.0 + t, 3.0]] for t in times]
    fusion = modelweld.fuse(sites, times=times, families=modelweld.Drift(noise=0.01, spread=9.0, memory=100.0))
    _, spread = deviations(gather_values(fusion, "atom"), fusion.matching.stacked_labels, fusion.counts)
    assert fusion.K == 2
    assert spread.max() < 0.5  # from where they were last seen, it would be four


def test_what_was_asked_for_is_on_the_page():
    sites = sparse(8, 5, 4, 0.3, 3.0, 1.0, 1.0, seed=2).values
    fusion = modelweld.fuse(sites, modelweld.Gaussian(shape="full"), seed=3, search=modelweld.Search(splits=False))
    found = numbers_of(fusion)
    assert found["settings"] == fusion.diagnosis.settings
    text = Structure(page_of(found)).text["fit-section"]
    asked = "families Gaussian(shape='full'); prior auto; search Search(splits=False); site effects auto"
    assert f"Settings: {asked}" in text
    assert "Settings:" not in page_of(numbers_of(FUSIONS["baseline"]()))


def test_features_have_their_names_in_warnings():
    rng = np.random.default_rng(0)
    atoms = rng.normal(0, 5, (8, 2))
    values = [atoms + rng.normal(0, 0.2, atoms.shape) for _ in range(6)]
    values[2] = values[2] + [0.0, 0.6]
    sites = [
        modelweld.LocalModel(
            {"v": v}, {"v": ("atom", "feature")}, coordinates={"feature": ["age", "pressure"]}, site=f"s{j}"
        )
        for j, v in enumerate(values)
    ]
    (warned,) = [d.warning for d in modelweld.fuse(sites, site_effects=False).diagnosis.sites() if d.warning]
    assert "above the others' in feature 'pressure'" in warned
    sites[4] = sites[4].with_(arrays={"v": values[4] + np.array([1e5, 0.0])})
    with pytest.warns(modelweld.OutlierWarning, match="largest in feature 'age'"):
        modelweld.fuse(sites, site_effects=False)


@pytest.mark.slow
def test_numbers_have_separators_in_the_verdict():
    drawn = sparse(40, 60, 3, 0.05, 9.0, 1.0, 1.0, seed=0)
    found = numbers_of(modelweld.fuse(drawn.values))
    assert found["sets"][0]["N"] > 1000
    assert f" of {found['sets'][0]['N']:,} values are shared" in found["verdict"]["sentence"]


def test_a_fusion_that_matched_nothing_has_a_page_of_classes(tmp_path):
    table = class_table(
        np.array([[1.25, 2.0], [3.0, 4.0]]), np.ones((2, 2)), np.array([9.0, 9.0]), ["a", "<b>"], facts={"labels": {}}
    )
    fusion = modelweld.fuse({"north": table, "south": table})
    with pytest.raises(modelweld.InputError, match="nothing was matched"):
        numbers_of(fusion)
    with pytest.raises(modelweld.InputError, match="nothing was matched"):
        fusion.worth_merging()
    assert "classes by name" in repr(fusion)
    page = fusion.report(tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<td>&lt;b&gt;</td><td>18</td><td>9</td><td>9</td><td>3.00</td><td>4.00</td>" in page
    assert "<script" not in page


@pytest.mark.parametrize(
    "family",
    [None, Gaussian(shape="full"), NormalGamma(), Rates(), Proportions(), Counts(), Directions()],
    ids=lambda family: type(family).__name__,
)
def test_every_family_has_a_page(tmp_path, family):
    """A NormalGamma's had none: its `shape` is numbers, a Gaussian's a word."""
    rng = np.random.default_rng(0)
    sites = [np.abs(rng.normal([[1, 9], [9, 2], [30, 30]], 0.3)) for _ in range(3)]
    if isinstance(family, Proportions):
        sites = [s / 50 for s in sites]
    if isinstance(family, Counts):
        sites = [np.round(s * 10) for s in sites]
    if isinstance(family, Directions):
        sites = [s / np.linalg.norm(s, axis=1, keepdims=True) for s in sites]
    fusion = modelweld.fuse(sites, family)
    assert type(fusion.matching.families["values"]).__name__ in page_of(numbers_of(fusion, draws=False))


def test_a_file_is_written(tmp_path):
    fusion = plain()
    path = write_report(fusion, tmp_path / "report.html", title="Ours")
    assert path.read_text(encoding="utf-8") == page_of(numbers_of(fusion), "Ours")


@pytest.mark.parametrize("name", ["page.png", "page.safetensors"])
def test_a_page_is_called_what_it_is(tmp_path, name):
    with pytest.raises(modelweld.InputError, match=r"Call it 'page\.html'"):
        plain().report(tmp_path / name)
    assert not list(tmp_path.iterdir())
    assert plain().report(tmp_path / "page", draws=False).exists()


def test_what_is_too_large_is_left_out_and_said(monkeypatch):
    limits = {
        "verdicts.MOST_PAIRS": 1,
        "verdicts.MOST_DIAGNOSED": 1,
        "numbers.MOST_VALUES": 1,
        "numbers.MOST_SITES": 3,
    }
    for name, value in limits.items():
        monkeypatch.setattr(f"modelweld.report.{name}", value)
    fusion = plain()
    found = numbers_of(fusion)
    one = found["sets"][0]
    assert (found["verdict"], one["diagnostics"], one["confidence"], one["members"]) == (None, None, None, None)
    assert found["J"] == 5
    assert found["sites"] == ["0", "2", "4"]
    assert one["labels"] == np.concatenate([fusion.labels[j] for j in (0, 2, 4)]).tolist()
    assert one["N"] == len(fusion.matching.stacked_labels)
    distances = [match["distance"] for match in one["doubtful"]]
    assert distances == sorted(distances, reverse=True)
    assert len(found["notes"]) == 6
    Structure(page_of(found))


def test_a_mixtures_ellipses_are_those_of_merged_components():
    fusion = hostile()
    drawn = numbers_of(fusion)["picture"]
    means, spreads, counts = merge_components(*stack_components(fusion._fit), fusion.matching.stacked_labels)
    order = [[HOSTILE, "b"].index(name) for name in drawn["features"]]
    assert np.allclose(drawn["atoms"]["means"], means[:, order], rtol=1e-4)
    assert np.allclose(np.diagonal(drawn["atoms"]["covariances"], axis1=1, axis2=2), spreads[:, order], rtol=1e-4)
    assert np.allclose(drawn["atoms"]["counts"], counts, rtol=1e-4)


def far_apart_in(feature, units):
    """Three groups that differ in one feature beside their width; another has larger numbers and says nothing."""
    rng, sites = np.random.default_rng(0), []
    centres, widths = np.tile([5.0, 9000.0, 1.0], (3, 1)), np.array([1.0, 1e6, 0.01])
    centres[:, feature] += np.array([-8, 0, 8]) * np.sqrt(widths[feature])
    centres[:, 2 if feature != 2 else 0] += np.array([3, -2, 0]) * np.sqrt(widths[2 if feature != 2 else 0])
    for j in range(5):
        means = centres + rng.normal(0, 0.1, (3, 3)) * np.sqrt(widths)
        sites.append(mixture(means, np.tile(widths, (3, 1)), [50, 60, 70], counted=True, site=f"s{j}",
                             features=["a", "b", "c"], facts={"units": units}))  # fmt: skip
    return modelweld.fuse(sites)


@pytest.mark.parametrize("feature", [0, 1, 2])
def test_the_first_axis_is_the_feature_in_which_groups_differ_most(feature):
    found = numbers_of(far_apart_in(feature, {"a": "mm", "b": "days", "c": "%"}))
    assert found["picture"]["features"][0] == ["a (mm)", "b (days)", "c (%)"][feature]
    assert found["sets"][0]["columns"][found["sets"][0]["best"][0]] == "abc"[feature]


def test_the_pages_table_is_the_fusions():
    fusion = far_apart_in(0, {"a": "mm"})
    table, found = fusion.table(), numbers_of(fusion)["sets"][0]["groups"]
    assert np.allclose(found["means"], table.means, rtol=1e-4)
    assert (found["features"], found["units"], found["points"]) == (["a", "b", "c"], ["mm", "", ""], [250, 300, 350])
    intervals = fusion.posterior.atom_intervals(found["level"])
    assert np.allclose(found["low"], intervals.low, rtol=1e-4)
    noise = np.sqrt(fusion.diagnosis.hyperparameters["noise"])
    assert np.allclose(found["noise"], noise, rtol=1e-2)
    assert sum(found["members"]) == 900


def test_what_stands_out_most_is_said_first():
    rng = np.random.default_rng(0)
    atoms = rng.normal(0, 5, (15, 4))
    values = [atoms + rng.normal(0, 0.2, atoms.shape) for _ in range(14)]
    values[2], values[6] = values[2] + [0.35, 0, 0, 0], values[6] - [0, 0.6, 0, 0]
    alerts = numbers_of(modelweld.fuse(values, site_effects=False))["sets"][0]["alerts"]
    assert [alert["sites"] for alert in alerts][:2] == [["6"], ["2"]]
    assert all("Ask" in alert["text"] for alert in alerts[:2])


def test_every_word_that_is_explained_has_its_meaning(found):
    structure = Structure(page_of(found))
    used = set(re.findall(r'(?:term|learned)\([^()]*(?:\(\)[^()]*)*, "(\w+)"', structure.text["script"]))
    assert {"noise", "spread", "aside", "confidence"} <= used
    for key in used | {"unshared", "gain", "p", "score", "surprise", "shift", "influence"}:
        assert structure.ids.count(f"word-{key}") == 1


def test_transitions_are_shares_of_added_moves():
    fusion = chains()
    drawn = numbers_of(fusion, allow_small=True)["picture"]
    moves = fusion.parameters.total("moves")[: fusion.K, : fusion.K]
    assert np.allclose(drawn["moves"], moves / moves.sum(1, keepdims=True), rtol=1e-4)


def test_words_are_the_most_probable():
    fusion = word_models()
    words = numbers_of(fusion)["sets"][0]["words"]
    total = fusion.parameters.total("words")
    for k, row in enumerate(words):
        assert row[0][0] == fusion._fit.models[0].coordinates["word"][int(total[k].argmax())]
        assert [p for _, p in row] == sorted((p for _, p in row), reverse=True)


def test_the_points_of_a_process_are_its_atoms():
    fusion = processes()
    drawn = numbers_of(fusion)["picture"]
    assert np.allclose(drawn["atoms"]["means"], fusion.parameters.estimate("inputs")[: fusion.K], rtol=1e-4)
    assert np.allclose(drawn["atoms"]["values"], fusion.parameters.estimate("values")[: fusion.K], rtol=1e-4)


def test_blocks_are_found_by_likeness():
    rng = np.random.default_rng(0)
    block = np.repeat([0, 1], 6)
    presence = block[:, None] == np.repeat([0, 1], 5)[None, :]
    presence[0, 5] = True  # so that the two are one fragment, and there is an order
    rows, columns = rng.permutation(12), rng.permutation(10)
    sites, atoms = order_by_likeness(presence[np.ix_(rows, columns)], 10)
    ordered = block[rows][sites]
    assert (np.diff(ordered) != 0).sum() == 1
    assert (np.diff((columns[atoms] >= 5).astype(int)) != 0).sum() == 1


def test_unshared_atoms_and_those_set_aside_come_last():
    presence = np.array([[1, 1, 0, 0, 1], [1, 1, 1, 0, 0], [1, 1, 0, 1, 0]], dtype=bool)
    _, atoms = order_by_likeness(presence, 4)
    assert set(atoms[:2]) == {0, 1}
    assert set(atoms[2:4]) == {2, 3}
    assert atoms[4] == 4


def test_a_typical_distance_is_one():
    fusion = plain()
    matching = fusion.matching
    distance, spread = deviations(gather_values(fusion, "atom"), matching.stacked_labels, matching.counts)
    shared = matching.counts[matching.stacked_labels] > 1
    assert np.isclose((distance[shared] ** 2).mean(), 1)
    first = np.concatenate(fusion._fit.given)[matching.stacked_labels == 0] - fusion.atoms[0]
    assert np.allclose(spread[0], np.sqrt((first**2).mean(0)))
    assert np.isnan(spread[matching.counts == 1]).all()


def test_in_two_dimensions_the_map_keeps_distances_up_to_units():
    fusion = modelweld.fuse(sparse(8, 5, 2, 0.1, 3.0, 1.0, 1.0, seed=2).values)
    values = gather_values(fusion, "atom")
    local, atoms, explained = plane(values, fusion.matching.stacked_labels, len(fusion.counts))
    assert np.isclose(explained.sum(), 1)
    unit = values.local.std(axis=0)
    assert np.allclose(
        np.linalg.norm(local[0] - atoms, axis=1), np.linalg.norm((values.local[0] - values.atoms) / unit, axis=1)
    )


def test_gamma0_is_what_a_site_is_expected_to_hold():
    from math import comb

    fusion = modelweld.fuse(sparse(20, 6, 4, 0.3, 3.0, 1.0, 1.0, seed=3).values)
    J, prior = 6, fusion.matching.prior
    assert isinstance(prior, modelweld.Spectrum)
    held = sum(m / J * comb(J, m) * float(np.exp(prior.log_rate(np.array([m]), J)[0])) for m in range(1, J + 1))
    learned = {row["symbol"]: row["value"] for row in numbers_of(fusion)["sets"][0]["fit"]["learned"]}
    assert np.isclose(learned["γ₀"], held)


def test_learned_deviations_are_roots_of_the_familys_variances():
    fusion = plain()
    learned = {row["symbol"]: row["value"] for row in numbers_of(fusion)["sets"][0]["fit"]["learned"]}
    for symbol, name in (("σ", "noise"), ("σ₀", "spread")):
        assert np.allclose(np.square(learned[symbol]), fusion.diagnosis.hyperparameters[name], rtol=1e-4)
    assert np.allclose(learned["μ₀"], fusion.diagnosis.hyperparameters["mean"], rtol=1e-4)
