import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import modelweld
from modelweld.cli.demonstration import describe
from modelweld.demo import hospitals


@pytest.fixture(scope="module")
def result():
    return hospitals.run()


def test_what_is_sent_adds_up(result):
    assert result.patients == [303, 270, 117, 99]
    for model, patients in zip(result.models, result.patients, strict=True):
        assert model.arrays["counts"].sum() == pytest.approx(patients)
        assert (model.arrays["ill"] <= model.arrays["counts"] + 1e-9).all()
    components = sum(model.sizes["component"] for model in result.models)
    swiss = result.models[2].sizes["component"]
    assert result.numbers_sent == 12 * components - 2 * swiss


def test_means_and_standard_errors_are_in_clinical_units():
    measured, ill = hospitals.load_hospital("cleveland")
    model = hospitals.train(measured, ill)
    counts, means = model.arrays["counts"], model.arrays["means"]
    np.testing.assert_allclose(counts @ means / counts.sum(), measured.mean(axis=0), rtol=0.01)
    within = counts @ (model.variance["means"] * counts[:, None]) / counts.sum()
    between = counts @ (means - measured.mean(axis=0)) ** 2 / counts.sum()
    # a mixture's total variance is the data's, beyond the floor under its components
    np.testing.assert_allclose(within + between, (1 + hospitals.ACCURACY) * measured.var(axis=0), rtol=0.01)


def test_switzerland_sends_no_cholesterol_and_what_it_puts_there_has_no_influence(result):
    swiss = result.models[2]
    np.testing.assert_array_equal(swiss.weight["means"][0], [1, 1, 0, 1, 1])
    for chol in (-50.0, 240.0, 1e6):
        means = np.array(swiss.arrays["means"])
        means[:, 2] = chol
        changed = replace(swiss, arrays={**swiss.arrays, "means": means})
        fusion = modelweld.fuse([*result.models[:2], changed, *result.models[3:]])
        np.testing.assert_array_equal(fusion.matching.stacked_labels, result.fusion.matching.stacked_labels)
        np.testing.assert_allclose(fusion.atoms, result.fusion.atoms, rtol=1e-6)


def test_page_names_the_hospitals_and_fits(result):
    text = describe(result)
    for name in ("Cleveland", "Budapest", "Switzerland", "Long", "Beach", "cholesterol"):
        assert name in text
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= 80


def test_the_table_of_groups_is_the_fusions(result):
    heads, rows = result.fusion.table().cells()
    lines = [line.split() for line in describe(result).splitlines()]
    for head, *cells in zip(heads, *rows, strict=True):
        assert [*head.split(), *" ".join(cells).replace("–", "-").replace("(fused ", "(").split()] in lines


def test_runs_as_a_program_into_a_pipe_that_knows_ascii_only(tmp_path):
    run = subprocess.run(
        [sys.executable, "-W", "error", "-m", "modelweld", "demo"],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "Budapest" in run.stdout
    assert "hospitals.html" in run.stdout
    assert "patients" in (tmp_path / "hospitals.html").read_text(encoding="utf-8")
    assert run.stderr == ""
