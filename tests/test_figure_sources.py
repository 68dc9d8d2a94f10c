"""Figures in tables of the documentation stand in a record, and records say where they come from."""

import json

import numpy as np
import pytest

from shared.first_wins import added, first_wins, first_wins_told
from studies import EXPERIMENTS, importing


@pytest.fixture
def study(monkeypatch):
    yield from importing(monkeypatch, "")


@pytest.fixture
def told(monkeypatch):
    monkeypatch.syspath_prepend(EXPERIMENTS.parent / "docs" / "tools")
    module = __import__("figure_sources")
    return module, [table for path in module.documents() for table in module.tables(path)]


def test_tables_say_where_their_figures_come_from(told):
    _, tables = told
    assert [t.name for t in tables if not t.kind] == []
    assert [t.name for t in tables if t.kind == "unrecorded"] == []


def test_their_figures_stand_there(told):
    module, tables = told
    missing = {t.name: sorted(module.unsupported(t)) for t in tables if t.kind == "from"}
    assert len(missing) > 5
    assert {name: found for name, found in missing.items() if found} == {}


def test_a_figure_that_no_record_has_is_noticed(told, tmp_path, monkeypatch):
    module, _ = told
    monkeypatch.setattr(module, "ROOT", tmp_path)
    (tmp_path / "a.md").write_text("| x | .248 | 12 | 1,034 | -.5 |\n")
    page = tmp_path / "b.md"
    rows = "| x | 0.25 | 13 | 1034 | .5 |\n| y | some words beside .25 and .7 and 99 | | | |\n"
    page.write_text(f"<!-- from: a.md -->\n| | p | q | r | s |\n|---|---|---|---|---|\n{rows}")
    (table,) = module.tables(page)
    assert module.unsupported(table) == {"13", ".7"}


def test_a_source_holds_for_the_next_table_only(told, tmp_path, monkeypatch):
    module, _ = told
    monkeypatch.setattr(module, "ROOT", tmp_path)
    rows = "| | p | q |\n|---|---|---|\n| x | 1 | 2 |\n| y | 3 | 4 |\n"
    (tmp_path / "b.md").write_text(
        f"<!-- cited: a book -->\n{rows}\n{rows}\nwords\n\n| | p |\n|---|---|\n| x | a word |\n"
    )
    assert [t.kind for t in module.tables(tmp_path / "b.md")] == ["cited", ""]


def test_the_page_of_claims_is_what_records_say(study):
    claims = study("claims")
    written, made = (
        [line for line in text.split("## Studies")[0].splitlines() if "(../benchmarks)" not in line]  # of the machine
        for text in (claims.PAGE.read_text(encoding="utf-8"), claims.page())
    )
    assert written == made, "run python experiments/claims.py"


def test_records_say_where_they_come_from(study):
    provenance = study("provenance")
    assert {path.name: missing for path in provenance.records() if (missing := provenance.lacking(path))} == {}


def test_records_are_of_the_code_of_today_or_exempt(study):
    provenance = study("provenance")
    assert [wrong for path in provenance.records() if (wrong := provenance.outdated(path))] == []
    assert [folder for folder in provenance.EXEMPT if not (provenance.ROOT / folder).exists()] == []


def test_what_a_run_keeps_says_where_it_comes_from_and_of_which_code(study, tmp_path, monkeypatch):
    provenance = study("provenance")
    monkeypatch.setattr(provenance, "ROOT", tmp_path)
    path = tmp_path / "x" / "results.json"
    provenance.keep(path, {"rows": [1, 2]}, {"seeds": [3]})
    assert provenance.lacking(path) == []
    assert provenance.outdated(path) == ""
    assert provenance.kept(path) == provenance.resumed(path) == {"rows": [1, 2]}
    assert provenance.kept(tmp_path / "none.json") == provenance.resumed(tmp_path / "none.json") == {}
    code = json.loads(path.read_text())["provenance"]["code"]
    assert "__init__.py" in code["modules"]
    hashed = code["modules"]["__init__.py"]
    path.write_text(path.read_text().replace(f'"__init__.py": "{hashed}"', '"__init__.py": "another"'))
    assert "other code (__init__.py)" in provenance.outdated(path)
    monkeypatch.setitem(provenance.HARMLESS, ("__init__.py", "another", hashed), "names alone")
    assert provenance.outdated(path) == ""
    monkeypatch.delitem(provenance.HARMLESS, ("__init__.py", "another", hashed))
    assert provenance.resumed(path) == {}
    provenance.EXEMPT["x"] = "a reason"
    assert provenance.outdated(path) == ""


def test_words_do_not_count_as_code(study, tmp_path):
    provenance = study("provenance")
    (tmp_path / "a.py").write_text(
        '"""Words."""\nx = 1  # a remark\n\n\ndef f():\n    """More\n    words."""\n    return x\n'
    )
    (tmp_path / "b.py").write_text("# other words\nx = 1\ndef f():\n    return x\n")
    assert provenance.without_words(tmp_path / "a.py") == provenance.without_words(tmp_path / "b.py")
    (tmp_path / "b.py").write_text("x = 2\ndef f():\n    return x\n")
    provenance.without_words.cache_clear()
    assert provenance.without_words(tmp_path / "a.py") != provenance.without_words(tmp_path / "b.py")


def test_paired_intervals_hold_the_truth_as_often_as_they_say(study):
    paired = study("paired").paired
    rng = np.random.default_rng(0)
    found = [paired(rng.normal(0.3, 1, 8), np.zeros(8)) for _ in range(2000)]
    assert np.mean([p.low <= 0.3 <= p.high for p in found]) == pytest.approx(0.95, abs=0.015)
    assert paired([1.0, 1.2, 0.9], [0.0, 0.1, 0.0]).verdict == "ahead"
    assert paired([0.0, 0.1, 0.0], [1.0, 1.2, 0.9]).verdict == "behind"


def test_tables_of_studies_are_those_of_their_records(study):
    """With what was run at their head, where `write_record` made them."""
    markdown, found = study("study").markdown, 0
    for path in study("provenance").records():
        record = json.loads(path.read_text(encoding="utf-8"))
        if path.name == "results.json" and "tables" in record:
            head, rest = markdown(record).split("\n", 1)
            text = path.with_name("tables.md").read_text(encoding="utf-8")
            assert text.startswith(head), path
            assert text.endswith(rest), path
            found += 1
    assert found > 5


def test_seeds_of_topics_are_those_that_were_stated(monkeypatch):
    for module in importing(monkeypatch, "planned_topics"):
        run = module("run")
        stated = (EXPERIMENTS / "planned_topics" / "plan.md").read_text(encoding="utf-8")
        assert "3000, 3001, ..., 3009, ten" in stated
        assert list(run.SEEDS) == list(range(3000, 3010))


def test_topics_merged_one_by_one_reach_the_number_that_is_told():
    rng = np.random.default_rng(0)
    sites = [rng.dirichlet(np.full(30, 0.1), 6) for _ in range(5)]
    assert first_wins(sites, 1.0).max() + 1 == 30
    assert first_wins(sites, -1.0).max() + 1 == 6
    for K in (8, 15, 22):
        labels = first_wins_told(sites, K)
        assert abs(labels.max() + 1 - K) <= 1
        assert set(labels) == set(range(labels.max() + 1))
        np.testing.assert_allclose(added(np.vstack(sites), labels).sum(), 30.0)
