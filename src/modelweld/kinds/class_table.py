"""Class-conditional tables: what each class looks like, feature by feature. Classes have names, so nothing is matched.

Arrays: `means (class, feature)`, `variances (class, feature)`, `counts (class)`. Sites are aligned by the names of
their classes; a site need not know them all.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from modelweld.core.values import Array, Key
from modelweld.families import Family
from modelweld.inputs.local_model import LocalModel
from modelweld.kinds.fused_parts import common_facts
from modelweld.kinds.kind import Facts, Kind, lay_out
from modelweld.kinds.layout import Layout, mapping
from modelweld.results.fit_result import FitResult

HOWS = {"counts": "the mean and variance of all sites' rows of a class together"}
"""Ways to make fused parameters, the default first."""

ARRAYS = {"means": ("class", "feature"), "variances": ("class", "feature"), "counts": ("class",)}
"""Axes of all arrays."""


def class_table(
    means: Array,
    variances: Array,
    counts: Array,
    classes: Sequence[str],
    *,
    features: Sequence[str] | None = None,
    facts: Facts | None = None,
) -> LocalModel:
    """A table as it leaves a site.

    Parameters
    ----------
    means, variances, counts : arrays (C, D), (C, D), (C,)
        Of the rows of each class.
    classes : sequence of str
        Names of the classes.
    features : sequence of str, optional
        Names of the features.
    facts : mapping, optional
        What is needed to write it again.

    Examples
    --------
    >>> table = class_table(np.zeros((2, 3)), np.ones((2, 3)), np.array([5.0, 7.0]), ["ill", "well"])
    >>> table.kind, table.arrays["counts"]
    ('class-table', array([5., 7.]))
    """
    arrays = {"means": means, "variances": variances, "counts": counts}
    return LocalModel(
        **lay_out(arrays, ARRAYS, arrays, **{"class": classes, "feature": features}),
        partial=["class"],
        kind="class-table",
        facts=facts or {},
    )


class ClassTable(Kind):
    """Tables of what each class looks like."""

    name = "class-table"
    hows = HOWS
    stands_for_points = False

    def layout(self, model: LocalModel) -> Layout:
        """What a table must look like."""
        return Layout(
            sets=(),
            arrays=ARRAYS,
            needed=tuple(ARRAYS),
            not_negative=("variances", "counts"),
            divisors=("variances", "counts"),
            facts={"labels": mapping},
        )

    def families(self, models: Sequence[LocalModel]) -> dict[Key, Family]:
        """Nothing is matched."""
        return {}

    def fuse(self, fusion: FitResult, how: str) -> LocalModel:
        """Means and variances of all rows of each class, wherever they are."""
        models = fusion.models
        means, variances, counts = (
            np.stack([np.asarray(m.arrays[name]) for m in models]) for name in ("means", "variances", "counts")
        )
        total = counts.sum(axis=0)
        share = (counts / np.where(total > 0, total, 1.0))[:, :, None]
        centre = (share * means).sum(axis=0)
        spread = (share * (variances + (means - centre) ** 2)).sum(axis=0)
        first = models[0]
        labels = {name: label for m in models for name, label in m.facts["labels"].items()}
        facts = {**common_facts(models), "labels": labels}
        classes, features = first.coordinates["class"], first.coordinates.get("feature")
        return class_table(centre, spread, total, classes, features=features, facts=facts)

    def has_places(self, model: LocalModel) -> bool:
        """Means lie in the space of features."""
        return True
