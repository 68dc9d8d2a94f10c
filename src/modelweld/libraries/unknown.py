"""What to say of a model that no adapter reads: what to do instead, by what it is."""

from __future__ import annotations

from collections.abc import Mapping

SINGLE = ("coef_", "estimators_", "tree_", "components_", "support_vectors_", "dual_coef_")
"""What fitted models have that are no sets of interchangeable parts, or whose parts are not matched here."""


def remedy(model: object) -> str:
    """What to do with a model that cannot be read.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> remedy(LogisticRegression().fit([[0.0], [1.0]], [0, 1]))[:45]
    'It has no interchangeable parts, so there is '
    """
    bases = {f"{cls.__module__}.{cls.__name__}" for cls in type(model).__mro__}
    if "torch.nn.modules.module.Module" in bases:
        return (
            "Networks are read as torch.nn.Sequential of Linear layers and activations: wrap its layers as one, "
            "Sequential(net.fc1, ReLU(), net.fc2), which shares their weights."
        )
    if isinstance(model, Mapping) and any(type(part).__module__.startswith("torch") for part in model.values()):
        return (
            "A state_dict does not say which activations lie between its layers: give the torch.nn.Sequential itself."
        )
    if any(hasattr(model, name) for name in SINGLE):
        return (
            "It has no interchangeable parts, so there is nothing to match: average coefficients by their precision, "
            "or let the sites' predictions vote (an ensemble)."
        )
    return (
        "Give its parameters as a LocalModel (named arrays and their axes), or write an adapter: two functions, see "
        "modelweld.libraries."
    )
