"""How far a job has come: told in order, to those who progress_to, without any influence on the result."""

import contextlib
import io
from functools import partial

import joblib
import pytest
from rich.console import Console
from rich.progress import Progress

import modelweld
from modelweld import InputError, LocalModel
from modelweld.demo.simulate import sparse
from modelweld.files import save
from modelweld.progress import COMPILING, progress_to, report_progress, track
from modelweld.progress.bar import Steps
from modelweld.shards import fuse_shards, group_sites

VALUES = sparse(8, 6, 4, 0.3, 3.0, 1.0, 1.0, seed=2).values
SITES = {
    "numpy": ({"search": modelweld.Search(engine="numpy")}, VALUES),
    "compiled": ({"search": modelweld.Search(engine="compiled")}, VALUES),
    "thorough": ({"search": "thorough"}, VALUES),
    "fragments": ({}, [LocalModel({"v": v}, {"v": ("atom", None)}, variance={"v": 0.05}) for v in VALUES]),
}


@pytest.mark.parametrize("name", SITES)
def test_who_listens_hears_steps_and_changes_nothing(tmp_path, name):
    options, sites = SITES[name]
    heard = []
    watched = modelweld.fuse(sites, **options, progress=lambda *step: heard.append(step))
    alone = modelweld.fuse(sites, **options)
    files = [save(f, tmp_path / f"{i}.safetensors") for i, f in enumerate((watched, alone))]
    assert files[0].read_bytes() == files[1].read_bytes()
    assert "matching sites" in {what for what, _, _ in heard}
    assert all(what and 0 <= done <= (total if total is not None else done) for what, done, total in heard)
    before = len(heard)
    modelweld.fuse(sites, **options)
    assert len(heard) == before


def sites_in_shards(**options):
    return fuse_shards(group_sites(VALUES, 4), **options)


def sites_in_partitions(**options):
    return modelweld.train_and_fuse(lambda values: LocalModel({"v": values}, {"v": ("atom", None)}), VALUES, **options)


CALLS = {
    "fuse": (partial(modelweld.fuse, VALUES), {"matching sites"}),
    "train_and_fuse": (sites_in_partitions, {"training", "matching sites"}),
    "fuse_shards": (sites_in_shards, {"fusing shards", "merging shards", "polishing", "matching sites"}),
}


@pytest.mark.filterwarnings("ignore::modelweld.errors.SmallShardWarning")
@pytest.mark.parametrize("name", CALLS)
def test_progress_means_the_same_everywhere(name, capsys, monkeypatch):
    call, steps = CALLS[name]
    heard = []
    call(progress=lambda *step: heard.append(step))
    assert steps <= {what for what, _, _ in heard}
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    for silent in (None, False):
        call(progress=silent)
    assert capsys.readouterr().err == ""
    call(progress=True)
    assert "matching sites" in capsys.readouterr().err
    monkeypatch.setattr("sys.stderr.isatty", lambda: False, raising=False)
    call(progress=True)
    assert capsys.readouterr().err == ""
    with pytest.raises(InputError, match="progress is True, False or a function"):
        call(progress="yes")


def on_processors(name, n_jobs):
    """What a call finds with so many processors."""
    if name == "fuse":
        return CALLS[name][0](search=modelweld.Search(n_jobs=n_jobs))
    return CALLS[name][0](n_jobs=n_jobs)


@pytest.mark.filterwarnings("ignore::modelweld.errors.SmallShardWarning")
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("n_jobs", [0, -2, 1.5, "all"])
def test_n_jobs_means_the_same_everywhere(name, n_jobs):
    with pytest.raises(InputError, match="n_jobs is a number of processors, -1 for all of them or None for one"):
        on_processors(name, n_jobs)


@pytest.mark.filterwarnings("ignore::modelweld.errors.SmallShardWarning")
@pytest.mark.parametrize("name", CALLS)
def test_no_answer_depends_on_n_jobs(name):
    with joblib.parallel_config(backend="threading"):
        one, two, all_of_them = (on_processors(name, n) for n in (None, 2, -1))
    assert one.objective == two.objective == all_of_them.objective


def test_a_sweep_is_told_site_by_site():
    heard = []
    modelweld.fuse(VALUES, progress=lambda *step: heard.append(step), search=modelweld.Search("plain", engine="numpy"))
    sweeps = [done for what, done, total in heard if what == "matching sites"]
    assert sweeps == [*range(len(VALUES) + 1)] * (len(sweeps) // (len(VALUES) + 1))


def test_the_inner_listener_hears_and_the_outer_one_is_back_afterwards():
    inner, outer = [], []
    with progress_to(lambda *step: outer.append(step)):
        with contextlib.suppress(ZeroDivisionError), progress_to(lambda *step: inner.append(step)):
            report_progress("a", 1, 2)
            raise ZeroDivisionError
        with progress_to(None):
            assert list(track("xy", "b", 2)) == ["x", "y"]
    report_progress("nobody", 0)
    assert inner == [("a", 1, 2)]
    assert outer == [("b", 0, 2), ("b", 1, 2), ("b", 2, 2)]


def test_confidences_and_diagnostics_tell_too():
    heard = set()
    fusion = modelweld.fuse(VALUES)
    with progress_to(lambda what, done, total: heard.add(what)):
        fusion.confidence()
        fusion.diagnosis.sites()
        fusion.worth_merging()
    assert heard - {COMPILING} == {"drawing matchings", "comparing sites", "weighing sites", "turning sites"}


def test_draws_tell_who_asks():
    fusion, heard = modelweld.fuse(VALUES), []
    listener = lambda *step: heard.append(step)  # noqa: E731
    fusion.confidence(progress=listener)
    assert ("drawing matchings", 2, 2) in heard
    for fixed in (True, False):
        heard.clear()
        fusion.posterior.sample(draws=4, chains=3, warm_up=1, fixed=fixed, progress=listener)
        assert ("drawing matchings", 3, 3) in heard
    with pytest.raises(InputError, match="progress is True, False or a function"):
        fusion.posterior.sample(draws=4, progress="yes")


def test_the_time_left_is_that_of_the_present_step():
    clock = [100.0]
    console = Console(file=io.StringIO(), force_terminal=True, width=120)
    display = Progress(console=console, get_time=lambda: clock[0], auto_refresh=False)
    steps = Steps(display)
    for done in range(51):
        steps("matching sites", done, 100)
        clock[0] += 2.0
    (line,) = display.tasks
    assert (line.description.strip(), line.total, line.completed) == ("matching sites", 100, 50)
    assert line.time_remaining == pytest.approx(100, abs=4)
    steps("learning", 0, None)
    (line,) = display.tasks
    assert (line.description.strip(), line.total, line.time_remaining) == ("learning", None, None)
