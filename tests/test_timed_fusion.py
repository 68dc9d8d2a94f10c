"""Fusing groups that have times: what users ask, and what is refused."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pytest
from sklearn.cluster import KMeans

import modelweld
from modelweld import InputError, LocalModel
from modelweld.inputs.clock import as_time, like, number_of
from shared.simulate_time import moving_groups


@pytest.fixture(scope="module")
def drawn():
    return moving_groups(2, T=12, D=3, alive=5.0, drift=2.0)


@pytest.fixture(scope="module")
def fusion(drawn):
    return modelweld.fuse(drawn.groups, times=drawn.times)


def test_the_order_of_sites_does_not_matter(drawn, fusion):
    order = np.random.default_rng(0).permutation(12)
    other = modelweld.fuse([drawn.groups[j][::-1] for j in order], times=drawn.times[order])
    assert other.objective == pytest.approx(fusion.objective, abs=1e-9)
    for j, labels in zip(order, other.labels, strict=True):
        assert np.array_equal(labels[::-1], fusion.labels[j])


def test_units_and_origin_of_time_do_not_matter(drawn, fusion):
    other = modelweld.fuse(drawn.groups, times=1000.0 + 7.0 * drawn.times)
    assert all(np.array_equal(a, b) for a, b in zip(other.labels, fusion.labels, strict=True))
    ratio = other.diagnosis.hyperparameters["memory"] / fusion.diagnosis.hyperparameters["memory"]
    assert ratio == pytest.approx(7.0, rel=0.02)


def test_several_groups_may_come_at_one_time(drawn):
    times = drawn.times // 3
    fusion = modelweld.fuse(drawn.groups, times=times)
    assert len(fusion.timeline.path(0).times) <= 4
    assert fusion.timeline.lifetimes().newest == 3.0


def test_dates_are_days(drawn, fusion):
    days = [dt.date(2024, 1, 1) + dt.timedelta(days=int(t)) for t in drawn.times]
    dated = modelweld.fuse(drawn.groups, times=days)
    assert dated.objective == pytest.approx(fusion.objective, abs=1e-6)
    assert dated.timeline.lifetimes().newest == np.datetime64("2024-01-12")
    ahead, number = dated.timeline.forecast("2024-01-15"), fusion.timeline.forecast(14)
    assert np.allclose(ahead.values, number.values)
    assert ahead.time == np.datetime64("2024-01-15")


def test_times_may_be_fields_of_models_or_named_by_site(drawn, fusion):
    models = [
        LocalModel({"values": v}, {"values": ("atom", None)}, site=f"day {t:g}", time=t)
        for v, t in zip(drawn.groups, drawn.times, strict=True)
    ]
    assert modelweld.fuse(models).objective == fusion.objective
    sites = {f"day {t:g}": v for v, t in zip(drawn.groups, drawn.times, strict=True)}
    by_name = modelweld.fuse(sites, times={name: i for i, name in enumerate(sites)})
    assert by_name.objective == fusion.objective


@pytest.mark.parametrize(
    ("times", "words"),
    [
        ([1, 2], "give one for each of the 3 sites"),
        ([1, 2, None], "its time must be a finite number, a date"),
        ([1, 2, np.nan], "its time must be a finite number, a date"),
        ([1, 2, "soon"], "its time must be a finite number, a date"),
        ([1, 2, "2024-03"], "all numbers or all dates"),
        (5, "give one for each of the 3 sites"),
        ({"a": 1}, "there is none for site '0'"),
    ],
)
def test_times_that_are_none_are_refused(times, words):
    with pytest.raises(InputError, match=words):
        modelweld.fuse([[[0.0]], [[1.0]], [[2.0]]], times=times)


def test_missing_times_are_refused_with_the_remedy():
    models = [LocalModel({"v": [[1.0]]}, {"v": ("atom", None)}, time=t) for t in (1, None, 3)]
    with pytest.raises(InputError, match=r"some sites have a time, but not '1'. Give all of them one"):
        modelweld.fuse(models)


@pytest.mark.parametrize(
    "asked",
    [
        {"prior": modelweld.BetaBernoulli()},
        {"preset": "paper"},
        {"search": modelweld.Search(splits=True)},
        {"search": modelweld.Search(engine="compiled")},
    ],
)
def test_what_has_no_meaning_in_time_is_refused(asked):
    with pytest.raises(InputError, match="times"):
        modelweld.fuse([[[0.0]], [[1.0]], [[2.0]]], times=[1, 2, 3], **asked)


def test_without_times_questions_about_them_are_refused():
    fusion = modelweld.fuse([[[0.0], [5.0]], [[0.1]]])
    assert fusion.timeline.times is None
    for ask in (
        lambda: fusion.timeline.path(0),
        lambda: fusion.timeline.at(1),
        lambda: fusion.timeline.forecast(1),
        lambda: fusion.timeline.lifetimes(),
    ):
        with pytest.raises(InputError, match="have no times"):
            ask()


def test_questions_of_another_kind_are_refused(fusion):
    with pytest.raises(InputError, match=r"times are like 11\.0"):
        fusion.timeline.forecast("2024-01-01")
    with pytest.raises(InputError, match="there is no 99"):
        fusion.timeline.path(99)
    with pytest.raises(InputError, match="level must lie between"):
        fusion.timeline.path(0, level=1.5)
    with pytest.raises(InputError, match="not asked of groups that have times"):
        fusion.diagnosis.sites()


def test_paths_pass_near_their_values_and_widen_away_from_them(drawn, fusion):
    path = fusion.timeline.path(0)
    lives = fusion.timeline.lifetimes()
    values = np.concatenate([v[labels == 0] for v, labels in zip(drawn.groups, fusion.labels, strict=True)])
    times = [t for t, labels in zip(drawn.times, fusion.labels, strict=True) if 0 in labels]
    at = [path.times.index(t) for t in times]
    assert np.abs(path.values[at] - values).max() < 0.6
    width = fusion.timeline.path(0, times=[*times[-1:], 30.0, 300.0])
    reach = (width.high - width.low)[:, 0]
    assert reach[0] < reach[1] < reach[2]
    assert path.alive[0] == 1.0
    assert lives.first[0] == path.times[0]
    narrow = fusion.timeline.path(0, level=0.5)
    assert ((narrow.high - narrow.low) < (path.high - path.low)).all()


def test_forecasts_name_who_may_live(fusion):
    near, far = fusion.timeline.forecast(12), fusion.timeline.forecast(200)
    assert (np.diff(near.alive) <= 0).all()
    assert far.newborn > near.newborn
    assert len(far.atoms) <= len(near.atoms)
    assert np.allclose(near.held, near.alive * fusion.diagnosis.hyperparameters["held"])


def test_the_model_of_a_day_is_where_atoms_are_then(fusion):
    day = fusion.timeline.at(6)
    alive = [k for k in range(fusion.K) if fusion.timeline.path(k, times=[6]).alive[0] > 0.5]
    assert len(alive) == day.K
    assert np.allclose(
        np.sort(day.atoms[:, 0]), np.sort([fusion.timeline.path(k, times=[6]).values[0, 0] for k in alive])
    )
    assert day.timeline.times is None
    assert len(day.confidence(how="conditional")) == len(day.sites)


def test_one_more_day_changes_nothing_before_it_unless_refitted(drawn):
    early = modelweld.fuse(drawn.groups[:11], times=drawn.times[:11])
    later = early.add(drawn.groups[11], time=11, refit=False)
    pairs = np.unique(np.stack([np.concatenate(early.labels), np.concatenate(later.labels[:11])]), axis=1)
    assert pairs.shape[1] == early.K
    refitted = early.add(drawn.groups[11], time=11)
    assert refitted.objective >= later.objective - 1e-9
    with pytest.raises(InputError, match="say when this one was trained"):
        early.add(drawn.groups[11])
    assert later.remove(11).K == early.K


def test_sites_without_times_take_none():
    fusion = modelweld.fuse([[[0.0], [5.0]], [[0.1]]])
    with pytest.raises(InputError, match="the sites before have no times"):
        fusion.add([[0.0]], time=3)


def test_saved_and_loaded_with_times(tmp_path, drawn, fusion):
    again = modelweld.load(fusion.save(tmp_path / "timed.safetensors"))
    assert again.timeline.times == fusion.timeline.times
    assert np.array_equal(again.timeline.forecast(14).values, fusion.timeline.forecast(14).values)
    days = modelweld.fuse(drawn.groups, times=[f"2024-{m:02d}" for m in range(1, 13)])
    assert modelweld.load(days.save(tmp_path / "dated.safetensors")).timeline.times == days.timeline.times


@pytest.mark.parametrize(
    "given", ["2024-03", "2024-03-31", dt.datetime(2024, 3, 31, 12, 5), np.datetime64("2024", "Y")]
)
def test_dates_there_and_back(given):
    time = as_time(given, "here")
    assert like(number_of(time), time) == time


def test_mixtures_in_time_give_a_mixture_of_a_day():
    from sklearn.mixture import GaussianMixture

    rng, means, models = np.random.default_rng(0), np.array([[0.0, 0.0], [6.0, 0.0], [0.0, 6.0]]), []
    for t in range(10):
        means = means + rng.normal(0, 0.3, means.shape)
        X = np.concatenate([rng.normal(m, 1, (200, 2)) for m in means[: 2 if t < 4 else 3]])
        models.append(modelweld.read(GaussianMixture(len(X) // 200, random_state=0).fit(X), X=X))
    fusion = modelweld.fuse(models, times=range(10))
    assert fusion.K == 3
    assert fusion.timeline.lifetimes().first == [0.0, 0.0, 4.0]
    today = fusion.timeline.at(9).model()
    found = np.array([today.means_[np.square(today.means_ - m).sum(1).argmin()] for m in means])
    assert np.abs(found - means).max() < 0.3
    assert len(fusion.timeline.at(2).model().means_) == 2


@pytest.mark.parametrize("unit", [1.0, 1e-6, 1e6])
def test_values_in_any_units(drawn, fusion, unit):
    other = modelweld.fuse([unit * v for v in drawn.groups], times=drawn.times)
    assert all(np.array_equal(a, b) for a, b in zip(other.labels, fusion.labels, strict=True))


def test_a_site_that_sent_nothing_and_one_group_alone():
    nothing = modelweld.fuse([np.zeros((0, 2)), [[0.0, 1.0]], [[0.1, 1.0]]], times=[1, 2, 3])
    assert nothing.K in (1, 2)
    alone = modelweld.fuse([[[0.0, 1.0], [3.0, 4.0]]], times=[5])
    assert alone.K == 2
    assert alone.timeline.forecast(6).values.shape == (2, 2)


def test_times_on_the_command_line(run, tmp_path, drawn, fusion):
    for j, values in enumerate(drawn.groups):
        np.savetxt(tmp_path / f"day-2024-01-{j + 1:02d}.csv", values, delimiter=",", header="a,b,c", comments="")
    assert run("fuse", "*.csv", "--centres", "--times", "names")[0] == 0
    assert modelweld.load(tmp_path / "fusion.safetensors").objective == pytest.approx(fusion.objective, abs=1e-6)
    rows = "".join(f"day-2024-01-{j + 1:02d},{j}\n" for j in range(12))
    (tmp_path / "times.txt").write_text("site,time\n" + rows)
    assert run("fuse", "*.csv", "--centres", "--times", "times.txt", "--force", "--keep-going")[0] == 0
    assert modelweld.load(tmp_path / "fusion.safetensors").timeline.times == list(range(12))
    code, _, complaint = run("fuse", "*.csv", "--centres", "--times", "nowhere.csv", "--force")
    assert code != 0
    assert "columns site and time" in complaint
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "late.csv").write_text((tmp_path / "day-2024-01-12.csv").read_text())
    assert run("add", "fusion.safetensors", "new/late.csv", "--centres", "--time", "12", "--force")[0] == 0
    assert modelweld.load(tmp_path / "fusion.safetensors").timeline.times[-1] == 12.0


def test_a_column_of_dates_says_when(run, tmp_path, drawn, fusion):
    rows = [f"s{j},2024-01-{j + 1:02d},{x},{y},{z}" for j, own in enumerate(drawn.groups) for x, y, z in own.tolist()]
    (tmp_path / "all.csv").write_text("site,time,a,b,c\n" + "\n".join(rows) + "\n")
    assert run("fuse", "all.csv", "--centres")[0] == 0
    found = modelweld.load(tmp_path / "fusion.safetensors")
    assert found.timeline.times[-1] == np.datetime64("2024-01-12")
    assert found.objective == pytest.approx(fusion.objective, abs=1e-6)
    code, told, _ = run("inspect", "fusion.safetensors")
    assert code == 0
    assert "alive at 2024-01-12" in told
    with_two = [rows[0], rows[0].replace("2024-01-01", "2024-01-02")]
    (tmp_path / "two.csv").write_text("site,time,a,b,c\n" + "\n".join(with_two) + "\n")
    with pytest.raises(InputError, match="site 's0' has two times, '2024-01-01' and '2024-01-02'"):
        modelweld.files.read_sites(tmp_path / "two.csv")
    (tmp_path / "three.csv").write_text("site,time\ns0,2024-01-01\n")
    with pytest.raises(InputError, match="no column of a feature"):
        modelweld.files.read_sites(tmp_path / "three.csv")


def test_a_column_of_numbers_is_a_feature_whatever_it_is_called(tmp_path):
    (tmp_path / "runs.csv").write_text("time,speed\n9.5,3\n10.5,4\n")
    [site] = modelweld.files.read_sites(tmp_path / "runs.csv", centres=True)
    assert site.time is None
    assert np.shape(site.arrays["values"]) == (2, 2)


def test_the_model_of_a_day_is_written_by_the_command_line(run, tmp_path):
    rng, places = np.random.default_rng(0), np.array([[0.0, 0.0], [6.0, 0.0], [0.0, 6.0]])
    for month in range(1, 6):
        held = places[: 2 if month < 3 else 3] + rng.normal(0, 0.1, (2 if month < 3 else 3, 2))
        points = np.concatenate([rng.normal(place, 0.4, (60, 2)) for place in held])
        model = KMeans(len(held), n_init=3, random_state=0).fit(points)
        site = modelweld.read(model, site=f"m{month}", time=f"2024-{month:02d}")
        modelweld.files.save(site, tmp_path / f"m{month}.safetensors")
    assert run("fuse", "m*.safetensors")[0] == 0
    import joblib

    for when, number in (("2024-01", 2), ("2024-05", 3)):
        assert run("model", "fusion.safetensors", "--at", when, "--out", "day.joblib", "--force")[0] == 0
        assert len(joblib.load(tmp_path / "day.joblib").cluster_centers_) == number


def test_exported_with_its_time(tmp_path):
    site = LocalModel(
        {"v": [[1.0, 2.0]], "counts": [9.0]}, {"v": ("atom", None), "counts": ("atom",)}, auxiliary=["counts"]
    )
    report = modelweld.export(site, tmp_path / "site.safetensors", time="2024-03")
    assert "when it was trained" in str(report)
    [site] = modelweld.files.read_sites(tmp_path / "site.safetensors")
    assert site.time == np.datetime64("2024-03")


def test_the_estimator_takes_times(drawn, fusion):
    X, times = np.concatenate(drawn.groups), np.repeat(drawn.times, [len(v) for v in drawn.groups])
    spahm = modelweld.SPAHM(random_state=0).fit(X, times=times)
    assert np.array_equal(spahm.labels_, np.concatenate(fusion.labels))
    assert np.array_equal(modelweld.SPAHM(random_state=0).fit_predict(X, times=times), spahm.labels_)
    assert (spahm.predict(spahm.cluster_centers_) == np.arange(fusion.K)).all()
    with pytest.raises(ValueError, match="all rows of a site have the same"):
        modelweld.SPAHM().fit(X, groups=np.zeros(len(X)), times=times)


def test_figures_of_lives_and_paths(fusion, drawn):
    pytest.importorskip("matplotlib")
    import matplotlib.pyplot as plt

    lives, paths = fusion.plot.lives(), fusion.plot.paths(dimension=1)
    assert len(lives.lines) == len(paths.lines) == fusion.K
    assert "alive at 11" in lives.get_title()
    dated = modelweld.fuse(drawn.groups, times=[f"2024-{m:02d}" for m in range(1, 13)])
    assert len(dated.plot().axes) == 4
    plt.close("all")


def test_the_page_of_a_fusion_in_time_says_what_cannot_be_asked(fusion, tmp_path):
    page = fusion.report(tmp_path / "page.html").read_text(encoding="utf-8")
    assert "not asked of groups that have times" in page


def test_the_example_of_countries_runs():
    from pathlib import Path

    from programs import printed_by

    printed = printed_by(Path(__file__).parents[1] / "examples" / "countries_over_decades.py")
    assert "alive at 2007" in printed
    assert "2012, with 90 % intervals" in printed


@pytest.mark.slow
@pytest.mark.parametrize(
    ("example", "words"),
    [("customers_over_months", "July 1998"), ("topics_over_decades", "a topic model of the 2020s")],
)
def test_examples_of_customers_and_topics_run(example, words):
    from pathlib import Path

    from programs import printed_by

    assert words in printed_by(Path(__file__).parents[1] / "examples" / f"{example}.py")


def test_a_group_that_comes_later_is_no_other_unit():
    """Two clusters on a line, then a third beside it: the first sites look as if that feature were in another unit."""
    rng = np.random.default_rng(0)
    places, models = np.array([[0.0, 0.0], [5.0, 0.0], [0.0, 5.0]]), []
    for month in range(12):
        places = places + rng.normal(0, 0.3, places.shape)
        held = places[: 2 if month < 4 else 3]
        points = np.concatenate([rng.normal(place, 0.4, (80, 2)) for place in held])
        models.append(KMeans(len(held), n_init=5, random_state=0).fit(points))
    assert modelweld.fuse(models, times=range(12)).K == 3  # a warning is an error here
