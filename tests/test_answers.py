"""The library's answers to fixed questions are those in golden/answers.json."""

import json

import numpy as np
import pytest

from answers import ANSWERS, GOLDEN, plain

EXPECTED = json.loads(GOLDEN.read_text())

CLOSE = 1e-6
"""Sums that are added in another order differ by less; another matching, or another number of sweeps, by more."""

FLAT = {"rates": 1e-3}
"""Answers whose hyperparameters climb along a ridge so flat that the processor's rounding says where they end."""


def same(found, expected, close=CLOSE):
    """Whole numbers and words exactly, real numbers to a part in a million of the largest."""
    if isinstance(expected, list) and not (expected and isinstance(expected[-1], str)):
        a, b = np.asarray(found), np.asarray(expected)
        return a.shape == b.shape and (
            np.array_equal(a, b)
            if b.dtype.kind in "iu"
            else np.allclose(a, b, rtol=close, atol=close * np.nanmax(np.abs(b), initial=0.0), equal_nan=True)
        )
    return found == pytest.approx(expected, rel=close) if isinstance(expected, float) else found == expected


def test_every_question_has_a_golden_answer():
    assert list(ANSWERS) == list(EXPECTED)


@pytest.mark.filterwarnings("ignore::modelweld.ModelweldWarning")
@pytest.mark.parametrize("question", ANSWERS)
def test_answers_are_as_they_were(question):
    found, expected = plain(ANSWERS[question]()), EXPECTED[question]
    assert found.keys() == expected.keys()
    close = {name: FLAT.get(name.split(":")[0], CLOSE) for name in expected}
    assert [name for name in expected if not same(found[name], expected[name], close[name])] == []
