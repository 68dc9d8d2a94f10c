"""A model that says its kind must have what the kind needs: files come from anywhere, and kinds trust what they get."""

from __future__ import annotations

from modelweld.errors import InputError
from modelweld.local import LocalModel

NEEDS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "mixture": (("means", "covariances|variances", "counts"), ("counted",)),
    "hmm": (
        ("means|symbols|rates", "covariances|variances|symbols|rates", "moves", "starts", "counts"),
        ("counted",),
    ),
    "network": (("W0", "b0", "W1", "b1"), ("activation", "labels")),
    "topics": (("words", "counts", "alpha", "eta"), ("counted", "documents")),
    "sparse-gp": (("inputs", "values", "lengthscales", "outputscale", "noise", "mean"), ("kernel|kernels",)),
    "class-table": (("means", "variances", "counts"), ("labels",)),
}
"""Kind -> arrays and facts (one of those between bars). A kind that is not listed needs nothing."""


def check_kind(model: LocalModel) -> None:
    """Refuse a model without the arrays or facts of its kind.

    Examples
    --------
    >>> check_kind(LocalModel({"means": [[1.0]]}, {"means": ("component", None)}, kind="mixture"))
    Traceback (most recent call last):
    modelweld.errors.InputError: a mixture has an array covariances or variances, and this one has ['means']. \
Make it with modelweld.export, or leave the kind out.
    """
    arrays, facts = NEEDS.get(model.kind, ((), ()))
    held = set(model.arrays)
    if model.kind == "network":  # as many biases as weights, numbered without a gap
        depth = max(sum(name[:1] == letter and name[1:].isdigit() for name in held) for letter in "Wb")
        arrays = (*arrays, *(f"{letter}{i}" for i in range(2, depth) for letter in "Wb"))
    for names in arrays:
        if not held & set(names.split("|")):
            raise InputError(
                f"a {model.kind} has an array {' or '.join(names.split('|'))}, and this one has {sorted(held)}. "
                "Make it with modelweld.export, or leave the kind out."
            )
    for names in facts:
        if not set(model.facts) & set(names.split("|")):
            raise InputError(
                f"a {model.kind} states {names.split('|')[0]!r} among its facts, and this one does not. Make it with "
                "modelweld.export, or leave the kind out."
            )
