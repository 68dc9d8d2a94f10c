"""Fitted models of every library that is read and written: what the contract in test_adapters.py runs over.

One file per model class with a dict `ADAPTED`; this module collects those whose library is installed.
"""

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np

ROWS = 137
"""Training rows of a site: a number that no axis of a parameter has."""


class Adapted:
    """A model class, and how to make sites of it.

    Subclasses write `fit`, `shuffled` and `answers`.
    """

    marker = ""
    """The pytest mark of the extra it needs, if any."""
    features = 3
    named = "feature"
    """The coordinate whose names sites must share; nothing if each site may have its own."""
    how = None
    """As in `fusion.model(how=...)`."""
    itself = 1e-6
    """How near `answers` are when a model fuses with its own shuffled copies; None where that adds evidence."""
    exactly = 1e-9
    """How near `answers` are when the same parameters went through other hands: rounding, no more."""
    refits = True
    """Whether a fit to features in another order is the same fit."""
    scales = True
    """Whether scalers before it can be undone."""

    def data(self, rng, rows=ROWS):
        """Rows of one site: three heaps, of which sites hold different shares."""
        centres = np.array([[0.0, 0.0, 0.0], [6.0, 0.0, 3.0], [0.0, 7.0, -3.0]])
        return centres[rng.choice(3, rows, p=rng.dirichlet([3.0] * 3))] + rng.normal(size=(rows, 3))

    def fit(self, X, size=3):
        """A model fitted to the rows, with so many members."""
        raise NotImplementedError

    def told(self, X):
        """What `read` must be told besides the model."""
        return {}

    def shuffled(self, model, rng):
        """The same model with its members in another order."""
        raise NotImplementedError

    def answers(self, model, X):
        """Something a user would ask of a model, that does not depend on the order of its members."""
        raise NotImplementedError

    def in_data_units(self, written, X, pipeline, jacobian):
        """What a model written without its scaler answers, and what it should, from the pipeline.

        `jacobian` is the log determinant of the scaling.
        """
        raise NotImplementedError


def collected():
    """All cases of all installed libraries."""
    found = {}
    for path in sorted(Path(__file__).parent.glob("[a-z]*.py")):
        if find_spec(path.stem.split("_")[0]) is not None:
            for name, case in import_module(f"adapted.{path.stem}").ADAPTED.items():
                found[f"{path.stem}: {name}"] = case
    return found
