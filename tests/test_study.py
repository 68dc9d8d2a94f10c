"""What the paper's studies share: work that resumes, results that make tables and a page, the command for them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

EXPERIMENTS = Path(__file__).parents[1] / "experiments"


@pytest.fixture
def study(monkeypatch):
    from joblib.externals.loky import get_reusable_executor

    get_reusable_executor().shutdown()  # workers that other tests left behind would not find the study's files
    monkeypatch.syspath_prepend(EXPERIMENTS)
    import study

    return study


@pytest.fixture
def page(study):
    import page

    return page


def squared(x):
    return {"square": x * x}


def broken(x):
    raise ValueError(x)


def drawn(results, folder):
    (folder / "curve.svg").write_text('<?xml?><svg><defs><path id="p"/></defs><use href="#p"/></svg>')
    return [("curve.svg", "A <curve>")]


@pytest.fixture
def squares(study):
    """A study of two squares."""
    return study.Study(
        name="squares",
        title="Squares <of numbers>",
        question="How large are squares?",
        tasks=lambda quick: [study.Task(f"x/{x}", squared, (x,)) for x in range(2 if quick else 3)],
        summary=lambda results: study.Summary(
            tables=[study.Table("Squares", ["x", "square"], [[n, r["square"]] for n, r in results.items()], "a note")],
            claims=[study.Claim("They grow.", "0 < 1", True), study.Claim("They fall.", "no", False)],
        ),
        draw=lambda results, folder: [study.Figure(*f) for f in drawn(results, folder)],
        needs={},
    )


@pytest.mark.parametrize("jobs", [1, 2])
def test_every_task_is_done_once(study, squares, tmp_path, jobs):
    results = study.carried_out(squares.tasks(False), tmp_path, jobs)
    assert [r["square"] for r in results.values()] == [0, 1, 4]
    again = study.carried_out([study.Task(f"x/{x}", broken, (x,)) for x in range(3)], tmp_path, jobs)
    assert again == results


def test_what_was_done_before_a_failure_is_kept(study, tmp_path):
    tasks = [study.Task("good", squared, (3,)), study.Task("bad", broken, (1,))]
    with pytest.raises(ValueError, match="1"):
        study.carried_out(tasks, tmp_path, 1)
    assert json.loads((tmp_path / "good.json").read_text())["square"] == 9
    assert not (tmp_path / "bad.json").exists()


def test_results_tables_and_page(study, page, squares, tmp_path):
    results = study.carried_out(squares.tasks(True), tmp_path / "tasks", 1)
    record = study.write(squares, results, tmp_path, quick=False)
    assert {"commit", "date", "versions", "settings"} <= record["provenance"].keys()
    assert json.loads((tmp_path / "results.json").read_text()) == json.loads(json.dumps(record))
    text = (tmp_path / "tables.md").read_text()
    assert "| x/1 | 1 |" in text
    assert "- yes: They grow." in text
    assert "- NO: They fall." in text
    html = page.page([tmp_path])
    assert "Squares &lt;of numbers&gt;" in html
    assert "<of numbers>" not in html
    assert '<img alt="A &lt;curve&gt;" src="data:image/svg+xml;base64,' in html
    assert html.index("What is claimed") < html.index("How large are squares?")
    assert "quick version" not in html
    assert "http" not in html


def test_a_quick_run_gives_no_verdicts(study, page, squares, tmp_path):
    results = study.carried_out(squares.tasks(True), tmp_path / "tasks", 1)
    record = study.write(squares, results, tmp_path, quick=True)
    assert record["claims"] == ()
    assert "They grow" not in (tmp_path / "tables.md").read_text() + page.page([tmp_path])
    assert "quick version" in page.page([tmp_path])


def test_a_missing_library_is_named_before_the_work(study, squares, capsys):
    from dataclasses import replace

    with pytest.raises(SystemExit) as ended:
        study.check_needs(replace(squares, needs={"no_such_library": "studies"}))
    assert "in this clone: pip install -e '.[studies]'" in capsys.readouterr().err
    assert ended.value.code == study.NEEDS


def test_reproduce_adds_nothing_where_a_study_has_said_what_to_install(study, monkeypatch, tmp_path):
    import reproduce

    monkeypatch.setattr(sys, "argv", ["reproduce.py", "all", "--quick", "--out", str(tmp_path)])
    for code, ended in (
        (study.NEEDS, 1),
        (9, f"the study 'simulated' stopped; what it had done is kept in {tmp_path}"),
    ):
        done = subprocess.CompletedProcess([], code)
        monkeypatch.setattr(subprocess, "run", lambda *words, done=done, **options: done)
        with pytest.raises(SystemExit) as left:
            reproduce.main()
        assert str(left.value.code).startswith(str(ended))


def test_programs_send_tasks_whose_functions_name_the_library_or_keep_what_they_read(tmp_path):
    words = ["--smoke", "--jobs", "2", "--out", str(tmp_path)]
    done = subprocess.run([sys.executable, EXPERIMENTS / "verdicts/real.py", *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "results.json").read_text())["cells"]
