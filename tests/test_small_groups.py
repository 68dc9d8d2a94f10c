"""Groups of fewer than five points describe persons: table, page, JSON and command line show these if asked."""

import json

import numpy as np
import pytest

import modelweld
from modelweld import cli
from modelweld.kinds.hmm import hmm
from modelweld.kinds.mixture import mixture
from modelweld.kinds.topics import topics
from modelweld.report import numbers_of, write_report
from modelweld.report.card import card_of
from modelweld.report.text import FEW

FEATURES = ["age", "pressure"]
PATIENT = [58.37, 458.71]


def sites(lonely=1.0):
    """Two sites with two groups of many, and one patient alone at the first; one of few within a group of many."""
    first = mixture([[40.0, 120.0], [70.0, 150.0], PATIENT], np.ones((3, 2)), [60.0, 30.0, lonely], counted=True,
                    features=FEATURES, site="north")  # fmt: skip
    other = mixture([[40.5, 121.0], [69.5, 151.0]], np.ones((2, 2)), [3.0, 50.0], counted=True, features=FEATURES,
                    site="south")  # fmt: skip
    return [first, other]


@pytest.fixture(scope="module")
def fusion():
    return modelweld.fuse(sites())


SHOWN = {
    "str": str,
    "repr": repr,
    "notebook": lambda fusion: fusion._repr_html_(),
    "table in a notebook": lambda fusion: fusion.table()._repr_html_(),
    "model card": card_of,
    "diagnosis": lambda fusion: str(fusion.diagnosis),
    "odd sites": lambda fusion: str(fusion.diagnosis.sites()),
    "confidence": lambda fusion: str(fusion.confidence(how="conditional")),
    "density": lambda fusion: str(fusion.density),
    "matching": lambda fusion: str(fusion.matching),
    "without a site": lambda fusion: str(fusion.remove("south")),
    "with a site": lambda fusion: str(fusion.add(sites()[1], site="late")),
    "what a site sends": lambda fusion: f"{sites()[0]} {sites()[0]!r}",
    "an unknown site": lambda fusion: refusal(lambda: fusion.remove("elsewhere")),
    "an export refused": lambda fusion: refusal(lambda: modelweld.export(sites()[0], "never.safetensors")),
}
"""What is read by whoever looks over a shoulder, and written into logs."""


def refusal(call):
    with pytest.raises(modelweld.InputError) as refused:
        call()
    return str(refused.value)


def digits_of_the_patient(text):
    return [value for value in ("58.37", "458.71", "58.4", "458.7") if value in text]


def test_a_patient_is_not_in_the_table(fusion):
    text, k = str(fusion.table()), int(fusion.labels[0][2])
    assert not digits_of_the_patient(text)
    row = next(line.split("  ") for line in text.splitlines() if line.strip().startswith(f"{k} "))
    assert sum(cell.strip() == FEW for cell in row) == 2 + len(FEATURES)
    assert "allow_small=True" in text
    assert digits_of_the_patient(str(fusion.table(allow_small=True)))
    assert "allow_small" not in str(fusion.table(allow_small=True))


def test_few_at_one_site_are_not_counted_out(fusion):
    heads, rows = fusion.table().cells()
    k = int(fusion.labels[1][0])
    assert (rows[k][heads.index("points")], rows[k][heads.index("south")]) == ("63", FEW)
    assert fusion.table(allow_small=True).cells()[1][k][heads.index("south")] == "3"


@pytest.mark.parametrize("draws", [False, True])
def test_a_patient_is_not_in_the_numbers(fusion, draws):
    found = numbers_of(fusion, draws=draws)
    one, k = found["sets"][0], int(fusion.labels[0][2])
    assert one["groups"]["points"][k] == FEW
    assert one["groups"]["members"][2:4] == [FEW, FEW]
    assert one["atoms"][k] == one["groups"]["means"][k] == one["members"][2] == [None, None]
    assert k not in found["picture"]["atoms"]["labels"]
    assert not digits_of_the_patient(json.dumps(found))
    assert digits_of_the_patient(json.dumps(numbers_of(fusion, draws=draws, allow_small=True)))


def test_a_patient_is_not_on_the_page(fusion, tmp_path):
    page = write_report(fusion, tmp_path / "page.html", draws=False).read_text(encoding="utf-8")
    assert not digits_of_the_patient(page)
    assert "more than 143 points" in page
    shown = write_report(fusion, tmp_path / "all.html", draws=False, allow_small=True).read_text(encoding="utf-8")
    assert digits_of_the_patient(shown)


def test_the_command_line_asks_too(fusion, tmp_path, run_cli):
    file = fusion.save(tmp_path / "fusion.safetensors")
    assert not digits_of_the_patient(run_cli("inspect", file))
    assert "--allow-small" in run_cli("inspect", file)
    assert digits_of_the_patient(run_cli("inspect", file, "--allow-small"))
    assert not digits_of_the_patient(run_cli("report", file, "--json"))
    assert digits_of_the_patient(run_cli("report", file, "--json", "--allow-small"))


@pytest.mark.parametrize("way", SHOWN)
def test_a_patient_is_in_nothing_that_is_shown(fusion, way, recwarn, capfd):
    shown = SHOWN[way](fusion)
    printed = "".join(capfd.readouterr())
    assert shown
    assert not digits_of_the_patient(shown + printed + " ".join(str(warning.message) for warning in recwarn))


def test_a_patient_far_from_all_others_is_excluded_without_a_value(recwarn):
    """Who says how far a value lies says no value: it may be one person's."""
    means, points = np.array([[40.0, 120.0], [70.0, 150.0], [58.37, 45871.3]]), [60.0, 30.0, 1.0]
    sites = [
        mixture(means[:n] + 0.1 * j, np.ones((n, 2)), points[:n], counted=True, features=FEATURES, site=f"s{j}")
        for j, n in enumerate([3, 2, 2, 2, 2])
    ]
    fusion = modelweld.fuse(sites)
    said = " ".join(str(warning.message) for warning in recwarn)
    assert "site 's0': 1 of 3 values lie" in said
    for shown in (said, card_of(fusion), repr(fusion.diagnosis.sites()), json.dumps(numbers_of(fusion))):
        assert not [digits for digits in ("4.59e+04", "4.587e+04", "45871") if digits in shown]


def test_a_state_of_few_frames_is_not_drawn_nor_are_few_starts():
    def chain(site, states):
        moves = np.array([[90.0, 40, 1.137], [30, 80, 1.263], [1.411, 1.137, 0.4]])[:states, :states]
        own = {"means": np.array([[0.0, 0.0], [9.0, 9.0], [-30.0, 20.0]])[:states], "variances": np.ones((states, 2))}
        return hmm(moves, np.array([1.0, 9, 0])[:states], moves.sum(1), own, counted=True).with_(site=site)

    fusion = modelweld.fuse([chain("north", 3), chain("south", 2), chain("east", 2)])
    small, large = (numbers_of(fusion, draws=False, allow_small=asked)["picture"] for asked in (False, True))
    assert (len(small["states"]), len(large["states"])) == (2, 3)
    assert np.allclose(np.sum(small["moves"], axis=1), 1.0, atol=1e-5)
    assert (small["starts"], large["starts"][0]) == ([None, 1.0], 0.1)


def test_figures_leave_a_patient_out(fusion):
    pytest.importorskip("matplotlib").use("Agg")
    for drawn in fusion.plot.atoms().collections[1:]:
        assert np.abs(np.asarray(drawn.get_offsets()) - PATIENT).sum(axis=1).min() > 1


def test_words_of_a_patient_are_not_in_a_frame():
    pytest.importorskip("pandas")
    counts = np.array([[50.0, 40, 1, 0], [1, 2, 60, 0], [0, 0, 0, 2]])
    sites = [topics(counts[:n], ["fever", "cough", "rash", "porphyria"], site=f"s{n}") for n in (3, 2)]
    assert "porphyria" not in modelweld.fuse(sites).table().to_pandas().to_string()
    assert "porphyria" in modelweld.fuse(sites).table(allow_small=True).to_pandas().to_string()


def test_how_wide_a_group_of_few_is_is_said_in_one_digit(recwarn):
    widths = np.array([[1.0, 1.0], [1.0, 1.0], [5837.3, 4587.1]])
    means, points = np.array([[40.0, 120.0], [70.0, 150.0], [55.0, 135.0]]), [60.0, 30.0, 2.0]
    sites = [
        mixture(means[:n] + 0.1 * j, widths[:n], points[:n], counted=True, features=FEATURES, site=f"s{j}")
        for j, n in enumerate([3, 2, 2, 2, 2])
    ]
    fusion = modelweld.fuse(sites)
    said = " ".join(str(warning.message) for warning in recwarn)
    assert "about 6e+03 in a feature" in said
    for shown in (said, card_of(fusion), repr(fusion.diagnosis.sites()), json.dumps(numbers_of(fusion))):
        assert not [digits for digits in ("5.84e+03", "4.59e+03", "5837.3") if digits in shown]


@pytest.fixture
def run_cli(capsys, monkeypatch):
    def run(*arguments):
        monkeypatch.setattr("sys.argv", ["modelweld", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            cli.main()
        printed = capsys.readouterr()
        assert not end.value.code, printed.err
        return printed.out

    return run


def test_groups_that_are_large_enough_and_unknown_ones_are_shown():
    assert digits_of_the_patient(str(modelweld.fuse(sites(lonely=5.0)).table()))
    arrays = [[site.arrays[name] for name in ("means", "variances", "counts")] for site in sites()]
    shares = [mixture(*own, counted=False, features=FEATURES) for own in arrays]
    assert digits_of_the_patient(str(modelweld.fuse(shares).table()))
