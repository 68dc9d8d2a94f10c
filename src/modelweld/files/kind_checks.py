"""A model that says its kind must look like one: files come from anywhere, and kinds trust what they get."""

from __future__ import annotations

from modelweld.inputs.local_model import LocalModel
from modelweld.kinds import kind_named


def check_kind(model: LocalModel) -> None:
    """Refuse a model without the arrays, axes, signs or facts of its kind; a kind that is not known needs nothing.

    Examples
    --------
    >>> check_kind(LocalModel({"means": [[1.0]]}, {"means": ("component", None)}, kind="mixture"))
    Traceback (most recent call last):
    modelweld.errors.InputError: a mixture has an array covariances or variances, and this one has ['means']. \
Make it with modelweld.export, or leave the kind out.
    """
    kind = kind_named(model.kind)
    if kind is not None:
        kind.layout(model).check(model)
